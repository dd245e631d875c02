"""The fixed words of observed facts, by locale."""
# ruff: noqa: RUF001 - Chinese text has Chinese punctuation

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from contracts.fallback import Locale

Tool = Literal["lookup_knowledge", "query_logs", "query_metrics", "query_mysql", "run_command"]


@dataclass(frozen=True)
class FactWords:
    """The pieces of a fact's sentence; ``None`` stands for a tool from outside.

    ``check`` opens it, the optional pieces follow between ``comma``, ``then`` leads to the
    outcome and ``stop`` ends it.
    """

    check: Mapping[Tool | None, str]
    counted: Mapping[Tool | None, str]
    level: str
    window: str
    moment: str
    exit_code: str
    nothing: str
    something: str
    comma: str
    then: str
    stop: str


WORDS: Mapping[Locale, FactWords] = {
    "en": FactWords(
        check={
            "lookup_knowledge": "Knowledge search in {source}",
            "query_logs": "Log search in {source}",
            "query_metrics": "Metric query in {source}",
            "query_mysql": "Database query in {source}",
            "run_command": "Command on {source}",
            None: "Check of {source}",
        },
        counted={
            "lookup_knowledge": "passages returned: {count}",
            "query_logs": "matching entries: {count}",
            "query_metrics": "data points returned: {count}",
            "query_mysql": "rows returned: {count}",
            "run_command": "results returned: {count}",
            None: "results returned: {count}",
        },
        level="level {level}",
        window="{start} to {end}",
        moment="at {moment}",
        exit_code="exit code {code}",
        nothing="no matches in this scope",
        something="output was returned",
        comma=", ",
        then="; ",
        stop=".",
    ),
    "zh-CN": FactWords(
        check={
            "lookup_knowledge": "知识库检索 {source}",
            "query_logs": "日志检索 {source}",
            "query_metrics": "指标查询 {source}",
            "query_mysql": "数据库查询 {source}",
            "run_command": "命令执行于 {source}",
            None: "检查 {source}",
        },
        counted={
            "lookup_knowledge": "返回片段数 {count}",
            "query_logs": "匹配条目数 {count}",
            "query_metrics": "返回数据点数 {count}",
            "query_mysql": "返回行数 {count}",
            "run_command": "返回结果数 {count}",
            None: "返回结果数 {count}",
        },
        level="级别 {level}",
        window="{start} 至 {end}",
        moment="时间 {moment}",
        exit_code="退出码 {code}",
        nothing="该范围内无匹配",
        something="有输出返回",
        comma="，",
        then="；",
        stop="。",
    ),
}

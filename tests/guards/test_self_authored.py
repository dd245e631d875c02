"""A result that says no more than its own request is no evidence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.evidence import QueryMysqlRequest
from worker.guards.tools.query_metrics import reads_no_series
from worker.guards.tools.query_mysql import MAX_LITERALS, repeats_statement
from worker.guards.tools.run_command import repeats_command

AUTHORED_COMMANDS = [
    ("echo redis is down", "redis is down\n"),
    ("echo 'redis is down'", "redis is down\n"),
    ('echo "redis is   down"', "redis is   down\n"),
    ("echo redis   is   down", "redis is down\n"),
    ("echo -e 'redis\\nis\\tdown'", "redis\nis\tdown\n"),
    ("printf 'redis is down\\n'", "redis is down\n"),
    ("printf '%s is %s\\n' redis down", "redis is down\n"),
    ("printf 'used=%s\\n' 99%", "used=99%\n"),
    ("printf '\\x72edis \\165p \\u0041'", "redis up A"),
    ("printf '\\0162edis'", "redis"),
    ("printf '\\x4C\\x6c'", "Ll"),
    ("printf '\\u004C\\u006c'", "Ll"),
    ("printf '\\1234'", "S4"),
    ("echo '\\xyz'", "xyz\n"),
    ("echo re\\Xdis", "reXdis\n"),
    ("echo 'X'Y", "XY\n"),
    ("cat <<EOF\nredis is down\nport 6379 closed\nEOF", "redis is down\nport 6379 closed\n"),
    ('cat <<\'EOF\'\n{"status": "down"}\nEOF', '{"status": "down"}\n'),
    ("python -c \"print('redis is down')\"", "redis is down\n"),
    ("python3 -c 'print(42)'", "42\n"),
    ("awk 'BEGIN{print \"redis is down\"}'", "redis is down\n"),
    ('awk "BEGIN{print 42}"', "42\n"),
    ("echo down; echo up", "down\nup\n"),
    ("echo down&&echo up", "down\nup\n"),
    ("(echo down)|cat", "down\n"),
    ("echo `echo down`", "down\n"),
    ("echo $(echo down) now", "down now\n"),
    ("echo 'redis'down", "redisdown\n"),
    ("echo redis\\ down", "redis down\n"),
    ("echo re\\\ndis", "redis\n"),
    ("echo re\\dis", "redis\n"),
    ("echo 'C:\\new'", "C:\\new\n"),
    ("echo redis >&2; false", "redis\n"),
    ("x=down; echo $x", "down\n"),
    ("echo it\\'s down", "it's down\n"),
    ("bash -c 'echo redis,down'", "redis,down\n"),
    ("echo 红色 警报", "红色 警报\n"),
]

LOOKS = [
    ("systemctl is-active redis", "active\n"),
    ("systemctl is-active redis", "inactive\n"),
    ("redis-cli ping", "PONG\n"),
    ("redis-cli config get maxmemory", "maxmemory\n1048576\n"),
    ("grep -c ERROR app.log", "12\n"),
    ("grep ERROR app.log", "12:00:01 ERROR disk full\n"),
    ("kubectl get pods -o name", "pod/api-1\n"),
    ("curl -s -w 'code=%{http_code}' http://localhost:80/", "code=502"),
    ("df -h /mnt", "Filesystem Size Used\n/dev/sda 1G 1G\n"),
    ("echo checking; cat missing", "checking\ncat: missing: No such file or directory\n"),
    ("echo Down", "down\n"),
]


@pytest.mark.parametrize(("command", "output"), AUTHORED_COMMANDS)
def test_an_output_that_stands_in_its_command_is_self_authored(command: str, output: str) -> None:
    """Quotes, escapes and shell separators do not hide it."""
    assert repeats_command(command, output)


@pytest.mark.parametrize(("command", "output"), LOOKS)
def test_an_output_with_one_word_of_its_own_is_a_look(command: str, output: str) -> None:
    """A word ends at a separator, not at a hyphen; one new word is enough."""
    assert not repeats_command(command, output)


@pytest.mark.parametrize("mark", "'\"`;|&()<>{}$=, \n\t")
def test_no_separator_makes_a_new_word(mark: str) -> None:
    """Words that were written apart are still the command's own."""
    assert repeats_command("echo left right", f"left{mark}right\n")
    assert repeats_command(f"echo left{mark}right", "right left\n")
    assert not repeats_command(f"echo left{mark}right", "left-right\n")


@given(st.lists(st.sampled_from(["redis", "down", "5xx", "é", "-"]), min_size=1), st.booleans())
def test_whatever_echo_repeats_is_self_authored(words: list[str], quoted: bool) -> None:
    """The order and number of words do not matter, and neither do quotes around them."""
    text = " ".join(words)
    assert repeats_command(f"echo '{text}'" if quoted else f"echo {text}", text + "\n")


AUTHORED_STATEMENTS: list[tuple[str, list[object], list[list[object]]]] = [
    ("SELECT 'redis is down'", [], [["redis is down"]]),
    ("select 'redis is down' as status", [], [["redis is down"]]),
    ('SELECT "redis is down" FROM jobs LIMIT 1', [], [["redis is down"]]),
    ("SELECT 'it''s down'", [], [["it's down"]]),
    ("SELECT 'it\\'s\\ndown'", [], [["it's\ndown"]]),
    ("SELECT 'a\\tb\\rc\\0d\\\nX\\X'", [], [["a\tb\rc\0d\nXX"]]),
    ('SELECT "say ""down"" \\"now\\""', [], [['say "down" "now"']]),
    ('SELECT "", "down', [], [["", "down"]]),
    ("SELECT CONCAT('redis ', 'is down')", [], [["redis is down"]]),
    ("SELECT CONCAT_WS(', ', 'redis', 'down')", [], [["redis, down"]]),
    ("SELECT CONCAT('used ', 99, '%')", [], [["used 99%"]]),
    ("SELECT CONCAT('used ', 99.55, '%')", [], [["used 99.55%"]]),
    ("SELECT CONCAT_WS(' ', 'used', 99, 5)", [], [["used 99 5"]]),
    ("SELECT CONCAT_WS('_', 'used', 99) AS '', 'used'", [], [["used_99"]]),
    ("SELECT CONCAT('used', x, 99)", [], [["used_99"]]),
    ("SELECT 'redis' ' down'", [], [["redis down"]]),
    ("SELECT 'a' UNION ALL SELECT 'b'", [], [["a"], ["b"]]),
    ("SELECT 'a' WHERE 1=1 UNION SELECT 'b'", [], [["a"], ["b"]]),
    ("WITH x AS (SELECT 'down' AS s) SELECT s FROM x", [], [["down"]]),
    ("SELECT s FROM (SELECT 'down' AS s) AS x", [], [["down"]]),
    ("SELECT s FROM t JOIN (SELECT 'down' AS s) x ON x.s = t.s", [], [["down"]]),
    (
        "SELECT s FROM a JOIN b ON a.i = b.i JOIN (SELECT 'down' AS s) x",
        [],
        [["down"]],
    ),
    ("VALUES ROW('down', 5)", [], [["down", 5]]),
    ("SELECT * FROM (VALUES ROW('down')) AS v", [], [["down"]]),
    ("SELECT (SELECT 'down')", [], [["down"]]),
    ("SELECT IF(1, 'down', 'up')", [], [["down"]]),
    ("SELECT TRIM(LEADING 'x' FROM 'down')", [], [["down"]]),
    ("SELECT EXTRACT(YEAR FROM d), 'down' FROM t", [], [["down"]]),
    ("SELECT 1 IS DISTINCT FROM 2, 'down'", [], [[1, "down"]]),
    ("SELECT ROW_NUMBER() OVER (ORDER BY x), 'down' FROM t", [], [["down"]]),
    ("SELECT 5", [], [[5]]),
    ("SELECT -5.0", [], [[-5]]),
    ("SELECT 5", [], [["5.00"]]),
    ("SELECT 5", [], [["+5"]]),
    ("SELECT 0.25", [], [[".25"]]),
    ("SELECT 0 - 5", [], [[-5]]),
    ("SELECT 1e3", [], [[1000]]),
    ("SELECT 1E+3, 2e-1, 10.50, 7., .5", [], [[1000, 0.2, 10.5, 7, 0.5]]),
    ("SELECT '5' + 0", [], [[5]]),
    ("SELECT TRUE", [], [[1]]),
    ("SELECT FALSE", [], [[False]]),
    ("SELECT 0x646F776E", [], [["down"]]),
    ("SELECT 0X4C4c", [], [["LL"]]),
    ("SELECT x'646F776E'", [], [["down"]]),
    ("SELECT X'4C4c'", [], [["LL"]]),
    ("SELECT x'', x'4C", [], [["", "L"]]),
    ("SELECT 0x9", [], [["\t"]]),
    ("SELECT 0xFF", [], [["\ufffd"]]),
    ("SELECT /*! 'down' */", [], [["down"]]),
    ("SELECT /* nothing */ 'down' -- end", [], [["down"]]),
    ("SELECT 1--'down'", [], [["down"]]),
    ("SELECT JSON_OBJECT('status', 'down')", [], [[{"status": "down"}]]),
    ("SELECT JSON_OBJECT('status', 'down')", [], [['{"status": "down"}']]),
    ("SELECT ?", ["down"], [["down"]]),
    ("SELECT %s, %s", ["down", 5], [["down", 5]]),
    ("SELECT :text", ["down"], [["down"]]),
    ("SELECT :Z_9", ["down"], [["down"]]),
    ("SELECT :B", ["down"], [["down"]]),
    ("SELECT :_9Z", ["down"], [["down"]]),
    ("SELECT %(text)s", [True], [[True]]),
    ("SELECT :second", ["up", "down"], [["down"]]),
    ("SELECT ?", [False], [[0]]),
    ("SELECT ?, 'down'", [], [["down"]]),
    ("SELECT CONCAT('ab', ' ', 'ab'), 'b'", [], [["ab ab", "b"]]),
    ("SELECT 'down', NULL", [], [["down", None]]),
    ("SELECT NULL", [], [[None]]),
    ("SELECT ''", [], [[""]]),
    ("SELECT 'unterminated", [], [["unterminated"]]),
]

QUERIES: list[tuple[str, list[object], list[list[object]]]] = [
    ("SELECT status FROM t WHERE status='ERROR'", [], [["ERROR"]]),
    ("SELECT status FROM t WHERE status=?", ["ERROR"], [["ERROR"]]),
    ("SELECT ?, status FROM t WHERE status=?", ["x", "ERROR"], [["x", "ERROR"]]),
    ("SELECT %s, status FROM t WHERE status=%s", ["x", "ERROR"], [["x", "ERROR"]]),
    ("SELECT ?, status FROM t", [], [["x", "ERROR"]]),
    ("SELECT @@hostname WHERE @@hostname IN ('web-1')", [], [["web-1"]]),
    ("SHOW DATABASES WHERE `Database` IN (SELECT 'orders')", [], [["orders"]]),
    ("SELECT s FROM t WHERE s IN ((SELECT 'ERROR'))", [], [["ERROR"]]),
    ("SELECT n FROM t WHERE EXISTS ((SELECT 5))", [], [[5]]),
    ("SELECT status FROM t HAVING status='ERROR'", [], [["ERROR"]]),
    ("SELECT s FROM t WHERE s IN (SELECT 'ERROR' UNION SELECT 'DEAD')", [], [["DEAD"]]),
    ("SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u)", [], [[1]]),
    ("SELECT EXISTS (SELECT 1 FROM u WHERE s='ERROR'), n FROM t", [], [[1, 7]]),
    ("SELECT EXISTS (SELECT 1 FROM u)", [], [[1]]),
    ("SELECT s FROM t JOIN u ON t.s = 'ERROR'", [], [["ERROR"]]),
    ("SELECT s FROM (t JOIN u ON t.s = 'ERROR')", [], [["ERROR"]]),
    ("SELECT s FROM (t JOIN u ON t.s IN (SELECT 'ERROR'))", [], [["ERROR"]]),
    ("SELECT s FROM (t JOIN u ON t.i = u.i JOIN v ON t.s IN (SELECT 'ERROR'))", [], [["ERROR"]]),
    ("SELECT s FROM t ORDER BY FIELD(s, 'ERROR')", [], [["ERROR"]]),
    ("SELECT s FROM t GROUP BY s LIMIT 5", [], [[5]]),
    ("SELECT COUNT(*) FROM t", [], [[5]]),
    ("SELECT COUNT(1) FROM t", [], [[1]]),
    ("SELECT COUNT /* all */ (1) FROM t", [], [[1]]),
    ("SELECT SUM(CASE WHEN s='x' THEN 1 ELSE 0 END) FROM t", [], [[1]]),
    ("SELECT SUM(COALESCE(n, 0)) FROM t", [], [[0]]),
    ("SELECT VERSION()", [], [["8.0.36"]]),
    ("SELECT @@max_connections", [], [[151]]),
    ("SHOW VARIABLES LIKE 'max_connections'", [], [["max_connections", "151"]]),
    ("SELECT 'x', COUNT(*) FROM t", [], [["x", 100]]),
    ("SELECT CONCAT(host, ':', port) FROM t", [], [["web-1:80"]]),
    ("SELECT IF(a, 1, 0), b FROM t", [], [[1, 100]]),
    ("SELECT `down` FROM t", [], [["down"]]),
    ("SELECT s -- 'down'\nFROM t", [], [["down"]]),
    ("SELECT s # 'down'\nFROM t", [], [["down"]]),
    ("SELECT s /* 'down' */ FROM t", [], [["down"]]),
    ("SELECT s /* a * 'down' */ FROM t", [], [["down"]]),
    ("SELECT s /* a/b 'down' */ FROM t", [], [["down"]]),
    ("SELECT s /* 'down'", [], [["down"]]),
    ("SELECT s -- 'down'", [], [["down"]]),
    ("SELECT s -- nothing 'down'\nFROM t", [], [["down"]]),
    ("SELECT s # nothing 'down'\nFROM t", [], [["down"]]),
    ("SELECT `5", [], [[5]]),
    ("SELECT `'down'` FROM t", [], [["down"]]),
    ("SELECT t.5 FROM t", [], [[0.5]]),
    ("SELECT 'down', s FROM t", [], [["down", "down for 5 min"]]),
    ("SELECT '-', s FROM t", [], [["-", "--x"]]),
    ("SELECT s FROM t", [], [["-"]]),
    ("SELECT '.', s FROM t", [], [[".", "-"]]),
    ("SELECT MAX(s) FROM t", [], [[None]]),
    ("SELECT DISTINCT `s` FROM t", [], [[None]]),
    ("SELECT 5, n FROM t", [], [[5, 15]]),
]
QUERIES += [
    (f"SELECT @@hostname {word} x IN ('web-1')", [], [["web-1"]])
    for word in ("WHERE", "HAVING", "GROUP BY", "ORDER BY", "LIMIT", "ON", "WINDOW", "where")
]
QUERIES += [
    (f"SELECT {name} FROM t", [], [[5]])
    for name in ("a5", "b$5", "$5", "@5", "a@5", "_5", "Z5", "`5`", "`a 5`", "e5")
]
QUERIES += [
    ("SELECT 5, s FROM t", [], [[5, text]])
    for text in ("sNaN", "5,3", "x5", "5e", "5e99999999999999999999", "--5", "5.5.5")
]


def request(sql: str, params: list[object]) -> QueryMysqlRequest:
    return QueryMysqlRequest.model_validate(
        {"data_source": "db", "sql": sql, "params": tuple(params)}
    )


@pytest.mark.parametrize(("sql", "params", "rows"), AUTHORED_STATEMENTS)
def test_a_row_that_is_spelled_out_in_its_statement_is_self_authored(
    sql: str, params: list[object], rows: list[list[object]]
) -> None:
    """Literals, joined literals and parameters of select lists are the agent's own words."""
    assert repeats_statement(request(sql, params), tuple(map(tuple, rows)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("sql", "params", "rows"), QUERIES)
def test_a_row_that_the_database_chose_is_a_look(
    sql: str, params: list[object], rows: list[list[object]]
) -> None:
    """A literal in a filter, a count or a comment cannot write a cell."""
    assert not repeats_statement(request(sql, params), tuple(map(tuple, rows)))  # type: ignore[arg-type]


@pytest.mark.parametrize(("extra", "expected"), [(0, False), (1, True)])
def test_more_literals_than_can_be_compared_fail_closed(extra: int, expected: bool) -> None:
    """A select list of hundreds of literals is no look, whatever came back."""
    texts = ", ".join(f"'{n}x'" for n in range(MAX_LITERALS - 1 + extra))
    sql = f"SELECT {texts}, 7, s FROM t"
    assert repeats_statement(request(sql, []), (("real",),)) is expected


@given(st.text("ab'\\ (", max_size=12), st.text("SELECT from'\"`-/*#?%():,1x", max_size=40))
def test_any_statement_can_be_read(literal: str, sql: str) -> None:
    """The reader of literals is total, and finds what was quoted properly."""
    repeats_statement(request(sql, ["p"]), (("x", 1, None),))
    quoted = literal.replace("\\", "\\\\").replace("'", "''")
    assert repeats_statement(request(f"SELECT '{quoted}' FROM t", []), ((literal,),))


@pytest.mark.parametrize(
    "query",
    ["5", " 5.5 ", "1e3", "0x1F", ".5", "vector(1)", "scalar(vector(1)) + 2", "-(3)", "1 > bool 0",
     'label_replace(vector(1), "state", "down", "", "")', "NaN", "Inf", "vector(1) or vector(2)",
     "vector(1) and vector(2)", "vector(1) unless vector(2)", 'label_join(vector(1), "a", "b")',
     "0XfF", "0x1B", "0xcC", "5.", "10.25", "1.5E-3", "1e+10", "2*3", "6379",
     r'label_replace(vector(1), "state", "do\"wn {up} \\", "", "")',
     r"label_replace(vector(1), 'state', 'do\'wn {up} \\', '', '')",
     "label_replace(vector(1), `state`, `down {up}`, ``, ``)",
     'label_replace(vector(1), "state", "down\\\nup", "", "")',
     'vector(1) + "up', "vector(1) + 'up", "vector(1) + `up"],
)  # fmt: skip
def test_a_metric_expression_of_constants_is_self_authored(query: str) -> None:
    """An expression that reads no series shows the agent's own number."""
    assert reads_no_series(query)


@pytest.mark.parametrize(
    "query",
    ["up", "rate(errors[5m])", '{job="api"}', "vector(1) + up", "job:rate:5m", "time()",
     '{"up"}', "e5", "sum(vector(1) * on() up)", "vector5", "vector:5", ":vector", "_vector",
     r'label_replace(vector(1), "a\\", "", "", "") + up',
     r"label_replace(vector(1), 'a\\', '', '', '') + up",
     r"label_replace(vector(1), `a\`, ``, ``, ``) + up",
     "vector(1) + '' + up + ''", "vector(1) + `` + up + ``", 'vector(1) + "" + up + ""'],
)  # fmt: skip
def test_a_metric_expression_that_reads_a_series_is_a_look(query: str) -> None:
    """One selector is enough."""
    assert not reads_no_series(query)

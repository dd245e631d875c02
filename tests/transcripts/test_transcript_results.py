"""What a result and a call's arguments make of a record."""

import json

import pytest

from contracts.evidence import EvidenceStatus, Lifecycle, RunCommandResult
from tests.transcripts.chat import call, read_one, stdout


@pytest.mark.scenario("transcripts", "Empty results")
@pytest.mark.parametrize("blank", ["", "  \n\t", "\u200b", []])
def test_a_blank_result_is_no_evidence(blank: object) -> None:
    """A completed call that printed nothing is neither a hit nor a failure."""
    record = read_one(call("c1"), blank)
    assert record.lifecycle is Lifecycle.READY
    assert record.evidence_status is EvidenceStatus.NO_EVIDENCE
    projection = RunCommandResult.model_validate_json(record.agent_result or "")
    assert projection.evidence_status is EvidenceStatus.NO_EVIDENCE
    assert projection.exit_code == 0


@pytest.mark.scenario("transcripts", "Failed calls")
@pytest.mark.parametrize(
    "text",
    [
        "Tool call rejected for security reasons: no",
        "The tool call result is too large to return: 5 tokens.\nTry again.",
        "Error executing tool: boom",
        "Command timed out after 60 seconds",
        "Error: connection refused",
        "\nerror: You must be logged in to the server",
        'Error from server (NotFound): pods "x" not found',
        "Unable to connect to the server: dial tcp",
        "bash: line 1: kubetcl: command not found",
        "/bin/sh: 1: foo: not found",
    ],
)
def test_a_result_that_reports_a_failure_is_an_error_record(text: str) -> None:
    """Words of tool layers, shells and kubectl at the start of a result mark a failed call."""
    record = read_one(call("c1"), text)
    assert record.lifecycle is Lifecycle.ERROR
    assert record.evidence_status is EvidenceStatus.ERROR
    assert record.success is False
    assert record.agent_result is None
    assert record.error_message == text.strip().splitlines()[0]
    assert record.completed_at is not None


@pytest.mark.parametrize(
    "text", ['{"error": "no such index"}', '{"isError": true}', ' {"is_error": true, "x": 1}']
)
def test_an_error_object_is_an_error_record(text: str) -> None:
    """A result that is a JSON object with an error in it is a failed call."""
    assert read_one(call("c1"), text).evidence_status is EvidenceStatus.ERROR


@pytest.mark.scenario("transcripts", "Output about errors")
@pytest.mark.parametrize(
    "text",
    [
        "2026-01-01 12:00:00 Error: the pool is exhausted",
        "ERROR:  deadlock detected",
        'Exception in thread "main" java.lang.StackOverflowError',
        '{"error": null, "items": []}',
        '{"error": "cut off',
        "errors: 0",
    ],
)
def test_an_output_that_only_speaks_of_errors_is_evidence(text: str) -> None:
    """An error that the tool found in what it looked at is a finding, not a failed call."""
    record = read_one(call("c1"), text)
    assert record.evidence_status is EvidenceStatus.EVIDENCE_FOUND
    assert stdout(record) == text


def test_a_long_failure_gives_a_bounded_reason() -> None:
    """The reason of a failure is cut at 200 characters."""
    record = read_one(call("c1"), "Error: " + "x" * 1000)
    assert record.error_message is not None
    assert len(record.error_message) == 200


def header(request: dict[str, object]) -> str:
    return (
        f"Params used for the tool call: {json.dumps(request)}."
        " The tool call output follows on the next line.\n"
    )


@pytest.mark.parametrize(
    ("content", "output"),
    [
        (header({"command": "df -h"}) + "df -h\n/dev/sda1", "/dev/sda1"),
        (header({"command": "df -h"}) + "/dev/sda1", "/dev/sda1"),
        (header({"command": "df -h"}) + "'df' \"-h\"\n/dev/sda1", "/dev/sda1"),
        ("df -h\n/dev/sda1", "/dev/sda1"),
        ("df -h /mnt\n/dev/sda1", "df -h /mnt\n/dev/sda1"),
        ("df 'h\n/dev/sda1", "df 'h\n/dev/sda1"),
        (header({"command": "ls"}) + "x", header({"command": "ls"}) + "x"),
        ("df -h\ndf -h\n", "df -h\n"),
    ],
)
def test_lines_that_repeat_the_request_are_no_output(content: str, output: str) -> None:
    """A header with the call's own parameters and the command's echo are taken off, once."""
    assert stdout(read_one(call("c1"), content)) == output


@pytest.mark.scenario("transcripts", "Empty results")
@pytest.mark.parametrize("content", [header({"command": "df -h"}) + "df -h\n", "df -h"])
def test_a_result_that_only_repeats_the_request_is_no_evidence(content: str) -> None:
    """When nothing stands behind the echo, the tool found nothing."""
    assert read_one(call("c1"), content).evidence_status is EvidenceStatus.NO_EVIDENCE


def test_a_rejection_behind_a_header_is_a_failure() -> None:
    """The header hides no failure."""
    content = header({"command": "df -h"}) + "Tool call rejected: not allowed"
    assert read_one(call("c1"), content).evidence_status is EvidenceStatus.ERROR


def test_a_result_with_null_content_is_an_error_record() -> None:
    """Null says nothing of what the tool found: it is not taken for an empty output."""
    record = read_one(call("c1"), None)
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "RESULT_WITHOUT_CONTENT"


@pytest.mark.parametrize(
    "arguments",
    [
        "df -h",
        "{",
        "[1]",
        "null",
        '{"command": "a", "command": "b"}',
        '{"x": NaN}',
        '{"x": "\\ud800"}',
        r'{"command": "\u12"}',
    ],
)
def test_arguments_that_are_no_json_object_make_an_error_record(arguments: str) -> None:
    """A call whose scope cannot be read proves nothing, whatever came back."""
    record = read_one(call("c1", arguments=arguments), "output")
    assert record.lifecycle is Lifecycle.ERROR
    assert record.error_message == "ARGUMENTS_NOT_A_JSON_OBJECT"
    assert record.request == {}


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (r'{"command": "grep \"a\|b\" \\ x.log"}', r'grep "a\|b" \ x.log'),
        (r'{"command": "grep a\\|b"}', r"grep a\|b"),
        (r'{"command": "find -exec ls \;"}', r"find -exec ls \;"),
    ],
)
def test_a_stray_backslash_in_arguments_stands_for_itself(arguments: str, command: str) -> None:
    """An escape that JSON does not know is mended; those that it knows keep their meaning."""
    record = read_one(call("c1", arguments=arguments), "hit")
    assert record.lifecycle is Lifecycle.READY
    assert record.request == {"command": command}


@pytest.mark.parametrize("arguments", ["{}", "", '{"command": 3}', '{"command": " "}'])
def test_a_command_tool_without_its_command_makes_an_error_record(arguments: str) -> None:
    """A shell call that names no command has no scope."""
    record = read_one(call("c1", arguments=arguments), "output")
    assert record.error_message == "ARGUMENTS_WITHOUT_COMMAND"

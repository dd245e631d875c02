"""Ask a MySQL server through its own command line client."""

import subprocess
import xml.etree.ElementTree as ET

from pydantic import JsonValue

from worker.offline.incidents.recording.scene import environment


def select(sql: str, *client: str) -> list[dict[str, JsonValue]]:
    """The rows of one statement, by column; raises RuntimeError with what the server said."""
    done = subprocess.run(
        ["mariadb", *client, "--xml", "--execute", sql],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=15,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return _rows(done.stdout)


def _rows(xml: str) -> list[dict[str, JsonValue]]:
    """The rows of the client's XML answer; whole numbers become numbers, NULL becomes null."""
    if not xml.strip():
        return []
    nil = "{http://www.w3.org/2001/XMLSchema-instance}nil"
    return [
        {
            field.get("name", ""): None if field.get(nil) == "true" else _cell(field.text or "")
            for field in row
        }
        for row in ET.fromstring(xml).iter("row")
    ]


def _cell(text: str) -> JsonValue:
    return int(text) if text.isdigit() and (text == "0" or text[0] != "0") else text

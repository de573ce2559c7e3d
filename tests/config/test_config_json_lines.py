"""What is wrong in a JSON file is told with its line and what to do."""

from __future__ import annotations

import msgspec
import pytest

from acp_agent.config.json_files import explain_json, member_line


@pytest.mark.parametrize(
    ("raw", "begins"),
    [
        (b'{\n "a": nope}', "line 2 is not JSON"),
        (b'{\n "a": 1,\n', "line 3 is not JSON"),
        (b"", "line 1 is not JSON"),
        (b'{\n"a":\n"\xff"}', "line 3 is not UTF-8 text; save"),
        (b"\xef\xbb\xbf{}", "line 1 begins with a byte order mark; save"),
        (b"[" * 100_000, "it is nested too deeply; make"),
        (b'{"a": NaN}', "it is not JSON; NaN"),
    ],
)
def test_each_error_names_its_line_and_remedy(raw: bytes, begins: str) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        msgspec.json.decode(raw)

    message = str(explain_json(raw))

    assert message.startswith(begins)
    assert ";" in message


def test_a_path_leads_to_its_member_or_to_the_nearest_parent() -> None:
    text = '{\n "a": {"b": 1},\n "c": {\n  "b": 2}}'

    assert member_line(text, ("c", "b")) == 4
    assert member_line(text, ("c", "x")) == 3
    assert member_line(text, ("x",)) == 1

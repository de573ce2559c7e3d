"""The agent's entry in a file of settings: nothing else in the file changes by a byte."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from acp_agent.cli.editors.jsonc import parse
from acp_agent.cli.editors.settings import EntryPlace, add_entry, remove_entry
from acp_agent.errors import InvalidInputError

ENTRY = {"type": "custom", "command": "/opt/acp-agent", "args": [], "env": {}}
ENTRY_PLACE = EntryPlace("agent_servers", "acp-agent")

COMMENTED = b"""// Zed settings
{
  "theme": "One Dark", // the dark one
  /* agents */
  "agent_servers": {
    // mine
    "other": { "command": "other", "args": ["--acp",], },
  },
  // "vim_mode": true,
}
"""


def added(data: bytes) -> bytes:
    after = add_entry(data, ENTRY_PLACE, ENTRY)
    content: Any = parse(after.removeprefix(b"\xef\xbb\xbf")).content
    assert content["agent_servers"]["acp-agent"] == ENTRY
    return after


def test_comments_order_and_trailing_commas_stay() -> None:
    expected = COMMENTED.replace(
        b'["--acp",], },\n',
        b'["--acp",], },\n'
        b'    "acp-agent": {\n'
        b'      "type": "custom",\n'
        b'      "command": "/opt/acp-agent",\n'
        b'      "args": [],\n'
        b'      "env": {}\n'
        b"    },\n",
    )
    assert added(COMMENTED) == expected
    assert remove_entry(expected, ENTRY_PLACE) == COMMENTED


def test_a_second_setup_changes_nothing() -> None:
    once = added(COMMENTED)
    assert add_entry(once, ENTRY_PLACE, ENTRY) == once


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"", b'{\n  "agent_servers": {\n'),
        (b"// nothing yet\n", b'// nothing yet\n{\n  "agent_servers": {\n'),
        (b"{}\n", b'{\n  "agent_servers": {\n    "acp-agent"'),
        (b'{"a":1}', b'{"a":1, "agent_servers": {"acp-agent": {"type": "custom", '),
        (
            b'{\n\t"a": 1\n}\n',
            b'{\n\t"a": 1,\n\t"agent_servers": {\n\t\t"acp-agent": {\n\t\t\t"type"',
        ),
        (b'{\r\n  "a": 1\r\n}\r\n', b'{\r\n  "a": 1,\r\n  "agent_servers": {\r\n    "acp-agent"'),
        (b'{\n"a": 1 // one\n}', b'{\n"a": 1, // one\n"agent_servers": {\n'),
        (b'{\n    "agent_servers": {\n        // none\n    }\n}', b"// none\n        "),
        (b'\xef\xbb\xbf{\n  "a": 1\n}', b'\xef\xbb\xbf{\n  "a": 1,\n'),
    ],
)
def test_the_entry_is_written_as_the_file_is(before: bytes, after: bytes) -> None:
    changed = added(before)
    assert after in changed
    assert changed.count(b"\r\n") in (0, changed.count(b"\n"))


@pytest.mark.parametrize(
    "before",
    [
        b'{"a":1}',
        b'{\n  "a": 1\n}\n',
        b'{\n  "a": 1, // one\n  // two\n}\n',
        b'{\r\n\t"a": [1, 2,],\r\n}\r\n',
        b'{\n  "agent_servers": {"other": {}}\n}',
        b'{\n  "agent_servers": {\n    // none\n  }\n}\n',
        b'\xef\xbb\xbf{ "a": "// no comment", "b": 2 }',
    ],
)
def test_an_added_entry_can_be_exactly_removed(before: bytes) -> None:
    assert remove_entry(added(before), ENTRY_PLACE) == before


def test_later_entries_of_others_stay_when_ours_is_removed() -> None:
    once = added(b'{\n  "a": 1\n}\n')
    since = once.replace(
        b'"agent_servers": {\n',
        b'"agent_servers": {\n    // since\n    "new": {\n      "command": "new"\n    },\n',
    )
    after = remove_entry(since, ENTRY_PLACE)
    assert b"// since" in after
    assert parse(after).content == {"a": 1, "agent_servers": {"new": {"command": "new"}}}
    assert b"acp-agent" not in after


def test_the_users_variables_and_arguments_stay_when_the_command_moves() -> None:
    before = (
        b'{"agent_servers": {"acp-agent": {"command": "/old/acp-agent", // old\n'
        b' "args": ["--model", "demo/demo"], "env": {"K": "v"}, "own": 1}}}'
    )
    after = add_entry(before, ENTRY_PLACE, ENTRY)
    assert after == before.replace(b"/old/acp-agent", b"/opt/acp-agent")


def test_the_arguments_of_another_launcher_do_not_stay() -> None:
    before = b'{"agent_servers": {"acp-agent": {"command": "uvx", "args": ["acp-agent"]}}}'
    after = parse(add_entry(before, ENTRY_PLACE, ENTRY)).content
    assert after == {"agent_servers": {"acp-agent": {"command": "/opt/acp-agent", "args": []}}}


def test_an_entry_that_launches_in_another_way_is_replaced() -> None:
    before = b'{"agents": {"acp-agent": {"command": "acp-agent --model demo/demo", "own": 1}}}'
    entry_place, entry = EntryPlace("agents", "acp-agent"), {"argv": ["/opt/acp-agent"]}
    after = add_entry(before, entry_place, entry)
    assert parse(after).content == {"agents": {"acp-agent": {"argv": ["/opt/acp-agent"], "own": 1}}}
    assert add_entry(after, entry_place, entry) == after


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"a": 1,,}', "line 1, column 9"),
        (b'{\n  "a" 1\n}', "line 2, column 7"),
        (b"{'a': 1}", "line 1, column 2"),
        (b"{,}", "cannot be read"),
        (b'{"a": 1', "cannot be read"),
        (b'{"a": "x', "cannot be read"),
        (b"/* open", "cannot be read"),
        (b'{"a": 1} {}', "cannot be read"),
        (b'{"a": "x\ny"}', "cannot be read"),
        (b"[1]", "the file is not an object"),
        (b"null", "the file is not an object"),
        (b'{"agent_servers": []}', '"agent_servers" is not an object'),
        (b'{"agent_servers": null}', '"agent_servers" is not an object'),
        (b'{"agent_servers": {"acp-agent": 3}}', '"acp-agent" in "agent_servers"'),
        (b'{"agent_servers": {}, "agent_servers": {}}', "twice"),
        (b'{"agent_servers": {"acp-agent": {}, "acp-agent": {}}}', "twice"),
        (b'{"agent_servers": {}, "agent_\\u0073ervers": {}}', "twice"),
        (b"\xff\xfe{\x00}\x00", "not UTF-8 (byte 1)"),
        (b'{"a":' * 100_000, "too deep"),
        (b'{"a": ' + b"[" * 600 + b"]" * 600 + b"}", "too deep"),
        (b'{"a": NaN}', "NaN is no value"),
        (b'{"a": [-Infinity]}', "-Infinity is no value"),
        (b'{"a": ' + b"1" * 5000 + b"}", "a number has more digits"),
        (b'{"a": "' + b"x" * 5_000_000 + b'"}', "too large for a settings file"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        add_entry(data, ENTRY_PLACE, ENTRY)
    assert why in str(refused.value)
    assert "\n" not in str(refused.value)


NAMES = st.text(string.ascii_letters + "é/*{", min_size=1, max_size=6)
VALUES = st.recursive(
    st.none() | st.integers() | st.text('ab"\\/*,]}ü\n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Settings as people keep them: with comments, and commas behind the last member."""
    content = draw(st.dictionaries(NAMES, VALUES, max_size=4))
    if draw(st.booleans()):
        content["agent_servers"] = draw(st.dictionaries(NAMES, VALUES, max_size=2))
    indent = draw(st.sampled_from([None, 2, 4, "\t"]))
    text = json.dumps(content, indent=indent, ensure_ascii=False)
    if indent is not None:
        lines = text.split("\n")
        for index in draw(st.lists(st.integers(0, len(lines) - 1), max_size=3)):
            lines[index] += draw(st.sampled_from([" // a, b }", " /* c */", "\n\n  // d: {"]))
        text = "\n".join(lines)
        if draw(st.booleans()):
            text = text.replace("\n", "\r\n")
    return (draw(st.sampled_from(["", "// first\n"])) + text).encode()


@settings(max_examples=150, deadline=None)
@given(files())
def test_every_byte_of_a_file_stays_where_it_was_among_the_others(data: bytes) -> None:
    before: Any = parse(data).content
    after = add_entry(data, ENTRY_PLACE, ENTRY)
    assert is_subsequence(data, after)
    content: Any = parse(after).content
    assert content["agent_servers"].pop("acp-agent") == ENTRY
    before.setdefault("agent_servers", {})
    assert content == before
    assert add_entry(after, ENTRY_PLACE, ENTRY) == after
    restored: Any = parse(remove_entry(after, ENTRY_PLACE)).content
    restored.setdefault("agent_servers", {})
    assert restored == before


def is_subsequence(some: bytes, all_: bytes) -> bool:
    """Whether `all_` has the bytes of `some` in their order, blanks aside."""
    remaining = iter(all_)
    return all(byte in remaining for byte in some if byte not in b" \t\r\n")

"""Names of servers, tools and prompts: every model takes them, and no two are the same."""

from __future__ import annotations

import re

from hypothesis import given, strategies as st

from acp_agent.extensions.mcp.names import command_names, server_labels, tool_names

WORDS = st.text(max_size=90)


@given(st.lists(WORDS, max_size=8))
def test_labels_are_short_plain_and_all_different(names: list[str]) -> None:
    given_labels = server_labels(names)
    assert len(set(given_labels)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,30}", label) for label in given_labels)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "x" * 24]), WORDS), max_size=12, unique=True))
def test_tool_names_fit_every_provider_and_are_all_different(pairs: list[tuple[str, str]]) -> None:
    names = tool_names(pairs)
    assert len(set(names)) == len(pairs)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)


@given(st.lists(st.tuples(st.just("a"), WORDS), max_size=12, unique=True))
def test_the_order_in_which_tools_come_does_not_change_their_names(
    pairs: list[tuple[str, str]],
) -> None:
    forwards = dict(zip(pairs, tool_names(pairs), strict=True))
    backwards = dict(zip(pairs[::-1], tool_names(pairs[::-1]), strict=True))
    assert forwards == backwards


def test_a_plain_name_stays_as_it_is() -> None:
    assert server_labels(["memo", "memo", "My Server", ""]) == [
        "memo",
        "memo-2",
        "My_Server",
        "server",
    ]
    assert tool_names([("memo", "get_item"), ("memo", "put")]) == [
        "mcp__memo__get_item",
        "mcp__memo__put",
    ]
    assert command_names([("memo", "review code")]) == ["memo:review_code"]

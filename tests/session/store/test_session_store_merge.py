"""Joining the pieces of a text."""

from __future__ import annotations

from hypothesis import given, strategies as st

from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ChildWorked,
    CompactionSummaryText,
    ToolOutput,
    TurnEnded,
)
from acp_agent.ids import CallId, MessageId, TurnId
from acp_agent.session.store.event_codec import MAX_MERGED_CHARACTERS, merge_adjacent

texts = st.text(max_size=5)
names = st.sampled_from(["a", "b"])
own_events: st.SearchStrategy[AnyEvent] = st.one_of(
    st.builds(AgentText, message=names, text=texts),
    st.builds(AgentThought, message=names, text=texts),
    st.builds(ToolOutput, call=names, text=texts),
    st.builds(CompactionSummaryText, compaction=names, text=texts),
    st.just(TurnEnded(turn=TurnId("turn_1"))),
)
events = st.one_of(
    own_events,
    st.builds(ChildWorked, session=names, call=st.just(CallId("call")), did=own_events),
)


def by_character(given_events: list[AnyEvent]) -> list[object]:
    """Each character with the text that it belongs to; other events as they are."""
    flat: list[object] = []
    for event in given_events:
        if isinstance(event, AgentText | AgentThought):
            flat += [(type(event), event.message, letter) for letter in event.text]
        elif isinstance(event, ToolOutput):
            flat += [(ToolOutput, event.call, letter) for letter in event.text]
        elif isinstance(event, CompactionSummaryText):
            flat += [(CompactionSummaryText, event.compaction, letter) for letter in event.text]
        elif isinstance(event, ChildWorked):
            flat += [(event.session, one) for one in by_character([event.did])]
        else:
            flat.append(event)
    return flat


@given(st.lists(events, max_size=30))
def test_merging_neither_loses_nor_moves_characters(given_events: list[AnyEvent]) -> None:
    assert by_character(merge_adjacent(given_events)) == by_character(given_events)


@given(st.lists(events, max_size=30))
def test_no_two_neighbours_are_left_that_belong_together(given_events: list[AnyEvent]) -> None:
    merged = merge_adjacent(given_events)
    assert merge_adjacent(merged) == merged
    assert len(merged) <= len(given_events)


def test_only_pieces_of_the_same_text_are_joined() -> None:
    a, b = MessageId("a"), MessageId("b")
    end = TurnEnded(turn=TurnId("turn_1"))
    assert merge_adjacent(
        [
            AgentText(message=a, text="1"),
            AgentText(message=a, text="2"),
            AgentThought(message=a, text="3"),
            AgentText(message=b, text="4"),
            end,
            AgentText(message=b, text="5"),
            AgentText(message=b, text="6"),
            ToolOutput(call=CallId("b"), text="7"),
            ToolOutput(call=CallId("b"), text="8"),
        ]
    ) == [
        AgentText(message=a, text="12"),
        AgentThought(message=a, text="3"),
        AgentText(message=b, text="4"),
        end,
        AgentText(message=b, text="56"),
        ToolOutput(call=CallId("b"), text="78"),
    ]


def test_merging_does_not_change_its_input() -> None:
    given_events = [ToolOutput(call=CallId("a"), text="1"), ToolOutput(call=CallId("a"), text="2")]
    copy = list(given_events)
    merge_adjacent(given_events)
    assert given_events == copy


def test_a_joined_text_stays_of_moderate_size() -> None:
    piece = "x" * (MAX_MERGED_CHARACTERS // 4)
    merged = merge_adjacent([AgentText(message=MessageId("a"), text=piece) for _ in range(10)])
    assert [len(event.text) for event in merged] == [
        MAX_MERGED_CHARACTERS,
        MAX_MERGED_CHARACTERS,
        MAX_MERGED_CHARACTERS // 2,
    ]

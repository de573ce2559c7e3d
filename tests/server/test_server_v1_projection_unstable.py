"""What version 1's unstable updates show, and that nobody gets them who did not ask for them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from acp_agent.content import TextBlock
from acp_agent.events import (
    AnyEvent,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
    Usage,
)
from acp_agent.ids import MessageId, SessionId
from acp_agent.server.conversion import token_counts
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.v1.editor import make_session_tree
from acp_agent.session.store.event_codec import decode_event, encode_event
from protocol.codec import typed_json

CHILD = SessionId("sess_child")
MESSAGE = MessageId("msg_1")


def projected(client: ClientProfile, *events: AnyEvent) -> list[dict[str, Any]]:
    family = make_session_tree(SessionId("sess_1"), client, replay=False)
    return [
        msgspec.json.decode(typed_json.encode(update))
        for event in events
        for _, update in family.updates(event)
    ]


PLAN = PlanChanged(entries=(PlanEntry(content="Look"),))
ENTRIES = [{"content": "Look", "priority": "medium", "status": "pending"}]


def test_a_client_that_supports_plan_ids_gets_plans_by_id_and_their_removal() -> None:
    assert projected(ClientProfile(plans=True), PLAN, PlanRemoved()) == [
        {
            "sessionUpdate": "plan_update",
            "plan": {"type": "items", "planId": "plan", "entries": ENTRIES},
        },
        {"sessionUpdate": "plan_removed", "planId": "plan"},
    ]


def test_a_client_without_plan_ids_gets_an_empty_plan_for_a_removed_one() -> None:
    assert projected(ClientProfile(), PLAN, PlanRemoved()) == [
        {"sessionUpdate": "plan", "entries": ENTRIES},
        {"sessionUpdate": "plan", "entries": []},
    ]


def test_a_plan_in_an_older_journal_is_the_one_plan() -> None:
    journal_line = b'{"event":"plan_changed","entries":[{"content":"Look"}]}'
    assert decode_event(journal_line) == PLAN


SUBAGENT: list[AnyEvent] = [
    SubagentChanged(session=CHILD, title="Scout", cwd="/work", directories=("/more",)),
    SubagentChanged(session=CHILD, state="running", can_cancel=True),
    SubagentChanged(
        session=CHILD, title="", can_cancel=False, state="idle", stop_reason="end_turn"
    ),
    SubagentChanged(session=CHILD, state="idle", error="no key", error_kind="auth_required"),
    SessionMessageSent(message=MESSAGE, recipient=CHILD, content=(TextBlock(text="Look"),)),
    SessionMessageText(message=MESSAGE, text=" around"),
    SessionMessageSent(message=MESSAGE, recipient_message=MessageId("msg_2")),
]


def test_updates_of_child_sessions_have_only_the_changes() -> None:
    updates = projected(ClientProfile(subagents=True), *SUBAGENT)
    child = {"sessionUpdate": "subagent_update", "sessionId": CHILD}
    failed = {"code": -32000, "message": "no key"}
    assert updates[:4] == [
        child | {"title": "Scout", "cwd": "/work", "additionalDirectories": ["/more"]},
        child | {"state": {"state": "running"}, "capabilities": {"cancel": {}}},
        child
        | {
            "title": None,
            "capabilities": None,
            "state": {"state": "idle", "stopReason": "end_turn"},
        },
        child | {"state": {"state": "idle", "stopReason": "error", "error": failed}},
    ]
    message = {"sessionUpdate": "session_message", "messageId": MESSAGE}
    assert updates[4:] == [
        message | {"recipientSessionId": CHILD, "content": [{"type": "text", "text": "Look"}]},
        {
            "sessionUpdate": "session_message_chunk",
            "messageId": MESSAGE,
            "content": {"type": "text", "text": " around"},
        },
        message | {"recipientMessageId": "msg_2"},
    ]


def test_other_clients_are_not_told_of_child_sessions() -> None:
    assert projected(ClientProfile(notices=True, compactions=True, plans=True), *SUBAGENT) == []


@pytest.mark.parametrize("event", [*SUBAGENT, PlanRemoved()])
def test_the_journal_gives_these_events_back_as_they_were(event: AnyEvent) -> None:
    assert decode_event(encode_event(event)) == event


def test_no_token_is_counted_twice() -> None:
    usage = Usage(input=41_000, output=12_000, cache_read=5_000, cache_write=1_000, reasoning=500)
    counts = token_counts(usage)
    assert counts == {
        "total_tokens": 53_000,
        "input_tokens": 35_000,
        "output_tokens": 12_000,
        "thought_tokens": 500,
        "cached_read_tokens": 5_000,
        "cached_write_tokens": 1_000,
    }
    assert counts["total_tokens"] == sum(
        counts[name]
        for name in ("input_tokens", "output_tokens", "cached_read_tokens", "cached_write_tokens")
    )


def test_tokens_that_were_not_counted_separately_are_omitted() -> None:
    assert token_counts(Usage(input=3, output=2)) == {
        "total_tokens": 5,
        "input_tokens": 3,
        "output_tokens": 2,
    }

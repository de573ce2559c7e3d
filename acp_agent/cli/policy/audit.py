"""`acp-agent audit`: the permission decisions of a session, with who decided and why."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from acp_agent import events
from acp_agent.cli.localization import translate, user_translator
from acp_agent.cli.output import one_line, say, say_json, say_table
from acp_agent.cli.parser import Parser
from acp_agent.cli.session_lookup import existing_store, find_session
from acp_agent.session.history.questions import QuestionCounts
from acp_agent.session.history.transcript import describe_decision
from acp_agent.session.store.event_codec import readable_events, recovered_events
from acp_agent.session.store.records import StoredEvent


class Decision(Struct, frozen=True):
    """A decision about a call.

    `at` is in milliseconds since 1970 (UTC). `child` is the session of the subagent that made the
    call; None for the session itself.
    """

    at: int
    call: events.ToolCalled | None
    verdict: events.PermissionDecided
    was_asked: bool
    child: str | None = None


def run(argv: list[str]) -> int:
    """Show the decisions of a session; return the exit status."""
    parser = Parser(
        prog="acp-agent audit",
        description="Show what was allowed and refused in a session, by whom and why.",
    )
    parser.add_argument("id", help="a session ID, its first characters, or 'latest'")
    parser.add_argument("--refused", action="store_true", help="only refusals")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return asyncio.run(_show(options.id, refused=options.refused, as_json=options.json))


async def _show(name: str, *, refused: bool, as_json: bool) -> int:
    async with existing_store() as store:
        record = await find_session(store, name)
        stored = await store.read_all(record.id)
    selected = [
        decision for decision in decisions(stored) if not (refused and decision.verdict.allowed)
    ]
    if as_json:
        say_json({"session": record.id, "decisions": [_as_json(decision) for decision in selected]})
    elif selected:
        say_table(
            ("TIME", "TOOL", "CALL", "TIER", "DECISION", "RULE"),
            [_row(decision) for decision in selected],
        )
        questions = QuestionCounts()
        questions.add(recovered_events(stored))
        say()
        say(questions.describe(user_translator()))
    else:
        say(translate("No decisions in {session}.", session=record.id))
    return 0


def decisions(stored: Sequence[StoredEvent]) -> Iterator[Decision]:
    """Yield the decisions of a session and its subagents, in order."""
    calls: dict[str, events.ToolCalled] = {}
    questioned: set[str] = set()
    for stored_event in readable_events(stored):
        child = (
            stored_event.event.session
            if isinstance(stored_event.event, events.ChildWorked)
            else None
        )
        event = events.unwrap_child_event(stored_event.event)
        match event:
            case events.ToolCalled(call=call):
                calls[call] = event
            case events.PermissionAsked(call=call):
                questioned.add(call)
            case events.PermissionDecided(call=call):
                yield Decision(stored_event.at, calls.get(call), event, call in questioned, child)


def _row(decision: Decision) -> list[str]:
    translator = user_translator()
    time = datetime.fromtimestamp(decision.at / 1000).astimezone()
    title = "" if decision.call is None else translator.rendered_title(decision.call.title)
    return [
        time.isoformat(" ", "seconds")[:19],
        "" if decision.call is None else decision.call.name,
        one_line(title),
        decision.verdict.tier,
        describe_decision(decision.verdict, translator),
        decision.verdict.rule,
    ]


def _as_json(decision: Decision) -> dict[str, object]:
    return {
        "time": datetime.fromtimestamp(decision.at / 1000, UTC).isoformat(timespec="milliseconds"),
        "call": decision.verdict.call,
        "tool": "" if decision.call is None else decision.call.name,
        "title": "" if decision.call is None else decision.call.title,
        "subagent": decision.child,
        "allowed": decision.verdict.allowed,
        "asked": decision.was_asked,
        "by": decision.verdict.by,
        "name": decision.verdict.name,
        "why": decision.verdict.why,
        "tier": decision.verdict.tier,
        "rule": decision.verdict.rule,
    }

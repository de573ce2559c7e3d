"""Sessions whose turns give work to agents: a model for it, and moments of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnStarted,
    unwrap_child_event,
)
from acp_agent.ids import SessionId
from tests.support.model_server import Answer, Request, answer
from tests.support.open_session import Desk


def works(*steps: Answer, parent: Answer) -> Callable[[Request], Answer]:
    """A model that gives tasks where it is told to go, and does one step after the other there."""

    def answers(request: Request) -> Answer:
        messages = request.json["messages"]
        done = sum(message["role"] == "tool" for message in messages)
        if "Go, parent" in str(messages):
            return answer("Done.") if done else parent
        return steps[done] if done < len(steps) else answer(messages[-1]["content"])

    return answers


def once_shown(desk: Desk, which: Callable[[AnyEvent], bool], act: Callable[[], object]) -> None:
    """Act the first time that such an event is shown: who wrote it still waits for that."""
    show, done = desk.editor.show, False

    async def shown(session: SessionId, events: Sequence[AnyEvent]) -> None:
        nonlocal done
        await show(session, events)
        if not done and any(map(which, events)):
            done = True
            act()

    desk.editor.show = shown  # type: ignore[method-assign]  # that is the point


def a_child(kind: type[AnyEvent]) -> Callable[[AnyEvent], bool]:
    """An event of this kind in a child session."""
    return lambda event: isinstance(event, ChildWorked) and isinstance(event.did, kind)


def a_state(state: str) -> Callable[[AnyEvent], bool]:
    """A child session comes to be in this state."""
    return lambda event: isinstance(event, SubagentChanged) and event.state == state


def what_is_open(events: Sequence[AnyEvent]) -> list[str]:
    """The agents, their turns, and the calls that a journal leaves open."""
    found: dict[str, None] = {}
    for event in events:
        if isinstance(event, SubagentChanged):
            found[event.session] = None
            if event.state == "idle":
                found.pop(event.session)
        match unwrap_child_event(event):
            case ToolCalled(call=call):
                found[call] = None
            case ToolEnded(call=call):
                found.pop(call, None)
            case TurnStarted(turn=turn):
                found[turn] = None
            case TurnEnded(turn=turn):
                found.pop(turn, None)
            case _:
                pass
    return list(found)

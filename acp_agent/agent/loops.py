"""What is done about a model that goes round in circles: it is told, the user is asked, it ends."""

from __future__ import annotations

from acp_agent.agent.host import TurnHost
from acp_agent.agent.loop_guard import Loop, Patience
from acp_agent.agent.spoken import spoken
from acp_agent.errors import ToolError
from acp_agent.events import LoopDecision, LoopNoticed, NoticeShown, StopReason
from acp_agent.tools.base import Question

GO_ON, STOP = "Go on", "Stop"
STOPPED = "Stopped here, as you decided. Say how to go on."


async def heed_loops(host: TurnHost) -> StopReason | None:
    """Look at the calls that have just ended; why the turn is to end, where it is.

    Raises:
        StoreError: the journal could not be written.
    """
    due = host.loop_guard.due(Patience(*host.limits.loop_rounds), lambda name: _polls(host, name))
    if due is None:
        return None
    step, loop = due
    noticed = LoopNoticed(call=loop.call, kind=loop.kind, rounds=loop.rounds, step=step)
    match step:
        case "told":
            notice = NoticeShown(severity="info", title=f"{_described(loop)} The model is told.")
            await host.emit(_with(noticed, note=_note(loop)), notice)
            return None
        case "asked":
            return await _ask(host, loop, noticed)
        case _:
            return await _end(host, loop, noticed)


async def _end(host: TurnHost, loop: Loop, noticed: LoopNoticed) -> StopReason:
    why = f"{_described(loop)} The turn was ended for that. Say how to go on."
    await host.emit(noticed, *spoken(host.translate.rendered(why)))
    return "max_turn_requests"


async def _ask(host: TurnHost, loop: Loop, noticed: LoopNoticed) -> StopReason | None:
    translate = host.translate
    text = translate.rendered(f"{_described(loop)} Is it to go on?")
    go_on, stop = translate(GO_ON), translate(STOP)
    question = Question(
        text=text,
        options=(
            (go_on, translate("It may lead somewhere yet")),
            (stop, translate("End the turn")),
        ),
    )
    answer = await host.ask_question(loop.call, question)
    if answer is None and not host.is_prompted:
        return await _end(host, loop, noticed)
    if answer is None:  # this editor shows no forms
        how = translate("Say so, or say what to do instead.")
        await host.emit(noticed, *spoken(f"{text} {how}"))
        return "end_turn"
    if answer.declined or answer.text == stop:
        await host.emit(_with(noticed, decision="stop"), *spoken(translate(STOPPED)))
        return "end_turn" if host.is_prompted else "max_turn_requests"
    if answer.text == go_on:
        await host.emit(_with(noticed, decision="go_on"))
        return None
    note = f"[The user was asked whether this is to go on, and says: {answer.text}]"
    await host.emit(_with(noticed, decision="said", note=note))
    return None


def _with(noticed: LoopNoticed, *, note: str = "", decision: LoopDecision = "") -> LoopNoticed:
    return LoopNoticed(
        call=noticed.call,
        kind=noticed.kind,
        rounds=noticed.rounds,
        step=noticed.step,
        note=note,
        decision=decision,
    )


def _polls(host: TurnHost, name: str) -> bool:
    try:
        return host.toolset.get(name).polls
    except ToolError:
        return False


def _described(loop: Loop) -> str:
    """The loop in words for the user."""
    match loop.kind:
        case "repeat":
            return (
                f"The model made the same call of {loop.tool} {loop.rounds} times, "
                "always with the same result."
            )
        case "cycle":
            size = loop.span // max(1, loop.rounds)
            return (
                f"The model made the same {max(2, size)} calls {loop.rounds} times in a row, "
                "always with the same results."
            )
        case _:
            return f"The tool {loop.tool} failed {loop.rounds} times with the same error."


def _note(loop: Loop) -> str:
    """The loop in words for the model."""
    match loop.kind:
        case "repeat":
            what = (
                f"You made this same call {loop.rounds} times, and its result was always the same."
            )
        case "cycle":
            what = f"You made these same calls {loop.rounds} times in a row, with the same results."
        case _:
            what = f"Calls of {loop.tool} failed {loop.rounds} times with this same error."
    return (
        f"[{what} Doing it once more will not change that. Find out why, try another way, or tell "
        "the user what is in the way.]"
    )

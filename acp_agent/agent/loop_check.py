"""React to loops: first tell the model, then ask the user, then end the turn."""

from __future__ import annotations

from acp_agent.agent.loop_detection import Loop, LoopLimits
from acp_agent.agent.resources import Tools, TurnResources
from acp_agent.errors import ToolError
from acp_agent.events import LoopDecision, LoopNoticed, NoticeShown, StopReason, agent_message
from acp_agent.tools.base import Question

GO_ON, STOP = "Continue", "Stop"
STOPPED = "Stopped, as you chose. Send a message to continue."


async def check_loops(turn: TurnResources) -> StopReason | None:
    """Check the calls that have just ended for loops; return a stop reason if the turn must end.

    Raises:
        StoreError: the journal could not be written.
    """
    next_step = turn.journal.loop_detector.next_step(
        LoopLimits(*turn.limits.loop_rounds), lambda name: _polls(turn.tools, name)
    )
    if next_step is None:
        return None
    step, loop = next_step
    noticed = LoopNoticed(call=loop.call, kind=loop.kind, rounds=loop.rounds, step=step)
    match step:
        case "told":
            notice = NoticeShown(severity="info", title=f"{_describe(loop)} The model is told.")
            await turn.journal.emit(_with(noticed, note=_note(loop)), notice)
            return None
        case "asked":
            return await _ask(turn, loop, noticed)
        case _:
            return await _end(turn, loop, noticed)


async def _end(turn: TurnResources, loop: Loop, noticed: LoopNoticed) -> StopReason:
    why = f"{_describe(loop)} The turn was ended. Send a message to continue."
    await turn.journal.emit(noticed, *agent_message(turn.user.translate.rendered(why)))
    return "max_turn_requests"


async def _ask(turn: TurnResources, loop: Loop, noticed: LoopNoticed) -> StopReason | None:
    translate = turn.user.translate
    text = translate.rendered(f"{_describe(loop)} Continue?")
    go_on, stop = translate(GO_ON), translate(STOP)
    question = Question(
        text=text,
        options=(
            (go_on, translate("It may still make progress")),
            (stop, translate("End the turn")),
        ),
    )
    answer = await turn.user.ask_question(loop.call, question)
    if answer is None and not turn.user.can_reply:
        return await _end(turn, loop, noticed)
    if answer is None:  # this editor cannot show forms
        how = translate("Reply to continue, or say what to do instead.")
        await turn.journal.emit(noticed, *agent_message(f"{text} {how}"))
        return "end_turn"
    if answer.declined or answer.text == stop:
        await turn.journal.emit(_with(noticed, decision="stop"), *agent_message(translate(STOPPED)))
        return "end_turn" if turn.user.can_reply else "max_turn_requests"
    if answer.text == go_on:
        await turn.journal.emit(_with(noticed, decision="go_on"))
        return None
    note = f"[The user was asked whether this is to go on, and says: {answer.text}]"
    await turn.journal.emit(_with(noticed, decision="said", note=note))
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


def _polls(tools: Tools, name: str) -> bool:
    try:
        return tools.toolset.get(name).polls
    except ToolError:
        return False


def _describe(loop: Loop) -> str:
    """Return a description of a loop for the user."""
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
    """Return a note about a loop for the model."""
    match loop.kind:
        case "repeat":
            fact = (
                f"You made this same call {loop.rounds} times, and its result was always the same."
            )
        case "cycle":
            fact = f"You made these same calls {loop.rounds} times in a row, with the same results."
        case _:
            fact = f"Calls of {loop.tool} failed {loop.rounds} times with this same error."
    return (
        f"[{fact} Doing it once more will not change that. Find out why, try another way, or tell "
        "the user what is in the way.]"
    )

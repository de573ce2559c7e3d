"""The loop of a turn: ask the model and run its calls until it makes no more calls.

The session's journal holds the conversation. Messages that the user sends during the turn are
written to it at once, and the next request to the model contains them.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from acp_agent.agent.answer import Answer, ask_model, prepare_context
from acp_agent.agent.call_runner import CallRunner
from acp_agent.agent.continued_text import FollowUp
from acp_agent.agent.edit_reports import report_changed_resources, report_late_problems
from acp_agent.agent.incomplete_answers import IncompleteAnswers
from acp_agent.agent.loop_detection import Loop, LoopLimits
from acp_agent.agent.resources import Tools, TurnResources
from acp_agent.agent.tool_calls import ProposedCall, cancelled_ends
from acp_agent.errors import BudgetSpentError, ToolError
from acp_agent.events import (
    USER_CALL,
    LoopNoticed,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    StopReason,
    ToolCalled,
    agent_message,
    agent_notice,
)
from acp_agent.ids import new_call_id, new_message_id
from acp_agent.tools.base import Question
from acp_agent.workspace.scrub import scrub

GO_ON, STOP = "Continue", "Stop"
STOPPED = "Stopped, as you chose. Send a message to continue."


async def run_user_call(turn: TurnResources, name: str, arguments: str) -> bool:
    """Run a call that the user asked for as if the model had made it.

    The model sees the call and its result in the conversation.

    Returns:
        True if the turn ends here because the user must reply first.

    Raises:
        StoreError: the journal could not be written.
    """
    message, call = new_message_id(), new_call_id()
    title, kind = turn.tools.toolset.call_title(name, arguments)
    turn.tools.open_calls.add(call, by_user=True)
    try:
        await turn.journal.emit(
            ModelAsked(message=message, model=turn.models.current.ref),
            ToolCalled(
                call=call, message=message, name=name, arguments=arguments, title=title, kind=kind
            ),
            ModelAnswered(message=message, model=turn.models.current.ref, stop=USER_CALL),
        )
    except asyncio.CancelledError:
        await turn.journal.emit(*cancelled_ends([call]))  # the user sees a call that will not run
        raise
    proposed = ProposedCall(call=call, name=name, arguments=arguments, safe_arguments=arguments)
    waits_for_user = await CallRunner(turn).run([proposed])
    await turn.journal.flush()
    return waits_for_user and not turn.journal.context.has_unanswered_message


async def run_turn(turn: TurnResources) -> StopReason:
    """Work on the user's messages until the model is done.

    When the task that runs this is cancelled, the model's stream is closed and every call ends.

    Returns:
        Why the turn ended: `end_turn`, `max_tokens`, `refusal`, or `max_turn_requests` if the limit
        of requests was reached or the model repeated itself. If a budget is used up, this is
        `refusal` if the prompt was not answered at all, else `max_tokens`.

    Raises:
        ModelError: the model's provider failed, even after retries.
        StoreError: the journal could not be written.
    """
    incomplete, after = IncompleteAnswers(turn), FollowUp()
    for _ in range(turn.limits.model_requests):
        await report_late_problems(turn)
        await report_changed_resources(turn)
        answer = await _answer(turn, after)
        if answer is None:
            return "max_tokens" if turn.journal.context.turn_was_answered else "refusal"
        await turn.budget.warn()
        if answer.stop == "refusal":
            if answer.why:
                why = turn.user.translate.rendered(scrub(answer.why, turn.journal.secrets))
                text = turn.user.translate("The provider stopped the answer: {reason}", reason=why)
                await turn.journal.emit(*agent_notice(text))
            return "refusal"
        waits_for_user = bool(answer.calls) and await CallRunner(turn).run(answer.calls)
        await turn.journal.flush()
        if waits_for_user and not turn.journal.context.has_unanswered_message:
            return "end_turn"
        after = FollowUp()
        if not turn.journal.context.has_unsent_message:
            next_step = await incomplete.follow_up(answer)
            if isinstance(next_step, str):
                return next_step
            if next_step is not None:
                after = next_step
            elif not answer.calls or not turn.journal.context.awaits_answer:
                return "end_turn"
        if answer.calls:
            ending = await check_loops(turn)
            if ending is not None:
                return ending
    text = turn.user.translate(
        "The turn ended: it reached the limit of {count} model requests. Send “go on” to continue.",
        count=turn.limits.model_requests,
    )
    await turn.journal.emit(*agent_notice(text))
    return "max_turn_requests"


async def _answer(turn: TurnResources, after: FollowUp) -> Answer | None:
    """Return the model's next answer; if a budget forbids it, tell the user and return None."""
    refusal = await turn.budget.refusal()
    if refusal is None:
        await prepare_context(turn)
        try:
            async with turn.budget.reserve() as why:
                if why is None:
                    return await ask_model(turn, after)
                refusal = why
        except BudgetSpentError as error:
            refusal = str(error)
    turn.budget.exhausted = True
    text = turn.user.translate.rendered(refusal)
    if not turn.journal.context.turn_was_answered:
        dropped = turn.user.translate(
            "Your prompt was not sent. Raise the budget and send it again."
        )
        text = f"{text} {dropped}"
    await turn.journal.emit(*agent_message(text))
    return None


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
            notice = NoticeShown(
                severity="info", title=f"{_describe(loop)} The model was informed."
            )
            await turn.journal.emit(replace(noticed, note=_note(loop)), notice)
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
        stopped = agent_message(translate(STOPPED))
        await turn.journal.emit(replace(noticed, decision="stop"), *stopped)
        return "end_turn" if turn.user.can_reply else "max_turn_requests"
    if answer.text == go_on:
        await turn.journal.emit(replace(noticed, decision="go_on"))
        return None
    note = f"[The user was asked whether this is to go on, and says: {answer.text}]"
    await turn.journal.emit(replace(noticed, decision="said", note=note))
    return None


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

"""A turn: the model is asked and its calls are run until it has nothing more to do.

The conversation is in the session's journal; a turn holds nothing that the journal does not have.
What the user says meanwhile is in the journal at once, and reaches the model with the next request.
"""

from __future__ import annotations

import asyncio

from acp_agent.agent.answer import Answer, ProposedCall, ask_model, make_ready
from acp_agent.agent.calls import CallRunner
from acp_agent.agent.endings import cancelled
from acp_agent.agent.labels import label
from acp_agent.agent.loops import heed_loops
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.spoken import aside, spoken
from acp_agent.errors import BudgetSpentError
from acp_agent.events import ModelAnswered, ModelAsked, StopReason, ToolCalled
from acp_agent.ids import new_call_id, new_message_id
from acp_agent.workspace.scrub import scrub


async def make_call(turn: TurnResources, name: str, arguments: str) -> None:
    """Make a call that the user asked for, as if the model had made it.

    The model finds it in the conversation, with what came of it.

    Raises:
        StoreError: the journal could not be written.
    """
    message, call = new_message_id(), new_call_id()
    title, kind = label(turn.tools.toolset, name, arguments)
    turn.tools.open_calls.add(call, by_user=True)
    try:
        await turn.journal.emit(
            ModelAsked(message=message, model=turn.models.current.ref),
            ToolCalled(
                call=call, message=message, name=name, arguments=arguments, title=title, kind=kind
            ),
            ModelAnswered(message=message, model=turn.models.current.ref),
        )
    except asyncio.CancelledError:
        await turn.journal.emit(*cancelled([call]))  # it is shown, but nobody will run it
        raise
    proposed = ProposedCall(call=call, name=name, arguments=arguments, shown=arguments)
    await CallRunner(turn).run([proposed])
    await turn.journal.settled()


async def run_turn(turn: TurnResources) -> StopReason:
    """Work on what the user said until the model is done with it.

    Cancelling the task that runs this closes the model's stream and ends every call first.

    Returns:
        Why the turn ended: `end_turn`, `max_tokens`, `refusal`, or `max_turn_requests` when the
        limit of requests was reached, or the model went round in circles. Where a budget has no
        room, `refusal` of a prompt with which nothing was done, else `max_tokens`.

    Raises:
        ModelError: the model's provider failed, and trying again did not help.
        StoreError: the journal could not be written.
    """
    for _ in range(turn.limits.model_requests):
        answer = await _answer(turn)
        if answer is None:
            return "max_tokens" if turn.journal.context.turn_was_answered else "refusal"
        await turn.budget.warn()
        if answer.stop == "refusal":
            if answer.why:
                why = turn.user.translate.rendered(scrub(answer.why, turn.journal.secrets))
                told = turn.user.translate("The provider stopped the answer: {reason}", reason=why)
                await turn.journal.emit(*aside(told))
            return "refusal"
        waits_for_user = await CallRunner(turn).run(answer.calls)
        await turn.journal.settled()
        if waits_for_user and not turn.journal.context.has_unanswered_words:
            return "end_turn"
        came_to_nothing = not answer.calls and turn.journal.context.latest == answer.asked
        if came_to_nothing or not turn.journal.context.awaits_answer:
            return "max_tokens" if answer.stop == "max_tokens" else "end_turn"
        if answer.calls:
            ending = await heed_loops(turn)
            if ending is not None:
                return ending
    told = turn.user.translate(
        "The turn ends here: it made {count} requests to the model, as many as it may. Say "
        "“go on” to have it continued.",
        count=turn.limits.model_requests,
    )
    await turn.journal.emit(*aside(told))
    return "max_turn_requests"


async def _answer(turn: TurnResources) -> Answer | None:
    """The model's next answer; None where a budget has no room for it, which the user is told."""
    refused = await turn.budget.refusal()
    if refused is None:
        await make_ready(turn)
        try:
            async with turn.budget.reserve() as why:
                if why is None:
                    return await ask_model(turn)
                refused = why
        except BudgetSpentError as error:
            refused = str(error)
    turn.budget.exhausted = True
    told = turn.user.translate.rendered(refused)
    if not turn.journal.context.turn_was_answered:
        dropped = turn.user.translate(
            "Your prompt was not sent; send it again when the budget has room."
        )
        told = f"{told} {dropped}"
    await turn.journal.emit(*spoken(told))
    return None

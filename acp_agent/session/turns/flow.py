"""Run a flow: a turn in which the model is sent the steps of a chart one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acp_agent.agent.resources import TurnResources
from acp_agent.events import (
    AnyEvent,
    PlanChanged,
    PlanEntry,
    PromptRepeated,
    StopReason,
    agent_message,
    agent_notice,
)
from acp_agent.extensions.flows.flow import Branch, Flow, Node
from acp_agent.ids import new_message_id
from acp_agent.models.base import AnswerText, ModelSide
from acp_agent.workspace.scrub import scrub

MAX_STEPS = 100  # of one run; repeated steps count again
_MAX_ATTEMPTS = 3  # attempts to get the choice of a branch
_MAX_PLAN_TEXT = 200  # characters of a step in the plan
_MAX_TITLE = 80  # characters of a step in its heading
_OPENING, _CLOSING = "<choice>", "</choice>"


class FlowRun:
    """A run of a flow. All steps are one turn, so cancelling stops the whole run.

    A run is resumed from the plan in the journal, which the client also shows.

    Args:
        flow: the flow, with the user's arguments filled in.
        resumed: the step at which to resume, and the completed ones; None starts from the
            beginning.
    """

    def __init__(
        self, name: str, flow: Flow, *, request: str, resumed: tuple[str, set[str]] | None = None
    ) -> None:
        self._name = name
        self._flow = flow
        self._request = request
        self._at, self._done = resumed or (flow.first, set[str]())

    @property
    def first_note(self) -> str:
        """The text that the model is sent with the user's prompt."""
        head = f"[The user runs the flow {self._name}. You are told one step at a time: do this "
        lines = [f"{head}step and no other, then end your answer.]"]
        lines += filter(None, [self._flow.notes])
        if self._request:
            lines.append(f"The user adds: {self._request}")
        node = self._flow.nodes.get(self._at)
        return "\n\n".join([*lines, *([] if node is None else [_step_text(node)])])

    async def run(self, turn: TurnResources) -> StopReason:
        """Run the steps until the flow ends; return why the last one stopped.

        The run stops early if a step is cut short or the user has to answer first. The plan then
        shows the unfinished step.
        """
        from acp_agent.agent.turn import run_turn  # noqa: PLC0415 - brings pydantic

        journal, translate = turn.journal, turn.user.translate
        count = 0
        while (node := self._flow.nodes.get(self._at)) is not None:
            if count == MAX_STEPS:
                text = translate(
                    "The flow ended: it reached the limit of {count} steps.", count=count
                )
                await journal.emit(*agent_notice(text))
                return "max_turn_requests"
            count += 1
            heading = " ".join(node.text.split())[:_MAX_TITLE]
            title = translate("Step {number}: {what}", number=count, what=heading)
            events: list[AnyEvent] = [self._plan()]
            if count > 1:
                events.append(_repeat_prompt(count, _step_text(node), journal.secrets))
            await journal.emit(*events, *agent_message(f"\n\n**{title}**\n\n"))
            stop, branch = await run_turn(turn), None
            for attempt in range(_MAX_ATTEMPTS):
                if stop != "end_turn" or journal.context.awaits_answer:
                    return stop
                branch = _find_choice(node, _last_answer(turn))
                if branch is not None or attempt == _MAX_ATTEMPTS - 1:
                    break
                await journal.emit(_repeat_prompt(count, _choice_reminder(node), journal.secrets))
                stop = await run_turn(turn)
            if branch is None:
                text = translate(
                    "The flow stopped: the model chose none of the branches {branches}.",
                    branches=", ".join(choice.label for choice in node.branches),
                )
                await journal.emit(*agent_notice(text))
                return stop
            self._done.add(node.id)
            self._at = branch.target
        await journal.emit(
            self._plan(),
            *agent_notice(translate("The flow ended after {count} steps.", count=count)),
        )
        return "end_turn"

    def _plan(self) -> PlanChanged:
        return flow_plan(self._flow, self._at, self._done)


def flow_plan(flow: Flow, at: str, done: set[str]) -> PlanChanged:
    """Return the plan that shows the progress of a flow.

    Args:
        at: the id of the current step.
        done: the ids of completed steps.
    """
    return PlanChanged(
        entries=tuple(
            PlanEntry(
                content=" ".join(node.text.split())[:_MAX_PLAN_TEXT],
                status="in_progress"
                if node.id == at
                else "completed"
                if node.id in done
                else "pending",
            )
            for node in flow.nodes.values()
        )
    )


def stopped_at(flow: Flow, history: Sequence[AnyEvent]) -> tuple[str, set[str]] | None:
    """Return the step at which the last run of a flow stopped, and the completed ones.

    None if there was no run, or if it was completed.

    Args:
        flow: the current flow; runs of earlier versions do not count.
    """
    contents = [entry.content for entry in flow_plan(flow, "", set()).entries]
    for event in reversed(history):
        if (
            isinstance(event, PlanChanged)
            and [entry.content for entry in event.entries] == contents
        ):
            status: Mapping[str, str] = {
                id_: entry.status for id_, entry in zip(flow.nodes, event.entries, strict=True)
            }
            at = next((id_ for id_, state in status.items() if state == "in_progress"), None)
            done = {id_ for id_, state in status.items() if state == "completed"}
            return None if at is None else (at, done)
    return None


def _step_text(node: Node) -> str:
    """Return the text of a step for the model."""
    if len(node.branches) == 1:
        return node.text
    return "\n".join(
        [
            node.text,
            "",
            f"Then choose what comes next, with {_OPENING}…{_CLOSING} at the end of your answer:",
            *(f"- {_OPENING}{branch.label}{_CLOSING}" for branch in node.branches),
        ]
    )


def _choice_reminder(node: Node) -> str:
    choices = " or ".join(f"{_OPENING}{branch.label}{_CLOSING}" for branch in node.branches)
    return f"[Your answer chooses none of the branches. Answer with {choices}.]"


def _repeat_prompt(step: int, text: str, secrets: Sequence[str]) -> PromptRepeated:
    # No rounds: the prompt is not a repetition.
    return PromptRepeated(message=new_message_id(), round=step, rounds=0, text=scrub(text, secrets))


def _find_choice(node: Node, answer: str) -> Branch | None:
    if len(node.branches) == 1:
        return node.branches[0]
    _, opening, tail = answer.rpartition(_OPENING)
    choice, closing, _ = tail.partition(_CLOSING)
    choice = " ".join(choice.split()).casefold()
    if not (opening and closing):
        return None
    return next((branch for branch in node.branches if branch.label.casefold() == choice), None)


def _last_answer(turn: TurnResources) -> str:
    entries = turn.journal.context.entries
    if not entries or not isinstance(entries[-1].message, ModelSide):
        return ""
    answer_parts = entries[-1].message.parts
    return "".join(part.text for part in answer_parts if isinstance(part, AnswerText))

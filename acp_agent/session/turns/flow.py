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
_ASKED = 3  # attempts to get the choice of a branch
_SHOWN = 200  # characters of a step in the plan
_TITLE = 80  # characters of a step in its heading
_OPENING, _CLOSING = "<choice>", "</choice>"


class FlowRun:
    """A run of a flow. All steps are one turn, so cancelling stops the whole run.

    A run is resumed from the plan in the journal, which the client also shows.

    Args:
        name: the name of the skill.
        flow: the flow, with the user's arguments filled in.
        given: the user's further text.
        resumed: the step at which to resume, and the completed ones; None starts from the
            beginning.
    """

    def __init__(
        self, name: str, flow: Flow, *, given: str, resumed: tuple[str, set[str]] | None = None
    ) -> None:
        self._name = name
        self._flow = flow
        self._given = given
        self._at, self._done = resumed or (flow.first, set[str]())

    @property
    def first_note(self) -> str:
        """The text that the model is sent with the user's prompt."""
        head = f"[The user runs the flow {self._name}. You are told one step at a time: do this "
        lines = [f"{head}step and no other, then end your answer.]"]
        lines += filter(None, [self._flow.notes])
        if self._given:
            lines.append(f"The user adds: {self._given}")
        node = self._flow.nodes.get(self._at)
        return "\n\n".join([*lines, *([] if node is None else [_told(node)])])

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
                    ("The flow ended: it reached the limit of {count} steps."), count=count
                )
                await journal.emit(*agent_notice(text))
                return "max_turn_requests"
            count += 1
            heading = " ".join(node.text.split())[:_TITLE]
            title = translate("Step {number}: {what}", number=count, what=heading)
            news: list[AnyEvent] = [self._plan()]
            if count > 1:
                news.append(_asked(count, _told(node), journal.secrets))
            await journal.emit(*news, *agent_message(f"\n\n**{title}**\n\n"))
            stop, branch = await run_turn(turn), None
            for again in range(_ASKED):
                if stop != "end_turn" or journal.context.awaits_answer:
                    return stop
                branch = _chosen(node, _last_answer(turn))
                if branch is not None or again == _ASKED - 1:
                    break
                await journal.emit(_asked(count, _asked_again(node), journal.secrets))
                stop = await run_turn(turn)
            if branch is None:
                text = translate(
                    "The flow stopped: the model chose none of the branches {branches}.",
                    branches=", ".join(one.label for one in node.branches),
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
        return plan_of(self._flow, self._at, self._done)


def plan_of(flow: Flow, at: str, done: set[str]) -> PlanChanged:
    """Return the plan that shows the progress of a flow.

    Args:
        flow: the flow.
        at: the id of the current step.
        done: the ids of completed steps.
    """
    return PlanChanged(
        entries=tuple(
            PlanEntry(
                content=" ".join(node.text.split())[:_SHOWN],
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
        history: the session's events.
    """
    wanted = [entry.content for entry in plan_of(flow, "", set()).entries]
    for event in reversed(history):
        if isinstance(event, PlanChanged) and [one.content for one in event.entries] == wanted:
            status: Mapping[str, str] = {
                id_: entry.status for id_, entry in zip(flow.nodes, event.entries, strict=True)
            }
            at = next((id_ for id_, one in status.items() if one == "in_progress"), None)
            done = {id_ for id_, one in status.items() if one == "completed"}
            return None if at is None else (at, done)
    return None


def _told(node: Node) -> str:
    """Return the text of a step for the model."""
    if len(node.branches) == 1:
        return node.text
    return "\n".join(
        [
            node.text,
            "",
            f"Then choose what comes next, with {_OPENING}…{_CLOSING} at the end of your answer:",
            *(f"- {_OPENING}{one.label}{_CLOSING}" for one in node.branches),
        ]
    )


def _asked_again(node: Node) -> str:
    choices = " or ".join(f"{_OPENING}{one.label}{_CLOSING}" for one in node.branches)
    return f"[Your answer chooses none of the branches. Answer with {choices}.]"


def _asked(step: int, text: str, secrets: Sequence[str]) -> PromptRepeated:
    # No rounds: the prompt is not a repetition.
    return PromptRepeated(message=new_message_id(), round=step, rounds=0, text=scrub(text, secrets))


def _chosen(node: Node, answer: str) -> Branch | None:
    if len(node.branches) == 1:
        return node.branches[0]
    _, opening, rest = answer.rpartition(_OPENING)
    choice, closing, _ = rest.partition(_CLOSING)
    choice = " ".join(choice.split()).casefold()
    if not (opening and closing):
        return None
    return next((one for one in node.branches if one.label.casefold() == choice), None)


def _last_answer(turn: TurnResources) -> str:
    entries = turn.journal.context.entries
    if not entries or not isinstance(entries[-1].message, ModelSide):
        return ""
    parts = entries[-1].message.parts
    return "".join(one.text for one in parts if isinstance(one, AnswerText))

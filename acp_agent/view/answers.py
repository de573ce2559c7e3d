"""What models were asked, and what they said."""

from __future__ import annotations

from acp_agent import events
from acp_agent.view.anchors import Anchors
from acp_agent.view.plain import Cleaner
from acp_agent.view.sections import Sections
from acp_agent.view.spending import Request
from acp_agent.view.steps import AgentSaid, AgentThought


class Answers:
    """The requests and the answers of a session. `finish` when all events were read."""

    def __init__(self, sections: Sections, anchors: Anchors, clean: Cleaner) -> None:
        """There is none yet."""
        self._sections, self._anchors, self._clean = sections, anchors, clean
        self._said: list[tuple[AgentSaid | AgentThought, list[str]]] = []
        self._answers: dict[str, list[AgentSaid]] = {}  # those that are not complete
        self._requests: dict[str, Request] = {}
        self._model = ""  # of the last answer

    def asked(self, event: events.ModelAsked) -> None:
        """A request went to a model."""
        sections = self._sections
        request = Request(model=self._clean.line(event.model), asked=sections.at)
        sections.now.requests.append(request)
        sections.clock.begin("model", event.message, sections.at)
        self._requests[event.message] = request

    def said(self, event: events.AgentText | events.AgentThought) -> None:
        """A piece of an answer, or of reasoning."""
        kind = AgentSaid if isinstance(event, events.AgentText) else AgentThought
        steps = self._sections.now.steps
        last = steps[-1] if steps else None
        goes_on = (
            isinstance(last, AgentSaid | AgentThought)
            and type(last) is kind
            and last.message == event.message
        )
        if not goes_on:
            self._begin(kind, event.message)
        self._said[-1][1].append(event.text)

    def answered(self, event: events.ModelAnswered) -> None:
        """An answer is complete, or was cut off."""
        said = self._answers.pop(event.message, ())
        if not event.model:  # the agent's own words, of which no model knows
            for step in said:
                step.own = True
            return
        sections = self._sections
        request = self._requests.get(event.message)
        if request is None:  # one beside the conversation
            request = Request(model="")
            sections.now.requests.append(request)
        request.model, request.answered = self._clean.line(event.model), sections.at
        request.usage, request.cost = event.usage, event.cost
        request.complete, request.discarded = event.complete, event.discarded
        sections.clock.end("model", event.message, sections.at)
        for step in said:
            step.discarded = event.discarded
            step.incomplete = not event.complete and not event.discarded

    def finish(self) -> None:
        """Give the steps their texts, whole: a secret may have come in two pieces."""
        for step, pieces in self._said:
            step.text = self._clean.text("".join(pieces).strip("\n"))

    def _begin(self, kind: type[AgentSaid | AgentThought], message: str) -> None:
        anchor = self._anchors.for_id(message)
        step = kind(anchor=anchor, at=self._sections.at, text="", message=message)
        if isinstance(step, AgentSaid):
            self._answers.setdefault(message, []).append(step)
            request = self._requests.get(message)
            if request is not None and request.model != self._model:
                step.model = self._model = request.model
        self._said.append((step, []))
        self._sections.add(step)

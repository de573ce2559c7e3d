"""Count the permission requests that the user was asked, and those that were avoided."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.events import AnyEvent, PermissionAsked, PermissionDecided, unwrap_child_event
from acp_agent.permissions.access import CONFINED_LABEL, CONFINED_WHY

# The recorded reasons of questions without an answer; see acp_agent/agent/call_permissions.py.
_UNANSWERED = frozenset({"dismissed", "unclear", "not asked"})


class QuestionCounts(Struct, kw_only=True):
    """Counts of asked questions, and of calls that ask mode would have asked about.

    Attributes:
        cancelled: questions without an answer: dismissed, interrupted, or not shown.
        avoided_by_rules: calls that a rule of the policy allowed or refused.
        avoided_by_answers: calls that a remembered answer allowed or refused.
        avoided_by_sandbox: commands that ran because they were confined and could be undone.
        avoided_by_mode: calls that the mode allowed or refused.
        avoided_by_flags: questions that a flag of `acp-agent run` answered.
    """

    asked: int = 0
    allowed: int = 0
    refused: int = 0
    cancelled: int = 0
    avoided_by_rules: int = 0
    avoided_by_answers: int = 0
    avoided_by_sandbox: int = 0
    avoided_by_mode: int = 0
    avoided_by_flags: int = 0

    @property
    def avoided(self) -> int:
        """The number of avoided questions."""
        counts = (self.avoided_by_rules, self.avoided_by_answers, self.avoided_by_sandbox)
        return sum(counts) + self.avoided_by_mode + self.avoided_by_flags

    def add(self, events: Iterable[AnyEvent]) -> None:
        """Count the questions of one session and its child sessions."""
        open_calls: set[str] = set()
        for event in map(unwrap_child_event, events):
            if isinstance(event, PermissionAsked):
                open_calls.add(event.call)
            elif isinstance(event, PermissionDecided):
                self._decided(event, has_question=event.call in open_calls)
                open_calls.discard(event.call)
        self.asked += len(open_calls)
        self.cancelled += len(open_calls)

    def _decided(self, event: PermissionDecided, *, has_question: bool) -> None:
        if has_question and event.by == "flag":
            self.avoided_by_flags += 1
        elif has_question:
            self.asked += 1
            unanswered = event.by == "nobody" or event.why in _UNANSWERED
            self.allowed += event.allowed
            self.refused += not event.allowed and not unanswered
            self.cancelled += not event.allowed and unanswered
        elif event.rule.startswith(CONFINED_LABEL) or event.why == CONFINED_WHY:
            self.avoided_by_sandbox += 1
        elif event.by == "grant":
            self.avoided_by_answers += 1
        elif event.by == "rule" and event.rule:
            self.avoided_by_rules += 1
        elif event.by == "mode":
            self.avoided_by_mode += 1

    def describe(self, translate: Translator) -> str:
        """Return the counts as one line of text; "" if there is nothing to count."""
        if not self.asked and not self.avoided:
            return ""
        summary = translate(
            "Questions: {asked} asked ({allowed} allowed, {refused} refused, {cancelled} not "
            "answered), {avoided} avoided",
            asked=f"{self.asked:,}",
            allowed=f"{self.allowed:,}",
            refused=f"{self.refused:,}",
            cancelled=f"{self.cancelled:,}",
            avoided=f"{self.avoided:,}",
        )
        counts = [
            (self.avoided_by_rules, translate("by rules")),
            (self.avoided_by_answers, translate("by remembered answers")),
            (self.avoided_by_sandbox, translate("by the sandbox")),
            (self.avoided_by_mode, translate("by the mode")),
            (self.avoided_by_flags, translate("by flags")),
        ]
        details = ", ".join(f"{count:,} {name}" for count, name in counts if count)
        return f"{summary} ({details})" if details else summary

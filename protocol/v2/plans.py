"""Plans: lists of tasks, and (UNSTABLE) files and texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from protocol.codec.marks import SkipInvalidItems
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import PlanId, Wire
from protocol.v2.session_update import SessionUpdate

# "high", "medium", "low", or a word that later versions add.
PlanEntryPriority: TypeAlias = str
# "pending", "in_progress", "completed", "cancelled", or a word that later versions add.
PlanEntryStatus: TypeAlias = str


class PlanEntry(Wire, frozen=True, kw_only=True):
    """One task of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class PlanUpdateContent(OpenUnion):
    """A whole plan."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By its type; each has an id."""
        kind = string_in(value, "type")
        if kind not in _PLANS:
            string_in(value, "planId")
        return _PLANS.get(kind, OtherPlan)


class PlanItems(Wire, PlanUpdateContent, frozen=True, kw_only=True, tag_field="type", tag="items"):
    """A plan that is a list of tasks."""

    plan_id: PlanId
    entries: SkipInvalidItems[Sequence[PlanEntry]]


class PlanFile(Wire, PlanUpdateContent, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """UNSTABLE. A plan in a file, which the client opens by its address."""

    plan_id: PlanId
    uri: str


class PlanMarkdown(
    Wire, PlanUpdateContent, frozen=True, kw_only=True, tag_field="type", tag="markdown"
):
    """UNSTABLE. A plan that is a text in Markdown."""

    plan_id: PlanId
    content: str


class OtherPlan(UnknownVariant, PlanUpdateContent):
    """A plan of a type not known yet."""

    __slots__ = ()


_PLANS: dict[str, type[PlanUpdateContent]] = {
    "items": PlanItems,
    "file": PlanFile,
    "markdown": PlanMarkdown,
}


class PlanUpdate(
    Wire, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_update"
):
    """A plan; it replaces the one of the same id."""

    plan: PlanUpdateContent


class PlanRemoved(
    Wire, SessionUpdate, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_removed"
):
    """UNSTABLE. A plan is no longer there."""

    plan_id: PlanId

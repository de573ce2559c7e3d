"""Plans: the one of a session, and (UNSTABLE) several of them with ids.

`plan_update` and `plan_removed` are only for a client that advertises `plan`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from protocol.codec.marks import LenientItems
from protocol.v1.base import PlanId, Wire

PlanEntryPriority: TypeAlias = Literal["high", "medium", "low"]
PlanEntryStatus: TypeAlias = Literal["pending", "in_progress", "completed"]


class PlanEntry(Wire, frozen=True, kw_only=True):
    """One task of a plan."""

    content: str
    priority: PlanEntryPriority
    status: PlanEntryStatus


class Plan(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan"):
    """The whole plan; it replaces the one before."""

    entries: LenientItems[Sequence[PlanEntry]]


class PlanItems(Wire, frozen=True, kw_only=True, tag_field="type", tag="items"):
    """UNSTABLE. A plan that is a list of tasks."""

    plan_id: PlanId
    entries: LenientItems[Sequence[PlanEntry]]


class PlanFile(Wire, frozen=True, kw_only=True, tag_field="type", tag="file"):
    """UNSTABLE. A plan in a file, which the client opens by its address."""

    plan_id: PlanId
    uri: str


class PlanMarkdown(Wire, frozen=True, kw_only=True, tag_field="type", tag="markdown"):
    """UNSTABLE. A plan that is a text in Markdown."""

    plan_id: PlanId
    content: str


PlanUpdateContent: TypeAlias = PlanItems | PlanFile | PlanMarkdown


class PlanUpdate(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_update"):
    """UNSTABLE. A whole plan; it replaces the one of the same id."""

    plan: PlanUpdateContent


class PlanRemoved(Wire, frozen=True, kw_only=True, tag_field="sessionUpdate", tag="plan_removed"):
    """UNSTABLE. A plan is no longer there."""

    plan_id: PlanId

"""A session's plan, for clients that know plans by their ids and for those that know one."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.events import PlanChanged, PlanRemoved
from protocol.v1 import types as acp


def plan(event: PlanChanged | PlanRemoved) -> Sequence[acp.SessionUpdate]:
    """The one plan of a session; one that was removed is shown empty (v1, Agent Plan)."""
    return [acp.Plan(entries=_entries(event) if isinstance(event, PlanChanged) else [])]


def plan_by_id(event: PlanChanged | PlanRemoved) -> Sequence[acp.SessionUpdate]:
    """A plan for a client that advertises `plan` (v1 unstable, PlanUpdate and PlanRemoved)."""
    if isinstance(event, PlanRemoved):
        return [acp.PlanRemoved(plan_id=event.plan_id)]
    return [acp.PlanUpdate(plan=acp.PlanItems(plan_id=event.plan_id, entries=_entries(event)))]


def _entries(event: PlanChanged) -> list[acp.PlanEntry]:
    return [
        acp.PlanEntry(content=entry.content, priority=entry.priority, status=entry.status)
        for entry in event.entries
    ]

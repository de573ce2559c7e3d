"""How calls end that did not run to their own end, in words for the model and for the user."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from acp_agent.events import ToolEnded
from acp_agent.ids import CallId

CANCELLED = "The user stopped the turn before this call ended; it may have taken effect in part."
STOPPED = (
    "The user stopped this call before it ended; it may have taken effect in part. Do not make it "
    "again unless they ask for it."
)


class Refusal(NamedTuple):
    """Why a call did not run, in words for the model and in words for the user."""

    model: str
    user: str


DISMISSED = Refusal(
    "The user dismissed the question without an answer, so the call did not run.",
    "You dismissed the question without an answer, so the call did not run.",
)
UNASKED = Refusal(
    "The editor could not ask the user for permission, so the call did not run.",
    "The editor could not ask you for permission, so the call did not run.",
)
UNCLEAR = Refusal(
    "The editor's answer to the question made no sense, so the call did not run.",
    "The editor's answer to the question made no sense, so the call did not run.",
)
REJECTED = Refusal(
    "The user refused this call. Do not try it again in another form; ask what they want.",
    "You refused this call.",
)
NOBODY = Refusal(
    "The call was refused, as there is nobody to ask for permission. Do not try it again in "
    "another form.",
    "The call was refused, as there is nobody to ask for permission.",
)
NOT_BEGUN = Refusal(
    "The user refused another call of this answer, which ends the turn; this one did not run.",
    "You refused another call of this answer, which ends the turn; this one did not run.",
)


def refused_by(name: str) -> Refusal:
    """Return the refusal of a flag, or of a program that answers in the user's place."""
    why = f"The call was refused by {name}, so it did not run."
    return Refusal(f"{why} Do not try it again in another form.", why)


def cancelled(calls: Iterable[CallId]) -> list[ToolEnded]:
    """The ends of calls that are open while the turn is stopped."""
    return [ToolEnded(call=call, failed=True, cancelled=True, result=CANCELLED) for call in calls]


def stopped(call: CallId) -> ToolEnded:
    """The end of a call that the user stopped while the turn goes on."""
    return ToolEnded(call=call, failed=True, cancelled=True, result=STOPPED)

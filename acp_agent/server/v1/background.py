"""The end of background commands, for clients that are shown no terminals of the agent's."""

from __future__ import annotations

from acp_agent.events import BackgroundCommandChanged, NoticeShown


def ended(event: BackgroundCommandChanged) -> NoticeShown:
    """What the user is told when a background command ended while no turn ran."""
    if event.status == "lost":
        how = "ended with the agent"
    elif event.signal is not None:
        how = f"ended by {event.signal}"
    else:
        how = f"ended with exit code {event.exit_code}"
    return NoticeShown(
        severity="info", title=f"Background command {event.name} {how}: `{event.command}`"
    )

"""The end of background commands, for clients that are shown no terminals of the agent's."""

from __future__ import annotations

from acp_agent.config.message_catalog import Words
from acp_agent.events import BackgroundCommandChanged, NoticeShown


def ended(event: BackgroundCommandChanged, words: Words) -> NoticeShown:
    """What the user is told when a background command ended while no turn ran."""
    name, command = event.name, event.command
    if event.status == "lost":
        title = words(
            "Background command {name} ended with the agent: `{command}`",
            name=name,
            command=command,
        )
    elif event.signal is not None:
        title = words(
            "Background command {name} ended by {signal}: `{command}`",
            name=name,
            signal=event.signal,
            command=command,
        )
    else:
        title = words(
            "Background command {name} ended with exit code {code}: `{command}`",
            name=name,
            code=event.exit_code,
            command=command,
        )
    return NoticeShown(severity="info", title=title)

"""What an editor is told of a turn that the process did not survive."""

from __future__ import annotations

from acp_agent.config.message_catalog import Words
from acp_agent.events import BackgroundCommandChanged, NoticeShown, Rewound
from acp_agent.ids import is_rewind_id

INTERRUPTED_TITLE = "The agent was stopped here before it had finished."
INTERRUPTED_TEXT = "What it had said and done is kept; say how to go on."
CUT_CALL = "Cut off when the agent was stopped."


def moved_note(words: Words) -> str:
    """Return why a prompt ends at a client whose session another client opened."""
    return words("Another client opened this session; its work goes on there.")


def interrupted_note(words: Words) -> tuple[str, str]:
    """A title, and what it means, in the user's language."""
    return words(INTERRUPTED_TITLE), words(INTERRUPTED_TEXT)


def rewound_note(event: Rewound, words: Words) -> tuple[str, str]:
    """A title, and what it means for what stands above it."""
    where = _where(event, words)
    if not event.conversation:
        return words("The files went back to {where}.", where=where), _files(event, words)
    title = words("The conversation went back to {where}.", where=where)
    if is_rewind_id(event.to):
        text = words(
            "What was taken back then is sent to the model again; what was said since is not."
        )
    else:
        text = words("What was said from there up to here is not sent to the model any more.")
    return title, f"{text} {_files(event, words)}".strip()


def _where(event: Rewound, words: Words) -> str:
    if event.keeps_words:
        return words("after “{title}”", title=event.title)
    if is_rewind_id(event.to):
        return words("before the return to “{title}”", title=event.title)
    return words("before “{title}”", title=event.title)


def _files(event: Rewound, words: Words) -> str:
    if not event.replaced:
        return ""
    if event.changed == 1:
        return words("Restored 1 file; the previous version is saved.")
    return words(
        "Restored {count} files; the previous versions are saved.", count=f"{event.changed:,}"
    )


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

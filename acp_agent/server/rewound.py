"""What a client is shown where a session went back, live and in a replay."""

from __future__ import annotations

from acp_agent.config.message_catalog import Words
from acp_agent.events import Rewound
from acp_agent.ids import is_rewind_id


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

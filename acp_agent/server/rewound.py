"""What a client is shown where a session went back, live and in a replay."""

from __future__ import annotations

from acp_agent.events import Rewound


def rewound_note(event: Rewound) -> tuple[str, str]:
    """A title, and what it means for what stands above it."""
    where = f"after “{event.title}”" if event.keeps_words else f"before “{event.title}”"
    if not event.conversation:
        return f"The files went back to {where}.", _files(event)
    text = "What was said from there up to here is not sent to the model any more."
    return f"The conversation went back to {where}.", f"{text} {_files(event)}".strip()


def _files(event: Rewound) -> str:
    if not event.replaced:
        return ""
    files = "file is" if event.changed == 1 else "files are"
    return f"{event.changed:,} {files} as then; what was there is kept."

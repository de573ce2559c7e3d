"""Notices and texts that both versions of the protocol show."""

from __future__ import annotations

from acp_agent.config.localization import Translator
from acp_agent.events import BackgroundCommandChanged, NoticeShown, Rewound
from acp_agent.ids import is_rewind_id

INTERRUPTED_TITLE = "The agent was stopped here before it finished."
INTERRUPTED_TEXT = "Everything up to here is saved. Send a message to continue."
CUT_CALL = "Interrupted when the agent was stopped."


def moved_note(translate: Translator) -> str:
    """Return why a prompt ends when another client opens the session."""
    return translate("Another client opened this session; it continues there.")


def interrupted_note(translate: Translator) -> tuple[str, str]:
    """Return the title and the text about a turn that was open when the process died."""
    return translate(INTERRUPTED_TITLE), translate(INTERRUPTED_TEXT)


def rewound_note(event: Rewound, translate: Translator) -> tuple[str, str]:
    """Return the title and the text about a rewind."""
    position = _position_text(event, translate)
    if not event.conversation:
        return translate(("The files were restored to {where}."), where=position), _files(
            event, translate
        )
    title = translate("The conversation was rewound to {where}.", where=position)
    if is_rewind_id(event.to):
        text = translate(
            "The messages removed by that rewind are sent to the model again; later ones are not."
        )
    else:
        text = translate("Later messages are no longer sent to the model.")
    return title, f"{text} {_files(event, translate)}".strip()


def _position_text(event: Rewound, translate: Translator) -> str:
    if event.keeps_words:
        return translate("after “{title}”", title=event.title)
    if is_rewind_id(event.to):
        return translate("before the rewind to “{title}”", title=event.title)
    return translate("before “{title}”", title=event.title)


def _files(event: Rewound, translate: Translator) -> str:
    if not event.replaced:
        return ""
    if event.changed == 1:
        return translate("Restored 1 file; the previous version is saved.")
    return translate(
        "Restored {count} files; the previous versions are saved.", count=f"{event.changed:,}"
    )


def background_end_notice(event: BackgroundCommandChanged, translate: Translator) -> NoticeShown:
    """Return the notice that a background command ended while no turn ran."""
    name, command = event.name, event.command
    if event.status == "lost":
        title = translate(
            "Background command {name} ended with the agent: `{command}`",
            name=name,
            command=command,
        )
    elif event.signal is not None:
        title = translate(
            "Background command {name} ended by {signal}: `{command}`",
            name=name,
            signal=event.signal,
            command=command,
        )
    else:
        title = translate(
            "Background command {name} ended with exit code {code}: `{command}`",
            name=name,
            code=event.exit_code,
            command=command,
        )
    return NoticeShown(severity="info", title=title)

"""What a session is: its beginning, its folders and options, what was said in it."""

from __future__ import annotations

from typing import Literal

from acp_agent.content import ContentBlock
from acp_agent.events.base import Event
from acp_agent.ids import MessageId, SessionId

Severity = Literal["info", "warning", "error"]


class SessionStarted(Event, frozen=True, kw_only=True, tag="session_started"):
    """The first event of every session."""

    cwd: str
    directories: tuple[str, ...] = ()


class SessionForked(Event, frozen=True, kw_only=True, tag="session_forked"):
    """What comes before this was copied from `source`, which goes on apart from this session."""

    source: SessionId


class DirectoriesChanged(Event, frozen=True, kw_only=True, tag="directories_changed"):
    """The editor opened the session again with other folders."""

    cwd: str
    directories: tuple[str, ...] = ()


class ConfigChanged(Event, frozen=True, kw_only=True, tag="config_changed"):
    """An option of the session got a value: `mode`, `model` or `thought_level`."""

    option: str
    value: str


class SystemPromptWritten(Event, frozen=True, kw_only=True, tag="system_prompt_written"):
    """The system prompt of the session, kept so that every later request begins with it."""

    text: str


class SystemPromptGiven(Event, frozen=True, kw_only=True, tag="system_prompt_given"):
    """The editor gave instructions, added to the agent's own or put in their place.

    They become part of the next system prompt that is written.
    """

    mode: Literal["append", "override"]
    text: str


class UserMessage(Event, frozen=True, kw_only=True, tag="user_message"):
    """What the user said; `steering` when a turn was running already.

    `attached` is what the agent read for the model because the message linked to it; the user's
    own words stay as they were. `local` marks a command that the agent answers by itself, of
    which the model is told nothing.
    """

    message: MessageId
    content: tuple[ContentBlock, ...]
    steering: bool = False
    attached: str = ""
    local: bool = False


class PromptRepeated(Event, frozen=True, kw_only=True, tag="prompt_repeated"):
    """A further round of a turn that repeats its prompt began; `text` is what the model is told."""

    message: MessageId
    round: int
    rounds: int
    text: str


class TitleChanged(Event, frozen=True, kw_only=True, tag="title_changed"):
    """The session got a title, which is never replaced by another when `by` the user."""

    title: str
    by: Literal["agent", "user"] = "agent"


class NoticeShown(Event, frozen=True, kw_only=True, tag="notice_shown"):
    """Something that the user should know and the model need not.

    With a `message`, its id there, it is a part of the conversation and no passing news, and the
    model is told what `for_model` says: so it is where a part of the journal cannot be read.
    """

    severity: Severity
    title: str
    description: str = ""
    message: MessageId | None = None
    for_model: str = ""

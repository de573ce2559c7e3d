"""All exceptions of this program. Only `acp_agent.server.errors` maps them to the wire.

A message is one line: what went wrong, then what to do.
"""

from __future__ import annotations

from typing import ClassVar


class AcpAgentError(Exception):
    """Anything that this program raises on purpose; `kind` names its sort in the journal.

    Args:
        message: what was wrong.
        advice: what a model that reads it is to do about it; users are not shown this.
        shown: the message for users, if it differs.
    """

    kind: ClassVar[str] = "internal"

    def __init__(self, message: str = "", *, advice: str = "", shown: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.advice = advice
        self.shown = shown or message


class InvalidInputError(AcpAgentError):
    """What the caller gave cannot be used; `field` names the part of it that is wrong."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ConfigError(AcpAgentError):
    """A configuration file or variable cannot be used.

    `key` is the way to what is wrong, where it was found only after the file was read.
    """

    def __init__(self, message: str, *, key: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.key = key


class AuthRequiredError(AcpAgentError):
    """No model can be used until the user gives a key, starts a local server or picks the demo."""

    kind = "auth_required"


class SessionError(AcpAgentError):
    """A session cannot do what was asked."""


class SessionNotFoundError(SessionError):
    """There is no session with this id, or none that is open."""

    def __init__(self, session_id: str, hint: str = "") -> None:
        super().__init__(f"session not found: {session_id}{hint}")
        self.session_id = session_id


class SessionBusyError(SessionError):
    """Another process writes this session at the moment."""


class TurnRunsError(SessionError):
    """A turn runs, and what was said is to begin one."""


class NoTurnError(SessionError):
    """No turn runs that what was said could become part of."""


class PromptCancelledError(SessionError):
    """A prompt was cancelled before its words were in the conversation; nothing was said."""

    def __init__(self) -> None:
        super().__init__("the prompt was cancelled before its words were in the conversation")


class EditorGoneError(SessionError):
    """The editor left before it answered."""


class EditorFailedError(SessionError):
    """The editor could not ask the user; or `answered` with what makes no sense."""

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered


class BudgetSpentError(AcpAgentError):
    """A request to a model would exceed a budget, and is not made."""


class StoreError(AcpAgentError):
    """The journal cannot be read or written."""

    kind = "store"


class StoreDamagedError(StoreError):
    """The journal's file is not a journal, or is broken. It is left as it is."""


class StoreNewerError(StoreError):
    """A newer version of the program wrote the journal. It is left as it is."""


class ModelError(AcpAgentError):
    """A model provider failed; the message says which, with what status, and what to do."""

    kind = "model"

    def __init__(self, message: str, *, provider: str, status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status


class WorkspaceError(AcpAgentError):
    """A file, a process or an address cannot be used as asked."""


class OutsideWorkspaceError(WorkspaceError):
    """A path leads out of the folders that this session may use."""


class HostRefusedError(WorkspaceError):
    """The sandbox does not let a command reach a host."""


class MissingFileError(WorkspaceError):
    """There is no such file."""


class NoEditorFileError(WorkspaceError):
    """The editor has no such file, or left: the file on disk is the only one."""


class NoEditorMethodError(NoEditorFileError):
    """The editor does not have the method that it advertised."""


class CheckpointTooSlowError(WorkspaceError):
    """Keeping a folder's files, or putting them back, takes too long, or was given up."""


class ToolError(AcpAgentError):
    """A tool cannot do what the model asked; the model reads the message and goes on."""


class PermissionRefusedError(ToolError):
    """A policy or the user refused a tool call."""

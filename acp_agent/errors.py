"""All exceptions of this program. Only `acp_agent.server.errors` maps them to the wire.

A message is one line: what went wrong, then what to do.
"""

from __future__ import annotations

from typing import ClassVar


class AcpAgentError(Exception):
    """Base of all exceptions of this program; `kind` names the category in the journal.

    Args:
        message: what went wrong.
        advice: what a model should do about it; users do not see this.
        shown: the message for users, if it differs.
    """

    kind: ClassVar[str] = "internal"

    def __init__(self, message: str = "", *, advice: str = "", shown: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.advice = advice
        self.shown = shown or message


class InvalidInputError(AcpAgentError):
    """An argument or parameter is invalid; `field` names it."""

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class ConfigError(AcpAgentError):
    """A configuration file or variable cannot be used.

    `key` is the path of the wrong value, if the error was found after the file was parsed.
    """

    def __init__(self, message: str, *, key: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.key = key


class AuthRequiredError(AcpAgentError):
    """No model is usable until the user adds a key, starts a local server or picks the demo."""

    kind = "auth_required"


class SessionError(AcpAgentError):
    """A session cannot do what was asked."""


class SessionNotFoundError(SessionError):
    """No session has this id, or it is not open."""

    def __init__(self, session_id: str, hint: str = "") -> None:
        super().__init__(f"session not found: {session_id}{hint}")
        self.session_id = session_id


class SessionBusyError(SessionError):
    """Another process is writing to this session."""


class TurnRunsError(SessionError):
    """A turn is running, and the prompt must start a new one."""


class NoTurnError(SessionError):
    """No turn is running that the prompt could steer."""


class PromptCancelledError(SessionError):
    """A prompt was cancelled before it was added to the conversation."""

    def __init__(self) -> None:
        super().__init__("the prompt was cancelled before it was added to the conversation")


class EditorGoneError(SessionError):
    """The editor disconnected before it answered."""


class EditorFailedError(SessionError):
    """The editor could not ask the user, or its answer is invalid (`answered`)."""

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered


class BudgetSpentError(AcpAgentError):
    """A model request would exceed a budget, so it is not sent."""


class StoreError(AcpAgentError):
    """The journal cannot be read or written."""

    kind = "store"


class StoreDamagedError(StoreError):
    """The journal's file is damaged or is not a journal. It is not changed."""


class StoreNewerError(StoreError):
    """A newer version of the program wrote the journal. It is not changed."""


class ModelError(AcpAgentError):
    """A model provider failed; the message names it, its status, and what to do."""

    kind = "model"

    def __init__(self, message: str, *, provider: str, status: int | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status


class WorkspaceError(AcpAgentError):
    """A file, process or network operation failed."""


class OutsideWorkspaceError(WorkspaceError):
    """A path is outside the folders that the session may use."""


class HostRefusedError(WorkspaceError):
    """The sandbox does not allow a command to connect to a host."""


class MissingFileError(WorkspaceError):
    """The file does not exist."""


class NoEditorFileError(WorkspaceError):
    """The editor does not have the file, or disconnected; only the file on disk remains."""


class NoEditorMethodError(NoEditorFileError):
    """The editor does not implement a method that it advertised."""


class CheckpointTooSlowError(WorkspaceError):
    """Saving or restoring a checkpoint took too long or was abandoned."""


class ToolError(AcpAgentError):
    """A tool failed; the model reads the message and continues."""


class PermissionRefusedError(ToolError):
    """A policy or the user refused a tool call."""

"""A client of the official Python SDK that offers nothing but to be told and to be asked."""

from __future__ import annotations

from typing import Any, NoReturn

from acp import Agent, RequestError
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse


class PlainClient:
    """An `acp.Client`. `press` is the kind of the option it chooses; without one it cancels."""

    def __init__(self, press: str | None = None) -> None:
        self.press = press
        self.updates: list[Any] = []
        self.asked: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(tool_call)
        for option in options:
            if option.kind == self.press:
                chosen = AllowedOutcome(outcome="selected", option_id=option.option_id)
                return RequestPermissionResponse(outcome=chosen)
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    def on_connect(self, conn: Agent) -> None:
        """Nothing is sent by itself."""

    def of(self, kind: str) -> list[Any]:
        """The updates of a kind so far."""
        return [update for update in self.updates if update.session_update == kind]

    def text(self) -> str:
        """What the agent said so far."""
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    # --- what it does not offer

    async def read_text_file(self, *_: Any, **__: Any) -> Any:
        not_offered("fs/read_text_file")

    async def write_text_file(self, *_: Any, **__: Any) -> Any:
        not_offered("fs/write_text_file")

    async def create_terminal(self, *_: Any, **__: Any) -> Any:
        not_offered("terminal/create")

    async def terminal_output(self, *_: Any, **__: Any) -> Any:
        not_offered("terminal/output")

    async def release_terminal(self, *_: Any, **__: Any) -> Any:
        not_offered("terminal/release")

    async def wait_for_terminal_exit(self, *_: Any, **__: Any) -> Any:
        not_offered("terminal/wait_for_exit")

    async def kill_terminal(self, *_: Any, **__: Any) -> Any:
        not_offered("terminal/kill")

    async def create_elicitation(self, *_: Any, **__: Any) -> Any:
        not_offered("elicitation/create")

    async def complete_elicitation(self, *_: Any, **__: Any) -> None:
        not_offered("elicitation/complete")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        not_offered(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        not_offered(method)


def not_offered(method: str) -> NoReturn:
    """What a client answers that does not know a method."""
    raise RequestError.method_not_found(method)

"""The client of a language server: handshake, requests, and answers to its requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from acp_agent import __version__
from acp_agent.content import JsonObject
from acp_agent.language_servers import wire
from acp_agent.language_servers.table import ServerSettings
from acp_agent.language_servers.wire import UTF_16
from protocol.codec import typed_json
from protocol.jsonrpc.connection import Connection
from protocol.jsonrpc.handlers import Call, NotificationHandler, RequestHandler, Surface
from protocol.jsonrpc.messages import InvalidResultError
from protocol.jsonrpc.methods import Method, by_name
from protocol.jsonrpc.outgoing import LSP_CANCELLATION
from protocol.transports.base import Transport

R = TypeVar("R")

_MAX_QUEUED_BYTES = 64 * 1024 * 1024  # bytes that may wait for a server that does not read
_IDLE_SECONDS = 0.2  # seconds without news of work after which a server has none
_MAX_REGISTRATIONS = 200
# Capabilities that are not called after the last part of the method.
_CAPABILITIES = {
    "textDocument/diagnostic": "diagnosticProvider",
    "textDocument/prepareRename": "renameProvider",
    "workspace/symbol": "workspaceSymbolProvider",
    "codeAction/resolve": "codeActionProvider",
}

Handler = Callable[[Any], None]


class LanguageClient:
    """A connection to one server.

    Args:
        transport: what carries the messages.

    Attributes:
        on_published: called with problems that the server sends unasked.
        on_registered: called when the server offers more than in the handshake.
        encoding: in which it counts the columns of a line.
    """

    def __init__(self, transport: Transport, *, root: Path, settings: ServerSettings) -> None:
        self.on_published: Callable[[wire.PublishedDiagnostics], None] | None = None
        self.on_registered: Callable[[], None] | None = None
        self.encoding = UTF_16
        self._root = root
        self._settings = settings
        self._capabilities: JsonObject = {}
        self._registered: dict[str, tuple[str, JsonObject]] = {}
        self._progress: dict[int | str, Handler] = {}
        # Tokens of work that the server has begun by itself.
        self._busy_tokens: set[int | str] = set()
        self._progress_changed = asyncio.Event()  # set when it begins or ends some
        methods = by_name(
            wire.CONFIGURATION, wire.REGISTER, wire.UNREGISTER, wire.APPLY_EDIT, wire.ASK_USER,
            wire.CREATE_PROGRESS, wire.FOLDERS, wire.REFRESH, wire.PROGRESS, wire.PUBLISH,
        )  # fmt: skip
        handlers: dict[str, RequestHandler | NotificationHandler] = {
            wire.CONFIGURATION.name: self._configure,
            wire.REGISTER.name: self._register,
            wire.UNREGISTER.name: self._unregister,
            wire.APPLY_EDIT.name: self._refuse_edit,
            wire.ASK_USER.name: self._return_null,
            wire.CREATE_PROGRESS.name: self._return_null,
            wire.FOLDERS.name: self._folders,
            wire.REFRESH.name: self._return_null,
            wire.PROGRESS.name: self._on_progress,
            wire.PUBLISH.name: self._on_published,
        }
        self._connection = Connection(
            transport,
            Surface(methods, handlers),
            cancellation=LSP_CANCELLATION,
            drain_timeout=0.0,
            grace=0.1,
        )
        self._tokens = 0

    async def run(self) -> None:
        """Serve the connection until it ends."""
        await self._connection.run()

    async def stop(self) -> None:
        """End the connection."""
        await self._connection.close()

    async def initialize(self, timeout: float) -> None:
        """Perform the handshake. Raises RpcError, TimeoutError, ConnectionError."""
        folder = {"uri": self._root.as_uri(), "name": self._root.name}
        params = {
            "processId": None,  # confined, it does not see this process
            "clientInfo": {"name": "acp-agent", "version": __version__},
            "rootPath": str(self._root),
            "rootUri": self._root.as_uri(),
            "workspaceFolders": [folder],
            "initializationOptions": self._settings.options,
            "capabilities": wire.client_capabilities(),
            "trace": "off",
        }
        method = Method("initialize", dict, wire.InitializeResult)
        result = await self._connection.request(method, params, timeout=timeout)
        self._capabilities = result.capabilities
        encoding = result.capabilities.get("positionEncoding")
        if isinstance(encoding, str):
            self.encoding = encoding
        self.notify("initialized", {})
        if self._settings.settings:
            self.notify("workspace/didChangeConfiguration", {"settings": self._settings.settings})

    async def shut_down(self, timeout: float) -> None:
        """Ask the server to end. Raises RpcError, TimeoutError, ConnectionError."""
        await self._connection.request(Method("shutdown", dict, Raw), {}, timeout=timeout)
        self.notify("exit", {})

    @property
    def is_overfull(self) -> bool:
        """Whether the server does not read what it is sent."""
        return self._connection.queued > _MAX_QUEUED_BYTES

    @property
    def closed(self) -> bool:
        """Whether the connection is over."""
        return self._connection.closed

    def capability(self, name: str, method: str = "") -> object:
        """Return the server's options for a capability, from its start or a registered method."""
        registered = [
            options
            for registered_method, options in self._registered.values()
            if method and registered_method == method
        ]
        return registered[-1] or True if registered else self._capabilities.get(name)

    def offers(self, method: str) -> bool:
        """Return whether the server answers a method."""
        name = _CAPABILITIES.get(method) or method.rpartition("/")[2] + "Provider"
        value = self.capability(name, method)
        option = {
            "textDocument/prepareRename": "prepareProvider",
            "codeAction/resolve": "resolveProvider",
        }.get(method)
        if option is not None:
            return isinstance(value, dict) and bool(value.get(option))
        return value not in (None, False)

    def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification. Never waits."""
        self._connection.notify(Method(method, dict), params)

    async def request(
        self, method: str, params: JsonObject, result: type[R], *, timeout: float
    ) -> R | None:
        """Send a request; None if the server answers null.

        Raises:
            RpcError, TimeoutError, ConnectionError: it failed.
        """
        raw = await self._connection.request(Method(method, dict, Raw), params, timeout=timeout)
        data = bytes(raw)
        if data == b"{}":  # what the connection makes of null
            return None
        try:
            return typed_json.decode(data, result)
        except (typed_json.InvalidValueError, typed_json.MalformedJsonError) as error:
            raise InvalidResultError(method, str(error)) from None

    def progress_token(self, handler: Handler) -> str:
        """Return a token; what the server reports with it goes to the handler."""
        self._tokens += 1
        token = f"acp-agent-{self._tokens}"
        self._progress[token] = handler
        return token

    def forget_token(self, token: str) -> None:
        """Remove the handler of a token."""
        self._progress.pop(token, None)

    async def _configure(self, params: wire.ConfigurationParams, _call: Call) -> object:
        return [self._section(item.section) for item in params.items]

    def _section(self, section: str) -> object:
        settings = self._settings.settings
        if not section or section in settings:
            return settings.get(section) if section else settings
        value: object = settings
        for part in section.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    async def _register(self, params: wire.RegistrationParams, _call: Call) -> object:
        for registration in params.registrations:
            if len(self._registered) < _MAX_REGISTRATIONS or registration.id in self._registered:
                self._registered[registration.id] = (
                    registration.method,
                    registration.register_options or {},
                )
        if self.on_registered is not None:
            self.on_registered()
        return wire.NULL

    async def _unregister(self, params: wire.UnregistrationParams, _call: Call) -> object:
        for registration in params.unregisterations:
            self._registered.pop(registration.id, None)
        return wire.NULL

    async def _refuse_edit(self, _params: wire.AnyParams, _call: Call) -> object:
        return {"applied": False, "failureReason": "edits are applied by the agent alone"}

    async def _folders(self, _params: wire.AnyParams, _call: Call) -> object:
        return [{"uri": self._root.as_uri(), "name": self._root.name}]

    async def _return_null(self, _params: wire.AnyParams, _call: Call) -> object:
        return wire.NULL

    def _on_published(self, params: wire.PublishedDiagnostics) -> None:
        if self.on_published is not None:
            self.on_published(params)

    def _on_progress(self, params: wire.ProgressParams) -> None:
        handler = self._progress.get(params.token)
        if handler is not None:
            handler(params.value)
            return
        kind = params.value.get("kind") if isinstance(params.value, dict) else None
        if kind == "begin" and len(self._busy_tokens) < _MAX_REGISTRATIONS:
            self._busy_tokens.add(params.token)
        elif kind == "end":
            self._busy_tokens.discard(params.token)
        self._progress_changed.set()

    async def wait_idle(self, timeout: float) -> None:
        """Wait until the server is idle (no index in progress), at most `timeout` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while True:
                    await settle(self._progress_changed, _IDLE_SECONDS)
                    if not self._busy_tokens:
                        return


def convert(value: object, expected: type[R]) -> R | None:
    """Return a value of the protocol; None if it has another shape."""
    try:
        return typed_json.decode(msgspec.json.encode(value), expected)
    except (typed_json.InvalidValueError, typed_json.MalformedJsonError):
        return None


async def settle(event: asyncio.Event, quiet: float) -> None:
    """Wait until an event was not set for `quiet` seconds."""
    while True:
        event.clear()
        try:
            async with asyncio.timeout(quiet):
                await event.wait()
        except TimeoutError:
            return

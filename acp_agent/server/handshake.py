"""The handshake of a connection: the protocol version and the client's capabilities."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw, Struct

from acp_agent.server.initialize import (
    SUPPORTED_VERSIONS,
    auth_methods,
    client_flag,
    initialize_result,
    version_for,
)
from protocol.codec import typed_json
from protocol.jsonrpc.handlers import Call, Handler
from protocol.jsonrpc.messages import INVALID_REQUEST, UNSUPPORTED_VERSION, RpcError

Json = dict[str, Any]  # parameters as they came

# Its parameters are of another type in each method, which no mapping's type can say.
Answer = Callable[[Any, Call], Awaitable[object]]


class Handshake:
    """Agrees on a version when `initialize` arrives, and refuses anything else before it.

    The version must be known before the next message is read: a client may send further requests
    right after `initialize`, in that version.

    Args:
        use_version: makes the connection answer in a version.
        local: whether the client is on this computer.
    """

    def __init__(self, use_version: Callable[[int], None], *, local: bool = True) -> None:
        self._use_version = use_version
        self._local = local
        self._initialize_received = False
        self._version: int | None = None
        self._params: Json | None = None
        self.client = ClientProfile()

    @property
    def version(self) -> int:
        """The agreed version; 1 before that."""
        return self._version or 1

    @property
    def agreed(self) -> bool:
        """Whether a valid `initialize` came, so that notifications may be sent."""
        return self._params is not None

    def auth_methods(self) -> list[Json]:
        """Return the authentication methods that this client can offer."""
        return auth_methods(self._params or {}, self.version, local=self._local)

    def admit(self, method: str, params: Raw) -> None:
        """Check a message as it arrives: agree on a version, or refuse an early message.

        Raises:
            RpcError: it came too early, or asks for an unsupported version.
        """
        if method != "initialize":
            if not self._initialize_received:
                raise too_early(method)
            return
        self._initialize_received = True
        version = _version(params)
        if version is not None:
            self._require_version(version)
        # A request without a version is decoded, and refused, as version 1.
        self._use_version(version or self.version)

    def adopt(self, params: Json) -> None:
        """Take over an `initialize` that was answered before the connection existed."""
        version = version_for(params)
        assert version is not None, "it was answered with one"
        self._initialize_received = True
        self._use_version(version)
        self.accept(params, version)

    def accept(self, params: Json, version: int) -> Json:
        """Accept a well-formed `initialize` and return its result."""
        if self._version is not None and self._version != version:
            self._use_version(self._version)  # it was sent before the first was accepted
        self._require_version(version)
        self._version = version
        self._params = params
        self.client = client_profile(params, version)
        return initialize_result(params, version, local=self._local)

    def require_initialized(self, answer: Answer) -> Handler:
        """Return a handler that refuses requests if `initialize` failed.

        This is checked when the handler starts: a request right after `initialize` arrives before
        that is handled.
        """

        async def checked(params: Any, call: Call) -> object:
            if self._params is None:
                raise too_early(call.method)
            _mark_trace(params)
            return await answer(params, call)

        return checked

    def _require_version(self, version: int) -> None:
        if self._version is not None and self._version != version:
            raise RpcError(
                INVALID_REQUEST,
                f"protocolVersion: this connection speaks version {self._version} already; "
                f"open another one to speak version {version}",
            )


def _mark_trace(params: Any) -> None:
    """Mark the log lines of a request with its trace, if the client sends one."""
    meta = params.get("_meta") if isinstance(params, dict) else getattr(params, "meta", None)
    if isinstance(meta, dict) and "traceparent" in meta:
        from acp_agent.server.trace_context import take_over  # noqa: PLC0415 - few clients trace

        take_over(meta)


def too_early(method: str) -> RpcError:
    """Return the error for a message before `initialize`."""
    return RpcError(INVALID_REQUEST, f"{method} came before initialize; send that first")


def _version(params: Raw) -> int | None:
    """Return the version to speak; None if the request names no valid one.

    Raises:
        RpcError: the client's version is older than all supported ones.
    """
    try:
        value = typed_json.decode_any(params)
    except typed_json.MalformedJsonError:
        return None
    requested = value.get("protocolVersion") if isinstance(value, dict) else None
    if type(requested) is not int or not 0 <= requested <= 65_535:
        return None
    version = version_for(value)
    if version is None:
        raise RpcError(
            UNSUPPORTED_VERSION,
            f"protocolVersion: {requested} is not supported; the versions are "
            + ", ".join(map(str, SUPPORTED_VERSIONS)),
            {"requested": requested, "supported": list(SUPPORTED_VERSIONS)},
        )
    return version


class ClientProfile(Struct, frozen=True, kw_only=True):
    """A client's capabilities; false by default and for invalid values.

    `forms` and `pages` are the two modes of elicitation, `plans` is plans by id, and
    `terminal_output` is Zed's extension for a command's live output in `_meta`.
    """

    reads_files: bool = False
    writes_files: bool = False
    terminals: bool = False
    forms: bool = False
    pages: bool = False
    notices: bool = False
    compactions: bool = False
    plans: bool = False
    subagents: bool = False
    terminal_output: bool = False


def client_profile(params: dict[str, Any], version: int) -> ClientProfile:
    """Return a client's profile from the parameters of its `initialize`."""
    return _profile_v1(params) if version == 1 else _profile_v2(params)


def _profile_v1(params: dict[str, Any]) -> ClientProfile:
    def has(*path: str) -> bool:
        return client_flag(params, "clientCapabilities", *path)

    return ClientProfile(
        reads_files=has("fs", "readTextFile"),
        writes_files=has("fs", "writeTextFile"),
        terminals=has("terminal"),
        forms=has("elicitation", "form"),
        pages=has("elicitation", "url"),
        notices=has("session", "notices"),
        compactions=has("session", "compaction"),
        plans=has("plan"),
        subagents=has("subagents"),
        terminal_output=has("_meta", "terminal_output"),
    )


def _profile_v2(params: dict[str, Any]) -> ClientProfile:
    """Version 2 requires every client to show notices, compactions, plans and children."""
    return ClientProfile(
        forms=client_flag(params, "capabilities", "elicitation", "form"),
        pages=client_flag(params, "capabilities", "elicitation", "url"),
        notices=True,
        compactions=True,
        plans=True,
        subagents=True,
    )

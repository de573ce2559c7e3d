"""What comes before any session: agreeing on a version, and logging in and out."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from acp_agent.errors import InvalidInputError
from acp_agent.server.client import client_profile
from acp_agent.server.core import Core
from acp_agent.server.negotiation import (
    SUPPORTED_VERSIONS,
    auth_methods,
    initialize_result,
    version_for,
)
from acp_agent.server.v1.editor import ClientEditor
from protocol.jsonrpc.call import Call, Handler, RequestHandler
from protocol.jsonrpc.errors import INVALID_REQUEST, UNSUPPORTED_VERSION, RpcError
from protocol.v1 import types as acp


class Handshake:
    """Answers `initialize`, `authenticate` and `logout`; refuses all else before the first of them.

    Args:
        editor: who is to know what the client can do.
        core: where the account is.
    """

    def __init__(self, editor: ClientEditor, core: Core) -> None:
        self._editor = editor
        self._core = core
        self._params: dict[str, Any] | None = None
        self._came = False

    def table(self, others: dict[str, RequestHandler]) -> dict[str, Handler]:
        """The handlers by method: its own, and `others` behind a check that all is agreed on."""
        requests = others | {"authenticate": self.authenticate, "logout": self.logout}
        table: dict[str, Handler] = {
            name: self._initialized_first(handler) for name, handler in requests.items()
        }
        return table | {"initialize": self.initialize}

    def auth_methods(self) -> list[dict[str, Any]]:
        """The ways to get a usable model, as this client can offer them."""
        return auth_methods(self._params or {})

    def admit(self, method: str, params: Raw) -> None:
        """Refuse what arrives before any `initialize`."""
        del params
        if method == "initialize":
            self._came = True
        elif not self._came:
            raise _too_early(method)

    def _initialized_first(self, handler: RequestHandler) -> RequestHandler:
        """Refuse a request whose `initialize` failed.

        Whether it did is known when the handler starts, not when the request arrives: one sent
        right behind a good `initialize` arrives before that is handled.
        """

        async def checked(params: Any, call: Call) -> object:
            if self._params is None:
                raise _too_early(call.method)
            return await handler(params, call)

        return checked

    def initialized(self, params: dict[str, Any]) -> None:
        """Take over the parameters of an `initialize` that was answered."""
        self._params = params
        self._came = True
        self._editor.client = client_profile(params)

    async def initialize(self, request: acp.InitializeRequest, call: Call) -> dict[str, Any]:
        """Agree on a version and say what we can do (Initialization)."""
        del call
        version = version_for(request.protocol_version)
        if version is None:
            raise RpcError(
                UNSUPPORTED_VERSION,
                f"protocolVersion: {request.protocol_version} is not supported; the versions are "
                + ", ".join(map(str, SUPPORTED_VERSIONS)),
                {
                    "requested": request.protocol_version,
                    "supported": list(SUPPORTED_VERSIONS),
                },
            )
        params: dict[str, Any] = msgspec.to_builtins(request)
        self.initialized(params)
        return initialize_result(params, version)

    async def authenticate(
        self, request: acp.AuthenticateRequest, call: Call
    ) -> acp.AuthenticateResponse:
        """Make a model usable (Authentication)."""
        del call
        methods = {method["id"]: method for method in self.auth_methods()}
        method = methods.get(request.method_id)
        if method is None:
            raise InvalidInputError(
                f"methodId: there is no method {request.method_id!r}; the methods are "
                + ", ".join(methods),
                field="methodId",
            )
        if method.get("type") == "terminal":
            raise InvalidInputError(
                f"methodId: {request.method_id!r} runs in a terminal, not over the protocol",
                field="methodId",
            )
        await (await self._core.services()).account.authenticate(request.method_id)
        return acp.AuthenticateResponse()

    async def logout(self, request: acp.LogoutRequest, call: Call) -> acp.LogoutResponse:
        """Forget the keys that a login kept; new sessions need `authenticate` again."""
        del request, call
        await (await self._core.services()).account.log_out()
        return acp.LogoutResponse()


def _too_early(method: str) -> RpcError:
    return RpcError(INVALID_REQUEST, f"{method} came before initialize; send that first")

"""The agent's side of version 1's unstable methods, imported when one is first called."""

from __future__ import annotations

from acp_agent.models.endpoints import API_TYPES
from acp_agent.models.providers import Provider
from acp_agent.server import account as providers
from acp_agent.server.account import Json, to_json
from acp_agent.server.extensions.meta import fork_point
from acp_agent.server.handshake import Answer
from acp_agent.server.link import ClientLink
from acp_agent.server.operations import Lifecycle, Operations
from acp_agent.server.v1.handlers import Handlers
from protocol.jsonrpc.call import Call, Handler, Reply
from protocol.v1 import unstable as acp


class UnstableHandlers:
    """Answers what is beyond the stable methods. It translates, as `Handlers` does.

    Args:
        link: the connection.
        handlers: those of the stable methods.
        operations: what can be done with sessions.
        lifecycle: what else can be done with them.
    """

    def __init__(
        self,
        link: ClientLink,
        handlers: Handlers,
        operations: Operations,
        lifecycle: Lifecycle,
    ) -> None:
        self._link = link
        self._handlers = handlers
        self._operations = operations
        self._lifecycle = lifecycle

    def table(self) -> dict[str, Handler]:
        """The handlers by method."""
        requests: dict[str, Answer] = {
            "session/fork": self.fork,
            "session/archive": self.archive,
            "session/unarchive": self.unarchive,
            "session/status": self.status,
            "session/set_title": self.set_title,
            "auth/status": self.auth_status,
            "providers/list": self.list_providers,
            "providers/set": self.set_provider,
            "providers/disable": self.disable_provider,
        }
        first = self._link.handshake.first
        return {name: first(answer) for name, answer in requests.items()}

    # -- sessions --------------------------------------------------------------------------

    async def fork(self, request: acp.ForkSessionRequest, call: Call) -> Reply:
        """Start a session that begins with what another one holds."""
        del call
        servers = self._handlers.servers(request.mcp_servers)
        session = await self._operations.fork(
            request.session_id,
            request.cwd,
            request.additional_directories,
            system_prompt=await self._handlers.given(request.system_prompt),
            point=fork_point(request.meta),
        )
        return self._handlers.opened(
            session, servers, acp.ForkSessionResponse, session_id=session.id
        )

    async def archive(
        self, request: acp.ArchiveSessionRequest, call: Call
    ) -> acp.ArchiveSessionResponse:
        """Close a session and leave it out of lists."""
        del call
        await self._lifecycle.archive(request.session_id)
        return acp.ArchiveSessionResponse()

    async def unarchive(
        self, request: acp.UnarchiveSessionRequest, call: Call
    ) -> acp.UnarchiveSessionResponse:
        """Put a session into lists again."""
        del call
        await self._lifecycle.unarchive(request.session_id)
        return acp.UnarchiveSessionResponse()

    async def status(
        self, request: acp.SessionStatusRequest, call: Call
    ) -> acp.SessionStatusResponse:
        """Say whether a session is in memory, and change nothing."""
        del call
        session = await self._lifecycle.look_up(request.session_id)
        return acp.SessionStatusResponse(status="saved" if session is None else "open")

    async def set_title(
        self, request: acp.SetSessionTitleRequest, call: Call
    ) -> acp.SetSessionTitleResponse:
        """Name a session, and answer with the name as it is kept."""
        del call
        title = await self._lifecycle.set_title(request.session_id, request.title)
        return acp.SetSessionTitleResponse(title=title)

    # -- accounts and providers ------------------------------------------------------------

    async def auth_status(self, request: acp.AuthStatusRequest, call: Call) -> Json:
        """Say whether a login is needed."""
        del request, call
        return to_json(await self._link.core.auth.ask(self._link))

    async def list_providers(
        self, request: acp.ListProvidersRequest, call: Call
    ) -> acp.ListProvidersResponse:
        """List the providers with where they are reached."""
        del request, call
        found = await providers.configurable(self._link.core)
        return acp.ListProvidersResponse(providers=[_info(provider) for provider in found])

    async def set_provider(
        self, request: acp.SetProviderRequest, call: Call
    ) -> acp.SetProviderResponse:
        """Send a provider's requests elsewhere."""
        del call
        await providers.set_endpoint(
            self._link.core,
            request.provider_id,
            request.api_type,
            request.base_url,
            request.headers,
        )
        return acp.SetProviderResponse()

    async def disable_provider(
        self, request: acp.DisableProviderRequest, call: Call
    ) -> acp.DisableProviderResponse:
        """Use a provider no longer."""
        del call
        await providers.disable(self._link.core, request.provider_id)
        return acp.DisableProviderResponse()


def _info(provider: Provider) -> acp.ProviderInfo:
    current = None
    if providers.is_told(provider):
        current = acp.ProviderCurrentConfig(api_type=provider.api_type, base_url=provider.address)
    return acp.ProviderInfo(
        provider_id=provider.id,
        supported=list(API_TYPES),
        required=False,
        current=current,
    )

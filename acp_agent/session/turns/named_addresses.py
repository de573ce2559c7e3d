"""Check whether the user named a web address or a search found it; full mode reads only those.

Addresses in files, pages, and output of commands and servers do not count: their authors could
choose an address that sends the user's data to them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import urldefrag, urlsplit

from acp_agent.config.network_addresses import is_loopback
from acp_agent.errors import AcpAgentError
from acp_agent.events import AnyEvent, ToolCalled, ToolEnded, unwrap_child_event
from acp_agent.ids import CallId
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.session.core import SessionCore
from acp_agent.session.history.named_files import user_texts


class NamedAddresses:
    """The addresses that were named in a session or its child sessions."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core

    async def __call__(self, url: str, *, by_user: bool = False) -> bool:
        """Return whether the user named the host of an address, or a search found the address.

        With `by_user`, addresses that a search found do not count. Hosts that the configuration
        allows for commands count as named, and so does this computer.
        """
        try:
            address = urlsplit(url.strip())
            host, port = (address.hostname or "").lower(), address.port
        except ValueError:
            return False
        if not host:
            return False
        if is_loopback(host) or self._is_allowed(
            host, port or (80, 443)[address.scheme == "https"]
        ):
            return True
        bare_host = host.removeprefix("www.")
        mention = re.compile(
            rf"(?<![\w.-])(?:www\.)?{re.escape(bare_host)}(?!\.?[\w-])", re.IGNORECASE
        )
        events = await self._core.history()
        if any(map(mention.search, user_texts(events))):
            return True
        return not by_user and _normalize(url) in _search_results(events)

    def _is_allowed(self, host: str, port: int) -> bool:
        network = self._core.services.config.sandbox.network
        with suppress(AcpAgentError):
            HostRules(network.allowed_domains, network.denied_domains).check_host(host, port)
            return True
        return False


def _search_results(events: Sequence[AnyEvent]) -> set[str]:
    """Return the addresses that web searches found."""
    searches: set[CallId] = set()
    addresses: set[str] = set()
    for event in map(unwrap_child_event, events):
        if isinstance(event, ToolCalled) and event.kind == "search":  # no MCP tool has it
            searches.add(event.call)
        elif isinstance(event, ToolEnded) and event.call in searches and event.raw_output:
            sources = event.raw_output.get("sources", ())
            addresses.update(_normalize(source["url"]) for source in sources)
    return addresses


def _normalize(url: str) -> str:
    return urldefrag(url.strip()).url.rstrip("/")

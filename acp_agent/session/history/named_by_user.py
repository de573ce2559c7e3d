"""Check whether the user named a file that steers agents, or a web address.

Full mode changes only such files, and reads only such pages, without a question. Names in files,
pages, and output of commands and servers do not count: their authors could choose an address that
sends the user's data to them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from urllib.parse import urldefrag, urlsplit

from acp_agent.config.network_addresses import is_loopback
from acp_agent.content import TextBlock
from acp_agent.errors import AcpAgentError
from acp_agent.events import AnyEvent, ToolCalled, ToolEnded, UserMessage, unwrap_child_event
from acp_agent.ids import CallId
from acp_agent.permissions.guarded_files import steers_agents
from acp_agent.sandbox.host_rules import HostRules
from acp_agent.session.core import SessionCore

_INIT = re.compile(r"\s*/init\b")
_INIT_FILE = "AGENTS.md"


def _user_texts(events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield the texts that the user wrote, without attachments and prompts of child sessions."""
    for event in events:
        if isinstance(event, UserMessage):
            yield from (block.text for block in event.content if isinstance(block, TextBlock))


class NamedFiles:
    """The files that the user named in a session, or that a slash command of the user writes."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._project = os.path.realpath(core.cwd)

    async def __call__(self, files: Sequence[Sequence[str]]) -> bool:
        """Return whether the user named all files that steer agents.

        A file counts as named if its own name, or that of its folder for agents, was mentioned.

        Args:
            files: the absolute paths of each file; the name of one of them is enough.
        """
        project = self._project
        steering = [
            [path for path in paths if steers_agents(path, project)]
            for paths in files
            if any(steers_agents(path, project) for path in paths)
        ]
        if not steering:
            return True
        texts = list(self._texts(await self._core.history()))
        return all(
            any(mention.search(text) for text in texts)
            for mention in (_mention(paths, project) for paths in steering)
        )

    @staticmethod
    def _texts(events: Sequence[AnyEvent]) -> Iterator[str]:
        for text in _user_texts(events):
            yield text
            if _INIT.match(text):
                yield _INIT_FILE


def _mention(paths: Sequence[str], project: str) -> re.Pattern[str]:
    """Return a pattern that finds the names of a file in a text."""
    names: set[str] = set()
    for path in paths:
        *folders, name = os.path.relpath(path, project).split("/")
        names |= {name, *(folder for folder in folders if steers_agents(f"/{folder}", ""))}
    alternatives = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"(?<![\w.-])(?:{alternatives})(?!\.?[\w-])", re.IGNORECASE)


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
        if any(map(mention.search, _user_texts(events))):
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

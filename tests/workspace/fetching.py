"""The guarded network before a web server of the test: by which names, and what it may reach."""

from __future__ import annotations

from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.page_reader import Page
from tests.support.web_site import Names, Server


def network(server: Server, names: Names | None = None) -> GuardedNetwork:
    """A network that may reach the server, which is site.test unless `names` say otherwise."""
    names = names or Names(site_test=["127.0.0.1"], localhost=["127.0.0.1"])
    return GuardedNetwork(resolve=names, allow=[("127.0.0.1", server.port)])


async def fetch(server: Server, path: str, *, limit: int = 50_000, timeout: float = 20) -> Page:
    """A page of the server, by its name."""
    url = f"http://site.test:{server.port}{path}"
    return await network(server).fetch(url, limit=limit, timeout=timeout)

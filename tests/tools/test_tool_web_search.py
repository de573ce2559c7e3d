"""The web_search tool against a search service on this machine."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from acp_agent.config.types import WebSearchConfig
from acp_agent.errors import WorkspaceError
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import Outcome, Progress
from acp_agent.tools.toolset import core_tools
from acp_agent.tools.web_search import WebSearchParams, WebSearchTool, page_list
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import LocalProcesses
from acp_agent.workspace.search_services import SearchService, Service, select_service
from acp_agent.workspace.workspace import Workspace
from tests.support.web_site import Server, response

NO_PROGRESS = cast("Progress", None)
KEY = "a-key-of-the-service"
RESULTS = {"title": "A &amp; B", "url": "https://example.com/a", "content": "first\nsecond"}
MORE_RESULTS = [{"title": "no address"}, "nonsense", {"title": "x", "url": "javascript:alert(1)"}]


@pytest.fixture
async def site() -> AsyncIterator[Server]:
    async with Server() as test_site:
        yield test_site


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(
        cwd=tmp_path,
        files=WorkspaceFiles(tmp_path),
        processes=LocalProcesses(tmp_path, environ=os.environ),
        network=GuardedNetwork(),
        outputs=tmp_path,
    )


def service(site: Server, kind: Service) -> SearchService:
    return SearchService(kind, f"http://127.0.0.1:{site.port}", KEY)


def answers(site: Server, one: SearchService, body: object, status: str = "200 OK") -> None:
    path = one.address("two words").removeprefix(one.base_url)
    site.pages[path] = response(json.dumps(body).encode(), "application/json", status)


async def search(workspace: Workspace, one: SearchService) -> Outcome:
    prepared = await WebSearchTool(workspace, one).prepare(WebSearchParams(query=" two\nwords "))
    assert prepared.title == "Search the web for two words"
    assert prepared.access == FetchAccess(one.address("two words"), search=True)
    return await prepared.run(NO_PROGRESS)


@pytest.mark.parametrize(
    ("kind", "header"),
    [("searxng", ""), ("brave", f"X-Subscription-Token: {KEY}"), ("tavily", f"Bearer {KEY}")],
)
async def test_each_service_gives_pages_with_title_address_and_text(
    workspace: Workspace, site: Server, kind: Service, header: str
) -> None:
    one = service(site, kind)
    results = {"results": [RESULTS, *MORE_RESULTS]}
    answers(site, one, {"web": results} if kind == "brave" else results)
    outcome = await search(workspace, one)
    assert outcome.text == "1. A & B\nhttps://example.com/a\nfirst second"
    assert outcome.raw_output == {"sources": [{"title": "A & B", "url": RESULTS["url"]}]}
    (request,) = site.requests
    assert header.lower() in request.lower()
    assert KEY not in repr(one)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        ("403 Forbidden", {}, "search.formats"),
        ("302 Found", {}, "HTTP 302"),
        ("429 Too Many Requests", {}, "it limits requests: search again later"),
        ("432 Plan Limit", {"detail": {"error": "limit"}}, "plan's limit is reached"),
        ("200 OK", {"results": [], "unresponsive_engines": [["brave", "timeout"]]}, "timeout"),
        ("200 OK", [], "no list of results"),
        ("200 OK", {"results": "x" * 2_100_000}, "too long"),
    ],
)
async def test_an_unusable_answer_is_reported_as_a_tool_error(
    workspace: Workspace, site: Server, status: str, body: object, message: str
) -> None:
    one = service(site, "searxng")
    answers(site, one, body, status)
    with pytest.raises(WorkspaceError, match=message):
        await search(workspace, one)


@pytest.mark.parametrize(
    ("config", "environ", "kind"),
    [
        (WebSearchConfig(), {}, None),
        (WebSearchConfig(), {"BRAVE_API_KEY": KEY}, "brave"),
        (WebSearchConfig(), {"TAVILY_API_KEY": KEY, "SEARXNG_URL": "http://s.test/"}, "searxng"),
        (WebSearchConfig(service="tavily"), {"BRAVE_API_KEY": KEY}, None),
        (WebSearchConfig(service="off"), {"BRAVE_API_KEY": KEY}, None),
        (WebSearchConfig(base_url="http://s.test"), {"BRAVE_API_KEY": KEY}, "searxng"),
    ],
)
def test_the_tool_is_offered_only_where_a_service_is_set_up(
    workspace: Workspace, config: WebSearchConfig, environ: dict[str, str], kind: str | None
) -> None:
    chosen = select_service(config, environ)
    assert (chosen and chosen.kind) == kind
    names = [spec.name for spec in core_tools(workspace, search_service=chosen).specs()]
    assert ("web_search" in names) is (kind is not None)


def test_a_page_without_a_title_is_listed_by_its_address_once() -> None:
    pages = [("A [title]", "https://example.com/a b"), ("", "https://example.com/c")]
    assert page_list(pages).splitlines() == [
        "- A \\[title]: <https://example.com/a%20b>",
        "- <https://example.com/c>",
    ]

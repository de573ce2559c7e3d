"""The web_fetch tool against a real server on this machine."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from acp_agent.content import ContentPart, TextBlock
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import RESULT_LIMIT, Outcome, Progress
from acp_agent.tools.web_fetch import WebFetchParams, WebFetchTool
from acp_agent.workspace.files import WorkspaceFiles
from acp_agent.workspace.network import GuardedNetwork
from acp_agent.workspace.processes import LocalProcesses
from acp_agent.workspace.workspace import Workspace
from tests.support.web_site import Names, Server, response

NO_PROGRESS = cast("Progress", None)  # a fetch shows nothing while it runs


@pytest.fixture
async def site() -> AsyncIterator[Server]:
    async with Server() as test_site:
        yield test_site


def address(site: Server) -> str:
    return f"http://site.test:{site.port}"


@pytest.fixture
def tool(site: Server, tmp_path: Path) -> WebFetchTool:
    names = Names(site_test=["127.0.0.1"])
    network = GuardedNetwork(resolve=names, allow=[("127.0.0.1", site.port)])
    return WebFetchTool(make_workspace(tmp_path, network))


def make_workspace(folder: Path, network: GuardedNetwork) -> Workspace:
    return Workspace(
        cwd=folder,
        files=WorkspaceFiles(folder),
        processes=LocalProcesses(folder, environ=os.environ),
        network=network,
        outputs=folder,
    )


async def fetch(tool: WebFetchTool, url: str) -> Outcome:
    prepared = await tool.prepare(WebFetchParams(url=url))
    return await prepared.run(NO_PROGRESS)


def content_texts(outcome: Outcome) -> str:
    assert outcome.content is not None
    (part,) = outcome.content
    assert isinstance(part, ContentPart)
    assert isinstance(part.content, TextBlock)
    return part.content.text


async def test_a_page_comes_as_markdown_with_its_address_and_status(
    tool: WebFetchTool, site: Server
) -> None:
    site.pages["/a"] = response(b"<h1>Title</h1><p>Some <em>text</em></p>", "text/html")
    outcome = await fetch(tool, f"{address(site)}/a")
    assert outcome.text == f"{address(site)}/a (HTTP 200)\n\n# Title\n\nSome *text*"
    assert not outcome.failed
    assert content_texts(outcome).startswith("HTTP 200\n```\n# Title")
    assert outcome.raw_output == {
        "url": f"{address(site)}/a",
        "status": 200,
        "media_type": "text/html",
        "truncated": False,
    }


async def test_the_user_sees_the_complete_address_before_the_fetch(
    tool: WebFetchTool, site: Server
) -> None:
    url = f"{address(site)}/path?data=everything"
    prepared = await tool.prepare(WebFetchParams(url=f" {url} "))
    assert prepared.title == "Fetch site.test/path"
    assert prepared.access == FetchAccess(url)
    (part,) = prepared.content
    assert isinstance(part, ContentPart)
    assert isinstance(part.content, TextBlock)
    assert url in part.content.text
    assert site.requests == []


async def test_a_long_page_stays_below_the_models_limit_and_says_that_it_is_cut(
    tool: WebFetchTool, site: Server
) -> None:
    site.pages["/"] = response(b"word " * 100_000, "text/plain")
    outcome = await fetch(tool, f"{address(site)}/")
    assert 40_000 < len(outcome.text) < RESULT_LIMIT
    assert "cut off" in outcome.text.splitlines()[0]
    assert len(content_texts(outcome)) < 3_000


async def test_an_error_status_is_a_failed_call_with_the_page(
    tool: WebFetchTool, site: Server
) -> None:
    site.pages["/"] = response(b"gone away", "text/plain", "410 Gone")
    outcome = await fetch(tool, f"{address(site)}/")
    assert outcome.failed
    assert "HTTP 410" in outcome.text
    assert "gone away" in outcome.text


async def test_a_redirect_to_another_host_is_reported_and_needs_another_call(
    tool: WebFetchTool, site: Server
) -> None:
    site.pages["/"] = response(b"", status="302 Found", more="Location: https://other.test/x\r\n")
    outcome = await fetch(tool, f"{address(site)}/")
    assert outcome.text.endswith("leads to another host; fetch https://other.test/x")
    assert not outcome.failed


async def test_a_private_address_is_refused_with_a_reason_for_the_model(tool: WebFetchTool) -> None:
    with pytest.raises(WorkspaceError, match="only the public network is reached"):
        await fetch(tool, "http://169.254.169.254/latest/meta-data/")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "127.1", "[::1]", "[::ffff:10.0.0.1]", "10.0.0.1", "192.168.1.1:8080",
        "169.254.169.254", "0.0.0.0", "localhost", "LOCALHOST.:3000", "api.localhost",
    ],
)  # fmt: skip
async def test_a_private_address_is_refused_without_a_question(
    tool: WebFetchTool, host: str
) -> None:
    with pytest.raises(WorkspaceError, match=r"only the public network|unusual form"):
        await tool.prepare(WebFetchParams(url=f"http://{host}/secret"))


async def test_no_name_is_looked_up_before_the_user_was_asked(site: Server, tmp_path: Path) -> None:
    names = Names(site_test=["10.1.2.3"])
    tool = WebFetchTool(make_workspace(tmp_path, GuardedNetwork(resolve=names)))
    prepared = await tool.prepare(WebFetchParams(url=address(site)))
    assert names.asked == []
    with pytest.raises(WorkspaceError, match=r"site\.test \(10\.1\.2\.3\) is a private"):
        await prepared.run(NO_PROGRESS)


@pytest.mark.parametrize(
    "url", ["example.com", "ftp://example.com/", "file:///etc/passwd", "http://["]
)
async def test_an_invalid_web_address_is_refused_before_the_user_is_asked(
    tool: WebFetchTool, url: str
) -> None:
    with pytest.raises(ToolError, match="not an http or https address"):
        await tool.prepare(WebFetchParams(url=url))


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"url": "https://example.com/a/b?c=d"}, "Fetch example.com/a/b"),
        ({"url": "https://exa"}, "Fetch exa"),
        ({"url": "htt"}, "Fetch htt"),
        ({"url": None}, "web_fetch"),
        ({}, "web_fetch"),
    ],
)
def test_the_title_shows_the_received_arguments(
    tool: WebFetchTool, arguments: dict[str, object], title: str
) -> None:
    assert tool.title(arguments) == title

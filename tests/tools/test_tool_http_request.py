"""The http_request tool against a real server on this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import cast

import pytest

from acp_agent.content import ContentPart, TextBlock
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import NOTHING, RESULT_LIMIT, Outcome, Prepared, Progress, conflict
from acp_agent.tools.http.request import HttpRequestParams, HttpRequestTool
from acp_agent.workspace.network import GuardedNetwork
from tests.support.web_site import Names, Server, response
from tests.tools.test_tool_web_fetch import make_workspace

NO_PROGRESS = cast("Progress", None)  # a request shows nothing while it runs
KEY = "mine-8f3a91c07d52"  # a value that is known to be secret


@pytest.fixture
async def site() -> AsyncIterator[Server]:
    async with Server() as test_site:
        yield test_site


@pytest.fixture
def tool(site: Server, tmp_path: Path) -> HttpRequestTool:
    names = Names(site_test=["127.0.0.1"], inner_test=["127.0.0.1"])
    network = GuardedNetwork(resolve=names, allow=[("127.0.0.1", site.port)])
    return HttpRequestTool(make_workspace(tmp_path, network), lambda: [KEY])


def address(site: Server, path: str = "/") -> str:
    return f"http://site.test:{site.port}{path}"


async def prepare(tool: HttpRequestTool, url: str, **more: object) -> Prepared:
    return await tool.prepare(HttpRequestParams.model_validate({"url": url, **more}))


async def send(tool: HttpRequestTool, url: str, **more: object) -> Outcome:
    return await (await prepare(tool, url, **more)).run(NO_PROGRESS)


def shown(prepared: Prepared | Outcome) -> str:
    texts = []
    for part in prepared.content or ():
        assert isinstance(part, ContentPart)
        assert isinstance(part.content, TextBlock)
        texts.append(part.content.text)
    return "\n".join(texts)


async def test_json_that_is_posted_arrives_and_the_answer_comes_as_it_is(
    tool: HttpRequestTool, site: Server
) -> None:
    more = "Location: /items/7\r\nSet-Cookie: session=abc\r\nX-RateLimit-Remaining: 3\r\n"
    site.pages["/items"] = response(b'{"id": 7}', "application/json", "201 Created", more)
    outcome = await send(
        tool, address(site, "/items"), method="post", body={"name": "é"}, headers={"X-Trace": "1"}
    )
    head = site.requests[0].lower()
    assert head.startswith("post /items http/1.1")
    assert "content-type: application/json" in head
    assert "x-trace: 1" in head
    assert json.loads(site.bodies[0]) == {"name": "é"}
    assert outcome.text.splitlines() == [
        f"POST {address(site, '/items')}: HTTP 201",
        "content-type: application/json",
        "content-length: 9",
        "location: /items/7",
        "x-ratelimit-remaining: 3",
        "",
        '{"id": 7}',
    ]
    assert not outcome.failed
    assert '```json\n{"id": 7}' in shown(outcome)


async def test_the_user_sees_method_host_headers_size_and_the_beginning_before_anything_is_sent(
    tool: HttpRequestTool, site: Server
) -> None:
    body = "x" * 3_000
    url = address(site, "/a?b=c")
    prepared = await prepare(tool, url, method="PUT", body=body, headers={"X-One": "two"})
    assert prepared.title == "PUT site.test/a"
    assert prepared.access == FetchAccess(url, changes=True)
    text = shown(prepared)
    assert f"PUT {url}\nX-One: two\nContent-Type: text/plain; charset=utf-8" in text
    assert "3,000 bytes" in text
    assert body[:2_000] in text
    assert body[:2_001] not in text
    assert site.requests == []


@pytest.mark.parametrize(
    ("more", "changes"),
    [
        ({}, False),
        ({"method": "HEAD"}, False),
        ({"headers": {"Accept": "text/plain"}}, False),
        ({"method": "DELETE"}, True),
        ({"method": "OPTIONS"}, True),
        ({"method": "GET", "body": "x"}, True),
        ({"headers": {"X-HTTP-Method-Override": "DELETE"}}, True),
    ],
)
async def test_only_a_plain_get_or_head_counts_as_reading(
    tool: HttpRequestTool, site: Server, more: Mapping[str, object], changes: bool
) -> None:
    assert (await prepare(tool, address(site), **more)).access == FetchAccess(
        address(site), changes=changes
    )


@pytest.mark.parametrize(
    "more",
    [
        {"url": f"/?k={KEY}"},
        {"url": "/?k=mine%2D8f3a91c07d52"},
        {"headers": {"Authorization": f"Bearer {KEY}"}},
        {"body": {"token": KEY}},
        {"body": "github_pat_11ABCDEFG0abcdefghijkl_" + "m1N2b3V4c5X6z7A8s9D0" * 3},
    ],
)
async def test_a_request_with_a_secret_is_refused_and_says_where_it_is(
    tool: HttpRequestTool, site: Server, more: dict[str, object]
) -> None:
    url = address(site, str(more.pop("url", "/")))
    with pytest.raises(ToolError, match="contains a credential") as caught:
        await prepare(tool, url, method="POST", **more)
    assert KEY not in str(caught.value)
    assert site.requests == []


@pytest.mark.parametrize(
    "name", ["Host", "Content-Length", "Connection", "Proxy-Authorization", "A b"]
)
async def test_headers_that_say_where_and_how_a_request_goes_cannot_be_set(
    tool: HttpRequestTool, site: Server, name: str
) -> None:
    with pytest.raises(ToolError, match="header"):
        await prepare(tool, address(site), headers={name: "x"})


async def test_a_header_adds_no_line_of_its_own(tool: HttpRequestTool, site: Server) -> None:
    with pytest.raises(ToolError, match="one line"):
        await prepare(tool, address(site), headers={"X-A": "1\r\nHost: other.test"})


async def test_private_addresses_are_refused_for_every_method(tmp_path: Path, site: Server) -> None:
    names = Names(inner_test=["127.0.0.1"])
    tool = HttpRequestTool(make_workspace(tmp_path, GuardedNetwork(resolve=names)), list)
    for url in (f"http://127.0.0.1:{site.port}/", "http://169.254.169.254/latest"):
        with pytest.raises(WorkspaceError, match="private or reserved"):
            await prepare(tool, url, method="POST")
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await send(tool, f"http://inner.test:{site.port}/", method="POST")
    assert site.requests == []


async def test_a_redirect_of_a_request_that_may_change_something_is_not_followed(
    tool: HttpRequestTool, site: Server
) -> None:
    more = "Location: /elsewhere\r\n"
    site.pages["/a"] = response(b"", status="307 Temporary Redirect", more=more)
    outcome = await send(tool, address(site, "/a"), method="POST", body="x")
    assert f"It leads to {address(site, '/elsewhere')}, which was not requested." in outcome.text
    assert len(site.requests) == 1


async def test_reading_follows_redirects_on_the_same_host_and_port_only(
    tool: HttpRequestTool, site: Server
) -> None:
    site.pages["/a"] = response(b"", status="302 Found", more="Location: /b\r\n")
    site.pages["/b"] = response(b"here")
    assert "here" in (await send(tool, address(site, "/a"))).text
    for target in (f"http://inner.test:{site.port}/b", "http://site.test:1/b"):
        site.pages["/a"] = response(b"", status="302 Found", more=f"Location: {target}\r\n")
        outcome = await send(tool, address(site, "/a"), headers={"X-Token": "t"})
        assert f"It leads to {target}" in outcome.text
        assert "here" not in outcome.text


async def test_a_binary_body_is_reported_by_type_and_size(
    tool: HttpRequestTool, site: Server, tmp_path: Path
) -> None:
    site.pages["/"] = response(b"\x89PNG" + bytes(2_000), "image/png")
    outcome = await send(tool, address(site))
    assert outcome.text.endswith("[image/png, 2,004 bytes; not shown and not saved]")
    assert list(tmp_path.iterdir()) == []


async def test_html_comes_as_text_and_an_error_is_a_failed_call_with_its_body(
    tool: HttpRequestTool, site: Server
) -> None:
    site.pages["/"] = response(b"<h1>No</h1><p>go <em>away</em></p>", "text/html", "403 Forbidden")
    outcome = await send(tool, address(site), method="PATCH", body="{}")
    assert outcome.failed
    assert outcome.text.endswith("# No\n\ngo *away*")


async def test_a_head_request_has_headers_and_no_body(tool: HttpRequestTool, site: Server) -> None:
    site.pages["/"] = b'HTTP/1.1 200 OK\r\nETag: "x"\r\nContent-Length: 5\r\n\r\n'
    outcome = await send(tool, address(site), method="HEAD")
    assert 'etag: "x"' in outcome.text
    assert outcome.text.endswith("[no body]")


async def test_a_long_answer_stays_below_the_models_limit_and_says_that_it_is_cut(
    tool: HttpRequestTool, site: Server
) -> None:
    site.pages["/"] = response(b"word " * 100_000)
    outcome = await send(tool, address(site))
    assert "cut off" in outcome.text.splitlines()[0]
    assert len(outcome.text) < RESULT_LIMIT


async def test_an_invalid_answer_and_a_missing_answer_fail_the_call(
    tool: HttpRequestTool, site: Server, tmp_path: Path
) -> None:
    site.pages["/"] = b"\x00\x01garbage\r\n\r\n"
    with pytest.raises(WorkspaceError, match="cannot fetch"):
        await send(tool, address(site), method="POST")
    site.pages["/"] = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"
    with pytest.raises(WorkspaceError, match="cannot fetch"):
        await send(tool, address(site))


def test_calls_wait_for_those_that_may_change_what_they_read(tool: HttpRequestTool) -> None:
    post = tool.touches(HttpRequestParams(url="http://a.test/x", method="POST"))
    get = tool.touches(HttpRequestParams(url="http://A.test/y"))
    second = tool.touches(HttpRequestParams(url="http://b.test/y", method="POST"))
    assert conflict(post, get)
    assert not conflict(post, second)
    assert not conflict(get, get)
    assert not conflict(get, NOTHING)


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "GET /x", "", "G\u00c9T"])
async def test_a_method_that_cannot_be_sent_is_refused(
    tool: HttpRequestTool, site: Server, method: str
) -> None:
    with pytest.raises(ToolError, match="not a method"):
        await prepare(tool, address(site), method=method)

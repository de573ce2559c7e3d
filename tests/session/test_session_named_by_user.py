"""Which addresses of the web a session takes for named: the user's words and a search's results."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from acp_agent.config.sandbox_types import SandboxConfig, SandboxNetworkConfig
from acp_agent.content import ResourceBlock, ResourceContents, TextBlock
from acp_agent.events import AnyEvent, ChildWorked, ToolCalled, ToolEnded, UserMessage
from acp_agent.ids import CallId, MessageId, SessionId
from acp_agent.session.core import SessionCore
from acp_agent.session.history.named_by_user import NamedAddresses


def said(text: str, *, attached: str = "") -> UserMessage:
    resource = ResourceBlock(resource=ResourceContents(uri="file:///a", text=attached))
    return UserMessage(message=MessageId("m"), content=(TextBlock(text=text), resource))


def found(kind: str, url: str) -> list[AnyEvent]:
    call = CallId(url)
    sources = {"sources": [{"title": "x", "url": url}]}
    return [
        ToolCalled(call=call, message=MessageId("m"), name="x", arguments="", title="", kind=kind),  # type: ignore[arg-type]
        ToolEnded(call=call, raw_output=sources, result=f"See https://in-a-result.example/ {url}"),
    ]


def in_child(event: AnyEvent) -> ChildWorked:
    return ChildWorked(session=SessionId("c"), call=CallId("t"), did=event)


EVENTS: Sequence[AnyEvent] = (
    said("Read https://named.example/a and dir.named.net", attached="http://attached.example/"),
    in_child(said("Look at https://by-the-model.example/")),
    *found("search", "https://found.example/page#part"),
    *found("other", "https://by-a-server.example/"),
    *map(in_child, found("search", "https://found-by-a-child.example/")),
)


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://named.example/b?c=d", True),
        ("http://WWW.named.example/", True),
        ("https://dir.named.net", True),
        ("https://found.example/page", True),
        ("https://found-by-a-child.example/", True),
        ("http://localhost:3000/", True),
        ("https://allowed.example:443/", True),
        ("https://x.named.example/", False),
        ("https://named.net/", False),
        ("https://named.example.evil.example/", False),
        ("https://unnamed.example/", False),
        ("https://amed.example/", False),
        ("https://found.example/page?d=1", False),
        ("https://found.example/other", False),
        ("https://attached.example/", False),
        ("https://by-the-model.example/", False),
        ("https://by-a-server.example/", False),
        ("https://in-a-result.example/", False),
        ("http://[::1", False),
        ("http:///x", False),
    ],
)
async def test_only_addresses_from_the_user_or_a_search_count_as_named(
    url: str, named: bool
) -> None:
    assert await addresses()(url) is named


async def test_an_address_from_a_search_is_not_named_by_the_user() -> None:
    assert await addresses()("https://named.example/b", by_user=True)
    assert not await addresses()("https://found.example/page", by_user=True)


def addresses() -> NamedAddresses:
    async def history() -> Sequence[AnyEvent]:
        return EVENTS

    network = SandboxNetworkConfig(allowed_domains=["allowed.example"])
    config = SimpleNamespace(sandbox=SandboxConfig(network=network))
    core = SimpleNamespace(history=history, services=SimpleNamespace(config=config))
    return NamedAddresses(cast("SessionCore", core))

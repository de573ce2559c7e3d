"""The private network is out of reach, by whatever name, redirect or spelling it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.network import GuardedNetwork
from tests.support.web_site import Authority, Names, Server, response
from tests.workspace.fetching import fetch, network


async def test_redirects_on_the_same_host_are_followed(server: Server) -> None:
    def moved(to: str) -> bytes:
        return response(b"", status="302 Found", more=f"Location: {to}\r\n")

    server.pages["/1"] = moved("/2")
    server.pages["/2"] = moved(f"http://site.test:{server.port}/3")
    server.pages["/3"] = response(b"here")
    page = await fetch(server, "/1")
    assert (page.text, page.url) == ("here", f"http://site.test:{server.port}/3")


async def test_redirects_that_never_end_do(server: Server) -> None:
    server.pages["/"] = response(b"", status="302 Found", more="Location: /\r\n")
    with pytest.raises(WorkspaceError, match="redirects more than 5 times"):
        await fetch(server, "/")
    assert len(server.requests) == 6


async def test_a_redirect_to_another_host_is_handed_back_and_not_followed(server: Server) -> None:
    names = Names(site_test=["127.0.0.1"], other_test=["127.0.0.1"])
    to = f"http://other.test:{server.port}/secret"
    server.pages["/"] = response(b"", status="301 Moved", more=f"Location: {to}\r\n")
    page = await network(server, names).fetch(
        f"http://site.test:{server.port}/", limit=100, timeout=20
    )
    assert (page.status, page.url, page.text) == (301, to, "")
    assert names.asked == ["site.test"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("http://2130706433/", "unusual form"),
        ("file:///etc/passwd", "only http and https"),
        ("http://user:pw@site.test/", "user name or password"),
        ("http://a%20b/", "no usable host"),
        ("http://[::1", "no address"),
    ],
)
async def test_a_redirect_to_a_forbidden_address_is_refused(
    server: Server, to: str, why: str
) -> None:
    server.pages["/"] = response(b"", status="302 Found", more=f"Location: {to}\r\n")
    with pytest.raises(WorkspaceError, match=why):
        await fetch(server, "/")


async def test_a_redirect_to_a_private_port_of_the_same_name_is_refused(server: Server) -> None:
    # The server's own address is allowed here, other ports of it are not.
    server.pages["/"] = response(b"", status="302 Found", more="Location: http://site.test:1/\r\n")
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await fetch(server, "/")


async def test_a_private_server_is_not_reached_by_any_name_or_address(server: Server) -> None:
    names = Names(site_test=["127.0.0.1"], mixed_test=["8.8.8.8", "127.0.0.1"], six_test=["::1"])
    guarded = GuardedNetwork(resolve=names)
    for host in ("127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "site.test", "mixed.test", "six.test"):
        with pytest.raises(WorkspaceError, match="private or reserved"):
            await guarded.fetch(f"http://{host}:{server.port}/", limit=100, timeout=10)
    assert server.requests == []


async def test_the_refusal_of_a_name_shows_its_address(server: Server) -> None:
    guarded = GuardedNetwork(resolve=Names(site_test=["10.1.2.3"]))
    with pytest.raises(WorkspaceError, match=r"^site\.test \(10\.1\.2\.3\) is a private"):
        await guarded.fetch("http://site.test/", limit=100, timeout=10)
    with pytest.raises(WorkspaceError, match=r"^10\.1\.2\.3 is a private"):
        await guarded.fetch("http://10.1.2.3/", limit=100, timeout=10)


async def test_the_systems_own_name_for_this_machine_is_refused(server: Server) -> None:
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await GuardedNetwork().fetch(f"http://localhost:{server.port}/", limit=100, timeout=10)
    assert server.requests == []


async def test_a_name_that_changes_its_address_after_the_check_gains_nothing(
    server: Server,
) -> None:
    names = Names(site_test=["127.0.0.1"])
    names.answers["site.test"] = [["127.0.0.1"], ["10.0.0.1"]]
    server.pages["/"] = response(b"first")
    guarded = network(server, names)
    url = f"http://site.test:{server.port}/"
    assert (await guarded.fetch(url, limit=100, timeout=10)).text == "first"
    assert names.asked == ["site.test"]  # connected to what was checked, without asking again
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await guarded.fetch(url, limit=100, timeout=10)


async def test_a_name_is_checked_again_when_a_redirect_asks_for_it_again(server: Server) -> None:
    names = Names(site_test=["127.0.0.1"])
    names.answers["site.test"] = [["127.0.0.1"], ["169.254.169.254"]]
    server.pages["/"] = response(b"", status="302 Found", more="Location: /latest/meta-data\r\n")
    with pytest.raises(WorkspaceError, match="private or reserved"):
        await network(server, names).fetch(
            f"http://site.test:{server.port}/", limit=100, timeout=10
        )
    assert len(server.requests) == 1


async def test_the_next_address_is_tried_if_one_refuses_connections(server: Server) -> None:
    names = Names(site_test=["127.0.0.2", "127.0.0.1"])
    server.pages["/"] = response(b"second")
    guarded = GuardedNetwork(
        resolve=names, allow=[("127.0.0.1", server.port), ("127.0.0.2", server.port)]
    )
    page = await guarded.fetch(f"http://site.test:{server.port}/", limit=100, timeout=10)
    assert page.text == "second"


async def test_an_unknown_host_name_is_reported(server: Server) -> None:
    with pytest.raises(WorkspaceError, match=r"the name nowhere\.test cannot be resolved"):
        await network(server).fetch("http://nowhere.test/", limit=100, timeout=10)


async def test_a_trailing_dot_and_other_alphabets_change_nothing(server: Server) -> None:
    names = Names(**{"site_test": ["127.0.0.1"], "xn--bcher-kva_test": ["127.0.0.1"]})
    server.pages["/"] = response(b"x")
    guarded = network(server, names)
    for host in ("site.test.", "SITE.test", "bücher.test"):
        await guarded.fetch(f"http://{host}:{server.port}/", limit=10, timeout=10)
    assert names.asked == ["site.test", "site.test", "xn--bcher-kva.test"]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "site.test",
        "ftp://site.test/",
        "javascript:alert(1)",
        "http:///path",
        "http://exa mple.test/",
        "http://site.test:99999/",
        "http://site.test:0/",
        "http://a\nb/",
        "http://[::1",
        "http://%31%32%37.0.0.1/",
        "http://user@site.test/",
        "http://site.test/" + "x" * 9_000,
    ],
)
async def test_unusable_addresses_are_refused_in_one_line(server: Server, url: str) -> None:
    with pytest.raises(WorkspaceError) as error:
        await network(server).fetch(url, limit=100, timeout=10)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
    assert server.requests == []


async def test_an_error_does_not_repeat_secrets_in_an_address(server: Server) -> None:
    with pytest.raises(WorkspaceError) as error:
        await network(server).fetch("ftp://me:pass1@site.test/?token=abc", limit=1, timeout=5)
    assert "pass1" not in str(error.value)
    assert "abc" not in str(error.value)


async def test_proxies_of_the_environment_are_not_used(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    server.pages["/"] = response(b"direct")
    assert (await fetch(server, "/")).text == "direct"


@pytest.mark.parametrize("certified", ["site.test", "other.test"])
async def test_a_certificate_is_held_against_the_name_although_the_address_is_pinned(
    tmp_path: Path, certified: str
) -> None:
    authority = Authority(tmp_path)
    server = Server()
    await server.start(authority.server(certified))
    server.pages["/"] = response(b"safe")
    guarded = GuardedNetwork(
        resolve=Names(site_test=["127.0.0.1"]),
        allow=[("127.0.0.1", server.port)],
        tls=authority.client(),
    )
    url = f"https://site.test:{server.port}/"
    try:
        if certified == "site.test":
            assert (await guarded.fetch(url, limit=100, timeout=10)).text == "safe"
        else:
            with pytest.raises(WorkspaceError, match="certificate is not trusted"):
                await guarded.fetch(url, limit=100, timeout=10)
            assert server.requests == []
        assert server.server_names == ["site.test"]
    finally:
        await server.stop()

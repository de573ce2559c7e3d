"""Logging in at MCP servers behind HTTP, at an authorization server of our own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from acp_agent.config import key_stores
from acp_agent.extensions.mcp.config import HttpServer
from acp_agent.extensions.mcp.oauth.logins import Login, LoginStore
from acp_agent.extensions.mcp.oauth.provider import saved_authorization
from tests.cli.cli_process import environment
from tests.extensions.authorization_server import AuthorizedServer
from tests.extensions.mcp_session import OpenWithServers, call, notices, results
from tests.extensions.mcp_web import web_server
from tests.support.model_server import ModelServer, answer
from tests.support.warm_parent import shared_parent

CLIENT = {
    "client_id": "one",
    "redirect_uris": ["http://127.0.0.1/callback"],
    "token_endpoint_auth_method": "none",
}


class Command:
    """`acp-agent mcp …` while it runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    @classmethod
    async def start(
        cls, home: Path, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> Command:
        pipe = asyncio.subprocess.PIPE
        command = (*shared_parent().command(), "mcp", *arguments)
        return cls(
            await asyncio.create_subprocess_exec(
                *command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=environment(home) | dict(environ or {}),
                cwd=home,
            )
        )

    async def address(self) -> str:
        """The page that the user is to open."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            if line.startswith(b"http"):
                return line.decode().strip()
        raise AssertionError(await self.end())

    async def end(self, stdin: str = "") -> tuple[int | None, str]:
        async with asyncio.timeout(60):
            out, err = await self.process.communicate(stdin.encode())
        return self.process.returncode, (out + err).decode()


async def browse(address: str) -> str:
    """Open the page; return where it leads back to."""
    async with httpx2.AsyncClient() as http:
        response = await http.get(address)
    assert response.status_code == 302, response.text
    return response.headers["location"]


def kept(home: Path) -> Path:
    return home / "agent" / "mcp_logins.json"


@pytest.mark.parametrize("how", ["browser", "pasted", "document"])
async def test_a_login_is_stored_privately_used_and_refreshed(tmp_path: Path, how: str) -> None:
    server = AuthorizedServer()
    server.documents = how == "document"
    async with web_server(made=server):
        (tmp_path / "agent").mkdir()
        table = f"[mcp_servers.web]\nurl = '{server.url}'\n"
        if how == "document":
            table += "oauth.client_metadata_url = 'https://example.org/client.json'\n"
        (tmp_path / "agent" / "config.toml").write_text(table)
        command = await Command.start(tmp_path, "login", "web", "--no-browser")
        back = await browse(await command.address())
        if how == "pasted":
            code, said = await command.end(f"{back}\n")
        else:
            async with httpx2.AsyncClient() as http:
                await http.get(back)
            code, said = await command.end()
        assert code == 0, said
        assert ("/register" in server.log) == (how != "document")
        assert kept(tmp_path).stat().st_mode & 0o777 == 0o600
        assert not any(token in said for token in server.access)
        if how != "browser":
            return

        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert (code, "web: connected" in said) == (0, True), said
        logins = json.loads(kept(tmp_path).read_text())
        logins["logins"][server.url]["expires_at"] = 1
        kept(tmp_path).write_text(json.dumps(logins))
        server.log.clear()
        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert (code, server.log) == (0, ["/token"]), said
        new = json.loads(kept(tmp_path).read_text())["logins"][server.url]
        assert new["tokens"]["refresh_token"] in server.refreshing

        assert (await (await Command.start(tmp_path, "logout", "web")).end())[0] == 0
        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert code == 1
        assert "acp-agent mcp login" in said


@pytest.mark.parametrize("methods", [None, ["client_secret_post"]])
async def test_a_client_registered_by_hand_sends_its_secret_from_the_environment(
    tmp_path: Path, methods: list[str] | None
) -> None:
    server = AuthorizedServer()
    server.documents = True  # takes any client
    server.secret = "known-to-both"
    server.changes = {"token_endpoint_auth_methods_supported": methods}
    (tmp_path / "agent").mkdir()
    config = tmp_path / "agent" / "config.toml"
    async with web_server(made=server):
        table = f"[mcp_servers.web]\nurl = '{server.url}'\noauth.client_id = 'team'\n"
        config.write_text(table)
        command = await Command.start(tmp_path, "login", "web", "--no-browser")
        code, said = await command.end(f"{await browse(await command.address())}\n")
        assert code == 1, said  # without the secret

        config.write_text(f"{table}oauth.client_secret_env = 'TEAM_SECRET'\n")
        secret = {"TEAM_SECRET": server.secret}
        command = await Command.start(tmp_path, "login", "web", "--no-browser", environ=secret)
        code, said = await command.end(f"{await browse(await command.address())}\n")
        assert code == 0, said
        assert server.secret not in said

        config.write_text(table)  # the next login uses the saved secret
        command = await Command.start(tmp_path, "login", "web", "--no-browser")
        code, said = await command.end(f"{await browse(await command.address())}\n")
        assert code == 0, said


def test_a_secret_of_a_client_is_in_the_keyring_with_its_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries: dict[str, str] = {}
    monkeypatch.setattr(key_stores, "write_key", entries.__setitem__)
    monkeypatch.setattr(key_stores, "read_key", entries.get)
    store = LoginStore(tmp_path / "logins.json")
    client = CLIENT | {"client_secret": "known-to-both"}
    store.set(
        "https://example.org", Login(tokens={"access_token": "a"}, client=client, keyring=True)
    )
    assert "known-to-both" not in (tmp_path / "logins.json").read_text()
    login = store.get("https://example.org")
    assert login is not None
    assert (login.client, login.tokens) == (client, {"access_token": "a"})


@pytest.mark.parametrize("reason", ["expired", "withdrawn"])
async def test_agents_that_need_new_tokens_at_once_get_the_same(
    tmp_path: Path, reason: str
) -> None:
    server = AuthorizedServer()
    async with web_server(made=server):
        tokens = {"access_token": "old", "refresh_token": "only once", "token_type": "Bearer"}
        server.refreshing.add("only once")
        place = tmp_path / "mcp_logins.json"
        expires = 1.0 if reason == "expired" else None
        begun = Login(tokens=tokens, client=CLIENT, metadata=server.metadata(), expires_at=expires)
        LoginStore(place).set(server.url, begun)
        config = HttpServer(name="web", url=server.url)
        learned: list[str] = []

        async def ask() -> int:
            store = LoginStore(place)
            provider = saved_authorization(config, store, learned.extend)
            async with httpx2.AsyncClient(auth=provider) as http:
                return (await http.post(server.url, json={})).status_code

        assert 401 not in await asyncio.gather(*(ask() for _ in range(4)))
        assert server.log == ["/token"]
        new = LoginStore(place).get(server.url)
        assert new is not None
        assert {"old", "only once", *new.secrets} <= set(learned)


async def test_an_answer_of_another_issuer_or_a_refusal_ends_the_login(tmp_path: Path) -> None:
    server = AuthorizedServer()
    server.iss = "https://evil.example"
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        code, said = await command.end(f"{await browse(await command.address())}\n")
        assert code == 1
        assert "iss" in said
        assert "Traceback" not in said
        assert "/token" not in server.log
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        await command.address()
        refusal = "error=access_denied&error_description=The+owner+said+no"
        code, said = await command.end(f"http://127.0.0.1/callback?{refusal}\n")
        assert code == 1
        assert "the authorization server refused: The owner said no" in said
        assert not kept(tmp_path).exists()


@pytest.mark.parametrize("methods", [None, ["plain"]])
async def test_a_server_without_pkce_is_refused_before_anybody_logs_in(
    tmp_path: Path, methods: list[str] | None
) -> None:
    server = AuthorizedServer()
    server.changes = {"code_challenge_methods_supported": methods}
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        code, said = await command.end()
    assert code == 1
    assert "does not support PKCE" in said


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
async def test_a_client_registers_for_a_secret_where_the_server_requires_one(
    tmp_path: Path, method: str
) -> None:
    server = AuthorizedServer()
    server.only_with_secret = True
    server.changes = {"token_endpoint_auth_methods_supported": ["private_key_jwt", method]}
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        code, said = await command.end(f"{await browse(await command.address())}\n")
    assert code == 0, said
    (client,) = server.clients.values()
    assert client["token_endpoint_auth_method"] == method
    assert client["client_secret"] not in said


async def test_the_error_for_a_refused_registration_has_a_remedy(tmp_path: Path) -> None:
    server = AuthorizedServer()
    server.only_with_secret = True
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        code, said = await command.end()
    assert code == 1
    assert "secrets only" in said
    assert "set oauth.client_id" in said


async def test_a_page_that_sends_another_state_does_not_end_the_login(tmp_path: Path) -> None:
    server = AuthorizedServer()
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        back = await browse(await command.address())
        forged = back.partition("?")[0] + "?code=forged&state=other"
        async with httpx2.AsyncClient() as http:
            assert (await http.get(forged)).status_code == 404
            assert (await http.get(back)).status_code == 200
        code, said = await command.end()
    assert code == 0, said


@pytest.mark.parametrize(
    "open_methods",
    [
        {"initialize", "notifications/initialized"},
        {"initialize", "notifications/initialized", "tools/list"},
    ],
)
async def test_a_server_whose_tools_alone_need_a_login_gets_one(
    tmp_path: Path, open_methods: set[str]
) -> None:
    server = AuthorizedServer()
    server.open_methods = frozenset(open_methods)
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--no-browser")
        code, output = await command.end(f"{await browse(await command.address())}\n")
        assert code == 0, output
        logins = json.loads(kept(tmp_path).read_text())["logins"]
        assert logins[server.url]["tokens"]["access_token"] in server.access


async def test_configured_and_missing_scopes_are_requested(
    tmp_path: Path,
) -> None:
    server = AuthorizedServer()
    server.changes = {"scopes_supported": ["all"]}
    async with web_server(made=server):
        (tmp_path / "agent").mkdir()
        table = f"[mcp_servers.web]\nurl = '{server.url}'\noauth.scopes = ['read']\n"
        (tmp_path / "agent" / "config.toml").write_text(table)
        LoginStore(kept(tmp_path)).set(server.url, Login(scope="write"))
        command = await Command.start(tmp_path, "login", "web", "--no-browser")
        address = await command.address()
        await command.end(f"{await browse(address)}\n")
    assert "&scope=read+write" in address


async def test_a_login_on_another_device_needs_no_local_browser(tmp_path: Path) -> None:
    server = AuthorizedServer()
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--device")
        code, said = await command.end()
        assert code == 0, said
        assert f"{server.issuer}/enter" in said
        assert "ABCD-EFGH" in said
        logins = json.loads(kept(tmp_path).read_text())["logins"]
        assert logins[server.url]["tokens"]["access_token"] in server.access


async def test_a_session_uses_a_login_and_headers_of_its_own_win(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path, home: Path
) -> None:
    server = AuthorizedServer()
    async with web_server(made=server):
        command = await Command.start(tmp_path, "login", server.url, "--device")
        assert (await command.end())[0] == 0
        folder = home / "acp-agent"
        folder.mkdir(exist_ok=True)
        place = folder / "mcp_logins.json"
        place.write_bytes(kept(tmp_path).read_bytes())
        model_server.add(answer(call("add", server="web", a=1, b=2)), answer("Three."))
        other = server.named(Authorization="Bearer wrong") | {"name": "other"}
        running, session = await with_servers(
            server.named(), other, environ={"ACP_AGENT_HOME": str(folder)}
        )
        await running.prompt(session, "add")
        assert "3" in results(model_server)[0]
        (notice,) = notices(running, session)
        assert "'other' could not be connected" in notice
        assert place.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("methods", [None, ["client_secret_post"]])
async def test_a_client_logs_in_by_itself_and_again_when_its_token_is_refused(
    tmp_path: Path, methods: list[str] | None
) -> None:
    server = AuthorizedServer()
    server.secret = "known-to-both"
    server.changes = {"token_endpoint_auth_methods_supported": methods}
    (tmp_path / "agent").mkdir()
    config = tmp_path / "agent" / "config.toml"
    async with web_server(made=server):
        config.write_text(
            f"[mcp_servers.web]\nurl = '{server.url}'\noauth.client_id = 'team'\n"
            "oauth.client_secret_env = 'TEAM_SECRET'\noauth.grant = 'client_credentials'\n"
        )
        code, said = await (await Command.start(tmp_path, "login", "web")).end()
        assert (code, "oauth.client_secret_env" in said) == (1, True), said
        secret = {"TEAM_SECRET": server.secret}
        code, said = await (await Command.start(tmp_path, "login", "web", environ=secret)).end()
        assert (code, server.log) == (0, ["/token"]), said
        assert server.secret not in said
        server.access.clear()
        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert (code, server.log) == (0, ["/token"] * 2), said
        server.access.clear()
        server.secret = "another"
        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert code == 1
        assert "invalid_client" in said or "login" in said


KEYS: dict[str, Callable[[], Any]] = {
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "EC": lambda: ec.generate_private_key(ec.SECP256R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


@pytest.mark.parametrize("kind", KEYS)
async def test_a_client_logs_in_by_a_private_key_that_is_never_sent(
    tmp_path: Path, kind: str
) -> None:
    key = KEYS[kind]()
    server = AuthorizedServer()
    server.public_key = key.public_key()
    server.changes = {"token_endpoint_auth_methods_supported": ["private_key_jwt"]}
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    (tmp_path / "agent").mkdir()
    config = "[mcp_servers.web]\nurl = 'URL'\noauth.client_id = 'team'\n"
    config += "oauth.client_secret_env = 'TEAM_KEY'\n"
    async with web_server(made=server):
        config = config.replace("URL", server.url)
        file = tmp_path / "agent" / "config.toml"
        file.write_text(config)
        environ = {"TEAM_KEY": text}
        code, said = await (await Command.start(tmp_path, "login", "web", environ=environ)).end()
        assert (code, server.log) == (1, [])
        assert "is a private key, which is never sent" in said
        file.write_text(config + "oauth.grant = 'client_credentials'\n")
        code, said = await (await Command.start(tmp_path, "login", "web", environ=environ)).end()
        assert (code, server.log) == (0, ["/token"]), said
        server.access.clear()
        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert (code, server.log) == (0, ["/token"] * 2), said


async def test_a_private_key_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    server = AuthorizedServer()
    (tmp_path / "agent").mkdir()
    async with web_server(made=server):
        (tmp_path / "agent" / "config.toml").write_text(
            f"[mcp_servers.web]\nurl = '{server.url}'\noauth.client_id = 'team'\n"
            "oauth.client_secret_env = 'TEAM_KEY'\noauth.grant = 'client_credentials'\n"
        )
        broken = {"TEAM_KEY": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"}
        code, said = await (await Command.start(tmp_path, "login", "web", environ=broken)).end()
        assert (code, server.log) == (1, [])
        assert "the private key of the client cannot be read" in said
        assert "AAAA" not in said


async def test_the_secret_of_a_client_is_sent_to_no_other_authorization_server(
    tmp_path: Path,
) -> None:
    server = AuthorizedServer()
    server.secret = "known-to-both"
    (tmp_path / "agent").mkdir()
    async with web_server(made=server):
        (tmp_path / "agent" / "config.toml").write_text(
            f"[mcp_servers.web]\nurl = '{server.url}'\noauth.client_id = 'team'\n"
            "oauth.client_secret_env = 'TEAM_SECRET'\noauth.grant = 'client_credentials'\n"
        )
        secret = {"TEAM_SECRET": server.secret}
        code, said = await (await Command.start(tmp_path, "login", "web", environ=secret)).end()
        assert code == 0, said
        logins = json.loads(kept(tmp_path).read_text())
        logins["logins"][server.url]["metadata"]["issuer"] = "https://auth.example.org"
        kept(tmp_path).write_text(json.dumps(logins))
        server.access.clear()
        server.log.clear()
        code, said = await (await Command.start(tmp_path, "test", "web")).end()
        assert (code, server.log) == (1, []), said

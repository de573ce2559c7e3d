"""Which model may be used: by a key, by the demo, or none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.config.secrets import Secrets
from acp_agent.errors import AuthRequiredError, ConfigError
from acp_agent.models.registry import Models
from acp_agent.session.account import Account
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import Desk, home_paths, open_desk

# At its own address OpenAI needs a key, which a server on this machine would not.
NOWHERE = {"LOCAL_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_BASE_URL": "", "OPENAI_API_KEY": ""}
KEY = "sk-of-a-login-0123456789"


@pytest.fixture
async def desk(tmp_path: Path, model_server: ModelServer) -> AsyncIterator[Desk]:
    """Nothing that could answer: no key, no local server, no session."""
    async with open_desk(tmp_path, model_server, environ=NOWHERE, flag=None, session=False) as one:
        yield one


def log_in(desk: Desk) -> None:
    """What `acp-agent login` does, in another process."""
    path = home_paths(desk.folder.parent).secrets_file
    Secrets(path, {}).set("openai", KEY)


async def test_without_any_model_a_session_cannot_begin(desk: Desk) -> None:
    with pytest.raises(AuthRequiredError):
        await desk.manager.create(str(desk.folder), [], desk.editor)
    with pytest.raises(AuthRequiredError):
        await desk.services.account.authenticate("configured")


async def test_the_demo_needs_no_key(desk: Desk) -> None:
    await desk.services.account.authenticate("demo")
    assert (
        await desk.manager.create(str(desk.folder), [], desk.editor)
    ).core.settings.model.ref == "demo/demo"


async def test_a_key_that_came_meanwhile_is_found_by_authenticating(
    tmp_path: Path, model_server: ModelServer
) -> None:
    there = NOWHERE | {"OPENAI_BASE_URL": model_server.environ()["OPENAI_BASE_URL"]}
    async with open_desk(tmp_path, model_server, environ=there, flag=None, session=False) as desk:
        log_in(desk)
        await desk.services.account.authenticate("configured")
        session = await desk.manager.create(str(desk.folder), [], desk.editor)
        assert session.core.settings.model.provider == "openai"
        desk._session = session
        model_server.add(answer("Yes."))
        await desk.say("Hello")
        assert model_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_key_saved_by_a_terminal_login_is_found_by_the_next_session(
    desk: Desk,
) -> None:
    told = []
    desk.services.account.watch(lambda: told.append("changed"))
    with pytest.raises(AuthRequiredError):
        await desk.manager.create(str(desk.folder), [], desk.editor)
    assert told == []
    log_in(desk)
    session = await desk.manager.create(str(desk.folder), [], desk.editor)
    desk._session = session
    assert session.core.settings.model.provider == "openai"
    assert told == ["changed"]


async def test_after_logging_out_a_session_takes_no_key_that_came_meanwhile(desk: Desk) -> None:
    await desk.services.account.log_out()
    log_in(desk)
    with pytest.raises(AuthRequiredError, match="logged out"):
        await desk.manager.create(str(desk.folder), [], desk.editor)


async def test_a_configured_model_comes_before_the_demo_again(desk: Desk) -> None:
    await desk.services.account.authenticate("demo")
    log_in(desk)
    await desk.services.account.authenticate("configured")
    assert (await desk.services.account.choose(None)).provider == "openai"


async def test_a_session_keeps_its_own_model_though_the_demo_was_chosen(desk: Desk) -> None:
    log_in(desk)
    await desk.services.account.authenticate("configured")
    await desk.services.account.authenticate("demo")
    assert (await desk.services.account.choose("openai/blind")).ref == "openai/blind"


async def test_logging_out_forgets_the_key_and_uses_no_other_before_the_next_login(
    desk: Desk,
) -> None:
    log_in(desk)
    await desk.services.account.authenticate("configured")
    await desk.services.account.log_out()
    with pytest.raises(AuthRequiredError, match="logged out"):
        await desk.manager.create(str(desk.folder), [], desk.editor)
    assert KEY not in home_paths(desk.folder.parent).secrets_file.read_text()
    with pytest.raises(AuthRequiredError):
        await desk.services.account.authenticate("configured")
    await desk.services.account.authenticate("demo")
    assert (await desk.services.account.choose(None)).ref == "demo/demo"


async def test_a_key_that_cannot_be_removed_is_named_and_the_others_are_removed(
    desk: Desk,
) -> None:
    keys = Keys("anthropic", "openai", "zhipu")
    models = desk.services.models
    assert isinstance(models, Models)
    account = Account(models, keys, None, lambda: desk.services.config)
    await account.authenticate("demo")
    with pytest.raises(ConfigError, match="anthropic"):
        await account.log_out()
    assert keys.stored() == ["anthropic"]
    assert keys.refreshed
    with pytest.raises(AuthRequiredError, match="logged out"):
        await account.choose(None)


class Keys:
    """Keys of which the keyring keeps the first one, whatever it is told."""

    def __init__(self, *providers: str) -> None:
        self._providers = list(providers)
        self.refreshed = False

    def stored(self) -> list[str]:
        return list(self._providers)

    def delete(self, provider: str) -> bool:
        if provider == "anthropic":
            raise ConfigError("the keyring keeps the key of anthropic; unlock it")
        self._providers.remove(provider)
        return True

    def refresh(self) -> None:
        self.refreshed = True

"""A login by the page, from both of its sides: the client that asks and the browser."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from acp_agent.config.secrets import Secrets
from tests.cli.cli_process import Provider
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor, Json
from tests.support.wire_client import AnswerError

KEY = "sk-test-0123456789-of-the-page"

PAGES: Any = frozenset({"elicitation"})


class Login:
    """An `authenticate` that waits for the user, and the page that they were sent to."""

    def __init__(self, running: AgentProcess, request: int, requested: Json) -> None:
        self.running = running
        self.request = request
        self.asked = requested
        self.url: str = requested["params"]["url"]

    @property
    def origin(self) -> str:
        return self.url.partition("/login/")[0]

    async def error(self) -> AnswerError:
        with pytest.raises(AnswerError) as caught:
            await self.running.result(self.request)
        return caught.value

    async def closed(self, browser: httpx2.AsyncClient) -> bool:
        """Whether nobody listens there any more."""
        try:
            await browser.get(self.url)
        except httpx2.ConnectError:
            return True
        return False


async def begin(
    agent: StartAgent, home: Path, served: Provider, answer: Any = None, *flags: str
) -> Login:
    """Start an agent without a key, and a login by the page. `answer` is the editor's."""
    config_file(
        home,
        '[log]\nlevel = "debug"\n[providers.mine]\napi = "openai"\n'
        f'base_url = "{served.url}/v1"\napi_key_env = "MINE_KEY"\n',
    )
    editor = Editor(offers=PAGES)
    editor.answer = lambda _: {"action": "accept"} if answer is None else answer
    running = await agent("--model", "mine/any", *flags, editor=editor)
    await running.initialize()
    request = running.post("authenticate", {"methodId": "login-page"}, checked=True)
    question = await running.expect(lambda message: message.get("method") == "elicitation/create")
    return Login(running, request, question)


async def form(browser: httpx2.AsyncClient, url: str, **headers: str) -> dict[str, str]:
    """The fields of the page's form, filled in with the right key."""
    page = await browser.get(url, headers=headers)
    assert page.status_code == 200
    word = re.search(r'name="word" value="([^"]+)"', page.text)
    assert word is not None
    return {"word": word[1], "provider": "mine", "key": KEY}


def kept(home: Path) -> list[str]:
    return Secrets(home / "acp-agent" / "secrets.json", {}).stored()

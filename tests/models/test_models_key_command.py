"""Keys that a command prints: when it runs, and what is told when it gives none."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from acp_agent.config.model_types import ProviderConfig
from acp_agent.config.types import Config
from acp_agent.events import Usage
from acp_agent.models.base import Driver, Failed
from acp_agent.models.embedding.embedder import open_embedder
from acp_agent.models.endpoints import Endpoint
from acp_agent.models.registry import Models
from tests.models.configured_models import models
from tests.support.agent_process import StartAgent, config_file
from tests.support.model_asking import ask, gather
from tests.support.model_server import Call, ModelServer, Stall, Status, answer

# Prints the next line of a file, the last one again and again, and notes that it ran.
_PRINT = """
import os, sys
from pathlib import Path
keys, runs = Path(sys.argv[1]), Path(sys.argv[2])
count = len(runs.read_text()) if runs.exists() else 0
runs.write_text("x" * (count + 1))
lines = keys.read_text().splitlines()
print(lines[min(count, len(lines) - 1)])
"""


class Company:
    """A provider whose key a command prints."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self._keys, self._runs = folder / "keys", folder / "runs"
        self.server = server
        self.command = [sys.executable, "-c", _PRINT, str(self._keys), str(self._runs)]

    def print(self, *keys: str) -> None:
        """Let the command print these, one after the other."""
        self._keys.write_text("\n".join(keys))

    @property
    def runs(self) -> int:
        """How often the command ran."""
        return len(self._runs.read_text()) if self._runs.exists() else 0

    @property
    def sent(self) -> list[str]:
        """The keys that the provider was sent."""
        return [one.headers["authorization"] for one in self.server.requests]

    def models(self, command: list[str] | None = None) -> Models:
        own = ProviderConfig(
            api="openai", base_url=self.server.openai_url, key_command=command or self.command
        )
        return models(Config(providers={"company": own}))


@pytest.fixture
def company(tmp_path: Path, model_server: ModelServer) -> Company:
    return Company(tmp_path, model_server)


@pytest.fixture
async def driver_of() -> AsyncIterator[Callable[[Models], Driver]]:
    made: list[Models] = []

    def driver(of: Models) -> Driver:
        made.append(of)
        return of.driver(of.resolve("company/large"))

    yield driver
    for one in made:
        await one.aclose()


DriverOf = Callable[[Models], Driver]


async def test_the_output_of_the_command_is_the_key_until_it_expires(
    company: Company, driver_of: DriverOf
) -> None:
    company.print("first-token", "second-token")
    company.server.add(answer("One."), answer("Two."))
    driver = driver_of(company.models())
    assert (await gather(driver.stream(ask()))).text == "One."
    assert (await gather(driver.stream(ask()))).text == "Two."
    assert company.runs == 1
    assert company.sent == ["Bearer first-token"] * 2


async def test_a_refused_key_is_replaced_and_the_user_notices_nothing(
    company: Company, driver_of: DriverOf
) -> None:
    company.print("expired-token", "fresh-token")
    company.server.add(Status(code=401), answer("Hello."))
    gathered = await gather(driver_of(company.models()).stream(ask()))
    assert gathered.text == "Hello."
    assert company.sent == ["Bearer expired-token", "Bearer fresh-token"]


async def test_a_key_that_is_refused_twice_is_reported_with_a_remedy(
    company: Company, driver_of: DriverOf
) -> None:
    company.print("bad-token", "worse-token")
    company.server.add(Status(code=401), Status(code=401))
    failed = (await gather(driver_of(company.models()).stream(ask()))).last
    assert isinstance(failed, Failed)
    assert failed.kind == "auth"
    assert "key_command in a terminal" in failed.message
    assert "token" not in failed.message


async def test_a_refused_key_is_not_tried_again_when_the_command_prints_no_other(
    company: Company, driver_of: DriverOf
) -> None:
    company.print("the-only-token")
    company.server.add(Status(code=401))
    failed = (await gather(driver_of(company.models()).stream(ask()))).last
    assert isinstance(failed, Failed)
    assert failed.kind == "auth"
    assert len(company.server.requests) == 1


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (["no-such-program-here"], "there is no program no-such-program-here"),
        (["./login"], "write its name, or its whole path"),
        ([sys.executable, "-c", "raise SystemExit('log in first')"], "status 1: log in first"),
        ([sys.executable, "-c", "print('two words')"], "what it printed is no key"),
        ([sys.executable, "-c", ""], "what it printed is no key"),
        ([sys.executable, "-c", "import os; os.write(1, b'x' * 200_000)"], "is no key"),
    ],
)
async def test_a_command_that_gives_no_key_is_reported_with_the_reason(
    company: Company, driver_of: DriverOf, command: list[str], why: str
) -> None:
    failed = (await gather(driver_of(company.models(command)).stream(ask()))).last
    assert isinstance(failed, Failed)
    assert failed.message.startswith("The key_command of company gave no key: ")
    assert why in failed.message


async def test_a_streaming_answer_continues_while_another_key_is_fetched(
    company: Company, driver_of: DriverOf
) -> None:
    company.print("first-token", "second-token")
    stall = Stall()
    company.server.add(answer("A", stall, "B"), Status(code=401), answer("Other."))
    driver = driver_of(company.models())
    async with aclosing(driver.stream(ask())) as streaming:  # type: ignore[type-var] # a generator
        await anext(streaming)
        await stall.reached.wait()
        assert (await gather(driver.stream(ask()))).text == "Other."
        stall.release()
        rest = await gather(streaming)
    assert rest.text


async def test_embeddings_are_asked_for_with_the_same_key(company: Company) -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0] for _ in texts]

    company.print("first-token")
    company.server.embed = embed
    found = company.models()
    counted: list[Usage] = []

    async def count(usage: Usage) -> None:
        counted.append(usage)

    embedder = await open_embedder(found, "company/small", count)
    assert await embedder.embed(["text"]) == [[1.0]]
    await embedder.aclose()
    assert company.server.embeddings[0].headers["authorization"] == "Bearer first-token"


def test_a_client_that_moves_the_provider_elsewhere_gets_no_key(company: Company) -> None:
    found = company.models()
    found.set_endpoint(
        "company", Endpoint(api="openai", base_url="https://elsewhere.example/v1", headers={})
    )
    assert not found.require(found.resolve("company/large")).has_key


async def test_a_session_needs_no_other_key_and_the_key_is_written_nowhere(
    agent: StartAgent, home: Path, company: Company, workspace_repo: Path
) -> None:
    key = "a-token-that-nobody-may-read"
    company.print(key)
    (workspace_repo / "note.txt").write_text(f"the key: {key}\n")
    company.server.add(answer(Call("read", {"path": "note.txt"})), answer("Read."))
    config_file(
        home,
        'model = "company/large"\n[providers.company]\napi = "openai"\n'
        f'base_url = "{company.server.openai_url}"\nkey_command = {json.dumps(company.command)}\n',
    )
    running = await agent()
    await running.initialize()
    session = await running.new_session(workspace_repo)
    assert (await running.prompt(session, "Hello"))["stopReason"] == "end_turn"
    await running.close_stdin()
    await running.wait()
    assert company.sent[0] == f"Bearer {key}"
    assert key.encode() not in company.server.requests[-1].body
    kept = [one for one in home.rglob("*") if one.is_file() and key.encode() in one.read_bytes()]
    assert not kept

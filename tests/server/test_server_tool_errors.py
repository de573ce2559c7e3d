"""What the model is to do about an error is sent to the model, and shown nowhere."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from tests.server.either_version import EitherClient
from tests.server.server_session import OPENAI, messages
from tests.support.agent_process import StartAgent, environment
from tests.support.model_server import Call, ModelServer, answer
from tests.support.pdf_document import document
from tests.support.warm_parent import shared_parent

CHINESE = re.compile(r"[\u4e00-\u9fff]")
LONG = "".join(f"needle {number}\n" for number in range(500))
# Calls, and what only the model is sent because of them.
CALLS: list[tuple[str, dict[str, Any] | str, str]] = [
    ("edit", {"path": "seen.py", "old": "no such text", "new": "x"}, "nearest text begins in line"),
    ("edit", {"path": "seen.py", "old": "", "new": "x"}, "or use `write` for the whole file"),
    ("edit", {"path": "seen.py", "old": "one", "new": "x"}, "until it is unique, or set `all`"),
    ("edit", {"path": "seen.py", "old": "[secret]", "new": "x"}, "edit around it"),
    ("edit", {"path": "seen.py", "text": "x"}, "its parameters are path, old, new, all"),
    ("write", {"path": "unseen.py", "content": "b"}, "read it first"),
    ("reed", {}, "did you mean 'read'?"),
    ("read", '{"path": ', "write them again as one JSON object"),
    ("read", "[]", "write them again as one JSON object"),
    ("read", {"path": "data.bim"}, "did you mean data.bin?"),
    ("read", {"path": ""}, "name a file or a folder"),
    ("read", {"path": "/etc/hosts"}, "ask the user to open its folder"),
    ("read", {"path": "data.bin"}, "look at it with a `shell` command"),
    ("read", {"path": "utf16.txt"}, "convert it, with iconv"),
    ("read", {"path": "book.pdf"}, "Read on with line 21"),
    ("list", {"path": "seen.py"}, "use `read`"),
    ("list", {"path": "nowhere"}, "list . to see what there is"),
    ("glob", {"pattern": "*", "path": "seen.py"}, "give one in `path`"),
    ("glob", {"pattern": "../*"}, "give the folder in `path`"),
    ("glob", {"pattern": "!*.py"}, "a pattern cannot start with `!`"),
    ("glob", {"pattern": "*.nothing"}, "matches at every depth"),
    ("grep", {"pattern": "(", "path": "."}, "escape metacharacters"),
    ("grep", {"pattern": "x", "path": "nowhere"}, "give a file or a folder in `path`"),
    ("grep", {"pattern": "needle"}, "narrow the search"),
    ("grep", {"pattern": "xyzzy", "glob": "*.rs"}, "only files like *.rs were searched"),
    ("grep", {"pattern": "NEEDLE"}, "unless you set `ignore_case`"),
    ("shell", {"command": " "}, "give a command line"),
    ("background", {"action": "wait"}, "`wait` needs one, in `id`"),
    ("background", {"action": "wait", "id": "9"}, "there are: none yet"),
    ("web_fetch", {"url": "ftp://example.test/x"}, "give it with http:// or https://"),
    ("web_fetch", {"url": "http://127.0.0.1/"}, "use `curl` in `shell`"),
    ("web_fetch", {"url": "http://0x7f.1/"}, "write it as four decimal numbers"),
    ("ask_user", {"question": "What is your password?"}, "ask in other words"),
]  # fmt: skip


@pytest.fixture
def folder(workspace_repo: Path) -> Path:
    """A project with files that cause errors."""
    (workspace_repo / "seen.py").write_text("one = 1\none = 2\nno such test\n")
    (workspace_repo / "unseen.py").write_text("a\n")
    (workspace_repo / "data.bin").write_bytes(b"\0\1\2")
    (workspace_repo / "utf16.txt").write_text("words", "utf-16")
    (workspace_repo / "long.txt").write_text(LONG)
    (workspace_repo / "book.pdf").write_bytes(document(*(f"Words {n}" for n in range(30))))
    return workspace_repo


async def command(home: Path, *arguments: str, **variables: str) -> str:
    """Run a command; what it prints."""
    ran = await asyncio.create_subprocess_exec(
        *shared_parent().command(), *arguments, cwd=home,
        env=environment(home, variables),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await asyncio.wait_for(ran.communicate(), 60)
    assert ran.returncode == 0, err
    return out.decode()


@pytest.mark.parametrize(("version", "language"), [(1, "en"), (2, "zh")])
async def test_advice_for_the_model_is_shown_to_no_user(
    agent: StartAgent,
    home: Path,
    folder: Path,
    model_server: ModelServer,
    version: int,
    language: str,
) -> None:
    model_server.add(
        answer(Call("read", {"path": "seen.py"})),
        answer(*(Call(name, arguments) for name, arguments, _ in CALLS)),
        answer("Done."),
    )
    environ = {"ACP_AGENT_LANGUAGE": language}
    client = await EitherClient.start(
        agent, version, *OPENAI, environ=dict(model_server.environ()) | environ
    )
    session = await client.new(folder)
    await client.say(session, "try everything")
    results = [
        message["content"] for message in messages(model_server) if message["role"] == "tool"
    ][1:]
    assert len(results) == len(CALLS)
    for (name, arguments, advice), result in zip(CALLS, results, strict=True):
        assert advice in str(result), (name, arguments)
    page = home / "page.html"
    await command(home, "view", session, "--output", str(page), **environ)
    texts_by_place = {
        "client": str(client.wire.updates(session)),
        "page": page.read_text("utf-8"),
        "text": await command(home, "sessions", "show", session, **environ),
        "export": await command(home, "sessions", "export", session, "--format", "md", **environ),
    }
    updates = [
        (advice, where)
        for _, _, advice in CALLS
        for where in texts_by_place
        if advice in texts_by_place[where]
    ]
    assert updates == []
    if language == "zh":
        untold = [text for text in texts_of_errors(client, session) if not CHINESE.search(text)]
        assert untold == []


def texts_of_errors(client: EitherClient, session: str) -> list[str]:
    """The texts of the calls that failed."""
    failed = [update for update in client.wire.updates(session) if update.get("status") == "failed"]
    return [part["content"]["text"] for update in failed for part in update.get("content") or ()]

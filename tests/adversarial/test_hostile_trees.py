"""A repository with odd files, links and sizes is opened and worked in, and nothing hangs."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any, Literal

import pytest

from acp_agent.config.sandbox_types import BackendName
from acp_agent.sandbox.sandbox import Unavailable, find_backend
from tests.support.agent_process import StartAgent, config_file
from tests.support.editor import Editor
from tests.support.hostile import MODEL
from tests.support.model_server import Call, ModelServer, answer

MANY = int(os.environ.get("ACP_AGENT_TEST_MANY_FILES", "2000"))
# Read by this program or by git when they open the folder; each is a pipe that nobody writes to.
PIPES = [
    "AGENTS.md",
    "CLAUDE.md",
    ".mcp.json",
    ".env",
    ".editorconfig",
    "pyproject.toml",
    "package.json",
    ".gitignore",
    "pipe",
    "src/AGENTS.md",
    "src/.gitignore",
    "src/.git",
    ".ripgreprc",
    ".ignore",
    ".rgignore",
    ".gitmodules",
    "tsconfig.json",
    ".agents/skills/a/SKILL.md",
    ".agents/agents/a.md",
    ".agents/hooks/a.toml",
    ".claude/commands/a.md",
    ".vscode/settings.json",
    ".acp-agentignore",
    ".cursor/rules/a.mdc",
    ".github/copilot-instructions.md",
]
LINKS = {
    "loop-a": "loop-b",
    "loop-b": "loop-a",
    "self": ".",
    "up": "..",
    "root": "/",
    "zero": "/dev/zero",
    "in": "/dev/stdin",
    "terminal": "/dev/tty",
    "memory": "/proc/self/mem",
    "GEMINI.md": "/dev/zero",
    "src/CLAUDE.md": "../pipe",
    "fd": "/proc/self/fd/0",
    "kmsg": "/dev/kmsg",
}
NAMES = (
    "new\nline",
    "esc\u001b[31m]0;x\u0007",
    "\u202egpj.exe",
    "--help",
    "-rf",
    "$(touch ran)",
    ";touch ran;",
    "`touch ran`",
    "a" * 255,
    "README.md",
    "readme.md",
    "Readme.md",
    ".GIT/config",
    "%s%n",
    "a\\b",
    "' \"",
)


def make_tree(folder: Path, outside: Path) -> None:
    """Make the repository, and a git folder outside that it names."""
    outside.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    evil = outside / "evil.git"
    subprocess.run(["git", "init", "-q", "--bare", evil], check=True)
    with (evil / "config").open("a") as file:
        file.write(f"[core]\n\tfsmonitor = touch {outside}/ran;\n\tbare = false\n")
    for name in NAMES:
        path = folder / "names" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    os.close(os.open(os.fsencode(folder / "names") + b"/\xff\xfe", os.O_CREAT))
    for name in PIPES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        os.mkfifo(folder / name)
    for name, target in LINKS.items():
        (folder / name).symlink_to(target)
    os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
    if os.geteuid() == 0:
        os.mknod(folder / "device", stat.S_IFCHR | 0o666, os.makedev(1, 5))
    (folder / "tree").mkdir()
    (folder / "tree/.git").write_text(f"gitdir: {evil}\n")
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    deep = os.open(folder, os.O_DIRECTORY)
    for _ in range(300):  # longer than the longest path
        os.mkdir("d" * 20, dir_fd=deep)
        deep, above = os.open("d" * 20, os.O_DIRECTORY, dir_fd=deep), deep
        os.close(above)
    os.close(deep)
    (folder / "many").mkdir()
    for number in range(MANY):
        (folder / f"many/{number}.txt").touch()
    (folder / "src/a.py").write_text("x = 1\n")


ODD = [
    "pipe",
    "AGENTS.md",
    "zero",
    "device",
    "in",
    "sparse",
    "loop-a",
    "socket",
    "memory",
    "src/CLAUDE.md",
    "root/dev/zero",
    "terminal",
    "names",
    "kmsg",
]
READ = 5  # the call that reads a file
WORK: tuple[tuple[str, dict[str, Any]], ...] = (
    ("list", {"path": "."}),
    ("list", {"path": "names"}),
    ("list", {"path": "many"}),
    ("glob", {"pattern": "**/*.py"}),
    ("grep", {"pattern": "x = 1"}),
    ("read", {"path": "src/a.py"}),
    *(("read", {"path": name}) for name in ODD),
    ("edit", {"path": "src/a.py", "edits": [{"old_text": "x = 1", "new_text": "x = 2"}]}),
    ("write", {"path": "pipe", "content": "x"}),
    ("write", {"path": "zero", "content": "x"}),
    ("write", {"path": "many/new.txt", "content": "x"}),
    ("write", {"path": "tree/new.txt", "content": "x"}),
    ("shell", {"command": "git status --short | head -3; ls | head -3", "timeout": 2}),
    ("shell", {"command": "cd tree && git status; git log", "timeout": 2}),
    ("shell", {"command": "touch made; mkfifo made-pipe; ln -s / made-link"}),
)


# Mode, what confines, and what the user says to questions.
CASES: list[tuple[str, BackendName | Literal["none"], Literal["allow_once", "reject_once"]]] = [
    ("ask", "none", "reject_once"),
    ("ask", "landlock", "allow_once"),
    ("accept-edits", "bubblewrap", "allow_once"),
    ("full", "bubblewrap", "reject_once"),
    ("full", "landlock", "reject_once"),
]


@pytest.mark.parametrize(("mode", "backend", "says"), CASES)
async def test_odd_files_stop_nothing_and_run_nothing(
    agent: StartAgent,
    home: Path,
    tmp_path: Path,
    model_server: ModelServer,
    mode: str,
    backend: BackendName | Literal["none"],
    says: Literal["allow_once", "reject_once"],
) -> None:
    if backend != "none" and isinstance(find_backend(os.environ["PATH"], backend), Unavailable):
        pytest.skip(f"no {backend}")
    folder, outside = tmp_path / "repository", tmp_path / "outside"
    make_tree(folder, outside)
    confined = "enabled = false" if backend == "none" else f'backend = "{backend}"'
    config_file(home, f'mode = "{mode}"\n[sandbox]\n{confined}\n')
    model_server.add(*(answer(Call(name, arguments)) for name, arguments in WORK))
    model_server.otherwise = lambda request: answer("Done.")
    environ = model_server.environ("openai") | {"ACP_AGENT_SANDBOX": str(backend != "none").lower()}
    one = await agent(*MODEL, editor=Editor(permission=says), environ=environ, cwd=folder)
    await one.initialize()
    session = await one.new_session(folder)
    await one.prompt(session, "Look around.", timeout=90)
    await one.prompt(session, "Go on.", timeout=20)
    results = [
        message["content"]
        for message in model_server.requests[-1].json["messages"]
        if message["role"] == "tool"
    ]
    assert len(results) == len(WORK)
    assert "1\tx = 1" in results[READ]
    assert sorted(path.name for path in outside.iterdir()) == ["evil.git"]
    assert not (folder / "ran").exists()
    if says == "allow_once" or mode == "full":
        assert (folder / "made").exists()

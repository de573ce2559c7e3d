"""Damaged files of every kind that a project may have for agents, made from a seed."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_NAMES = (
    "plain", "with space", "ünïcode", "UPPER", "a" * 200, "-dash", "x.y.z", "dots..", "q'uo\"te",
    "new\nline", "$HOME", "{}", "%s", "\u202eright", "dup", "Dup",
)  # fmt: skip
_FRONT = (
    "---\nname: {name}\ndescription: Does it.\ntools: [read, shell]\nmodel: small\n"
    "extends: {name}\n"
    "hooks:\n  Stop:\n    - hooks: [{{type: command, command: 'true'}}]\narguments: [a, b]\n"
    "input: {{description: d, args: [{{name: a, required: true}}]}}\n---\nDo @AGENTS.md it.\n"
)
_TOML = (
    'name = "{name}"\ndescription = "Does it."\nprompt = "Do it."\n[mcp_servers.a]\ncommand = "x"\n'
    '[[hooks.Stop]]\nhooks = [{{ type = "command", command = "true" }}]\n[agents.b]\n'
    'description = "b"\n[permissions]\nallow = ["Bash(ls)"]\n'
)
_FLOW = (
    "description: d\nsteps:\n  - name: a\n    prompt: p\n  - name: b\n    skill: s\n    if: a.ok\n"
)
_JSON = {
    "name": "x",
    "version": "1.0.0",
    "plugins": [{"name": "x", "source": "./x"}],
    "enabledPlugins": {"x@y": True},
    "extraKnownMarketplaces": {"y": {"source": {"source": "github", "repo": "a/b"}}},
    "mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"A": "b"}, "timeout": 5}},
    "servers": {"b": {"type": "http", "url": "https://example.com"}},
    "mcp": {"c": {"type": "local", "command": ["x"], "enabled": True}},
    "hooks": {"Stop": [{"matcher": "x", "hooks": [{"type": "command", "command": "true"}]}]},
    "permissions": {"allow": ["Bash(ls)"], "deny": ["Read(x)"], "defaultMode": "plan"},
    "agent": {"d": {"description": "d", "prompt": "p", "tools": {"bash": False}}},
    "command": {"e": {"template": "t", "description": "d"}},
    "skills": {"paths": ["x"]},
    "instructions": ["AGENTS.md", "**/*.md"],
    "plugin": ["x"],
}
PLACES = (
    ".agents/skills/{n}/SKILL.md", ".claude/skills/{n}/SKILL.md", ".opencode/skill/{n}/SKILL.md",
    ".claude/commands/{n}.md", ".cursor/commands/{n}.md", ".github/prompts/{n}.prompt.md",
    ".roo/commands/{n}.md", ".gemini/commands/{n}.toml", ".agents/skills/{n}.yaml",
    ".agents/agents/{n}.md", ".claude/agents/{n}.md", ".opencode/agent/{n}.md",
    ".codex/agents/{n}.toml", ".github/agents/{n}.agent.md", ".github/chatmodes/{n}.chatmode.md",
    "opencode.json", ".opencode/opencode.jsonc", ".codex/config.toml", ".codex/hooks.json",
    ".claude/settings.json", ".claude/settings.local.json", ".gemini/settings.json", ".roomodes",
    ".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json", ".acp-agent/permissions.toml",
    ".acp-agent/flows/{n}.yaml", ".agents/plugins/{n}/plugin.json",
    ".claude-plugin/marketplace.json", ".cursor/rules/{n}.mdc", ".claude/rules/{n}.md",
    ".roo/rules/{n}.md", ".windsurf/rules/{n}.md", ".github/instructions/{n}.instructions.md",
    "AGENTS.md", "CLAUDE.md", ".clinerules/{n}.md",
)  # fmt: skip
DEFINITIONS = PLACES[:15]
_BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join(f'*{old}' for _ in range(9))}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
_VALUES: tuple[object, ...] = (
    None, True, 0, -1, 10**30, 1.5, "", "x" * 5_000, [], {}, [[]], [None], {"": {}}, "\x00",
    "../../etc/passwd", "/dev/zero", ["a", 1, None], {"a": {"b": {"c": []}}},
)  # fmt: skip


def write_damaged_files(project: Path, seed: int, count: int = 40) -> list[tuple[Path, str]]:
    """Write damaged files into a project; return each with the place of its kind."""
    source = random.Random(seed)
    written = []
    for _ in range(count):
        place = source.choice(PLACES)
        path = project / place.format(n=source.choice(_NAMES).replace("/", "_"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            path.unlink(missing_ok=True)
            source.choice(_WAYS)(path, source)
        except OSError:  # a file is where a folder is needed
            continue
        written.append((path, place))
    return written


def _valid(path: Path, source: random.Random) -> bytes:
    name = source.choice((path.stem, "other", "dup", "Not A Name", "../x", "a/b", ""))
    if path.suffix in {".json", ".jsonc"} or path.name == ".roomodes":
        return json.dumps(_JSON).encode()
    text = {".toml": _TOML, ".yaml": _FLOW}.get(path.suffix, _FRONT)
    return text.format(name=name).encode("utf-8", "replace")


def _write_bytes(path: Path, source: random.Random) -> None:
    raw = bytearray(_valid(path, source))
    for _ in range(source.randrange(1, 20)):
        raw[source.randrange(len(raw))] = source.randrange(256)
    path.write_bytes(raw[: source.randrange(len(raw))] if source.random() < 0.3 else raw)


def _write_encoded(path: Path, source: random.Random) -> None:
    text = _valid(path, source).decode()
    encoding = source.choice(("utf-16", "utf-16-be", "utf-8-sig", "utf-32", "cp037"))
    path.write_bytes(text.encode(encoding) + source.choice((b"", b"\0", b"\xff", b"\r\r")))


def _write_value(path: Path, source: random.Random) -> None:
    value = source.choice(_VALUES)
    if path.suffix in {".json", ".jsonc"}:
        content: Any = json.loads(json.dumps(_JSON))
        for _ in range(source.randrange(1, 4)):
            *parents, last = source.choice([*_paths(content, ())])
            target = content
            for key in parents:
                target = target[key]
            target[last] = source.choice(_VALUES)
        path.write_text(json.dumps(content))
        return
    lines = _valid(path, source).decode().split("\n")
    number = source.randrange(len(lines))
    key = lines[number].partition(":")[0].partition(" =")[0]
    mark = " = " if path.suffix == ".toml" else ": "
    lines[number] = f"{key}{mark}{json.dumps(value)}"
    path.write_text("\n".join(lines), errors="replace")


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from _paths(inner, (*path, key))


def _write_deep(path: Path, source: random.Random) -> None:
    levels = source.choice((20, 500, 50_000))
    opening, closing = source.choice((("[", "]"), ('{"a":', "}"), ("{a: ", "}")))
    nested = opening * levels + "1" + closing * levels
    if path.suffix == ".toml":
        path.write_text(f"a = {nested}")
    elif path.suffix in {".json", ".jsonc"}:
        path.write_text(nested)
    else:
        path.write_text(f"---\nname: deep\ndescription: d\nx: {nested}\n---\nText")


def _write_bomb(path: Path, source: random.Random) -> None:
    tags = "x: !!python/object/apply:os.system ['true']\n"
    text = source.choice((_BOMB, tags, "x: &x [*x]\n", "<<: *missing\n", "a: 1\na: 2\n" * 400))
    path.write_text(f"---\nname: bomb\ndescription: d\n{text}---\n{text}")


def _write_huge(path: Path, source: random.Random) -> None:
    size = source.choice((99_999, 2_000_000))
    filler = source.choice((b"a", b"\n", b"---\n", b"- x\n", b"@AGENTS.md ", b"*", b"${a}"))
    path.write_bytes(_valid(path, source) + filler * (size // len(filler)))


def _make_special(path: Path, source: random.Random) -> None:
    match source.randrange(7):
        case 0:
            path.mkdir()
        case 1:
            path.symlink_to(path.name)
        case 2:
            path.symlink_to("/dev/zero")
        case 3:
            os.mkfifo(path)
        case 4:
            path.symlink_to("/etc/hostname")
        case 5:
            path.symlink_to(path.parent.parent)
        case _:
            path.write_bytes(_valid(path, source))
            path.chmod(0)


def _write_whole(path: Path, source: random.Random) -> None:
    path.write_bytes(source.choice((_valid(path, source), b"", b"---\n---\n", b"null", b"---")))


_WAYS: tuple[Callable[[Path, random.Random], None], ...] = (
    _write_bytes, _write_encoded, _write_value, _write_value, _write_deep, _write_bomb,
    _write_huge, _make_special, _write_whole,
)  # fmt: skip

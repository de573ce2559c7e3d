"""Names of servers and tools that every model provider accepts: `mcp__server__tool`."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

LONGEST = 64  # characters; Anthropic and OpenAI accept ^[a-zA-Z0-9_-]{1,64}$
_LONGEST_LABEL = 24
_DIGEST = 8  # hex digits
_TAKEN = "skill"  # skills are called as /skill:name

_REFUSED = re.compile(r"[^a-zA-Z0-9_-]+")


def server_labels(names: Sequence[str]) -> list[str]:
    """Return a short, unique name of valid characters for each server, in order."""
    given: list[str] = []
    for name in names:
        base = _plain(name)[:_LONGEST_LABEL] or "server"
        label, number = base, 2
        while label in given or label == _TAKEN:
            label, number = f"{base}-{number}", number + 1
        given.append(label)
    return given


def tool_names(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return a unique name for each pair of a server's label and a tool's own name.

    A name that is too long or not unique ends in a digest of the pair. The result does not depend
    on the order, so a tool keeps its name when others come and go, unless a new one has the same
    plain name.
    """
    plain = [f"mcp__{label}__{_plain(tool) or 'tool'}" for label, tool in pairs]
    count = Counter(plain)
    return [
        name if len(name) <= LONGEST and count[name] == 1 else _with_digest(name, label, tool)
        for name, (label, tool) in zip(plain, pairs, strict=True)
    ]


def command_names(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return a unique slash command for each pair of a server's label and a prompt's own name."""
    plain = [f"{label}:{_plain(prompt) or 'prompt'}" for label, prompt in pairs]
    count = Counter(plain)
    return [
        name if len(name) <= LONGEST and count[name] == 1 else _with_digest(name, label, prompt)
        for name, (label, prompt) in zip(plain, pairs, strict=True)
    ]


def _plain(name: str) -> str:
    return _REFUSED.sub("_", name).strip("_")


def _with_digest(name: str, label: str, own: str) -> str:
    text = f"{label}\0{own}".encode("utf-8", "replace")
    digest = hashlib.sha256(text).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST - _DIGEST - 1]}_{digest}"

"""Names of servers and tools that every model provider accepts: `mcp__server__tool`."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

MAX_NAME_LENGTH = 64  # characters; Anthropic and OpenAI accept ^[a-zA-Z0-9_-]{1,64}$
_MAX_LABEL_LENGTH = 24
_DIGEST = 8  # hex digits
_RESERVED = "skill"  # skills are called as /skill:name

_INVALID = re.compile(r"[^a-zA-Z0-9_-]+")


def server_labels(names: Sequence[str]) -> list[str]:
    """Return a short, unique name of valid characters for each server, in order."""
    labels: list[str] = []
    for name in names:
        base = _sanitize_name(name)[:_MAX_LABEL_LENGTH] or "server"
        label, number = base, 2
        while label in labels or label == _RESERVED:
            label, number = f"{base}-{number}", number + 1
        labels.append(label)
    return labels


def tool_names(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return a unique name for each pair of a server's label and a tool's own name.

    A name that is too long or not unique ends in a digest of the pair. The result does not depend
    on the order, so a tool keeps its name when others come and go, unless a new one has the same
    plain name.
    """
    plain = [f"mcp__{label}__{_sanitize_name(tool) or 'tool'}" for label, tool in pairs]
    count = Counter(plain)
    return [
        name
        if len(name) <= MAX_NAME_LENGTH and count[name] == 1
        else _with_digest(name, label, tool)
        for name, (label, tool) in zip(plain, pairs, strict=True)
    ]


def command_names(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Return a unique slash command for each pair of a server's label and a prompt's own name."""
    plain = [f"{label}:{_sanitize_name(prompt) or 'prompt'}" for label, prompt in pairs]
    count = Counter(plain)
    return [
        name
        if len(name) <= MAX_NAME_LENGTH and count[name] == 1
        else _with_digest(name, label, prompt)
        for name, (label, prompt) in zip(plain, pairs, strict=True)
    ]


def _sanitize_name(name: str) -> str:
    return _INVALID.sub("_", name).strip("_")


def _with_digest(name: str, label: str, name_of_part: str) -> str:
    text = f"{label}\0{name_of_part}".encode("utf-8", "replace")
    digest = hashlib.sha256(text).hexdigest()[:_DIGEST]
    return f"{name[: MAX_NAME_LENGTH - _DIGEST - 1]}_{digest}"

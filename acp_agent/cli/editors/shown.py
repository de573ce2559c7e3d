"""A change as a person sees it before it is made: a unified diff, without other agents' keys."""

from __future__ import annotations

import re
from difflib import unified_diff
from pathlib import Path

from acp_agent.cli.editors.plan import Plan
from acp_agent.cli.output import on_terminal, say, visible
from acp_agent.workspace.scrub import scrub

# A whole word, of a length that names have: a file may have words of a million characters.
_TELLING = r"(?<![\w.-])[\w.-]{0,80}(?:key|token|secret|passw|credential|authorization)[\w.-]{0,80}"
# The same behind the first dash of a switch.
_SWITCH = r"-[\w.-]{0,80}(?:key|token|secret|passw|credential|authorization)[\w.-]{0,80}"
_BEGINNING, _END = 300, 700  # characters of a longer line that are shown
# The value of a member or of a switch, as `"API_KEY": "…"`, `"--api-key", "…"`, `"--token=…"`.
_SECRET = re.compile(
    rf"""(["']?{_TELLING}["']?\s*[:=]\s*|["']{_SWITCH}["']\s*,\s*)"""
    r"""(["'])(?!\2)(?:[^"'\\]|\\.)+\2""",
    re.IGNORECASE,
)
_SECRET_WITHIN = re.compile(rf"""(["']{_SWITCH}=)(?:[^"'\\]|\\.)+""", re.IGNORECASE)
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def show(plan: Plan) -> None:
    """Print what would become of a file."""
    for line in diff(plan):
        if on_terminal():
            from rich.console import Console  # noqa: PLC0415 - only for a terminal
            from rich.text import Text  # noqa: PLC0415 - likewise

            text = Text(visible(line), _STYLES.get(line[:1], ""))
            Console().print(text, soft_wrap=True)
        else:
            say(line)


def diff(plan: Plan) -> list[str]:
    """The lines of a unified diff; what looks like a secret in the file is not in it."""
    before, after = _lines(plan.file.data), _lines(plan.after)
    named = str(plan.file.path)
    if plan.file.real != plan.file.path:
        named += f" (a link to {plan.file.real})"
    nothing = str(Path("/dev/null"))
    return [
        _cut(_without_secrets(line))
        for line in unified_diff(
            before,
            after,
            nothing if plan.file.data is None else named,
            nothing if plan.after is None else named,
            lineterm="",
        )
    ]


def _without_secrets(line: str) -> str:
    line = _SECRET_WITHIN.sub(r"\1[secret]", _SECRET.sub(r"\1\2[secret]\2", line))
    return scrub(line, ())  # and what has the form of a credential, whatever its name


def _cut(line: str) -> str:
    """A line as long as one that is read: settings in one line may have millions of characters."""
    if len(line) <= _BEGINNING + _END:
        return line
    return f"{line[:_BEGINNING]} … {line[-_END:]}"


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()

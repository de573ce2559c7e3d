"""Parse the subject of `acp-agent policy test`: a command, a path, an address or a tool."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import InvalidInputError
from acp_agent.permissions.access import (
    Access,
    CommandAccess,
    FetchAccess,
    McpAccess,
    NoAccess,
    ReadAccess,
    WriteAccess,
)
from acp_agent.permissions.policy.rules import Subject, tool_subject

_FORM = re.compile(r"(?P<tool>[A-Za-z_]+)\((?P<argument>.*)\)", re.DOTALL)
_ADDRESS = re.compile(r"https?://\S+", re.IGNORECASE)
_PREFIXES = ("/", "~", "./", "../")


class Call(Struct, frozen=True):
    """A call to test, in the form of a rule, and what it would access."""

    text: str
    access: Access


def read_calls(text: str, folder: Path) -> list[Call]:
    """Return the calls that a text stands for.

    A path stands for reading and editing it, and for running it if it is a program.

    Args:
        text: a command line, a path, an http address, `mcp__server__tool`, or one of these in the
            form of a rule: `Edit(src/a.py)`.
        folder: the session's folder, absolute and resolved.

    Raises:
        InvalidInputError: no rule can be about the named tool.
    """
    form = _FORM.fullmatch(text)
    subject = tool_subject(form["tool"]) if form is not None else tool_subject(text)
    if form is not None and subject is not None:
        return [_call(subject, form["argument"], folder)]
    if subject == "web_search":
        return [_call(subject, "", folder)]
    if text.startswith("mcp__"):
        return [_call("mcp", text, folder)]
    if _ADDRESS.fullmatch(text):
        return [_call("web_fetch", text, folder)]
    return [_call(meaning, text, folder) for meaning in _meanings(text, folder)]


def _meanings(text: str, folder: Path) -> Iterator[Subject]:
    """Yield the meanings of a text that is not a rule; a word that looks like a path is a path."""
    path = folder / Path(text).expanduser() if "\0" not in text else folder
    one_word = not any(map(str.isspace, text))
    exists = os.path.lexists(path)
    if exists or (one_word and ("/" in text or text.startswith(_PREFIXES))):
        yield "read"
        yield "edit"
        if one_word and os.access(path, os.X_OK) and path.is_file():
            yield "shell"
    else:
        yield "shell"


def _call(subject: Subject, argument: str, folder: Path) -> Call:
    match subject:
        case "shell":
            return Call(f"Bash({argument})", CommandAccess(argument, str(folder), (str(folder),)))
        case "read" | "edit":
            path = os.path.normpath(folder / Path(argument).expanduser())
            paths = (os.path.realpath(path),)
            if subject == "read":
                return Call(f"Read({argument})", ReadAccess(paths, (path,)))
            return Call(f"Edit({argument})", WriteAccess(paths, (path,)))
        case "web_fetch":
            host = argument.removeprefix("domain:")
            url = host if "://" in host else f"https://{host}"
            return Call(f"WebFetch({argument})", FetchAccess(url))
        case "web_search":
            return Call("WebSearch", FetchAccess("", search=True))
        case "mcp":
            server, _, tool = argument.removeprefix("mcp__").partition("__")
            if not server or not tool:
                raise InvalidInputError("write the tool like mcp__server__tool", field="call")
            return Call(argument, McpAccess(server=server, tool=tool, identity="", definition=""))
        case "agent" | "skill":
            return Call(f"{subject.capitalize()}({argument})", NoAccess(subject, argument))
        case "any" | "background":
            raise AssertionError("no tool touches anything")

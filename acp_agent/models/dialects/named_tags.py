"""Calls as a tag with the name of a tool around a tag for each argument, as Cline and Roo ask for.

Values are not escaped, so a value ends only at a closing tag that another argument or the end of
the call follows.
"""

from __future__ import annotations

import re

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    MORE,
    NO_END,
    SURE,
    Block,
    CutError,
    Tools,
    Verdict,
    WrittenCall,
    expect_mark,
    skip_space,
)
from acp_agent.models.dialects.json_calls import read_arguments
from acp_agent.tools.calls.argument_elements import element_text, read_elements

_NAMES = (
    *("edit", "glob", "grep", "list", "read", "shell", "web_fetch", "write"),  # ours
    *("apply_diff", "edit_file", "execute_command", "insert_content", "list_files", "new_task"),
    *("read_file", "replace_in_file", "search_and_replace", "search_files", "str_replace"),
    *("update_todo_list", "write_file", "write_to_file"),
)
_TAG = re.compile(r"<(\w{1,64})>")
# The arguments with which a call may begin; a page of HTML has others.
_FIRST = frozenset(
    {"args", "command", "file_path", "message", "mode", "path", "pattern", "regex", "todos", "url"}
)
_STRAY = "There is text between the arguments of the call: it was not run. Write it again."
_PARTIAL_TAG = re.compile(r"(?:<\w{0,64})?")
_FOLLOWING = re.compile(r"\s*(?:<\w{1,64}>|</(\w{1,64})>)")
_PARTIAL_FOLLOWING = re.compile(r"\s*(?:</?\w{0,64})?")


class NamedTags:
    """`<write_to_file><path>…</path><content>…</content></write_to_file>`."""

    openers = tuple(f"<{name}>" for name in _NAMES)
    bare = ""
    ends = tuple(f"</{name}>" for name in _NAMES)
    strays: tuple[str, ...] = ()
    control = False
    line_start = True

    def read(self, text: str, tools: Tools, *, final: bool) -> Verdict:
        """See `form.CallReader`."""
        opening = _TAG.match(text)
        assert opening is not None
        name, close = opening[1], f"</{opening[1]}>"
        if name not in tools:
            return None
        at = skip_space(text, opening.end())
        arguments: dict[str, object] = {}
        try:
            if expect_mark(text, at, ("{",), final=final):
                return _read_json(text, at, name, close, final=final)
            while not expect_mark(text, at, (close,), final=final):
                tag = _TAG.match(text, at)
                if tag is None and not final and _PARTIAL_TAG.fullmatch(text, at):
                    return SURE if arguments else MORE
                if not arguments and (tag is None or tag[1] not in _FIRST):
                    return None
                end = -1 if tag is None else _value_end(text, tag, name, final=final)
                if tag is None or end < 0:
                    return _broken(text, at, name, close, final=final)
                value = _value(tag[1], text[tag.end() : end])
                if isinstance(value, dict):
                    arguments.update(value)
                else:
                    arguments[tag[1]] = tools.convert_argument(name, tag[1], value)
                at = skip_space(text, end + len(f"</{tag[1]}>"))
        except CutError:
            return SURE if _TAG.match(text, at) or arguments else MORE
        if not arguments:
            return None
        call = WrittenCall(name=name, arguments=json_text.encode(arguments))
        return Block(at + len(close), (call,))


def _broken(text: str, at: int, name: str, close: str, *, final: bool) -> Verdict:
    """Return the verdict on a call whose arguments are not read from a position on."""
    end = text.find(close, at)
    if end < 0 and not final:
        return SURE
    problem = NO_END if end < 0 else _STRAY
    end = len(text) if end < 0 else end + len(close)
    return Block(end, (WrittenCall(name=name, arguments=text[:end], problem=problem),))


def _read_json(text: str, at: int, name: str, close: str, *, final: bool) -> Verdict:
    """Return the verdict on arguments that are one JSON object."""
    end = json_text.value_end(text, at)
    if end is None:
        return None if final else MORE
    follows = skip_space(text, end)
    if not expect_mark(text, follows, (close,), final=final):
        return None
    return Block(follows + len(close), (read_arguments(name, text[at:end]),))


def _value_end(text: str, tag: re.Match[str], name: str, *, final: bool) -> int:
    """Return where the value of an argument ends; -1 if it has no end."""
    close = f"</{tag[1]}>"
    end = text.find(close, tag.end())
    while end >= 0:
        after = end + len(close)
        following = _FOLLOWING.match(text, after)
        if following is not None and following[1] in {None, name}:
            return end
        if not final and _PARTIAL_FOLLOWING.fullmatch(text, after):
            raise CutError
        end = text.find(close, end + 1)
    if not final:
        raise CutError
    return -1


def _value(argument: str, text: str) -> str | dict[str, object]:
    """Return a value without the line breaks around it, or the arguments that it consists of."""
    return (argument == "args" and read_elements(text)) or element_text(argument, text)

"""Read calls written as JSON objects, `{"name": …, "arguments": {…}}`, and regions of them."""

from __future__ import annotations

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import (
    MORE,
    NO_END,
    SURE,
    Block,
    More,
    Tools,
    Verdict,
    WrittenCall,
    after_space,
    before_half_mark,
    begins,
    broken,
)

NAMES = ("name", "tool", "tool_name")
ARGUMENTS = ("arguments", "parameters", "args", "input")
_BESIDE = {"type", "id"}  # additional keys that a call may have
# Tokens that may precede the name, as in the descriptions of tools.
_FURTHER = (('"type"', ":", '"function"', ","), ('"function"', ":", "{"))
_NO_JSON = "The call is not valid JSON. Write it again, with the quotation marks in texts escaped."
_NO_NAME = 'The call names no tool. Write {"name": …, "arguments": {…}}.'
_NO_OBJECT = "The arguments of the call are not a JSON object."


def read_call(written: str, tools: Tools, *, strict: bool = False) -> WrittenCall | None:
    """Return a JSON object as a call; None if `strict` and it may be something else."""
    value = json_text.decode(written)
    if value is json_text.NOTHING and written.startswith("{{"):
        # Qwen2.5's template doubles the braces, and the model copies that.
        value = json_text.decode(written[1:-1])
    if value is json_text.NOTHING and not strict:
        value = json_text.decode_python(written)
    if not isinstance(value, dict):
        return None if strict else broken(_NO_JSON, written, tools)
    inner = value.get("function")
    if isinstance(inner, dict):
        value = inner
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), "")
    given: object = next((value[key] for key in ARGUMENTS if key in value), None)
    if strict and (name not in tools or set(value) - {*NAMES, *ARGUMENTS, *_BESIDE}):
        return None
    if not name:
        return broken(_NO_NAME, written, tools)
    if isinstance(given, str):
        given = json_text.decode(given) if given.strip() else None
    if given is None:
        given = {}
    if not isinstance(given, dict):
        return None if strict else WrittenCall(name=name, arguments=written, problem=_NO_OBJECT)
    return WrittenCall(name=name, arguments=json_text.encode(given))


def read_arguments(name: str, written: str) -> WrittenCall:
    """Return a call of a tool with arguments in JSON text."""
    value = json_text.decode(written) if written.strip() else {}
    if not isinstance(value, dict):
        return WrittenCall(name=name, arguments=written, problem=_NO_OBJECT)
    return WrittenCall(name=name, arguments=json_text.encode(value))


def read_region(text: str, opener: str, closer: str, tools: Tools, *, final: bool) -> Verdict:
    """Read calls as JSON objects, or an array of them, between two tags."""
    at = after_space(text, len(opener))
    if at == len(text):
        return None if final else MORE
    if text[at] not in "{[":
        return None
    parts: list[WrittenCall | str] = []
    while text[at : at + 1] in {"{", "["} and not closer.startswith(text[at : at + len(closer)]):
        end = json_text.value_end(text, at)
        if end is None:
            return _unending(text, at, parts, closer, tools) if final else SURE
        found = read_calls(text[at:end], tools)
        inside = text.find(closer, at, end) if any(call.problem for call in found) else -1
        if inside >= 0:  # unbalanced quotation marks hid the end
            parts.append(broken(_NO_JSON, text[at:inside], tools))
            return Block(inside + len(closer), tuple(parts))
        parts.extend(found)
        at = after_space(text, end)
        while text[at : at + 1] in {
            "}",
            ",",
            ";",
        }:  # an extra brace, or a list without brackets
            at = after_space(text, at + 1)
    ended = begins(text, at, (closer, opener), final=final)
    if isinstance(ended, str):  # the next region may begin without the end of this one
        return Block(at + len(closer) * (ended == closer), tuple(parts))
    if isinstance(ended, More):
        return SURE
    close = text.find(closer, at)
    if close < 0:
        if not final:
            return SURE
        rest = before_half_mark(text[at:], (closer, opener))
        return Block(len(text), (*parts, rest) if rest else tuple(parts))
    return Block(close + len(closer), (*parts, text[at:close]))


def read_calls(written: str, tools: Tools, *, strict: bool = False) -> list[WrittenCall]:
    """Return the calls in a JSON object or array; empty if `strict` and one is not a call."""
    if not written.startswith("["):
        call = read_call(written, tools, strict=strict)
        return [] if call is None else [call]
    values = json_text.decode(written)
    if not isinstance(values, list):
        return [] if strict else [broken(_NO_JSON, written, tools)]
    found = [read_call(json_text.encode(value), tools, strict=strict) for value in values]
    if not found or None in found:
        return [] if strict else [broken(_NO_NAME, written, tools)]
    return [call for call in found if call is not None]


def names_tool(text: str, at: int, tools: Tools, *, final: bool) -> bool | More:
    """Return whether the JSON at a position begins like a call of a known tool."""
    expected = json_text.first_tokens(text, at, 16)
    if expected[:1] == ["["]:
        del expected[0]
    for further in _FURTHER:
        begun = len(expected) - 1
        if 0 < begun < len(further) and tuple(expected[1:]) == further[:begun]:
            return False if final else MORE
        if tuple(expected[1 : len(further) + 1]) == further:
            del expected[1 : len(further) + 1]
    wanted = ("{", NAMES, ":", None, ",", ARGUMENTS, ":")
    for token, want in zip(expected, wanted, strict=False):
        if want is None:
            name = json_text.decode(token)
            if name not in tools:
                return False
        elif isinstance(want, str):
            if token != want:
                return False
        elif token.strip('"') not in want or not token.startswith('"'):
            return False
    if len(expected) >= len(wanted):
        return True
    return False if final else MORE


def _unending(
    text: str, at: int, parts: list[WrittenCall | str], closer: str, tools: Tools
) -> Block:
    close = text.find(closer, at)
    if close < 0:
        return Block(len(text), (*parts, broken(NO_END, text[at:], tools)))
    return Block(close + len(closer), (*parts, broken(_NO_JSON, text[at:close], tools)))

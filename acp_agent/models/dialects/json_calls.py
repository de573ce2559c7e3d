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
    broken_call,
    match_mark,
    skip_space,
    strip_partial_mark,
)

NAMES = ("name", "tool", "tool_name", "function", "action")
ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input", "tool_input", "params")
_EXTRA_KEYS = {"type", "id", "tool_call_id"}  # additional keys that a call may have
_WRAPPERS = ("function", "functionCall", "function_call", "tool_call")  # keys around a call
_LIST = "tool_calls"  # the key of a list of calls, as in the answer of an API
# Tokens that may precede the name: None is any value, and the last one stands for a brace.
_OPTIONAL_PREFIXES: tuple[tuple[str | None, ...], ...] = (
    ("{", '"tool_calls"', ":", "[", "{"),
    *(("{", f'"{key}"', ":", None, ",") for key in sorted(_EXTRA_KEYS)),
    *(("{", f'"{key}"', ":", "{") for key in _WRAPPERS),
)
_MAX_TOKENS = 32
_NO_JSON = "The call is not valid JSON. Write it again, with the quotation marks in texts escaped."
_NO_NAME = 'The call names no tool. Write {"name": …, "arguments": {…}}.'
_NO_OBJECT = "The arguments of the call are not a JSON object."


def read_call(text: str, tools: Tools, *, strict: bool = False) -> WrittenCall | None:
    """Return a JSON object as a call; None if `strict` and it may be something else."""
    value = json_text.decode(text)
    if value is json_text.NOTHING and text.startswith("{{"):
        # Qwen2.5's template doubles the braces, and the model copies that.
        value = json_text.decode(text[1:-1])
    if value is json_text.NOTHING and not strict:
        value = json_text.decode_python(text)
    if not isinstance(value, dict):
        return None if strict else broken_call(_NO_JSON, text, tools)
    inner = next((value[key] for key in _WRAPPERS if isinstance(value.get(key), dict)), None)
    if inner is not None:
        value = inner
    if len(value) == 1:  # Apertus: the name is the key of the arguments
        (key, content), *_ = value.items()
        if key in tools and isinstance(content, dict):
            value = {"name": key, "arguments": content}
    name = next((value[key] for key in NAMES if isinstance(value.get(key), str)), "")
    arguments: object = next((value[key] for key in ARGUMENTS if key in value), None)
    if strict and (name not in tools or set(value) - {*NAMES, *ARGUMENTS, *_EXTRA_KEYS}):
        return None
    if not name:
        return broken_call(_NO_NAME, text, tools)
    if isinstance(arguments, str):
        arguments = json_text.decode(arguments) if arguments.strip() else None
    if arguments is None:
        arguments = {}
    if not isinstance(arguments, dict):
        return None if strict else WrittenCall(name=name, arguments=text, problem=_NO_OBJECT)
    return WrittenCall(name=name, arguments=json_text.encode(arguments))


def read_arguments(name: str, text: str) -> WrittenCall:
    """Return a call of a tool with arguments in JSON text."""
    value = json_text.decode(text) if text.strip() else {}
    if not isinstance(value, dict):
        return WrittenCall(name=name, arguments=text, problem=_NO_OBJECT)
    return WrittenCall(name=name, arguments=json_text.encode(value))


def read_region(text: str, opener: str, closer: str, tools: Tools, *, final: bool) -> Verdict:
    """Read calls as JSON objects, or an array of them, between two tags."""
    at = skip_space(text, len(opener))
    if at == len(text):
        return None if final else MORE
    if text[at] not in "{[":
        return None
    content: list[WrittenCall | str] = []
    while text[at : at + 1] in {"{", "["} and not closer.startswith(text[at : at + len(closer)]):
        end = json_text.value_end(text, at)
        if end is None:
            return _unfinished_call(text, at, content, closer, tools) if final else SURE
        calls = read_calls(text[at:end], tools)
        inside = text.find(closer, at, end) if any(call.problem for call in calls) else -1
        if inside >= 0:  # unbalanced quotation marks hid the end
            content.append(broken_call(_NO_JSON, text[at:inside], tools))
            return Block(inside + len(closer), tuple(content))
        content.extend(calls)
        at = skip_space(text, end)
        while text[at : at + 1] in {"}", ",", ";"}:  # an extra brace, or a list without brackets
            at = skip_space(text, at + 1)
    ended = match_mark(text, at, (closer, opener), final=final)
    if isinstance(ended, str):  # the next region may begin without the end of this one
        return Block(at + len(closer) * (ended == closer), tuple(content))
    if isinstance(ended, More):
        return SURE
    close = text.find(closer, at)
    if close < 0:
        if not final:
            return SURE
        remainder = strip_partial_mark(text[at:], (closer, opener))
        return Block(len(text), (*content, remainder) if remainder else tuple(content))
    return Block(close + len(closer), (*content, text[at:close]))


def read_calls(text: str, tools: Tools, *, strict: bool = False) -> list[WrittenCall]:
    """Return the calls in a JSON object or array; empty if `strict` and one is not a call."""
    values = json_text.decode(text)
    if isinstance(values, dict) and list(values) == [_LIST]:
        values = values[_LIST]
    elif not text.startswith("["):
        call = read_call(text, tools, strict=strict)
        return [] if call is None else [call]
    if not isinstance(values, list):
        return [] if strict else [broken_call(_NO_JSON, text, tools)]
    calls = [read_call(json_text.encode(value), tools, strict=strict) for value in values]
    if not calls or None in calls:
        return [] if strict else [broken_call(_NO_NAME, text, tools)]
    return [call for call in calls if call is not None]


def names_tool(text: str, at: int, tools: Tools, *, final: bool) -> bool | More:
    """Return whether the JSON at a position begins like a call of a known tool."""
    tokens = json_text.first_tokens(text, at, _MAX_TOKENS)
    if tokens[:1] == ["["]:
        del tokens[0]
    prefix = _prefix(tokens)
    while prefix and len(tokens) > len(prefix):
        tokens = ["{", *tokens[len(prefix) :]]
        prefix = _prefix(tokens)
    if prefix:
        return False if final else MORE
    template = ("{", NAMES, ":", None, ",", ARGUMENTS, ":")
    for token, expected in zip(tokens, template, strict=False):
        if expected is None:
            name = json_text.decode(token)
            if name not in tools:
                return False
        elif isinstance(expected, str):
            if token != expected:
                return False
        elif token.strip('"') not in expected or not token.startswith('"'):
            return False
    if len(tokens) >= len(template):
        return True
    return False if final else MORE


def _prefix(tokens: list[str]) -> tuple[str | None, ...]:
    """Return the tokens before the name of a call that the text begins with, or a part of them."""
    for prefix in _OPTIONAL_PREFIXES if len(tokens) > 1 else ():
        if all(expected in {None, token} for token, expected in zip(tokens, prefix, strict=False)):
            return prefix
    return ()


def _unfinished_call(
    text: str, at: int, content: list[WrittenCall | str], closer: str, tools: Tools
) -> Block:
    close = text.find(closer, at)
    if close < 0:
        return Block(len(text), (*content, broken_call(NO_END, text[at:], tools)))
    return Block(close + len(closer), (*content, broken_call(_NO_JSON, text[at:close], tools)))

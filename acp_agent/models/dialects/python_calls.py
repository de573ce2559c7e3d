"""Read calls written as Python: `read(path="a")`, or a list of such calls."""

from __future__ import annotations

import ast
import re

import msgspec

from acp_agent.models.dialects.form import Tools, WrittenCall

_FENCE = re.compile(r"```\w+\s*\n(.*?)\n?```", re.DOTALL)


def read_python_calls(source: str, tools: Tools) -> list[WrittenCall]:
    """Return the calls in a text that consists of calls of known tools with named literals.

    `print` and a code block around the calls are ignored. Any other content gives an empty list.
    """
    text = source.strip()
    fenced = _FENCE.fullmatch(text)
    try:
        body = ast.parse((fenced[1] if fenced else text).strip(), mode="eval").body
        nodes = body.elts if isinstance(body, ast.List) else [body]
        calls = [_call(node, tools) for node in nodes]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return []
    return calls


def _call(node: ast.expr, tools: Tools) -> WrittenCall:
    """Return one call.

    Raises:
        ValueError: the expression is not a call of a known tool with named literals.
    """
    if isinstance(node, ast.Call) and _name(node) == "print" and len(node.args) == 1:
        node = node.args[0]
    if not isinstance(node, ast.Call) or node.args or _name(node) not in tools:
        raise ValueError("no call of a known tool")
    arguments = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords}
    if None in arguments:
        raise ValueError("arguments without a name")
    return WrittenCall(name=_name(node), arguments=msgspec.json.encode(arguments).decode())


def _name(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""

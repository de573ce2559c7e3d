"""Read calls written as Python: `read(path="a")`, or a list of such calls."""

from __future__ import annotations

import ast
import re

import msgspec

from acp_agent.models.dialects.form import Tools, WrittenCall

_CONSTANTS = {"true": True, "false": False, "null": None}  # as in the JSON of the descriptions
_FENCE = re.compile(r"```\w+\s*\n(.*?)\n?```", re.DOTALL)


def read_python_calls(source: str, tools: Tools) -> list[WrittenCall]:
    """Return the calls in a text that consists of calls of known tools with named literals.

    The calls are on lines of their own or in a list. `print` and a code block around them are
    ignored. Any other content gives an empty list.
    """
    text = source.strip()
    fenced = _FENCE.fullmatch(text)
    try:
        module = _Constants().visit(ast.parse((fenced[1] if fenced else text).strip()))
        calls = [_call(node, tools) for line in module.body for node in _expressions(line)]
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return []
    return calls


class _Constants(ast.NodeTransformer):
    """Replaces the constants of JSON by those of Python."""

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(_CONSTANTS[node.id]) if node.id in _CONSTANTS else node


def _expressions(line: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a line, which may be a list.

    Raises:
        TypeError: the line is another statement.
    """
    if not isinstance(line, ast.Expr):
        raise TypeError("no expression")
    value = line.value
    return value.elts if isinstance(value, ast.List | ast.Tuple) else [value]


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

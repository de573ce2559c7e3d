"""Translate the rules of codex: Starlark files with `prefix_rule(…)` and `network_rule(…)`.

The files are parsed, not run: values must be literals, as codex itself writes them, or lists and
names of literals. Starlark's expressions are a subset of Python's.
https://github.com/openai/codex/tree/main/codex-rs/execpolicy
"""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.policy.imports.translation import Translation, read_file
from acp_agent.config.policy_types import RuleConfig
from acp_agent.errors import InvalidInputError
from acp_agent.permissions.policy.command_patterns import quote_word
from acp_agent.permissions.policy.rules import Effect

_EFFECTS: Mapping[object, Effect] = {
    None: "allow",
    "allow": "allow",
    "prompt": "ask",
    "forbidden": "deny",
    "deny": "deny",
}
_MAX_RULES = 64  # limit for one prefix_rule with alternatives
_PARAMETERS = {
    "prefix_rule": ("pattern", "decision", "match", "not_match", "justification"),
    "network_rule": ("host", "protocol", "decision", "justification"),
}


class _UnknownValueError(Exception):
    """The value is only known when the file is run."""


def read_codex(file: Path) -> Translation:
    """Translate a rules file. Raises InvalidInputError if it cannot be read."""
    translation = Translation(file)
    try:
        text = read_file(file).decode()
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        location = f" (line {line})" if line else ""
        raise InvalidInputError(f"it cannot be read as Starlark{location}") from None
    names: dict[str, object] = {}
    for statement in module.body:
        source = ast.get_source_segment(text, statement) or ""
        source_text = " ".join(source.split())
        try:
            _statement(statement, names, translation, source_text)
        except (_UnknownValueError, ValueError, RecursionError):
            translation.skip(source_text, translate("computed value; write the rule by hand"))
    return translation


def _statement(
    statement: ast.stmt, names: dict[str, object], translation: Translation, source_text: str
) -> None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            names.pop(name, None)
            names[name] = _value(value, names)
        case ast.Expr(value=ast.Constant(value=str())):
            return
        case ast.Expr(value=ast.Call(func=ast.Name(id=name)) as call) if name in _PARAMETERS:
            arguments = _arguments(call, _PARAMETERS[name], names)
            (_prefix_rule if name == "prefix_rule" else _network_rule)(
                arguments, translation, source_text
            )
        case ast.Expr(value=ast.Call(func=ast.Name(id="host_executable"))):
            translation.skip(source_text, translate("programs are matched by name, not by path"))
        case _:
            raise _UnknownValueError


def _arguments(
    call: ast.Call, parameters: Sequence[str], names: Mapping[str, object]
) -> dict[str, object]:
    arguments = dict(
        zip(parameters, (_value(argument, names) for argument in call.args), strict=False)
    )
    for keyword in call.keywords:
        if keyword.arg is None:
            raise _UnknownValueError
        arguments[keyword.arg] = _value(keyword.value, names)
    return arguments


def _value(node: ast.expr, names: Mapping[str, object]) -> object:
    match node:
        case ast.Constant(value=str() | None as value):
            return value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_value(item, names) for item in items]
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            first, second = _value(left, names), _value(right, names)
            if isinstance(first, str) and isinstance(second, str):
                return first + second
            if isinstance(first, list) and isinstance(second, list):
                return [*first, *second]
    raise _UnknownValueError


def _prefix_rule(
    arguments: Mapping[str, object], translation: Translation, source_text: str
) -> None:
    pattern, decision = arguments.get("pattern"), arguments.get("decision")
    if decision not in _EFFECTS or decision == "deny":
        translation.skip(source_text, translate("its decision is not allow, prompt or forbidden"))
        return
    if not isinstance(pattern, list) or not pattern:
        translation.skip(source_text, translate("its pattern is not a list of words"))
        return
    words = [
        alternatives if isinstance(alternatives, list) else [alternatives]
        for alternatives in pattern
    ]
    if not all(
        alternatives and all(isinstance(word, str) for word in alternatives)
        for alternatives in words
    ):
        translation.skip(source_text, translate("its pattern is not a list of words"))
        return
    prefixes = list(islice(product(*words), _MAX_RULES + 1))
    if len(prefixes) > _MAX_RULES:
        translation.skip(source_text, translate("too many alternatives; write one rule with `*`"))
        return
    match, not_match = list(_examples(arguments, "match")), list(_examples(arguments, "not_match"))
    for prefix in prefixes:
        rule = RuleConfig(
            rule=f"Bash({' '.join(map(quote_word, prefix))} *)",
            match=[
                shlex.join(alternatives)
                for alternatives in match
                if tuple(alternatives[: len(prefix)]) == prefix
            ],
            not_match=list(map(shlex.join, not_match)),
            justification=_justification(arguments),
        )
        translation.add(
            _EFFECTS[decision], rule, source_text=source_text if len(prefixes) == 1 else rule.rule
        )


def _examples(arguments: Mapping[str, object], key: str) -> Iterator[list[str]]:
    value = arguments.get(key)
    for example in value if isinstance(value, list) else []:
        if isinstance(example, str):
            yield shlex.split(example)
        elif isinstance(example, list):
            yield [word for word in example if isinstance(word, str)]


def _justification(arguments: Mapping[str, object]) -> str:
    value = arguments.get("justification")
    return value if isinstance(value, str) else ""


def _network_rule(
    arguments: Mapping[str, object], translation: Translation, source_text: str
) -> None:
    host, protocol = arguments.get("host"), arguments.get("protocol")
    decision = arguments.get("decision")
    if protocol not in {"http", "https", "http_connect", "https_connect"}:
        translation.skip(source_text, translate("only http and https are supported"))
    elif not isinstance(host, str) or decision not in _EFFECTS or decision is None:
        translation.skip(source_text, translate("unknown host or decision"))
    else:
        rule = RuleConfig(rule=f"WebFetch(domain:{host})", justification=_justification(arguments))
        translation.add(_EFFECTS[decision], rule, source_text=source_text)

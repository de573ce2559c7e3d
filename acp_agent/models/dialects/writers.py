"""Write tools, calls and results as text, by the templates of `writers.toml`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from string import Template

from msgspec import Struct

from acp_agent.models.dialects import json_text
from acp_agent.models.dialects.form import CallWriter, Tools
from acp_agent.platform.data_tables import read_table

_TEXT_MARK = "<escape>"  # of FunctionGemma
_TYPES = {"{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}


class _Templates(Struct, frozen=True, kw_only=True):
    """The templates of a dialect; `writers.toml` explains them."""

    instructions: str
    call: str
    result: str
    tool: str = '{"type": "function", "function": $tool}'
    tool_separator: str = "\n"
    argument: str = ""
    text_argument: str = ""
    call_separator: str = "\n"
    calls: str = "$calls"
    result_separator: str = "\n"
    results: str = "$results"


class _TemplateWriter:
    def __init__(self, templates: _Templates) -> None:
        self._templates = templates

    def instructions(self, tools: Tools) -> str:
        """See `CallWriter`."""
        templates = self._templates
        specs = (
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in tools
        )
        lines = (_fill(templates.tool, tool=json_text.encode(spec)) for spec in specs)
        return _fill(templates.instructions, tools=templates.tool_separator.join(lines))

    def calls(self, calls: Sequence[tuple[int, str, str]]) -> str:
        """See `CallWriter`."""
        texts: list[str] = []
        for index, (number, name, arguments) in enumerate(calls, 1):
            values = json_text.decode(arguments)
            text = _fill(
                self._templates.call,
                index=index,
                number=number,
                name=name,
                json_name=json_text.encode(name),
                arguments=arguments,
                tags=self._tags(values),
                fields=_notation(values),
            )
            texts.append(text)
        return _fill(self._templates.calls, calls=self._templates.call_separator.join(texts))

    def results(self, results: Sequence[tuple[int, str, str]]) -> str:
        """See `CallWriter`."""
        texts = [
            _fill(
                self._templates.result,
                number=number,
                name=name,
                text=text,
                json_text=json_text.encode(text),
            )
            for number, name, text in results
        ]
        return _fill(self._templates.results, results=self._templates.result_separator.join(texts))

    def _tags(self, values: object) -> str:
        items = values.items() if isinstance(values, dict) else ()
        return "".join(self._tag(key, value) for key, value in items)

    def _tag(self, key: str, value: object) -> str:
        if isinstance(value, str):
            template = self._templates.text_argument or self._templates.argument
            return _fill(template, key=key, value=value, type="string")
        text = json_text.encode(value)
        return _fill(
            self._templates.argument, key=key, value=text, type=_TYPES.get(text[0], "number")
        )


def _fill(template: str, **values: object) -> str:
    return Template(template).substitute(values)


def _notation(value: object) -> str:
    """Return a value in the notation of FunctionGemma."""
    if isinstance(value, str):
        return f"{_TEXT_MARK}{value}{_TEXT_MARK}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_notation(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_notation, value)) + "]"
    return json_text.encode(value)


@cache
def writer(dialect: str) -> CallWriter:
    """Return the writer of a dialect; `auto` has that of `hermes`."""
    tables = read_table("acp_agent.models.dialects", "writers.toml", dict[str, _Templates])
    return _TemplateWriter(tables["hermes" if dialect == "auto" else dialect])

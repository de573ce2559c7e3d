"""Parse YAML front matter: the lines between two `---` at the top of a Markdown file.

Values follow the core schema of YAML 1.2, as in most other programs: `off` and `no` are words, and
not false as in YAML 1.1, which is PyYAML's default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any, Protocol, cast

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from acp_agent.errors import ConfigError

MAX_FRONT_MATTER = 16_384  # characters of front matter; the longest description is 1,024
MAX_DEPTH = 16  # levels of nested lists and fields
_FENCE = "---"
# Values of these fields often contain a colon, and other programs accept that.
_PROSE = re.compile(r"^(description:|argument-hint:) +(?![\"'|>])(\S.*?)\s*$", re.MULTILINE)
# A text in quotes that has such quotes in it.
_QUOTES = re.compile(r'^(description:|argument-hint:) +"(.*(?<!\\)".*)" *$', re.MULTILINE)
_STAR = re.compile(r"^([\w-]+: +)(\*[^\"\n]*)$", re.MULTILINE)  # means all tools; not an alias
_FIELD = re.compile(r"^[A-Za-z][\w-]*:(?= |$)", re.MULTILINE)
_NO_FIELD = re.compile(r"^(?![A-Za-z][\w-]*:( |$))[^\s#-]", re.MULTILINE)
# Fields that are never part of a description, because without them a file could do more.
_LIMITS = frozenset(
    {
        "disallowed-tools", "disallowedTools", "exclude_tools", "tools", "max-requests",
        "max_turns", "maxTurns", "mode", "permissionMode", "readonly", "subagents", "context",
        "disable-model-invocation", "user-invocable",
    }
)  # fmt: skip
_SPEECH = re.compile(r"[A-Za-z][\w-]*: *\"")
# Text that needs the slower parser: anchors, aliases, tags, directives, flow collections, escapes,
# deep nesting, and characters that are no text or end a line.
_SPECIAL = re.compile(
    r"(?:^|[\s,:-])[&*!%@`?\[{]|\\|- - |^ {12}|[|>][-+0-9]*#"
    "|[^\n -~\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]",
    re.MULTILINE,
)
_MAX_ENDS = 20  # possible ends of a description that are tried
_CACHE_SIZE = 2_048  # cached results: a session reads all of its files repeatedly


def read_front_matter(text: str) -> tuple[Mapping[str, object], str]:
    """Return the front matter of a file's text, and the Markdown below it.

    Raises:
        ConfigError: the front matter is missing, has no end, or is not YAML with fields.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        raise ConfigError("there is no front matter; begin the file with a line of ---")
    ends = (number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE)
    end = next(ends, None)
    if end is None:
        raise ConfigError("the front matter does not end; put a line of --- below it")
    front_matter = "\n".join(lines[1:end])
    if len(front_matter) > MAX_FRONT_MATTER:
        raise ConfigError("the front matter is longer than 16,384 characters; shorten it")
    return parse_yaml(front_matter, first=2), "\n".join(lines[end + 1 :]).strip()


@lru_cache(_CACHE_SIZE)
def parse_yaml(front_matter: str, *, first: int) -> Mapping[str, object]:
    """Return the fields; if the text is not YAML, prose with a colon is treated as quoted.

    Args:
        first: the number of its first line in the file, for errors.

    Raises:
        ConfigError: it is not YAML with fields.
    """
    try:
        try:
            fields = _load(front_matter, first)
        except yaml.MarkedYAMLError:
            fields = _load_leniently(front_matter, first)
            if fields is None:
                fields = _load(front_matter, first)  # for PyYAML's own error message
    except yaml.MarkedYAMLError as error:
        line = _line(error.problem_mark, first)
        raise ConfigError(
            f"line {line} is not YAML ({error.problem}); texts with : # [ or "
            "{ in them go in quotes"
        ) from None
    except (yaml.YAMLError, ValueError):  # an invalid character, or a number that is too long
        raise ConfigError("the front matter is not YAML; take out what is no text") from None
    if not isinstance(fields, dict):
        raise ConfigError("the front matter has no fields; write name: and description: there")
    return {name: value for name, value in fields.items() if isinstance(name, str)}


def _load_leniently(front_matter: str, first: int) -> object | None:
    """Return the fields of invalid YAML that other programs accept, or None if that fails.

    A text with a colon is treated as quoted. A description may continue over lines that are not
    fields, such as examples, if the lines below them are YAML. A line such as `user: "…" more` is
    no field: it is not YAML.
    """
    quoted = _PROSE.sub(lambda match: f"{match[1]} {json.dumps(match[2])}", front_matter)
    quoted = _QUOTES.sub(lambda match: f"{match[1]} {json.dumps(match[2])}", quoted)
    quoted = _STAR.sub(lambda match: f"{match[1]}{json.dumps(match[2].rstrip())}", quoted)
    with suppress(yaml.MarkedYAMLError):
        return _load(quoted, first)
    start = re.search(r"^description: +(?![\"'|>])(?=\S)", front_matter, re.MULTILINE)
    if start is None:
        return None
    before = front_matter[: start.start()]
    fields = list(islice(_FIELD.finditer(front_matter, start.end()), _MAX_ENDS))
    first_limit = next(
        (index for index, match in enumerate(fields) if match[0][:-1] in _LIMITS), len(fields)
    )
    ends = [match.start() for match in fields[: first_limit + 1]]
    for end in ends if first_limit < len(fields) else (*ends, len(front_matter)):
        prose = front_matter[start.end() : end].rstrip()
        further = [line for line in prose.split("\n")[1:] if _FIELD.match(line)]
        if (
            further
            and not _NO_FIELD.search(prose, prose.find("\n"))
            and not all(map(_is_speech, further))
        ):
            continue
        remainder = _STAR.sub(
            lambda match: f"{match[1]}{json.dumps(match[2].rstrip())}", front_matter[end:]
        )
        with suppress(yaml.MarkedYAMLError, ConfigError):
            return _load(f"{before}description: {json.dumps(prose)}\n{remainder}", first)
    return None


def _is_speech(line: str) -> bool:
    """Return whether a line is no field but a part of an example, such as `user: "…" more`."""
    if not _SPEECH.match(line):
        return False
    try:
        _load(line, 1)
    except yaml.MarkedYAMLError:
        return True
    return False


def field_line(text: str, name: str) -> int | None:
    """Return the line of a field in a file's front matter; of a nested name, the top field's line.

    None if there is no such field or no front matter.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    if lines[0].rstrip() != _FENCE:
        return None
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() == _FENCE), 1)
    return _field_lines("\n".join(lines[1:end])).get(re.split(r"[.\[]", name)[0])


@lru_cache(_CACHE_SIZE)
def _field_lines(front_matter: str) -> Mapping[str, int]:
    """Return the line in the file of each field at the top of front matter."""
    try:
        top = yaml.compose(
            front_matter, CoreLoader if _SPECIAL.search(front_matter) else _QuickLoader
        )
    except (yaml.YAMLError, ConfigError):
        return {}
    entries = top.value if isinstance(top, MappingNode) else []
    return {key.value: _line(key.start_mark, 2) for key, _ in reversed(entries)}


def _load(front_matter: str, first: int) -> object:
    if _SPECIAL.search(front_matter) is None:
        with suppress(yaml.YAMLError, ConfigError):  # the other parser has the message
            return _load_quickly(front_matter)
    loader = CoreLoader(front_matter)
    loader.first = first
    try:
        return cast("object", loader.get_single_data())
    finally:
        loader.dispose()


def _load_quickly(front_matter: str) -> object:
    """Return the fields of front matter without features that need the slower parser."""
    loader = _QuickLoader(front_matter)
    try:
        return cast("object", loader.get_single_data())
    finally:
        loader.dispose()


class _Mark(Protocol):
    """A position as PyYAML reports it."""

    line: int


class CoreLoader(yaml.SafeLoader):
    """PyYAML's safe loader with the core schema, without features that front matter does not need.

    Aliases can make a small file large, and tags can make a text something else.
    """

    yaml_implicit_resolvers = {}  # noqa: RUF012 - as in the parent class
    first = 2  # the number of the first line in the file
    _depth = 0  # depth of the current node

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """Return a node; raise an error if it uses an unsupported feature."""
        event = self.peek_event()  # type: ignore[no-untyped-call]  # as its stubs have it
        if isinstance(event, yaml.AliasEvent):
            raise _unsupported_error("aliases", event.start_mark, self.first)
        if getattr(event, "tag", None) is not None:
            raise _unsupported_error("tags", event.start_mark, self.first)
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.nested_too_deeply()
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(node, MappingNode):
            names: set[str] = set()
            for key, _ in node.value:
                if isinstance(key, ScalarNode) and key.value in names:
                    line = _line(key.start_mark, self.first)
                    raise ConfigError(f"line {line} has {key.value} once more; take one out")
                names.add(str(key.value))
        return node

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        """Read an opening bracket."""
        # The scanner looks far ahead, which takes longer the deeper brackets are nested.
        if self.flow_level > MAX_DEPTH:
            raise self.nested_too_deeply()
        super().fetch_flow_collection_start(token)

    def nested_too_deeply(self) -> ConfigError:
        """Return the error for lists and fields that are nested too deeply."""
        return ConfigError("the front matter is nested too deeply; make it flat")

    def construct_scalar(self, node: ScalarNode | MappingNode) -> Any:  # as in the parent class
        """Return the value of a node that is neither a list nor a mapping."""
        value = super().construct_scalar(node)
        if any("\ud800" <= character <= "\udfff" for character in str(value)):
            raise _unsupported_error("halves of characters", node.start_mark, self.first)
        return value


_FastLoader = yaml.CSafeLoader if yaml.__with_libyaml__ else CoreLoader


class _QuickLoader(_FastLoader):  # type: ignore[misc, valid-type]  # depends on how PyYAML is built
    """The parser in C, where PyYAML has it: ten times as fast, with other error messages."""

    yaml_implicit_resolvers = CoreLoader.yaml_implicit_resolvers

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raise an error if it has a field twice."""
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) != len(node.value):
            raise yaml.YAMLError("a field is there twice")
        return mapping


def _unsupported_error(feature: str, mark: _Mark | None, first: int) -> ConfigError:
    line = _line(mark, first)
    return ConfigError(f"line {line} has {feature}, which are not read; write what is meant")


def _line(mark: _Mark | None, first: int) -> int:
    """Return the line in the file; a mark counts from 0, and `first` is the YAML's first line."""
    return first + (0 if mark is None else mark.line)


for _kind, _pattern, _first in (
    ("null", r"^(~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("bool", r"^(true|True|TRUE|false|False|FALSE)$", list("tTfF")),
    ("int", r"^[-+]?[0-9]+$", list("-+0123456789")),
    ("float", r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$", list("-+.0123456789")),
):
    CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(_pattern), _first)

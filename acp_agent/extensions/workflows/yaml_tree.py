"""A YAML file as a tree in which each value has its line number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

import yaml
from msgspec import Struct
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.front_matter import CoreLoader

Scalar: TypeAlias = str | int | float | bool | None


class Entry(Struct, frozen=True):
    """A value, and its line number; for a field, the line of its name."""

    line: int
    value: Scalar | list[Entry] | Mapping[str, Entry]


def read_tree(text: str) -> Entry:
    """Return the tree of a YAML file, parsed with the core schema of YAML 1.2.

    Raises:
        ConfigError: it is not YAML, or uses an unsupported feature; the message has the line.
    """
    try:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise ConfigError("line 1: the file is empty; write steps: there")
            return _entry(node, loader)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = 1 if mark is None else mark.line + 1
        raise ConfigError(
            f"line {line} is not YAML ({error.problem}); texts with : # [ or "
            "{ in them go in quotes"
        ) from None
    except yaml.reader.ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"line {line_number} has a character that may not be in YAML; take it out"
        ) from None
    except (yaml.YAMLError, ValueError):  # a number with thousands of digits
        raise ConfigError("line 1: the file is not YAML; take out what is no text") from None


class _Loader(CoreLoader):
    first = 1

    def nested_too_deeply(self) -> ConfigError:
        mark = self.get_mark()
        return ConfigError(f"line {mark.line + 1} is nested too deeply; make it flat")


def _entry(node: Node, loader: _Loader) -> Entry:
    line = node.start_mark.line + 1
    match node:
        case ScalarNode():
            return Entry(line, cast("Scalar", loader.construct_object(node)))
        case SequenceNode():
            return Entry(line, [_entry(item, loader) for item in node.value])
        case MappingNode():
            fields = {}
            for key, value in node.value:
                if not isinstance(key, ScalarNode):
                    name_line = key.start_mark.line + 1
                    raise ConfigError(f"line {name_line} has a list as a name; write a word")
                item = _entry(value, loader)
                fields[str(key.value)] = Entry(key.start_mark.line + 1, item.value)
            return Entry(line, fields)
        case _:
            raise AssertionError(node)

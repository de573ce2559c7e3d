"""Agents that extend others: each says only what is different."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.building import DefinitionFile
from acp_agent.extensions.definitions.fields import AgentFields

LONGEST = 10  # agents that extend each other, one after the other

AgentFile = DefinitionFile[AgentFields]


class Family:
    """The agents that there are, those that others hide among them.

    Args:
        files: from the most general to the most specific.
    """

    def __init__(self, files: Iterable[AgentFile]) -> None:
        self._named: dict[str, list[AgentFile]] = {}
        for file in files:
            self._named.setdefault(file.fields.name, []).append(file)

    def named(self) -> Iterator[list[AgentFile]]:
        """Those of each name, from the most specific to the most general."""
        return (files[::-1] for files in self._named.values())

    def whole(self, file: AgentFile) -> AgentFile:
        """An agent's file with what it leaves unsaid, as the one has it that it extends.

        Raises:
            ConfigError: it extends what is not there, or itself in the end.
        """
        line = [file]
        while (parent := self._parent(line[-1])) is not None:
            line.append(parent)
            if any(parent is one for one in line[:-1]):
                names = ", ".join(one.fields.name for one in line)
                raise ConfigError(f"extends: it goes in a circle ({names}); take one out")
            if len(line) > LONGEST:
                raise ConfigError(f"extends: it goes over more than {LONGEST} agents; shorten it")
        result = line.pop()
        while line:
            result = _merged(result, line.pop())
        return result

    def _parent(self, file: AgentFile) -> AgentFile | None:
        """The one that a file extends. By its own name that is the one which it hides."""
        name = file.fields.extends
        if name is None:
            return None
        files = self._named.get(name, [])
        if name == file.fields.name:
            files = files[: next(at for at, one in enumerate(files) if one is file)]
        if not files:
            raise ConfigError(f"extends: there is no agent {name} to extend; add it, or mend it")
        return files[-1]


def _merged(parent: AgentFile, child: AgentFile) -> AgentFile:
    names = (field.name for field in msgspec.structs.fields(AgentFields))
    said = {name: value for name in names if (value := getattr(child.fields, name)) is not None}
    values = parent.fields.system_prompt_args
    if values and child.fields.system_prompt_args:  # those of the parent's prompt that it leaves
        said["system_prompt_args"] = values | child.fields.system_prompt_args
    return msgspec.structs.replace(
        child,
        fields=msgspec.structs.replace(parent.fields, **said),
        text=child.text or parent.text,
    )

"""Load plugins that are Python packages, and make their tools, hooks and models.

Each package is imported once per process, when a session or a model first needs it.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import logging
import re
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import msgspec
from msgspec import Struct

from acp_agent.api import API_VERSION, Plugin, Tool, ToolResult
from acp_agent.content import JsonObject, printable_line
from acp_agent.errors import ConfigError, ToolError
from acp_agent.extensions.definitions.locations import PACKAGES
from acp_agent.extensions.mcp.schemas import ToolSchema, UnusableSchemaError
from acp_agent.extensions.plugins.find import DATA
from acp_agent.extensions.plugins.installed import Installed, read_installed
from acp_agent.extensions.plugins.packages import load_objects
from acp_agent.hooks.types import Hook
from acp_agent.models.base import Driver
from acp_agent.models.providers import Provider
from acp_agent.permissions.access import McpAccess
from acp_agent.platform.posix import make_private_folder
from acp_agent.tools.base import (
    EVERYTHING,
    NOTHING_IF_GRANTED,
    AnyTool,
    Outcome,
    Prepared,
    Progress,
    Question,
    SchemaArguments,
    SchemaTool,
    Touches,
    arguments_content,
)
from acp_agent.workspace.workspace import Workspace

_PLUGIN_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]+")
_MAX_NAME = 64  # characters of a tool's name
_MAX_DESCRIPTION = 4_000  # characters

_log = logging.getLogger(__name__)


class LoadedPlugin(Struct, frozen=True):
    """An imported plugin with its package, its data folder and the package's digest."""

    plugin: Plugin
    package: str
    data: Path
    digest: str


class LoadedPlugins(Struct, frozen=True):
    """The imported plugins, and the problems with others, in one line of English each."""

    plugins: tuple[LoadedPlugin, ...] = ()
    problems: tuple[str, ...] = ()

    def tools(self, workspace: Workspace) -> Iterator[AnyTool]:
        """Yield the plugins' tools for a session."""
        for loaded in self.plugins:
            yield from (_tool_class(loaded, tool)(workspace) for tool in loaded.plugin.tools)

    def hooks(self) -> Iterator[Hook]:
        """Yield the plugins' hooks. Unlike the user's own, they may refuse but not allow."""
        for loaded in self.plugins:
            for hook in loaded.plugin.hooks:
                yield Hook(
                    event=hook.event,
                    matcher=hook.matcher,
                    command=loaded.plugin.name,
                    timeout=hook.timeout,
                    source=loaded.plugin.name,
                    function=hook.run,
                )


class PythonPlugins:
    """Imports the packages that the user added as plugins. Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._imported: dict[tuple[str, str], tuple[Sequence[LoadedPlugin], str]] = {}

    def load(self) -> LoadedPlugins:
        """Return the enabled plugins. Runs their code: call it in a thread."""
        try:
            records = read_installed(self._folder)
        except ConfigError:  # reported by the search for other plugins
            return LoadedPlugins()
        plugins: dict[str, LoadedPlugin] = {}
        problems = []
        with self._lock:
            for name, record in records.items():
                if record.kind != "package" or not record.enabled:
                    continue
                key = name, record.digest
                if key not in self._imported:
                    self._imported[key] = self._import(name, record)
                imported, problem = self._imported[key]
                for candidate in imported:
                    if plugins.setdefault(candidate.plugin.name, candidate) is not candidate:
                        problem = f"{name}: another plugin is called {candidate.plugin.name}, too"
                problems += [problem] if problem else []
        return LoadedPlugins(tuple(plugins.values()), tuple(problems))

    def _import(self, name: str, record: Installed) -> tuple[Sequence[LoadedPlugin], str]:
        loaded = []
        try:
            for point, value in load_objects(name, record, self._folder / PACKAGES / name):
                plugin = checked(point, value)
                data = self._folder / DATA / name / plugin.name
                make_private_folder(data)
                loaded.append(LoadedPlugin(plugin, name, data, record.digest))
        except ConfigError as error:
            return (), str(error)
        except Exception as error:  # noqa: BLE001 - no error of a plugin may end a session
            _log.info("the plugin %s cannot be imported", name, exc_info=True)
            why = printable_line(f"{type(error).__name__}: {error}", 300)
            return (), f"{name}: its code fails ({why}); tell its authors, or remove it"
        return loaded, ""

    def driver(self, provider: Provider) -> Driver:
        """Return the driver of a provider of a plugin. Runs its code: call it in a thread.

        Raises:
            ConfigError: no plugin has this provider.
        """
        loaded = self.load()
        for plugin in loaded.plugins:
            for offered in plugin.plugin.models:
                if offered.name == provider.id:
                    return offered.driver(provider.key)
        why = f" ({'; '.join(loaded.problems)})" if loaded.problems else ""
        raise ConfigError(
            f"providers.{provider.id}.api: no plugin has a provider of this name{why}; add one "
            "with acp-agent plugin add"
        )


def checked(point: str, value: object) -> Plugin:
    """Return the plugin of an entry point after a check that it can be used. Raises ConfigError."""
    if not isinstance(value, Plugin):
        raise ConfigError(f"{point}: expected an object of the type acp_agent.api.Plugin")
    if value.api_version != API_VERSION:
        raise ConfigError(
            f"{value.name}: it is for version {value.api_version} of the interface, and this "
            f"program has {API_VERSION}; update one of them"
        )
    if _PLUGIN_NAME.fullmatch(value.name) is None:
        raise ConfigError(f"{point}: its name is not of lowercase letters, digits and hyphens")
    for tool in value.tools:
        if _TOOL_NAME.fullmatch(tool.name) is None or len(_full_name(value, tool)) > _MAX_NAME:
            raise ConfigError(
                f"{value.name}: the tool {printable_line(tool.name, 80)!r} has a name that models "
                f"do not take; use letters, digits, _ and -, at most {_MAX_NAME} with the plugin's"
            )
        try:
            ToolSchema(dict(tool.parameters))
        except UnusableSchemaError as error:
            raise ConfigError(f"{value.name}: the tool {tool.name}: {error}") from None
    return value


def _full_name(plugin: Plugin, tool: Tool) -> str:
    return f"{plugin.name}__{tool.name}"


class PluginTool(SchemaTool):
    """Calls a tool of a plugin. Each tool has a subclass, which has its name and kind."""

    loaded: ClassVar[LoadedPlugin]
    tool: ClassVar[Tool]

    def description(self) -> str:
        """Return the plugin's description of the tool."""
        return self.tool.description[:_MAX_DESCRIPTION]

    def title(self, arguments: JsonObject) -> str:
        """Return the names of the plugin and the tool."""
        del arguments
        return f"{self.loaded.plugin.name}: {self.tool.name}"

    def touches(self, params: SchemaArguments) -> Touches:
        """Return nothing for a granted tool that only reads; everything for others."""
        del params
        return NOTHING_IF_GRANTED if self.tool.reads_only else EVERYTHING

    async def prepare(self, params: SchemaArguments) -> Prepared:
        """Return the call, with its arguments as content and its access for the gate."""
        plugin, tool = self.loaded.plugin, self.tool
        definition = msgspec.json.encode([tool.description, tool.parameters, self.loaded.digest])
        return Prepared(
            title=self.title(params.values),
            run=functools.partial(self._run, params.values),
            access=McpAccess(
                server=plugin.name,
                tool=tool.name,
                identity=hashlib.sha256(f"plugin {plugin.name}".encode()).hexdigest(),
                definition=hashlib.sha256(definition).hexdigest(),
                read_only=tool.reads_only,
            ),
            content=arguments_content(params.values),
        )

    async def _run(self, arguments: JsonObject, progress: Progress) -> Outcome:
        context = _Context(self.workspace.cwd, self.loaded.data, progress)
        try:
            async with asyncio.timeout(self.tool.timeout):
                result = await self.tool.run(arguments, context)
        except TimeoutError:
            return Outcome(text=f"It took longer than {self.tool.timeout:g} s.", failed=True)
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - any error of a plugin fails the call
            _log.info("the tool %s failed", self.name, exc_info=True)
            return Outcome(text=f"It failed: {type(error).__name__}: {error}", failed=True)
        if isinstance(result, ToolResult):
            return Outcome(text=result.text, failed=result.failed)
        return Outcome(text=result)


class _Context:
    """The `ToolContext` of a call of a plugin's tool."""

    def __init__(self, cwd: Path, data: Path, progress: Progress) -> None:
        self.cwd = cwd
        self.data = data
        self._progress = progress

    async def output(self, text: str) -> None:
        await self._progress.output(text)

    async def ask(self, question: str) -> str | None:
        answer = await self._progress.ask(Question(text=question))
        return None if answer is None or answer.declined else answer.text


def _tool_class(loaded: LoadedPlugin, tool: Tool) -> type[PluginTool]:
    namespace: dict[str, Any] = {
        "name": _full_name(loaded.plugin, tool),
        "kind": "read" if tool.reads_only else "other",
        "effect": "reads" if tool.reads_only else "writes",
        "loaded": loaded,
        "tool": tool,
        "schema": ToolSchema(dict(tool.parameters)),
    }
    return type("PluginTool", (PluginTool,), namespace)

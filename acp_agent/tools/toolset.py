"""The tools of a session: their names, their definitions for the model, checks of arguments."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.apply_patch import ApplyPatchTool
from acp_agent.tools.ask_user import AskUserTool
from acp_agent.tools.background import BackgroundTool
from acp_agent.tools.base import AnyTool, SchemaArguments, SchemaTool
from acp_agent.tools.calls.argument_json import NotAnObjectError, read_arguments
from acp_agent.tools.calls.parameter_schemas import parameters_schema
from acp_agent.tools.edit import EditTool
from acp_agent.tools.glob import GlobTool
from acp_agent.tools.grep import GrepTool
from acp_agent.tools.list_folder import ListTool
from acp_agent.tools.read import ReadTool
from acp_agent.tools.shell import ShellTool
from acp_agent.tools.spec import ToolSpec
from acp_agent.tools.todo import TodoTool
from acp_agent.tools.web_fetch import WebFetchTool
from acp_agent.tools.write import WriteTool
from acp_agent.workspace.workspace import Workspace

if TYPE_CHECKING:
    from acp_agent.tools.calls.foreign_calls import ForeignCall
    from acp_agent.workspace.search_services import SearchService

_MAX_SHOWN_ERRORS = 5


class ResolvedCall(NamedTuple):
    """The tool that a call means and its parameters.

    `ignored` are fields of the call that the tool does not have; each is reported once a session.
    """

    tool: AnyTool
    params: BaseModel
    ignored: tuple[str, ...] = ()


class Toolset:
    """Tools in a fixed order. Raises ValueError if two of them have the same name."""

    def __init__(self, tools: Iterable[AnyTool]) -> None:
        self._tools: dict[str, AnyTool] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ValueError(f"two tools are named {tool.name}")
            self._tools[tool.name] = tool
        self._specs = [_spec(tool) for tool in self._tools.values() if tool.is_offered]
        self._reported_fields: set[tuple[str, str]] = set()  # ignored fields, by tool

    def with_tools(self, tools: Iterable[AnyTool]) -> Toolset:
        """These tools, then others; one whose name is taken already is left out."""
        combined = Toolset(())
        combined._reported_fields = self._reported_fields
        combined._tools, combined._specs = dict(self._tools), list(self._specs)
        for tool in tools:
            if tool.name not in combined._tools:
                combined._tools[tool.name] = tool
                if tool.is_offered:
                    combined._specs.append(_spec(tool))
        return combined

    def filtered(self, is_wanted: Callable[[str], bool]) -> Toolset:
        """Those of these tools whose names are wanted, in the same order."""
        subset = Toolset(())
        subset._reported_fields = self._reported_fields
        subset._tools = {
            name: tool
            for name, tool in self._tools.items()
            if all(map(is_wanted, tool.replaces_tools or (name,))) or tool.serves_deferred
        }
        if not any(tool.deferred for tool in subset._tools.values()):
            items = subset._tools.items()
            subset._tools = {name: tool for name, tool in items if not tool.serves_deferred}
        subset._specs = [spec for spec in self._specs if spec.name in subset._tools]
        return subset

    def replaced(self, replace: Callable[[AnyTool], AnyTool]) -> Toolset:
        """Tools that do something else in the place of these, and look alike to the model."""
        toolset = Toolset(())
        toolset._tools = {name: replace(tool) for name, tool in self._tools.items()}
        toolset._specs = self._specs
        return toolset

    def for_workspace(self, workspace: Workspace) -> Toolset:
        """Return the same tools for another workspace."""
        toolset = Toolset(())
        toolset._reported_fields = self._reported_fields
        toolset._tools = {name: _bind(tool, workspace) for name, tool in self._tools.items()}
        toolset._specs = self._specs
        return toolset

    def specs(self) -> list[ToolSpec]:
        """Return the tools for the model: the same bytes each time, for the provider's cache."""
        return list(self._specs)

    def get(self, name: str, values: JsonObject | None = None) -> AnyTool:
        """Return the tool with this name, or the one that other agents call by this name.

        Args:
            values: the arguments, which select the action of a tool with several.

        Raises:
            ToolError: there is no such tool; the message has the existing names.
        """
        tool = self._tools.get(name)
        if tool is not None:
            return tool
        from acp_agent.tools.calls.foreign_calls import resolve_tool  # noqa: PLC0415 - few calls need it

        resolved_name = resolve_tool(name, self._tools, values)
        if resolved_name is not None:
            return self._tools[resolved_name]
        names = f"the tools are {', '.join(spec.name for spec in self._specs)}"
        hint = _suggest(name, self._tools)
        if not name:
            raise ToolError("the call names no tool", advice=f"make it again with a name; {names}")
        raise ToolError(f"there is no tool {name!r}", advice=f"{hint} {names}" if hint else names)

    def resolve(self, name: str, arguments: str) -> ResolvedCall:
        """Return the tool that a call means, with its parameters.

        A call in the names of another agent, or with values of slightly other types, is converted
        if its meaning is certain.

        Raises:
            ToolError: there is no such tool, or the arguments are wrong; the message says how to
                correct them.
        """
        tool, values = self._read_call(name, arguments)
        if tool.name == name and not _is_list(values.get("path")):
            with suppress(ValidationError, ToolError):  # perhaps with the names of another agent
                return ResolvedCall(*_split_paths(tool, _validate(tool, values)))
        calls = self._translate(name, tool, values)
        if calls[0].tool != tool.name:
            tool = self.get(calls[0].tool)
        try:
            params = [_validate(tool, call.values) for call in calls]
        except ValidationError as error:
            raise _validation_error(tool, error) from error
        fields = dict.fromkeys(field for call in calls for field in call.ignored)
        new = [field for field in fields if (tool.name, field) not in self._reported_fields]
        self._reported_fields.update((tool.name, field) for field in new)
        if len(params) == 1:
            return ResolvedCall(*_split_paths(tool, params[0]), tuple(new))
        return ResolvedCall(*_batch(tool, params), tuple(new))

    def call_title(self, name: str, arguments: str) -> tuple[str, ToolKind]:
        """Return a title and a kind for a call whose tool or arguments may be wrong."""
        try:
            tool, values = self._read_call(name, arguments)
            suffix = ""
            if tool.name != name or not values.keys() <= tool.params.model_fields.keys():
                calls = self._translate(name, tool, values)
                tool, values = self.get(calls[0].tool), calls[0].values
                suffix = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
            return f"{tool.title(values)}{suffix}", tool.call_kind(values)
        except ToolError:
            pass
        try:
            tool = self.get(name)
        except ToolError:
            return name or "Unnamed tool", "other"
        return tool.title({}), tool.kind

    def _read_call(self, name: str, arguments: str) -> tuple[AnyTool, JsonObject]:
        """Return the tool of a call and its arguments, whatever names the model used."""
        tool = self._tools.get(name)
        try:
            values = read_arguments(arguments)
        except NotAnObjectError as error:
            tool = tool or self.get(name)
            match error.value:
                case [dict() as values]:
                    pass
                case None:
                    values = {}
                case _:
                    raise ToolError(
                        f"the arguments of {tool.name} must be a JSON object, "
                        f"not {_describe_value(error.value)}",
                        advice="write them again as one JSON object",
                        shown=f"the model called {tool.name} with wrong arguments",
                    ) from error
        except ValueError as error:
            tool = tool or self.get(name)
            if tool.name == "apply_patch" and arguments.lstrip().startswith("***"):
                return tool, {"input": arguments}  # their tool takes plain text
            advice = f"write them again as one JSON object with {', '.join(_parameter_names(tool))}"
            message = f"the arguments of {tool.name} are not valid JSON ({error})"
            raise ToolError(message, advice=advice) from error
        if "tool_uses" in values:
            from acp_agent.tools.calls.foreign_calls import only_call  # noqa: PLC0415 - likewise

            name, values = only_call(name, values)
        tool = tool or self._tools.get(name) or self.get(name, values)
        if (forwarded := tool.forwarded(values)) is not None:
            name, values = forwarded
            tool = self.get(name)
        return tool, values

    def _translate(self, name: str, tool: AnyTool, values: JsonObject) -> list[ForeignCall]:
        from acp_agent.tools.calls import foreign_calls, value_types  # noqa: PLC0415 - likewise

        if isinstance(tool, SchemaTool):  # its fields are defined by another program
            schema = self._schema(tool.name)
            values = foreign_calls.unwrap_arguments(values, schema.get("properties", {}))
            values = value_types.coerce_values(values, schema)
            return [foreign_calls.ForeignCall(tool=tool.name, values=values)]
        return foreign_calls.translate_calls(name, tool.name, values, self._schema)

    def _schema(self, name: str) -> JsonObject:
        """Return the parameters of a tool as a JSON Schema."""
        schema = next((spec.parameters for spec in self._specs if spec.name == name), None)
        return schema or parameters_schema(self.get(name).params)


def _split_paths(tool: AnyTool, params: BaseModel) -> tuple[AnyTool, BaseModel]:
    """Return a call for each path of a text that lists several, for a tool that reads."""
    path = getattr(params, "path", None)
    if tool.name not in {"read", "list", "grep"} or not isinstance(path, str):
        return tool, params
    paths = tool.workspace.files.listed_paths(path)
    if not paths:
        return tool, params
    return _batch(tool, [params.model_copy(update={"path": each}) for each in paths])


def _batch(tool: AnyTool, params: Sequence[BaseModel]) -> tuple[AnyTool, BaseModel]:
    from acp_agent.tools.calls.batches import batch  # noqa: PLC0415 - few calls need it

    return batch(tool, params)


def _is_list(value: object) -> bool:
    """Return whether a value is a list, perhaps as JSON text."""
    return isinstance(value, list) or (isinstance(value, str) and value.startswith('["'))


def _validate(tool: AnyTool, values: JsonObject) -> BaseModel:
    """Arguments as the tool's parameters; raises a ToolError or a ValidationError."""
    if isinstance(tool, SchemaTool):
        values = tool.own_names(values)
        mistakes = tool.mistakes(values)
        if mistakes:
            raise _wrong_arguments(tool, mistakes, tool.parameters().get("properties", {}))
        return SchemaArguments(values=values)
    return tool.params.model_validate(values)


def core_tools(
    workspace: Workspace,
    *,
    shell: AnyTool | None = None,
    search_service: SearchService | None = None,
) -> Toolset:
    """Return the tools that every session has, for its workspace.

    Args:
        workspace: the files, processes and network of the session.
        shell: the shell tool; None for one with the default time limit.
        search_service: the service that searches the web, if any.
    """
    tools = Toolset(
        (
            ReadTool(workspace),
            WriteTool(workspace),
            EditTool(workspace),
            ListTool(workspace),
            GlobTool(workspace),
            GrepTool(workspace),
            shell or ShellTool(workspace),
            BackgroundTool(workspace),
            WebFetchTool(workspace),
            TodoTool(workspace),
            AskUserTool(workspace),
            ApplyPatchTool(workspace),
        )
    )
    if search_service is None:
        return tools
    from acp_agent.tools.web_search import WebSearchTool  # noqa: PLC0415 - where there is a service

    return tools.with_tools([WebSearchTool(workspace, search_service)])


def _bind(tool: AnyTool, workspace: Workspace) -> AnyTool:
    clone = copy.copy(tool)
    clone.workspace = workspace
    return clone


def _spec(tool: AnyTool) -> ToolSpec:
    if isinstance(tool, SchemaTool):
        parameters = tool.parameters()
    else:
        parameters = parameters_schema(tool.params)
    return ToolSpec(name=tool.name, description=tool.description(), parameters=parameters)


def _parameter_names(tool: AnyTool) -> Iterable[str]:
    """Return the names of a tool's parameters."""
    if isinstance(tool, SchemaTool):
        names: Iterable[str] = tool.parameters().get("properties", {})
        return names
    return tool.params.model_fields


def _wrong_arguments(tool: AnyTool, mistakes: Sequence[str], names: Iterable[str]) -> ToolError:
    return ToolError(
        f"wrong arguments of {tool.name}: {'; '.join(mistakes)}",
        advice=f"its parameters are {', '.join(names)}",
        shown=f"the model called {tool.name} with wrong arguments",
    )


def _validation_error(tool: AnyTool, error: ValidationError) -> ToolError:
    details = error.errors(include_url=False, include_context=False)
    mistakes = [_describe_error(tool, detail) for detail in details[:_MAX_SHOWN_ERRORS]]
    if len(details) > _MAX_SHOWN_ERRORS:
        mistakes.append(f"and {len(details) - _MAX_SHOWN_ERRORS} more")
    return _wrong_arguments(tool, mistakes, parameters_schema(tool.params)["properties"])


def _describe_error(tool: AnyTool, detail: ErrorDetails) -> str:
    path = ".".join(str(step) for step in detail["loc"])
    if detail["type"] == "extra_forbidden":
        suggestion = _suggest(path, tool.params.model_fields) if len(detail["loc"]) == 1 else ""
        return f"{path[:80]!r} is not a parameter{f' ({suggestion})' if suggestion else ''}"
    if detail["type"] == "missing":
        return f"{path} is required"
    message = detail["msg"].removeprefix("Input ").removeprefix("Value error, ")
    input_value = detail["input"]
    value = repr(input_value[:60]) if isinstance(input_value, str) else _describe_value(input_value)
    return f"{path} {message[:1].lower()}{message[1:]} (it is {value})"


def _describe_value(value: object) -> str:
    """Return the kind of a JSON value as text, with the value if it is short."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"[:40]
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def _suggest(name: str, names: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name.lower(), list(names), n=1, cutoff=0.4)
    matches = matches or [candidate for candidate in names if candidate in name.lower()]
    return f"did you mean {matches[0]!r}?" if matches else ""

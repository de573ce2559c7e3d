"""The effect of a call as calls of our tools: one for each file and each replacement."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError, WorkspaceError
from acp_agent.permissions.access import Access, WriteAccess
from acp_agent.tools.apply_patch import PatchParams
from acp_agent.tools.base import AnyTool, SchemaArguments
from acp_agent.tools.calls.batches import Batch, BatchParams
from acp_agent.tools.edit import EditFilesParams, EditParams, EditTool
from acp_agent.tools.file_changes import FileTool


class EffectiveCall(NamedTuple):
    """A call of one of our tools, or of a server's: its name and arguments."""

    tool: str
    arguments: JsonObject


def effective_calls(tool: AnyTool, params: BaseModel, access: Access) -> list[EffectiveCall]:
    """Return the effect of a call, whatever names the model used for the tool and its fields.

    Paths are absolute, with links resolved, in the form that the editor uses.

    Args:
        access: the access of the prepared call.
    """
    if isinstance(params, SchemaArguments):
        return [EffectiveCall(tool.name, params.values)]
    if isinstance(params, PatchParams) and isinstance(access, WriteAccess):
        files = tool.workspace.files
        paths = [str(files.editor_path(Path(path))) for path in access.paths]
        return [EffectiveCall(tool.name, {"path": path, "input": params.input}) for path in paths]
    if isinstance(tool, Batch) and isinstance(params, BatchParams):
        return [call for each in params.calls for call in _file_calls(tool.tool, each)]
    if isinstance(params, EditFilesParams):
        edit = EditTool(tool.workspace)
        return [call for each in params.files for call in _file_calls(edit, each)]
    return _file_calls(tool, params)


def changed_params(tool: AnyTool, params: BaseModel, parts: Sequence[JsonObject]) -> BaseModel:
    """Return the parameters of a call with other arguments for its parts.

    Args:
        params: the call's parameters, of which `effective_calls` has as many parts.

    Raises:
        ToolError: the arguments are wrong, or name another file for one of several replacements.
    """
    try:
        return _changed_params(tool, params, parts)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise ToolError(f"a hook's arguments are wrong: {where}: {first['msg']}") from None


def _changed_params(tool: AnyTool, params: BaseModel, parts: Sequence[JsonObject]) -> BaseModel:
    if isinstance(params, PatchParams):
        inputs = (part.get("input") for part in parts)
        changed = next((text for text in inputs if text != params.input), params.input)
        return PatchParams.model_validate({"input": changed})
    if isinstance(tool, Batch) and isinstance(params, BatchParams):
        return BatchParams(calls=tuple(map(tool.tool.params.model_validate, parts)))
    files = params.files if isinstance(params, EditFilesParams) else (params,)
    edited, remaining = [], list(parts)
    for file in files:
        count = 1 + len(getattr(file, "more", ()))
        first, *more = map(dict, remaining[:count])
        del remaining[:count]
        paths = [part.pop("path", None) for part in more]
        if any(path != first.get("path") for path in paths):
            raise ToolError("a hook names another file for one of several replacements")
        edited.append(EditParams.model_validate({**first, "more": more}))
    return edited[0] if isinstance(params, EditParams) else EditFilesParams(files=tuple(edited))


def _file_calls(tool: AnyTool, params: BaseModel) -> list[EffectiveCall]:
    """Return the call of a tool for at most one file; an edit has one for each replacement."""
    path = _real_path(tool, params)
    more = params.more if isinstance(params, EditParams) else ()
    arguments = params.model_dump(mode="json", exclude_unset=True, exclude={"more"}) | path
    items = [item.model_dump(mode="json", exclude_unset=True) | path for item in more]
    return [EffectiveCall(tool.name, each) for each in (arguments, *items)]


def _real_path(tool: AnyTool, params: BaseModel) -> JsonObject:
    path = getattr(params, "path", None)
    if not isinstance(path, str) or not path:
        return {}
    files, writes = tool.workspace.files, isinstance(tool, FileTool)
    with suppress(ToolError, WorkspaceError):
        cleaned = tool.cleaned_path(params) if isinstance(tool, FileTool) else path
        return {"path": str(files.editor_path(files.resolve(cleaned, to_read=not writes)))}
    return {}

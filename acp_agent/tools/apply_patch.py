"""Apply a patch to several files, for models that call `apply_patch` although it is not offered."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Literal

from acp_agent.content import JsonObject
from acp_agent.errors import MissingFileError, ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.editing.patches import FILE_LINE, FilePatch, apply_hunks, parse_patch
from acp_agent.tools.editing.placeholders import refuse_placeholder
from acp_agent.tools.editing.replace import EditResult
from acp_agent.tools.file_changes import Change, apply_changes, count_lines, prepare_changes
from acp_agent.workspace.file_io import TextFile, display_name, display_path, file_kind


class PatchParams(ToolParams):
    """The text of the patch."""

    input: str


class ApplyPatchTool(Tool[PatchParams]):
    """Changes, creates, renames and deletes the files that a patch names, all or none."""

    name: ClassVar[str] = "apply_patch"
    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[PatchParams]] = PatchParams
    replaces_tools: ClassVar[tuple[str, ...]] = ("edit", "write")

    def description(self) -> str:
        """Return "": no model is offered the tool."""
        return ""

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Edit a.py and 2 more files"."""
        text = arguments.get("input")
        headers = FILE_LINE.findall(text) if isinstance(text, str) else []
        deletes = bool(headers) and all(kind == "Delete" for kind, _ in headers)
        return _title([path for _, path in headers], deletes=deletes)

    def touches(self, params: PatchParams) -> Touches:
        """Return all files of the patch."""
        paths = [
            path
            for file in parse_patch(params.input)
            for path in (self._path(file), self._new_path(file))
            if path
        ]
        return Touches(writes=tuple(str(self.workspace.files.resolve(path)) for path in paths))

    async def prepare(self, params: PatchParams) -> Prepared:
        """Locate all hunks and make the diffs."""
        files = self.workspace.files
        patches = parse_patch(params.input)
        changes = [await self._change(file) for file in patches]
        title = _title(
            [change.display_path for change in changes],
            deletes=all(change.deleted for change in changes),
        )

        def describe(change: Change) -> str:
            if change.deleted:
                return f"{change.display_path} deleted."
            if change.source is not None:
                old_name = display_path(change.source, files.roots[0])
                return f"{old_name} renamed to {change.display_path}."
            if change.before is None:
                return f"{change.display_path} created, {count_lines(change.result.text)}."
            return f"{change.display_path} edited, from line {change.result.line} on."

        async def run(_: Progress) -> Outcome:
            return await apply_changes(changes, files, describe)

        return prepare_changes(changes, title=title, run=run)

    def _path(self, file: FilePatch) -> str:
        return self.workspace.files.clean_path(file.path, existing=file.content is None)

    def _new_path(self, file: FilePatch) -> str:
        if not file.new_path:
            return ""
        return self.workspace.files.clean_path(file.new_path, existing=False)

    async def _change(self, file: FilePatch) -> Change:
        files = self.workspace.files
        requested_path = self._path(file)
        path = files.resolve(requested_path)
        label = display_path(path, files.roots[0])
        new_path = self._new_path(file)
        if new_path:
            await self._require_free(new_path)
        try:
            before = await files.read_text(path)
        except MissingFileError as error:
            if file.content is None:
                raise await files.with_suggestions(error, path) from error
            before = None
        if file.content is not None:
            if before is not None:
                raise ToolError(
                    f"{label} exists already", advice="change it with *** Update File: or `edit`"
                )
            await asyncio.to_thread(refuse_placeholder, file.content, "")
            result = EditResult(file.content, 1, (("", file.content),))
        elif file.deleted:
            assert before is not None
            result = EditResult("", 1, ((before.text, ""),))
        elif not file.hunks:
            assert before is not None
            result = EditResult(before.text, 1, ())
        else:
            assert before is not None
            result = await asyncio.to_thread(apply_hunks, before, file.hunks, label)
            for hunk in file.hunks:
                await asyncio.to_thread(refuse_placeholder, "\n".join(hunk.new), before.text)

        def redo(current: TextFile) -> EditResult:
            return apply_hunks(current, file.hunks, label)

        target = files.resolve(new_path) if new_path else path
        return Change(
            requested_path=new_path or requested_path,
            path=target,
            editor_path=files.editor_path(target),
            display_path=display_path(target, files.roots[0]),
            before=before,
            result=result,
            redo=redo if before is not None and file.hunks else None,
            deleted=file.deleted,
            source=path if new_path else None,
            requested_source=requested_path if new_path else "",
        )

    async def _require_free(self, new_path: str) -> None:
        """Raise ToolError if something exists at the new path of a file."""
        files = self.workspace.files
        path = files.resolve(new_path)
        if await asyncio.to_thread(file_kind, path) is not None:
            raise ToolError(
                f"{display_path(path, files.roots[0])} exists already",
                advice="choose a name that is free",
            )


def _title(paths: list[str], *, deletes: bool) -> str:
    if not paths:
        return "Edit files"
    extra = len(paths) - 1
    suffix = f" and {extra} more file{'' if extra == 1 else 's'}" if extra else ""
    name = display_name(paths[0])
    return f"Delete {name}{suffix}" if deletes else f"Edit {name}{suffix}"

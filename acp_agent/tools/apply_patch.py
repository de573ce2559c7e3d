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
from acp_agent.workspace.file_io import TextFile, display_name, display_path


class PatchParams(ToolParams):
    """The patch, as its text."""

    input: str


class ApplyPatchTool(Tool[PatchParams]):
    """Changes and creates the files that a patch names, all or none."""

    name: ClassVar[str] = "apply_patch"
    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[PatchParams]] = PatchParams
    stands_for: ClassVar[tuple[str, ...]] = ("edit", "write")

    def description(self) -> str:
        """No model is offered the tool."""
        return ""

    def title(self, arguments: JsonObject) -> str:
        """For instance "Edit a.py and 2 more files"."""
        text = arguments.get("input")
        headers = FILE_LINE.findall(text) if isinstance(text, str) else []
        return _title([path for _, path in headers])

    def touches(self, params: PatchParams) -> Touches:
        """All files of the patch."""
        paths = [self._path(file) for file in parse_patch(params.input)]
        return Touches(writes=tuple(str(self.workspace.files.resolve(path)) for path in paths))

    async def prepare(self, params: PatchParams) -> Prepared:
        """Find the places of all hunks and make the diffs."""
        files = self.workspace.files
        patches = parse_patch(params.input)
        changes = [await self._change(file) for file in patches]
        title = _title([change.display_path for change in changes])

        def describe(change: Change) -> str:
            if change.before is None:
                return f"{change.display_path} created, {count_lines(change.result.text)}."
            return f"{change.display_path} edited, from line {change.result.line} on."

        async def run(_: Progress) -> Outcome:
            return await apply_changes(changes, files, describe)

        return prepare_changes(changes, title=title, run=run)

    def _path(self, file: FilePatch) -> str:
        return self.workspace.files.clean_path(file.path, existing=file.content is None)

    async def _change(self, file: FilePatch) -> Change:
        files = self.workspace.files
        requested_path = self._path(file)
        path = files.resolve(requested_path)
        label = display_path(path, files.roots[0])
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
        else:
            assert before is not None
            result = await asyncio.to_thread(apply_hunks, before, file.hunks, label)
            for hunk in file.hunks:
                await asyncio.to_thread(refuse_placeholder, "\n".join(hunk.new), before.text)

        def redo(current: TextFile) -> EditResult:
            return apply_hunks(current, file.hunks, label)

        return Change(
            requested_path=requested_path,
            path=path,
            editor_path=files.editor_path(path),
            display_path=label,
            before=before,
            result=result,
            redo=redo if before is not None else None,
        )


def _title(paths: list[str]) -> str:
    if not paths:
        return "Edit files"
    extra = len(paths) - 1
    suffix = f" and {extra} more file{'' if extra == 1 else 's'}" if extra else ""
    return f"Edit {display_name(paths[0])}{suffix}"

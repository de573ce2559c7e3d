"""Create or overwrite a text file."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar

from pydantic import Field

from acp_agent.errors import MissingFileError
from acp_agent.tools.base import Outcome, Prepared, Progress
from acp_agent.tools.editing.escapes import (
    decode_entities,
    decode_line_escapes,
    refuse_decoded_backslash,
)
from acp_agent.tools.editing.indentation import with_recipe_tabs
from acp_agent.tools.editing.new_text import without_call_tags, without_fence
from acp_agent.tools.editing.placeholders import refuse_placeholder
from acp_agent.tools.editing.replace import EditResult
from acp_agent.tools.file_changes import (
    Change,
    FileParams,
    FileTool,
    apply_change,
    count_lines,
    prepare_change,
)
from acp_agent.tools.notebooks.cells import is_notebook
from acp_agent.workspace.file_io import BYTE_ORDER_MARK, with_lf, with_newline


class WriteParams(FileParams):
    """The write tool's parameters."""

    content: Annotated[str, Field(description="The whole text.")]


class WriteTool(FileTool[WriteParams]):
    """Writes a file of the session's folders."""

    name: ClassVar[str] = "write"
    params: ClassVar[type[WriteParams]] = WriteParams

    async def prepare(self, params: WriteParams) -> Prepared:
        """Compare with the file as it is; replacing one demands that the model has seen it."""
        files = self.workspace.files
        requested_path = self.cleaned_path(params)
        path, display_path = self.target(requested_path)
        try:
            before = await files.check_unchanged(path)
        except MissingFileError:
            before = None
        text, corrections = await asyncio.to_thread(
            _corrected, params.content, before.text if before else "", display_path
        )
        line = await asyncio.to_thread(_first_difference, before.text, text) if before else 1
        result = EditResult(with_newline(text, before.newline) if before else text, line, ())
        if is_notebook(path.name):
            from acp_agent.tools.notebooks.edits import write_notebook  # noqa: PLC0415 - rare

            old = before.text if before else ""
            notebook = await asyncio.to_thread(write_notebook, old, text)
            result = notebook if notebook is not None else result
        change = Change(
            requested_path=requested_path,
            path=path,
            editor_path=files.editor_path(path),
            display_path=display_path,
            before=before,
            result=result,
        )
        message = f"{display_path} {'replaced' if before else 'created'}, {count_lines(text)}."
        message += corrections

        async def run(_: Progress) -> Outcome:
            return await apply_change(change, files, lambda _: message)

        return prepare_change(
            change, title=f"{'Write' if before else 'Create'} {display_path}", run=run
        )


def _corrected(content: str, before: str, display_path: str) -> tuple[str, str]:
    """Return the text that was meant, and what was corrected, for the model.

    Raises:
        ToolError: text is left out.
    """
    given = content.removeprefix(BYTE_ORDER_MARK)
    unfenced = without_fence(given, display_path)
    bare = without_call_tags(unfenced, before)
    unescaped = decode_line_escapes(bare, display_path)
    decoded = decode_entities(unescaped, display_path)
    text = with_recipe_tabs(decoded, display_path)
    corrections = (
        " Removed: the code fence around the text." if unfenced != given else "",
        " Removed: the tags of the call around the text." if bare != unfenced else "",
        " Decoded: the escapes of all lines." if unescaped != bare else "",
        " Decoded: the HTML entities of the whole text." if decoded != unescaped else "",
        " Converted: spaces before recipes to tabs." if text != decoded else "",
    )
    refuse_placeholder(text, before)
    refuse_decoded_backslash(text, before)
    return text, "".join(corrections)


def _first_difference(old: str, new: str) -> int:
    """Return the number of the first line that differs, from 1."""
    old_lines, new_lines = with_lf(old).split("\n"), with_lf(new).split("\n")
    pairs = zip(old_lines, new_lines, strict=False)
    common_length = min(len(old_lines), len(new_lines))
    return next((number for number, (a, b) in enumerate(pairs, 1) if a != b), common_length)

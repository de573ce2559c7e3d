"""Read answers that consist of calls without tags: Python, a list, a name before JSON, a patch."""

from __future__ import annotations

import re
from collections.abc import Callable

from acp_agent.models.dialects.form import Tools, WrittenCall

LONGEST_HEAD = 1_000  # characters that show whether an answer is a call without tags
_LONGEST = 64 * 1024
_PYTHON = re.compile(
    r"\s*(?:```(?:tool_code|tool_call)\s*\n)?\s*\[?\s*(?:print\()?(?:default_api\.)?(\w+)\("
)
_ANSWER_OPENERS = ("```tool_code", "print(default_api.", "functools[")  # the whole answer is a call
# GLM 4 and ChatGLM write a name and JSON on the next line, Functionary marks the name.
_MARK = ">>>"
_NAME_LINE = re.compile(r"\s*(?:>>>)?\s*([\w.-]{1,128})[ \t]*\n\s*(?=\{)")
# A patch alone is a call of `apply_patch`, which several makers train their models with.
_PATCH_OPENERS = ("*** Begin Patch\n", "diff --git ", "--- ")
_CODEX_PATCH = re.compile(r"\*\*\* Begin Patch\n.*\n\*\*\* End Patch", re.DOTALL)
_GIT_LINE = r"(?:diff --git|index|old mode|new mode|new file mode|deleted file mode) .*"
_UNIFIED_DIFF = re.compile(
    rf"(?:{_GIT_LINE}\n)*--- \S.*\n\+\+\+ \S.*(?:\n@@.*(?:\n(?:[-+ \\].*|{_GIT_LINE})?)*)+"
)
_EDIT_MARKS = (" SEARCH\n", " ORIGINAL\n")
_NAME_PART = re.compile(r"([\w.-]{1,128})[ \t]*(?:\n\s*)?")


def may_be_calls(answer: str, tools: Callable[[], Tools]) -> bool:
    """Return whether a whole answer may be calls, given its beginning."""
    if len(answer) > _LONGEST:
        return False
    text = answer[:LONGEST_HEAD].lstrip()
    if _may_be_patch(text):
        return True
    if any(
        text.startswith(opener) or opener.startswith(text) for opener in (*_ANSWER_OPENERS, _MARK)
    ):
        return not text.startswith(_MARK) or _may_start_named_call(text.removeprefix(_MARK), tools)
    word = text.removeprefix("[").lstrip()
    if not word or word.isidentifier():
        return any(tool.name.startswith(word) for tool in tools())
    match = _PYTHON.match(text[:200])
    return (match is not None and match[1] in tools()) or _may_start_named_call(text, tools)


def _may_be_patch(text: str) -> bool:
    if not any(text.startswith(mark) or mark.startswith(text) for mark in _PATCH_OPENERS):
        return False
    first, _, second = text.partition("\n")
    return not first.startswith("--- ") or "+++ ".startswith(second[:4])


def _may_start_named_call(text: str, tools: Callable[[], Tools]) -> bool:
    match = _NAME_LINE.match(text)
    if match is not None:
        return match[1] in tools()
    head = text.lstrip()
    part = _NAME_PART.fullmatch(head)
    if part is None:
        return not head
    is_complete = part.end(1) < len(head)
    return any(
        tool.name == part[1] if is_complete else tool.name.startswith(part[1]) for tool in tools()
    )


def read_whole(answer: str, tools: Tools) -> list[WrittenCall]:
    """Return the calls of which an answer consists; empty if it has other content."""
    from acp_agent.models.dialects.json_calls import read_calls  # noqa: PLC0415 - rarely needed
    from acp_agent.models.dialects.json_text import encode  # noqa: PLC0415 - rarely needed
    from acp_agent.models.dialects.python_calls import read_python_calls  # noqa: PLC0415

    text = answer.strip()
    if text.startswith(_PATCH_OPENERS):
        is_patch = _CODEX_PATCH.fullmatch(text) or _UNIFIED_DIFF.fullmatch(text)
        if not is_patch or "apply_patch" not in tools:
            return []
        return [WrittenCall(name="apply_patch", arguments=encode({"input": text}))]
    if text.startswith("functools["):
        return read_calls(text.removeprefix("functools"), tools, strict=True)
    return read_python_calls(text, tools) or _read_named_calls(text, tools)


class EditAnswer:
    """An answer that is only blocks of SEARCH and REPLACE that name their files.

    Unlike other calls, it is shown while it is written. It is kept only if it begins as one.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._dropped = False

    def add(self, text: str) -> None:
        """Add a piece of the answer."""
        if self._dropped or not text:
            return
        if self._size <= LONGEST_HEAD < self._size + len(text) or len(text) > LONGEST_HEAD:
            self._pieces = ["".join([*self._pieces, text])]
            self._dropped = not _has_edits(self._pieces[0])
        else:
            self._pieces.append(text)
        self._size += len(text)
        if self._dropped or self._size > _LONGEST:
            self._pieces, self._dropped = [], True

    def calls(self, known_tools: Callable[[], Tools]) -> list[WrittenCall]:
        """Return the calls; empty if the answer is anything else."""
        text = "".join(self._pieces).strip()
        if not _has_edits(text):
            return []
        from acp_agent.models.dialects.json_text import encode  # noqa: PLC0415 - rarely needed
        from acp_agent.tools.calls.edit_blocks import read_blocks  # noqa: PLC0415 - as above

        try:
            blocks = read_blocks(text)
        except ValueError:
            return []  # there is other text
        arguments = encode({"diff": text})
        is_edit = bool(blocks[0].path) and "edit" in known_tools()
        return [WrittenCall(name="edit", arguments=arguments)] if is_edit else []


def _has_edits(text: str) -> bool:
    return any(mark in text for mark in _EDIT_MARKS)


def _read_named_calls(text: str, tools: Tools) -> list[WrittenCall]:
    from acp_agent.models.dialects.json_calls import read_arguments  # noqa: PLC0415 - as above
    from acp_agent.models.dialects.json_text import value_end  # noqa: PLC0415 - as above

    calls: list[WrittenCall] = []
    at = 0
    while at < len(text):
        match = _NAME_LINE.match(text, at)
        end = value_end(text, match.end()) if match is not None else None
        if match is None or end is None or match[1] not in tools:
            return []
        call = read_arguments(match[1], text[match.end() : end])
        if call.problem:
            return []
        calls.append(call)
        at = end
    return calls

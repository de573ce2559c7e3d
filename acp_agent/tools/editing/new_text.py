"""Correct the new text of an edit or a write: what encloses it, and escapes that JSON decoded."""

from __future__ import annotations

import re
from pathlib import PurePath

from acp_agent.tools.editing.escapes import restore_lost_escapes
from acp_agent.tools.editing.indentation import with_recipe_tabs


def _tag_patterns(names: str) -> tuple[re.Pattern[str], ...]:
    """Return patterns of a text within a tag with one of these names, or within CDATA."""
    return tuple(
        re.compile(pattern, re.DOTALL | re.IGNORECASE)
        for pattern in (
            rf"\s*<(?P<tag>{names})(?: [^<>]*)?>\n?(?P<text>.*)</(?P=tag)>\s*",
            r"\s*<!\[(?P<tag>CDATA)\[\n?(?P<text>.*)\]\]>\s*",
        )
    )


# Tags of a call around a text, as Claude and Zed ask for edits.
_TAGS = _tag_patterns(r"(?:old|new|search|replace|find)(?:_?(?:text|str|string|content|code))?")
_NEW_TAGS = _tag_patterns("new_(?:text|str|string|content|code)")
# Closing tags of a call, and tokens of a model's template.
_END_TAG = re.compile(
    r"<(?:/((?:new|old)_(?:text|str|string)|arg_value|content|file_text|function(?:_calls)?|invoke"
    r"|parameter|tool_call|s)|(\|[a-z_]+\|))>\Z"
)
_MAX_END_TAGS = 8
_MAX_END_TAG_LENGTH = 20
_FENCED = re.compile(r"(?:```[\w+#.-]*\n)?(?P<text>(?:(?!```)[^\n]*\n)+)(?:```\s*)?")
PROSE_SUFFIXES = frozenset(
    {"", ".md", ".mdx", ".markdown", ".qmd", ".rmd", ".rst", ".adoc", ".txt"}
)


def correct_new_text(
    old: str, new: str, text: str, display_path: str
) -> tuple[str, tuple[str, ...]]:
    """Return the new text of an edit as it was meant, and notes that say what was corrected."""
    notes: list[str] = []
    bare = without_call_tags(new, old, text)
    if "```" not in old and "```" not in text:
        bare = without_fence(bare, display_path)
    if bare != new:
        notes.append("what encloses `new`")
        bare = bare if old.endswith("\n") else bare.removesuffix("\n")
    restored = restore_lost_escapes(old, bare, display_path) if old in text else bare
    if restored != bare:
        notes.append("escapes")
    if with_recipe_tabs(old, display_path) == old:
        tabbed = with_recipe_tabs(restored, display_path)
        notes += ["indentation"] if tabbed != restored else []
        restored = tabbed
    return restored, tuple(notes)


def without_call_tags(text: str, *before: str) -> str:
    """Return a new text without the tags of a call around it or at its end.

    Args:
        before: texts that may have such tags, such as the file as it is.
    """
    body, names = split_tags(text, is_new=True)
    for name in names:
        # A text with another token is about tokens.
        opening = "<|" if name.startswith("|") else f"<{name}"
        marks = (opening, f"{name}>", f"[{name}[")
        if marks[0] in body or any(mark in each for mark in marks for each in before):
            return text
    return body


def split_tags(text: str, *, is_new: bool = False) -> tuple[str, set[str]]:
    """Return a text without the tags of a call around it or at its end, and their names.

    Args:
        is_new: whether only tags count that enclose a new text.
    """
    for pattern in _NEW_TAGS if is_new else _TAGS:
        if tagged := pattern.fullmatch(text):
            return tagged["text"], {tagged["tag"]}
    names: set[str] = set()
    body = text
    for _ in range(_MAX_END_TAGS):
        stripped = body.rstrip()
        tag = _END_TAG.search(stripped, max(0, len(stripped) - _MAX_END_TAG_LENGTH))
        if tag is None or not tag.start():
            break
        names.add(tag[1] or tag[2])
        body = stripped[: tag.start()]
    return body, names


def without_fence(text: str, display_path: str) -> str:
    """Return a text without a code fence around it or at one end; Markdown as it is."""
    fenced = _FENCED.fullmatch(text)
    is_code = PurePath(display_path).suffix.lower() not in PROSE_SUFFIXES
    return fenced["text"] if fenced and is_code else text

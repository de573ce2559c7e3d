"""Correct the new text of an edit or a write: tags of the call, and escapes that JSON decoded."""

from __future__ import annotations

import re

from acp_agent.tools.editing.escapes import restore_lost_escapes

_NEW_TAG = re.compile(
    r"\s*<(?P<tag>new_(?:text|str|string|content|code))>(.*)</(?P=tag)>\s*", re.DOTALL
)
_CDATA = re.compile(r"\s*<!\[CDATA\[\n?(.*)\]\]>\s*", re.DOTALL)
_END_TAG = re.compile(
    r"</((?:new|old)_(?:text|str|string)|arg_value|content|file_text|function(?:_calls)?|invoke"
    r"|parameter|tool_call)>\Z"
)
_MAX_END_TAGS = 8
_MAX_END_TAG_LENGTH = 20


def correct_new_text(
    old: str, new: str, text: str, display_path: str
) -> tuple[str, tuple[str, ...]]:
    """Return the new text of an edit as it was meant, and notes that say what was corrected."""
    notes: list[str] = []
    bare = without_call_tags(new, old, text)
    if bare != new:
        notes.append("what encloses `new`")
        bare = bare if old.endswith("\n") else bare.removesuffix("\n")
    restored = restore_lost_escapes(old, bare, display_path) if old in text else bare
    if restored != bare:
        notes.append("escapes")
    return restored, tuple(notes)


def without_call_tags(text: str, *before: str) -> str:
    """Return a new text without the tags of a call around it or at its end.

    Args:
        before: texts that may have such tags, such as the file as it is.
    """
    if (tagged := _NEW_TAG.fullmatch(text)) and not any(tagged["tag"] in each for each in before):
        return tagged[2].strip("\n") if "\n" in tagged[2] else tagged[2]
    if (cdata := _CDATA.fullmatch(text)) and not any("<![CDATA[" in each for each in before):
        return cdata[1]
    body, names = without_end_tags(text)
    if any(f"<{name}" in text or f"{name}>" in each for name in names for each in before):
        return text
    return body


def without_end_tags(text: str) -> tuple[str, set[str]]:
    """Return a text without the closing tags of a call at its end, and their names."""
    names: set[str] = set()
    body = text
    for _ in range(_MAX_END_TAGS):
        stripped = body.rstrip()
        tag = _END_TAG.search(stripped, max(0, len(stripped) - _MAX_END_TAG_LENGTH))
        if tag is None or not tag.start():
            break
        names.add(tag[1])
        body = stripped[: tag.start()]
    return body, names

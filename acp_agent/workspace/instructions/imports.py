"""Find the files that the text of an instruction file imports with `@path`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

MAX_DEPTH = 5  # levels of nested imports
_IMPORT = re.compile(r"(?:(?<=\s)|^)@((?:[^\s\\]|\\ )+)", re.MULTILINE)
_CODE_SPAN = re.compile(r"`+[^`\n]*`+")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_PUNCTUATION = ".,;:!?)]}'\"*_"


def imported_files(
    text: str, path: Path, read: Callable[[Path], str | None]
) -> Iterator[tuple[Path, str]]:
    """Yield the files that a text imports, each once, followed by the files that those import.

    Args:
        read: returns the text of a file, or None if it must not or cannot be imported.
    """
    yield from _imported(text, path, read, {path}, MAX_DEPTH)


def _imported(
    text: str, path: Path, read: Callable[[Path], str | None], imported_paths: set[Path], depth: int
) -> Iterator[tuple[Path, str]]:
    if not depth:
        return
    for name in _names(text):
        for spelling in dict.fromkeys((name, name.rstrip(_PUNCTUATION))):
            target = path.parent / spelling  # an absolute path replaces the folder
            content = read(target) if spelling and target not in imported_paths else None
            if content is not None:
                imported_paths.add(target)
                yield target, content
                yield from _imported(content, target, read, imported_paths, depth - 1)
                break


def _names(text: str) -> Iterator[str]:
    for match in _IMPORT.finditer(_CODE_SPAN.sub("", _without_blocks(text))):
        yield match[1].replace("\\ ", " ")


def _without_blocks(text: str) -> str:
    """Return a Markdown text without its fenced code blocks."""
    remaining: list[str] = []
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if fence:
            if match and match[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif match:
            fence = match[1]
        else:
            remaining.append(line)
    return "\n".join(remaining)

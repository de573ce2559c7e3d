"""Files that a prompt mentions with `@`. They are sent as links or as images.

A mention is `@path` or `@"path with spaces"`; paths are absolute, or relative to the session's
folder or `~`. A mention of a file that does not exist stays text.
"""

from __future__ import annotations

import mimetypes
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from protocol.v1 import types as acp

_MENTION = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]+)"|([^\s"]+))')
_TRAILING_PUNCTUATION = ".,;:!?)]}'"  # may follow a path without being part of it
_MAX_PICTURE_BYTES = 5_000_000


def content_blocks(text: str, cwd: Path, *, images: bool) -> list[acp.ContentBlock]:
    """Return a prompt's text, followed by the files that it mentions. Reads the disk.

    Args:
        images: whether the agent accepts images; otherwise they are linked like other files.
    """
    blocks: list[acp.ContentBlock] = [acp.TextContent(text=text)]
    linked: set[Path] = set()
    for path in mentioned_paths(text, cwd):
        if path not in linked:
            linked.add(path)
            blocks.append((_picture(path) if images else None) or _link(path))
    return blocks


def mentioned_paths(text: str, cwd: Path) -> Iterator[Path]:
    """Yield the existing files and folders that a text mentions."""
    for match in _MENTION.finditer(text):
        quoted, plain = match.groups()
        candidates = (
            [quoted] if quoted is not None else [plain, plain.rstrip(_TRAILING_PUNCTUATION)]
        )
        for name in candidates:
            path = _find_existing(name, cwd) if name else None
            if path is not None:
                yield path
                break


def mention(name: str) -> str:
    """Return the mention of a path."""
    return f'@"{name}"' if re.search(r"\s", name) else f"@{name}"


def dropped_files(pasted: str) -> list[str]:
    """Return the files in a pasted text, as terminals paste dropped files; else an empty list.

    Paths may be quoted or have escaped spaces; each must be absolute and exist.
    """
    if len(pasted) > 4096 or "\n" in pasted.strip():
        return []
    try:
        names = shlex.split(pasted.removeprefix("file://") if "\\" not in pasted else pasted)
    except ValueError:
        return []
    if not all(Path(name).is_absolute() and _find_existing(name, Path()) for name in names):
        return []
    return names


def expand(typed: str, cwd: Path) -> Path:
    """Return a path with `~` expanded, resolved against `cwd` if it is relative."""
    return cwd / os.path.expanduser(typed)  # noqa: PTH111 - pathlib's may raise


def _find_existing(name: str, cwd: Path) -> Path | None:
    try:
        path = expand(name, cwd)
        return path if path.exists() else None
    except (OSError, ValueError):  # too long, or contains a null character
        return None


def _link(path: Path) -> acp.ResourceLink:
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - without following symlinks
    try:
        size = absolute.stat().st_size if absolute.is_file() else None
    except OSError:
        size = None
    return acp.ResourceLink(
        name=absolute.name or str(absolute),
        uri=absolute.as_uri(),
        mime_type=mimetypes.guess_type(absolute.name)[0],
        size=size,
    )


def _picture(path: Path) -> acp.ImageContent | None:
    """Return an image with its content; None for other files and for large images."""
    media = mimetypes.guess_type(path.name)[0]
    if media not in {"image/png", "image/jpeg", "image/gif", "image/webp"}:
        return None
    try:
        if not path.is_file() or path.stat().st_size > _MAX_PICTURE_BYTES:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    from base64 import b64encode  # noqa: PLC0415 - most prompts have no picture

    uri = Path(os.path.abspath(path)).as_uri()  # noqa: PTH100 - without following symlinks
    return acp.ImageContent(data=b64encode(data).decode(), mime_type=media, uri=uri)

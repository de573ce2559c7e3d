"""Correct paths as models write them: quoted, with `@`, as file URLs, or with backslashes.

A path that exists as written is returned unchanged. The result is checked like any other path, so
a correction cannot lead outside the session's folders.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import unquote, urlsplit

_MAX_ENTRIES = 2_000  # entries of a folder whose names are compared
_QUOTES = "`\"'"
_LINE = re.compile(r"(.+?)(?::|#L?)(\d+)(?:([-:,])L?(\d+))?")
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2212"), "-")
_DRIVE = re.compile(r"/?[A-Za-z]:[\\/]")  # of Windows
_VARIABLE = re.compile(r"\$\{?(\w+)\}?/")  # at the start; one that is not set means the project
_USUAL_ROOTS = ("workspace", "repo", "testbed")  # where models are trained on projects
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)|<([^<>]+)>")  # in Markdown
_TAGGED = re.compile(r"<\w+>([^<>]+)</?\w+>|([^<>]+)</\w+>")  # with tags of a call
_MAX_LISTED_PATHS = 50


def clean_path(path: str, cwd: Path, *, existing: bool) -> str:
    """Return the path that the model probably meant. Blocks.

    Args:
        cwd: the folder that relative paths start at, resolved.
        existing: whether the path must exist. Then a different spelling (case, dashes, composed
            letters) is accepted if only one name fits, and prefixes and suffixes such as `a/` and
            `:12` are removed.
    """
    if not path.strip() or "\0" in path or _exists(cwd, path):
        return path
    plain = _plain(path, cwd)
    new_paths = [plain, *_moved(plain, cwd)]
    candidates: list[str] = [*new_paths, *(_variants(plain, cwd) if existing else ())]
    existing_path = next(
        (
            candidate
            for candidate in candidates
            if _is_inside(cwd, candidate) and _exists(cwd, candidate)
        ),
        None,
    )
    if existing_path is not None:
        return existing_path
    if existing:
        for candidate in candidates:
            if (
                _is_inside(cwd, candidate)
                and (respelled := _find_respelled(cwd, candidate)) is not None
            ):
                return respelled
    # A new file: the first candidate whose folder exists.
    folders = (
        candidate
        for candidate in new_paths
        if _is_inside(cwd, candidate) and _has_folder(cwd, candidate)
    )
    found = next(folders, None)
    if found is not None:
        return found
    folder, _, name = plain.rpartition("/")
    respelled = _find_respelled(cwd, folder) if folder and _is_inside(cwd, folder) else None
    return f"{respelled}/{name}" if respelled is not None else plain


def listed_paths(text: str, cwd: Path) -> list[str]:
    """Return the paths of a text that lists several; empty if it is one path. Blocks.

    Commas and line ends separate paths if one of them exists, spaces if all of them do. A pattern
    such as `src/*.py` stands for the files of its folder.
    """
    if not re.search(r"[,*\s]", text.strip()) or _exists(cwd, clean_path(text, cwd, existing=True)):
        return []
    folder, _, pattern = text.strip().rpartition("/")
    if "*" in pattern.replace("**", "") and "*" not in folder and _is_inside(cwd, folder):
        matches = list(islice((cwd / folder).glob(pattern), _MAX_LISTED_PATHS + 1))
        return sorted(map(str, matches)) if len(matches) <= _MAX_LISTED_PATHS else []
    for separator in ("\n", ",", " "):
        pieces = text.strip().strip("[]").split(separator)
        paths = [path for piece in pieces if (path := piece.strip().strip("'\""))]
        if not 1 < len(paths) <= _MAX_LISTED_PATHS:
            continue
        exist = [_exists(cwd, clean_path(path, cwd, existing=True)) for path in paths]
        if all(exist) or (separator != " " and any(exist)):
            return paths
    return []


def line_range(path: str) -> tuple[int, int] | None:
    """Return the first and the last line that a path such as `a.py:10-20` names."""
    match = _LINE.fullmatch(path.strip("`\"' "))
    if match is None or match[4] is None or match[3] == ":" or int(match[2]) < 1:
        return None
    return int(match[2]), int(match[4])


def _plain(path: str, cwd: Path) -> str:
    """Return a path without quotes, `@` or `file://`, and with slashes for backslashes."""
    path = path.strip()
    if tagged := _TAGGED.fullmatch(path):
        path = (tagged[1] or tagged[2]).strip()
    if len(path) > 1 and path[0] == path[-1] and path[0] in _QUOTES:
        path = path[1:-1].strip()
    if path.startswith("@") and not _exists(cwd, path.split("/")[0]):
        path = path[1:]
    if path.lower().startswith("file://"):
        path = unquote(urlsplit(path).path)
    path = path.replace("\\/", "/")  # escaped as in JSON
    path = path.replace("\\", "/") if "/" not in path or _DRIVE.match(path) else path
    variable = _VARIABLE.match(path)
    if variable is not None and (variable[1] == "PWD" or variable[1] not in os.environ):
        path = path[variable.end() :]
    return path if os.name == "nt" else _DRIVE.sub("/", path)


def _moved(path: str, cwd: Path) -> Iterator[str]:
    """Yield where a path outside may be in the project: it may come from another machine.

    `/src` means the project's src, and `/repo/src` too, unless the system has a folder of that
    name. A new file directly in `/docs` is not moved to the project's root.
    """
    top, _, relative = path.lstrip("/").partition("/")
    if not path.startswith("/") or not top:
        return
    outer, name_found, inner = f"/{relative}/".partition(f"/{cwd.name}/")
    if name_found and not os.path.lexists(f"/{top}{outer}/{cwd.name}"):
        yield inner.rstrip("/")
    if not os.path.lexists(f"/{top}"):
        yield path.lstrip("/")
        if "/" in relative or top in _USUAL_ROOTS:
            yield relative


def _variants(path: str, cwd: Path) -> Iterator[str]:
    """Yield other interpretations of a path as an existing file."""
    if path.startswith("/"):
        top, _, relative = path.lstrip("/").partition("/")
        if relative and not os.path.lexists(f"/{top}"):
            yield relative  # the project's path on another machine
        if cwd.name in relative.split("/")[:-1]:
            yield f"/{relative}/".partition(f"/{cwd.name}/")[2].rstrip("/")
    elif path.startswith((f"{cwd.name}/", "a/", "b/")):  # the two sides of a diff
        yield path.partition("/")[2]
    if path.endswith("/"):
        yield path.rstrip("/")
    if path.endswith((".", ",", ";")):
        yield path[:-1]  # the end of a sentence
    if match := _LINE.fullmatch(path):
        yield match[1]
    if match := _LINK.fullmatch(path):
        yield match[1] or match[2]
    if "%" in path:
        yield unquote(path)
    if "\\ " in path:
        yield path.replace("\\ ", " ")


def _find_respelled(cwd: Path, path: str) -> str | None:
    """Return the existing path that differs only in spelling, if there is exactly one."""
    full_path = Path(path) if path.startswith("/") else cwd / path
    current = next((parent for parent in full_path.parents if os.path.isdir(parent)), None)
    if current is None or not current.is_relative_to(cwd):
        return None
    for name in full_path.relative_to(current).parts:
        try:
            with os.scandir(current) as entries:
                names = [entry.name for _, entry in zip(range(_MAX_ENTRIES), entries, strict=False)]
        except OSError:
            return None
        matches = [entry_name for entry_name in names if _fold(entry_name) == _fold(name)]
        if len(matches) != 1:
            return None
        current /= matches[0]
    return os.path.relpath(current, cwd)


def _fold(name: str) -> str:
    name = unicodedata.normalize("NFC", name).translate(_DASHES)
    return name.replace("\u00a0", " ").casefold()


def _is_inside(cwd: Path, path: str) -> bool:
    return Path(os.path.normpath(cwd / path)).is_relative_to(cwd)


def _exists(cwd: Path, path: str) -> bool:
    try:
        return os.path.lexists(cwd / path)
    except (OSError, ValueError):
        return False


def _has_folder(cwd: Path, path: str) -> bool:
    return os.path.isdir(os.path.dirname(cwd / path))  # noqa: PTH120 - keeps a final slash

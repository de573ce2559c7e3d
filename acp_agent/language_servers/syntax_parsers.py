"""Parse texts for syntax errors; runs in a separate process, which may be killed.

An error has a line and column (from 1) and a message. What may be valid elsewhere is no
mistake: templates, YAML's tags, and syntax of a Python that is newer than this one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import PurePosixPath
from typing import Final

# A mistake's line, column and message.
Mistake = tuple[int, int, str]
Edit = tuple[str, str | None, str]  # the path, the text before the edit and after it

_COMMENTED_JSON = (
    "*.jsonc", "*.code-workspace", "tsconfig*.json", "jsconfig*.json", "*/.vscode/*.json",
    "*devcontainer*.json", "*.eslintrc.json", "*biome.json", "*turbo.json", "*wrangler.json",
    "*deno.json", "*tslint.json", "*api-extractor*.json", "*typedoc.json", "*renovate.json",
    "*/.babelrc.json", "*babel.config.json", "*nx.json", "*settings.json", "*/cypress.json",
)  # fmt: skip
_JSON_COMMENTS = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_JSON_TRAILING = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[\]}])')
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_TEMPLATE = re.compile(r"(?<!\$)\{\{|\{%|<%")
_MAX_PYTHON = 1_000_000  # characters
_MAX_SLOW_YAML = 200_000  # of YAML that Python's own parser reads again
# What a Python before this version cannot parse: what the line of the mistake looks like.
_NEWER_PYTHON: Final[Sequence[tuple[tuple[int, int], re.Pattern[str]]]] = (
    ((3, 12), re.compile(r"\b[bru]?f[r]?[\"']|^\s*type\s+\w", re.IGNORECASE)),
    ((3, 13), re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+\w+\s*\[|^\s*type\s+\w")),
    ((3, 14), re.compile(r"^\s*except\b|\br?t[r]?[\"']", re.IGNORECASE)),
)
SUFFIXES: Final[Mapping[str, str]] = {
    ".py": "python", ".pyi": "python", ".json": "json", ".jsonc": "json", ".code-workspace": "json",
    ".toml": "toml", ".yaml": "yaml", ".yml": "yaml", ".xml": "xml", ".svg": "xml", ".xsd": "xml",
    ".xsl": "xml", ".csproj": "xml", ".js": "javascript", ".mjs": "javascript",
    ".cjs": "javascript", ".sh": "shell", ".bash": "shell",
}  # fmt: skip
NAMES: Final[Mapping[str, str]] = {"Pipfile": "toml"}


def find_mistakes(edits: Sequence[Edit]) -> list[tuple[str, Mistake]]:
    """Return the paths with the mistakes that edits made.

    A text that had a mistake before gets none: only the first is ever known.
    """
    result = []
    for path, old, new in edits:
        parse = PARSERS[file_language(path)]
        mistake = parse(path, new)
        if mistake is None or _is_template(path, new, mistake):
            continue
        if old is None or not old.strip() or parse(path, old) is None:
            result.append((path, mistake))
    return result


def file_language(path: str) -> str:
    """Return the language that a file is parsed as; "" if there is none."""
    file = PurePosixPath(path)
    return SUFFIXES.get(file.suffix.lower(), "") or NAMES.get(file.name, "")


def _is_template(path: str, text: str, mistake: Mistake) -> bool:
    """Return whether a text is a template, which is filled in before it is parsed."""
    if "{{" in path or file_language(path) == "yaml":
        return "{{" in path or _TEMPLATE.search(text) is not None
    lines = text.split("\n")
    return any(_TEMPLATE.search(line) for line in lines[max(0, mistake[0] - 2) : mistake[0]])


def _python(_path: str, text: str) -> Mistake | None:
    import ast  # noqa: PLC0415 - only for its language, as below
    import warnings  # noqa: PLC0415

    warnings.simplefilter("ignore")
    if len(text) > _MAX_PYTHON:
        return None
    try:
        ast.parse(text.removeprefix("\ufeff"))
    except SyntaxError as error:
        line = error.lineno or 1
        lines = text.split("\n")
        source_line = lines[line - 1] if line <= len(lines) else ""
        newer = any(
            sys.version_info < version and pattern.search(source_line)
            for version, pattern in _NEWER_PYTHON
        )
        if newer or (error.msg.startswith("f-string") and sys.version_info < (3, 12)):
            return None
        return line, error.offset or 1, error.msg
    except (ValueError, RecursionError, MemoryError):  # a NUL, or nested too deeply to tell
        return None
    return None


def _json(path: str, text: str) -> Mistake | None:
    import json  # noqa: PLC0415

    text = text.removeprefix("\ufeff")
    if not text.strip():
        return None
    if any(fnmatch(path, f"*/{name}" if "/" not in name else name) for name in _COMMENTED_JSON):
        text = _JSON_TRAILING.sub(_blank, _JSON_COMMENTS.sub(_blank, text))
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.colno, error.msg
    except (ValueError, RecursionError):  # a number with very many digits
        return None
    return None


def _blank(match: re.Match[str]) -> str:
    part = match[0]
    return part if part.startswith('"') else re.sub(r"[^\n]", " ", part)


def _toml(_path: str, text: str) -> Mistake | None:
    import tomllib  # noqa: PLC0415

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        match = _TOML_PLACE.search(message)
        if match is None:
            return 1, 1, message
        line = int(match[1] or text.rstrip().count("\n") + 1)
        return line, int(match[2] or 1), message[: match.start()]
    except RecursionError:
        return None
    return None


def _yaml(_path: str, text: str) -> Mistake | None:
    import yaml  # noqa: PLC0415

    mistake = None
    fast = getattr(yaml, "CSafeLoader", None)
    for loader in (fast, yaml.SafeLoader):
        if loader is None:
            continue
        if loader is not fast and len(text) > _MAX_SLOW_YAML:
            return None
        mistake = None
        try:
            for _ in yaml.parse(text, Loader=loader):
                pass
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark
            message = error.problem or "it cannot be parsed"
            mistake = (mark.line + 1, mark.column + 1, message) if mark else (1, 1, message)
            if "tag" in message or "%" in message:
                return None
        except (yaml.YAMLError, RecursionError):
            return None
        if mistake is None:  # where the two parsers disagree it is taken as valid
            return None
    return mistake


def _xml(_path: str, text: str) -> Mistake | None:
    from xml.parsers import expat  # noqa: PLC0415 - it fetches nothing and calls no handler here

    if not text.strip():
        return None
    parser = expat.ParserCreate("utf-8")  # whatever the declaration says: this is text already
    try:
        parser.Parse(text.removeprefix("\ufeff").encode("utf-8", "replace"), True)
    except expat.ExpatError as error:
        message = expat.ErrorString(error.code) or "it is not well-formed"
        if "entity" in message or "encoding" in message:
            return None
        return error.lineno, error.offset + 1, message
    return None


PARSERS: Final[Mapping[str, Callable[[str, str], Mistake | None]]] = {
    "python": _python, "json": _json, "toml": _toml, "yaml": _yaml, "xml": _xml,
}  # fmt: skip

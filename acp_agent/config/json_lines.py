"""Explain JSON syntax errors, and find the line of a value."""

from __future__ import annotations

import json
import re

from acp_agent.errors import ConfigError


def explain_json(raw: bytes) -> ConfigError:
    """Return an error that says why a text is not valid JSON and how to fix it.

    Args:
        raw: the text as stored in the file.
    """
    try:
        json.loads(raw.decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        return ConfigError(f"line {line} is not UTF-8 text; save the file as UTF-8")
    except json.JSONDecodeError as error:
        if raw.startswith(b"\xef\xbb\xbf"):
            return ConfigError("line 1 begins with a byte order mark; save the file without it")
        return ConfigError(f"line {error.lineno} is not JSON ({error.msg}); fix the line")
    except RecursionError:
        return ConfigError("it is nested too deeply; make it flat")
    except ValueError:  # raised by `int`
        return ConfigError("a number has more digits than can be read; shorten it")
    return ConfigError("it is not JSON; NaN, Infinity and halves of characters are none")


def member_line(text: str, path: tuple[str, ...], *, value: str | None = None) -> int:
    """Return the line, from 1, of a member of a JSON document, or of its last parent found.

    Args:
        value: a text inside the member; its line is returned instead.
    """
    offset = 0
    for key in path:
        member = re.compile(re.escape(json.dumps(key, ensure_ascii=False)) + r"\s*:")
        match = member.search(text, offset)
        if match is None:
            break
        offset = match.start()
    if value is not None:
        offset = max(offset, text.find(json.dumps(value, ensure_ascii=False), offset))
    return text.count("\n", 0, offset) + 1

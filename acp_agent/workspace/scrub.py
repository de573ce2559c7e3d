"""Takes credentials out of text before it leaves a tool.

Two kinds are found: values that are known (the keys this program uses), and keys that can be told
by their form, listed in `secret_formats.toml`. A key of an unknown form is not found.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files as package_files

from msgspec import Struct

REPLACEMENT = "[secret]"
MIN_SECRET = 8  # characters; a shorter value would be found in ordinary text


class _Format(Struct, frozen=True):
    marks: tuple[str, ...]
    pattern: re.Pattern[str]


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with every credential replaced by `[secret]`.

    Args:
        text: what is about to be shown, sent or stored.
        secrets: values that must not appear; those shorter than `MIN_SECRET` are ignored.
    """
    text = scrub_known(text, secrets)
    for known in _formats():
        if any(mark in text for mark in known.marks):
            text = known.pattern.sub(_replace, text)
    return text


def scrub_known(text: str, secrets: Iterable[str]) -> str:
    """`text` with the known values replaced, and nothing that only looks like a credential.

    Args:
        text: what is about to be shown or stored.
        secrets: values that must not appear; those shorter than `MIN_SECRET` are ignored.
    """
    # The longest first: a value may be part of another one.
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= MIN_SECRET and secret in text:
            text = text.replace(secret, REPLACEMENT)
    return text


def _replace(match: re.Match[str]) -> str:
    if "secret" not in match.re.groupindex:
        return REPLACEMENT
    whole, start = match.group(), match.start()
    return (
        whole[: match.start("secret") - start] + REPLACEMENT + whole[match.end("secret") - start :]
    )


@functools.cache
def _formats() -> tuple[_Format, ...]:
    data = (package_files(__package__) / "secret_formats.toml").read_text("utf-8")
    return tuple(
        _Format(marks=tuple(entry["marks"]), pattern=re.compile(entry["pattern"]))
        for entry in tomllib.loads(data)["format"]
    )

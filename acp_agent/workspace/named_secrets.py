"""Find values after names that mark them as secret: `API_KEY=…`, `"password": "…"`.

A value counts if it looks random (a key or a token), or like a password. Values that follow such
names in ordinary code do not count: identifiers, calls, paths, examples and placeholders.
"""

from __future__ import annotations

import functools
import math
import re
import string
from collections import Counter
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from acp_agent.platform.data_tables import read_table
from acp_agent.workspace.encoded_secrets import Span
from acp_agent.workspace.string_search import Hit, StringSearcher

_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
# The rest of the name, its quote, a type, the assignment, and the quote of the value.
_ASSIGNMENT = re.compile(
    r"""(?P<rest>[A-Za-z0-9_.-]{0,40}+)
    (?:\\?["'`])?\]?(?:(?:\s{0,2}:\s{0,2}|\s)(?:str|string|String|&str)\b)?
    (?P<assigns>
        \s{0,12}(?:=>|:=|\?=|\|\|=|==|=|:)\s{0,8}  # an assignment, a pair
        |,?\s{1,40}["']?value["']?\s{0,2}[=:]\s{0,4}  # beside the name, as in Kubernetes, XML
        |\s{0,2},\s{0,4}                           # an argument behind the name in quotes
        |>\s{0,2}                                  # an element of XML
        |\ {1,4}                                   # an option, or a line of .netrc
    )
    (?:[rbuf]{0,2}|@)(?P<quote>\\?["'`])?""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"""[^\s"'`<>]{8,512}(?=\\?["'`<])""")
_ELEMENT = re.compile(r"""[^\s"'`<>]{8,512}(?=</)""")
_BARE = re.compile(r"""[^\s"'`,;<>(){}\[\]&|\\]{8,512}""")
_MAX_NAME = 60
_MAX_NAMES_IN_VALUE = 20  # further ones are not examined, because there may be thousands
_CODE_BRACKETS = ("(", "[", "{")  # a call or an index: the value is code
_MIN_MIXED = 24  # minimum length of a secret with all kinds of characters
_MAX_RANDOM_WORD = 2.7  # maximum average length of the words in a random value
_MIN_MIXED_ENTROPY = 3.8  # minimum bits per character of a secret with all kinds of characters
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# References instead of values: a variable, a path, a URL; if unquoted, also code.
_REFERENCE = re.compile(r"\$\w+\Z|%\w+%\Z|[$@%][{(]|\{|<|\.{0,2}/|~/|\w+://")
_CODE = re.compile(r"[$%@]|[A-Za-z_][\w-]*(?:[./:][A-Za-z_][\w-]*)*\Z|.*[({\[]")
_HEX = re.compile(r"[0-9a-fA-F]{24,}")
_LOWER = re.compile(r"(?=.*\d[a-z])[a-z0-9]{24,}")


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `named_secrets.toml`.

    Attributes:
        stems: words, in lower case, of which each name must contain one.
        keys: a name that contains `key` counts only if it contains one of these.
        passwords: words in names of passwords.
        harmless: names that contain one of these do not count.
        placeholders: values that contain one of these, in lower case, are placeholders.
        least: minimum number of letters and digits of a key or token.
        least_password: minimum length of a password.
        least_entropy: minimum bits per character of a key or token.
    """

    stems: tuple[str, ...]
    keys: tuple[str, ...]
    passwords: tuple[str, ...]
    harmless: tuple[str, ...]
    placeholders: tuple[str, ...]
    least: int
    least_password: int
    least_entropy: float


@functools.cache
def strings() -> tuple[str, ...]:
    """Return the strings to search for in a text: the stems of names."""
    stems = _table().stems
    return tuple(
        sorted({variant for stem in stems for variant in (stem, stem.title(), stem.upper())})
    )


def spans(text: str, hits: Iterable[Hit]) -> list[Span]:
    """Return the spans of secret values in `text`.

    Args:
        hits: the places of `strings` in it.
    """
    result: list[Span] = []
    last_end = 0  # of the last secret
    value_end = names = 0  # of the value that contains the names, and how many it has
    for _, start, end in hits:
        names = names + 1 if start < value_end else 0
        if start < last_end or names > _MAX_NAMES_IN_VALUE:
            continue
        assignment = _ASSIGNMENT.match(text, end)
        if assignment is None:
            continue
        value_start = assignment.end()
        element = assignment["assigns"].startswith(">")
        quoted = element or assignment["quote"] is not None
        form = _ELEMENT if element else _QUOTED if quoted else _BARE
        value = form.match(text, value_start)
        if value is None or (not quoted and text[value.end() : value.end() + 1] in _CODE_BRACKETS):
            continue
        value_end = max(value_end, value.end()) if names else value.end()
        name_start = _name_start(text, start)
        if text[name_start - 1 : name_start] == ":":  # part of a path, such as an AWS resource name
            continue
        name = text[name_start : assignment.end("rest")]
        if assignment["assigns"].isspace() and not _is_option(name, text, value.end()):
            continue
        if _is_secret(name, value[0], quoted=quoted):
            result.append(value.span())
            last_end = value.end()
    return result


def incomplete_name_start(text: str, since: int) -> int:
    """Return the start of a name whose value may continue after `text`, or the length of `text`.

    Args:
        text: the beginning of a longer text.
        since: where to start searching.
    """
    line = max(since, text.rfind("\n", since) + 1)
    for _, start, _ in _stems().find(text[line:]):
        return _name_start(text, line + start)
    return len(text)


def _name_start(text: str, stem: int) -> int:
    """Return the start of the name that contains the stem at a position."""
    before = text[max(0, stem - _MAX_NAME) : stem]
    return stem - len(before) + len(before.rstrip(_NAME_CHARACTERS))


@functools.lru_cache(maxsize=1024)
def _kind(name: str) -> Literal["password", "key"] | None:
    """Return what a name in lower case names; None if it names no secret."""
    table = _table()
    if any(word in name for word in table.harmless):
        return None
    if any(word in name for word in table.passwords):
        return "password"
    return None if "key" in name and not any(word in name for word in table.keys) else "key"


@functools.cache
def _placeholders() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, _table().placeholders)))


def _is_secret(name: str, value: str, *, quoted: bool) -> bool:
    table = _table()
    variable = name.isupper() and not quoted  # an environment variable: its value is not code
    name = name.lower()
    kind = _kind(name)
    if kind is None or len(set(value.lower())) < 5 or _placeholders().search(value.lower()):
        return False
    if kind == "password":
        return len(value) >= table.least_password and (
            _may_be_password(value, quoted=quoted) or (variable and value.isalnum())
        )
    is_mixed = quoted and "secret" in name and len(value) >= _MIN_MIXED
    return _is_random(value, quoted=quoted) or (
        is_mixed and _entropy(value) >= _MIN_MIXED_ENTROPY and _may_be_password(value, quoted=True)
    )


def _is_option(name: str, text: str, end: int) -> bool:
    """Return whether a name is an option, or its value after a space ends the line."""
    return name.startswith("--") or text[end : end + 1] in ("", "\n", "\r")


def _may_be_password(value: str, *, quoted: bool) -> bool:
    """Return whether a value may be a password, which people choose from words and digits."""
    if _REFERENCE.match(value) is not None or _DATE.match(value) is not None:
        return False
    if value.isidentifier() or (not quoted and _CODE.match(value) is not None):
        return any(map(str.isdigit, value)) and _word_length(value) <= _MAX_RANDOM_WORD
    kinds = sum(any(map(kind, value)) for kind in (str.islower, str.isupper, str.isdigit))
    kinds += any(not char.isalnum() for char in value)
    if any(map(str.isdigit, value)):
        return kinds >= (2 if quoted else 3)
    return kinds >= 3 and _word_length(value) <= _MAX_RANDOM_WORD


def _is_random(value: str, *, quoted: bool) -> bool:
    """Return whether a value looks random."""
    table = _table()
    core = value.rstrip("=")
    alnum_count = sum(map(str.isalnum, core))
    if alnum_count < table.least or not core.isascii() or _entropy(core) < table.least_entropy:
        return False
    if _UUID.fullmatch(value) is not None or _HEX.fullmatch(value) is not None:
        return True
    if _LOWER.fullmatch(value) is not None:
        return True
    if alnum_count < (0.8 if len(core) >= 2 * table.least else 0.9) * len(core):
        return False
    if any(map(str.isdigit, core)):
        return _word_length(core) <= (3.5 if quoted else 3.0)
    return quoted and _word_length(core) <= _MAX_RANDOM_WORD


def _word_length(value: str) -> float:
    """Return the average length of the words in a value.

    Identifiers consist of a few long words, random values of many short ones.
    """
    return sum(map(str.isalnum, value)) / max(1, len(_WORD.findall(value)))


def _entropy(text: str) -> float:
    """Return the average information per character of `text`, in bits (Shannon, 1948)."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)


@functools.cache
def _table() -> _Table:
    return read_table(__package__, "named_secrets.toml", _Table)


@functools.cache
def _stems() -> StringSearcher:
    return StringSearcher(strings())

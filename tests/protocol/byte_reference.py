"""What a connection must answer to a line, whatever is in it, worked out with Python's own parser.

Written from the specifications (JSON-RPC 2.0; RFC 8259; the requirements T2 to T4), not from the
code under test, and sharing nothing with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

RESULT = 0  # in place of an error's code
LARGEST_BATCH = 1000
_LONGEST_ID = 1024
_LONGEST_NUMBER = 4000  # digits that Python parses
_MEMBERS = {"jsonrpc", "id", "method", "params", "result", "error"}
_LONGEST_KEPT = 1024  # bytes of an id in a line that is too long

# (method, its parameters' JSON with sorted keys) -> RESULT or the error's code; other parameters of
# these methods may have any outcome.
Outcomes = Mapping[tuple[str, str], int]


@dataclass(frozen=True)
class Reply:
    """One response: to which id, and with which code; None for any outcome."""

    id: object
    code: int | None

    def fits(self, message: Any) -> bool:
        """Whether a response is this one."""
        if not isinstance(message, dict) or not same_id(message.get("id"), self.id):
            return False
        code = message["error"]["code"] if "error" in message else RESULT
        return self.code is None or self.code == code


@dataclass
class Expected:
    """What a line must be answered.

    Attributes:
        replies: each on a line of its own.
        array: those of a batch, in their order, on one line; None for no array.
        unclear: the specifications leave open what the line is, so that it may be answered once,
            however that is, or not at all.
        line: the line.
    """

    replies: list[Reply] = field(default_factory=list)
    array: list[Reply] | None = None
    unclear: bool = False
    line: str = ""

    def may_be(self, key: object) -> bool:
        """Whether an answer with this id may be one to this unclear line."""
        shown = str(key)
        return key is None or shown in self.line or not shown.isascii() or "\\" in self.line


class _Object(dict[str, Any]):
    """A JSON object that remembers whether a member of a message came twice."""

    twice = False


class _UnclearError(Exception):
    """The specifications leave open what a line is."""


class Reference:
    """The answers of one connection.

    Args:
        outcomes: what is known of the methods that there are.
        batches: whether arrays of messages are taken.
        limit: bytes that a line may have.
    """

    def __init__(self, outcomes: Outcomes, *, batches: bool, limit: int) -> None:
        self._outcomes = outcomes
        self._methods = {method for method, _ in outcomes}
        self._batches = batches
        self._limit = limit

    def expected(self, line: bytes) -> Expected:
        """What `line`, without its end, is to be answered."""
        expected = self._of_line(line)
        expected.line = line.decode("utf-8", "replace") if expected.unclear else ""
        return expected

    def _of_line(self, line: bytes) -> Expected:
        if len(line) > self._limit:
            return self._of_long(line)
        if not line.strip():
            return Expected()
        text = line.decode("utf-8", "replace")
        try:
            value = _parsed(text)
        except (ValueError, RecursionError):
            return Expected([Reply(None, -32700)])
        except _UnclearError:
            return Expected(unclear=True)
        if "\ufffd" in text and not _is_utf8(line):
            return Expected([Reply(None, -32700)])
        try:
            return self._of_value(value)
        except _UnclearError:
            return Expected(unclear=True)

    def _of_long(self, line: bytes) -> Expected:
        """What a line over the limit is to be answered: by its id, where that can be known."""
        try:
            value = _parsed(line.decode())
        except (ValueError, RecursionError, _UnclearError):
            return Expected(unclear=True)
        if not isinstance(value, _Object):
            return Expected([Reply(None, -32600)])
        if value.twice:
            return Expected(unclear=True)
        if "method" not in value and ("result" in value or "error" in value):
            return Expected()
        key = value.get("id")
        short = len(json.dumps(key)) <= _LONGEST_KEPT
        return Expected([Reply(key if short and _is_id(key) else None, -32600)])

    def _of_value(self, value: Any) -> Expected:
        if not isinstance(value, list):
            reply = self._of_message(value)
            return Expected([] if reply is None else [reply])
        if not self._batches or not 0 < len(value) <= LARGEST_BATCH:
            return Expected([Reply(None, -32600)])
        replies: list[Reply] = []
        for entry in value:
            reply = self._of_message(entry)
            if reply is not None:
                bad = reply.code == -32600
                replies.append(Reply(None, -32600) if bad else reply)
        ids = [json.dumps(reply.id) for reply in replies if reply.id is not None]
        if len(set(ids)) < len(ids):
            raise _UnclearError  # which of them are in use depends on how far the others are
        return Expected(array=replies or None)

    def _of_message(self, value: Any) -> Reply | None:
        if not isinstance(value, _Object):
            return Reply(None, -32600)
        if value.twice:
            raise _UnclearError
        with_id = "id" in value
        usable = with_id and _is_id(value["id"])
        key = value["id"] if usable else None
        if "method" in value and not isinstance(value["method"], str):
            return Reply(key, -32600)
        if "method" not in value:
            if "result" in value or "error" in value:
                return None
            return Reply(key, -32600)
        if with_id and not usable:
            return Reply(None, -32600)
        if value.get("jsonrpc") != "2.0":
            return Reply(key, -32600)
        if not with_id:
            return None
        if value["method"] not in self._methods:
            return Reply(key, -32601)
        params = value.get("params")
        shown = json.dumps({} if params is None else params, sort_keys=True)
        return Reply(key, self._outcomes.get((value["method"], shown)))


def same_id(one: object, other: object) -> bool:
    """Whether two ids are the same JSON; 1, 1.0, true and "1" are four."""
    return type(one) is type(other) and one == other


class LongNumber(str):
    """A whole number of more digits than Python parses."""

    __slots__ = ()


def whole_number(digits: str) -> LongNumber | int:
    """A whole number of any length; for `json.loads`."""
    return LongNumber(digits) if len(digits) > _LONGEST_NUMBER else int(digits)


def _parsed(text: str) -> Any:
    def pairs(members: list[tuple[str, Any]]) -> _Object:
        made = _Object(members)
        made.twice = len([name for name, _ in members if name in _MEMBERS]) > len(
            _MEMBERS & set(made)
        )
        return made

    return json.loads(
        text, parse_int=whole_number, parse_constant=_refused, object_pairs_hook=pairs
    )


def _refused(name: str) -> float:
    raise ValueError(name)


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_id(value: Any) -> bool:
    return value is None or (isinstance(value, str | int | float) and not isinstance(value, bool))

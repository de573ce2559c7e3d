"""Bytes for a connection, good and bad ones, made from a seed so that each can be made again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from tests.protocol.byte_reference import RESULT, Outcomes

DEPTHS = (2, 30, 100_000)
ODD_IDS = (
    b"null", b"true", b"false", b"0", b"-0", b"-1", b"1.0", b"1.5", b"1e2", b"{}", b"[]", b"[1]",
    b'""', b'" "', b'"null"', b'"\\u0000"', b'"\\ud83d\\ude00"', b'"\\ud800"', b'"\\udc00x"', b"01",
    b"+1", b"1.", b".5", b"0x10", b"1e999", b"-", b'"' + b"i" * 1000 + b'"', b"9" * 1000,
    b"9" * 5000, b'"' + b"i" * 5000 + b'"', b"18446744073709551616", b"-9223372036854775809",
    b'"\\q"', b"nul", b'"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"', b'"\xf0\x9f\x98\x80"',
)  # fmt: skip
ODD_VALUES = (
    b"null", b"true", b"0", b"-1", b"1.5", b'""', b'"x"', b'"2.0"', b'"1.0"', b"[]", b"{}", b"[[]]",
    b'{"":null}', b"NaN", b"Infinity", b"-Infinity", b"1e999", b"1" * 400, b'"\\ud800"', b'"\\u12"',
    b'"\\', b'"\x00"', b'"\\u0000"', b'"\xc3\xa9"', b'"\xff"', b'"\xed\xa0\x80"', b'"\xf0\x9f"',
    b'"\xf0\x9f\x98\x80"', b'"\xe2\x80\xa8"', b"'x'", b"undefined", b"tru", b"-", b"1,",
    b'{"a":1,}',
)  # fmt: skip
ODD_BYTES = b'\x00\x01\x09\x0b\x0d\x1f\x20\x7f\x80\xc3\xe2\xed\xf0\xff{}[]",:\\/0-+.eEntu'
MEMBERS = (b"jsonrpc", b"id", b"method", b"params", b"result", b"error")
METHODS = (
    "session/unknown", "", "_x/y", "$/x", "rpc.discover", "m\ud800", "m\0", "é",
    "fs/read_text_file",
)  # fmt: skip
CANCEL = b'{"jsonrpc":"2.0","method":"$/cancel_request","params":%b}'
SPACES = (b"", b" ", b"\t", b"  \r")


class ByteFuzz:
    """Makes inputs of one or several whole lines; `pieces` cuts them anywhere.

    Args:
        seed: of everything.
        outcomes: the requests with a known outcome.
        notifications: notifications that may be sent, as method and parameters.
        long: lengths of long lines.
    """

    def __init__(
        self,
        seed: int,
        outcomes: Outcomes,
        *,
        notifications: Sequence[tuple[str, Any]] = (),
        long: Sequence[int] = (70_000,),
    ) -> None:
        self._random = random.Random(seed)
        self._ids = 1_000_000 * (seed + 1)
        self._outcomes = sorted(outcomes)
        self._good = sorted(key for key, code in outcomes.items() if code == RESULT)
        self._notifications = notifications
        self._long = long
        self._kinds: list[Callable[[], bytes]] = [
            self._message, self._spaced, self._cut, self._twisted, self._twisted, self._nested,
            self._twice, self._odd_id, self._odd_id, self._odd_member, self._odd_member,
            self._without, self._answer, self._batch, self._batch, self._batch, self._odd_batch,
            self._prefixed, self._glued, self._bytes, self._blank, self._cancel,
        ]  # fmt: skip

    def lines(self) -> bytes:
        """An input: lines, each ended."""
        number = self._random.random()
        if number < 0.004:
            return self._stretched() + b"\n"
        if number < 0.05:
            return b"".join(self._one() + b"\n" for _ in range(self._random.randrange(2, 6)))
        return self._one() + b"\n"

    def pieces(self, data: bytes) -> list[bytes]:
        """`data` cut inside a line, a number, an escape, a character, anywhere."""
        count = self._random.choice((0, 0, 0, 1, 1, 3))
        places = sorted(self._random.randrange(len(data) + 1) for _ in range(count))
        inside = [at for at, byte in enumerate(data[:2000]) if 0x80 <= byte < 0xC0]
        if inside and self._random.random() < 0.5:
            places = sorted({*places, self._random.choice(inside)})
        if self._random.random() < 0.1 and len(data) < 40:
            places = list(range(1, len(data)))
        ends = [*places, len(data)]
        return [data[a:b] for a, b in zip([0, *places], ends, strict=True) if a < b]

    # --- kinds of lines, without their end

    def _one(self) -> bytes:
        line = self._random.choice(self._kinds)().replace(b"\n", b" ")
        return line + (b"\r" if self._random.random() < 0.05 else b"")

    def _spaced(self) -> bytes:
        space = self._random.choice
        line = self._message().replace(b'":', b'"%b:%b' % (space(SPACES), space(SPACES)))
        return space(SPACES) + line + space(SPACES)

    def _cut(self) -> bytes:
        line = self._message()
        at = self._random.randrange(1, len(line))
        return self._random.choice((line[:at], line[at:]))

    def _twisted(self) -> bytes:
        line = bytearray(self._message())
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(line))
            change = self._random.randrange(3)
            if change == 0:
                line[at] = self._random.choice(ODD_BYTES)
            elif change == 1:
                line.insert(at, self._random.choice(ODD_BYTES))
            else:
                del line[at]
        return bytes(line)

    def _nested(self) -> bytes:
        depth = self._random.choice(DEPTHS)
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        deep = opening * depth + b"1" + (closing * depth if self._random.random() < 0.8 else b"")
        where = self._random.randrange(4)
        if where == 0:
            return deep
        if where == 1:
            return self._envelope(b"session/unknown", params=deep)
        if where == 2:
            return b'{"jsonrpc":"2.0","x":%b,"id":%d,"method":"m"}' % (deep, self._next())
        return b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % deep

    def _stretched(self) -> bytes:
        pad = b"x" * self._random.choice(self._long)
        shape = self._random.randrange(3)
        if shape == 0:
            return pad
        if shape == 1:
            return self._envelope(b"session/unknown", params=b'{"pad":"%b"}' % pad)
        return b'{"jsonrpc":"2.0","pad":"%b","id":%d}' % (pad, self._next())

    def _twice(self) -> bytes:
        first, second = self._next(), self._next()
        return self._random.choice(
            (
                b'{"jsonrpc":"2.0","id":%d,"id":%d,"method":"x"}',
                b'{"jsonrpc":"2.0","id":%d,"method":"x","method":"y","params":[%d]}',
                b'{"jsonrpc":"2.0","id":%d,"method":"x","params":{"a":1,"a":%d}}',
                b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":%d,"result":1,"result":%d}',
            )
        ) % (first, second)

    def _odd_id(self) -> bytes:
        odd = self._random.choice(ODD_IDS)
        return b'{"jsonrpc":"2.0","id":%b,"method":"%b"}' % (
            odd,
            self._random.choice((b"session/unknown", b"x")),
        )

    def _odd_member(self) -> bytes:
        members = {
            b"jsonrpc": b'"2.0"',
            b"id": b"%d" % self._next(),
            b"method": b'"session/unknown"',
            b"params": b"{}",
        }
        name = self._random.choice(MEMBERS)
        members[name] = self._random.choice(ODD_VALUES)
        if self._random.random() < 0.3:
            members[b"unknown"] = self._random.choice(ODD_VALUES)
        return _object(members)

    def _without(self) -> bytes:
        members = {
            b"jsonrpc": b'"2.0"',
            b"id": b"%d" % self._next(),
            b"method": b'"x"',
            b"params": b"[1]",
        }
        for name in self._random.sample(sorted(members), self._random.randrange(1, 4)):
            del members[name]
        return _object(members)

    def _answer(self) -> bytes:
        key = self._random.choice((b"1", b'"1"', b"77777", b'"nobody"', *ODD_IDS))
        members = {b"jsonrpc": b'"2.0"', b"id": key}
        for name in (b"result", b"error"):
            if self._random.random() < 0.6:
                members[name] = self._random.choice(ODD_VALUES)
        return _object(members)

    def _batch(self) -> bytes:
        parts = [self._message, self._message, self._without, self._answer, self._cancel]
        entries = [self._random.choice(parts)() for _ in range(self._random.randrange(6))]
        if self._random.random() < 0.3:
            entries.insert(0, self._random.choice(ODD_VALUES))
        return b"[" + b",".join(entries) + b"]"

    def _odd_batch(self) -> bytes:
        kind = self._random.randrange(8)
        if kind == 0:
            return b"[" + b",".join([b"{}"] * self._random.choice((999, 1000, 1001, 5000))) + b"]"
        if kind == 1:
            return b"[" + self._batch() + b"]"
        batch = self._batch()
        at = self._random.randrange(len(batch))
        return (
            batch[:at] + self._random.choice((b"", b",", b"]", b"[", b"\xff", b"\\")) + batch[at:]
        )

    def _prefixed(self) -> bytes:
        odd = (b"\xef\xbb\xbf", b"\xff\xfe", b"\0", b"\x0c", b"data: ", b"Content-Length: 2\r\r{}")
        return self._random.choice(odd) + self._message()

    def _glued(self) -> bytes:
        between = self._random.choice((b"", b" ", b",", b"\0", b"\r"))
        return self._message() + between + self._message()

    def _bytes(self) -> bytes:
        return self._random.randbytes(self._random.randrange(1, 200))

    def _blank(self) -> bytes:
        return self._random.choice(SPACES)

    def _cancel(self) -> bytes:
        key = self._random.choice((b"1", b'"x"', b"null", b"[]", b"1.5", b"true", b"9" * 30))
        return CANCEL % self._random.choice((b'{"requestId":%b}' % key, b"{}", b"[1]", b"null"))

    # --- parts

    def _next(self) -> int:
        self._ids += 1
        return self._ids

    def _message(self) -> bytes:
        number = self._random.random()
        if number < 0.15 and self._notifications:
            method, params = self._random.choice(self._notifications)
            return _encoded({"jsonrpc": "2.0", "method": method, "params": params})
        if number < 0.4:
            message: dict[str, Any] = {
                "jsonrpc": "2.0",
                "id": self._next(),
                "method": self._random.choice(METHODS),
                "params": self._random.choice(({}, [], None, {"text": "é\ud83d😀"}, [1.5])),
            }
            return json.dumps(message).encode()
        method, shown = self._random.choice(self._good if number < 0.7 else self._outcomes)
        return self._envelope(method.encode(), params=shown.encode())

    def _envelope(self, method: bytes, *, params: bytes) -> bytes:
        key = b"%d" % self._next()
        if self._random.random() < 0.3:
            key = b'"%b"' % key
        return b'{"jsonrpc":"2.0","id":%b,"method":"%b","params":%b}' % (key, method, params)


def _object(members: dict[bytes, bytes]) -> bytes:
    return b"{" + b",".join(b'"%b":%b' % item for item in members.items()) + b"}"


def _encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

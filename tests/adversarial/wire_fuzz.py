"""Bytes that no client should send: made from a seed, so that each failure can be made again."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from protocol.v1.methods import AGENT_METHODS, CLIENT_METHODS
from tests.support.oracle import Json, Oracle

DEPTHS = (50, 500, 5_000, 200_000)
LENGTHS = (70_000, 300_000, 2_000_000)
ODD_TEXTS = (
    "", " ", "\0", "\n", "é" * 50, "\u202e", "𝔘", "../../etc", "%s%n", "{}", "null", "x" * 5_000,
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, 10**40, -(10**40), 1.5, 1e308, "", "x", [],
    [[]], {}, [None], {"": None}, {"a": {"b": []}}, "1", ["text"], [{"type": "text"}],
    [{"type": "image", "data": "!", "mimeType": 5}], {"_meta": []}, "sess_", "/", "/dev/null",
)  # fmt: skip
FIELDS = (
    "sessionId", "cwd", "mcpServers", "prompt", "protocolVersion", "clientCapabilities",
    "clientInfo", "methodId", "modeId", "configId", "value", "cursor", "additionalDirectories",
    "requestId", "_meta", "unknown", "messageId",
)  # fmt: skip


class FuzzOracle(Oracle):
    """Judges what the agent writes when anything may have been sent.

    Lines that the agent may read in more than one way (a key that comes twice) may be answered in
    each of them; every answer is still held to the framing, the schema and the order of things.
    """

    def __init__(self) -> None:
        super().__init__()
        self.maybe: set[str] = set()  # ids that may be answered, as JSON, or may not

    def sent(self, data: bytes) -> None:
        """Every line may be answered once without an id."""
        self._faults += data.count(b"\n")
        super().sent(data)

    def maybe_sent(self, data: bytes, ids: tuple[object, ...]) -> None:
        """A line that may be taken for a request with one of `ids`, or for none."""
        self.maybe.update(json.dumps(one, sort_keys=True) for one in ids)
        self.sent(data)

    def _response(self, message: Json) -> None:
        asked = json.dumps(message.get("id"), sort_keys=True)
        if asked in self.maybe and asked not in self._asked:
            return
        super()._response(message)

    def unanswered(self) -> list[str]:
        """Requests, certainly such, that the agent has not answered yet, as "id method"."""
        return [
            f"{one} {asked[0][0]}" for one, asked in self._asked.items() if one not in self.maybe
        ]


class Fuzz:
    """Makes inputs: `line()` gives bytes and, where it is open what they are, the ids in them.

    Args:
        seed: of everything.
        sessions: the ids of sessions that are open, to be named now and then.
    """

    def __init__(self, seed: int, sessions: list[str]) -> None:
        self._random = random.Random(seed)
        self._sessions = sessions
        self._id = 1_000_000 * (seed + 1)
        self._kinds: list[Callable[[], tuple[bytes, tuple[object, ...] | None]]] = [
            self._bytes, self._broken, self._twisted, self._nested, self._long, self._twice,
            self._constants, self._envelope, self._batch, self._answer, self._notification,
            self._request, self._request, self._request, self._request,
        ]  # fmt: skip

    def line(self) -> tuple[bytes, tuple[object, ...] | None]:
        """Whole lines, ended; and None where it is clear what they are, else ids they may have."""
        return self._random.choice(self._kinds)()

    def cuts(self, data: bytes) -> list[bytes]:
        """`data` in pieces, cut anywhere: inside a line, inside a character."""
        places = sorted(self._random.randrange(len(data) + 1) for _ in range(3))
        return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]

    # --- kinds of input

    def _bytes(self) -> tuple[bytes, tuple[object, ...] | None]:
        data = self._random.randbytes(self._random.randrange(1, 300))
        return data.replace(b"\n", b" ") + b"\n", (None,)

    def _broken(self) -> tuple[bytes, tuple[object, ...] | None]:
        line = _encoded(self._message())
        cut = line[: self._random.randrange(1, len(line) - 1)]
        return cut + b"\n", (self._id, None)

    def _twisted(self) -> tuple[bytes, tuple[object, ...] | None]:
        line = bytearray(_encoded(self._message()))
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(line))
            line[at] = self._random.choice(b'\x00\x7f\xff\xc3{}[]",:0 \\')
        # Whatever became of it may still be a request, even with another id.
        ids: tuple[object, ...] = (self._id, None)
        try:
            now = json.loads(bytes(line))
            ids = (*ids, now.get("id")) if isinstance(now, dict) else ids
        except (ValueError, RecursionError):
            pass
        return bytes(line) + b"\n", ids

    def _nested(self) -> tuple[bytes, tuple[object, ...] | None]:
        depth = self._random.choice(DEPTHS)
        opening, closing = self._random.choice(((b"[", b"]"), (b'{"a":', b"}")))
        deep = opening * depth + b"1" + closing * depth
        if self._random.random() < 0.5:
            return deep + b"\n", (None,)
        method = self._random.choice(sorted(AGENT_METHODS)).encode()
        head = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":' % (self._next(), method)
        return head + deep + b"}\n", (self._id, None)

    def _long(self) -> tuple[bytes, tuple[object, ...] | None]:
        message = self._message()
        message["params"] = {"_meta": {"pad": "x" * self._random.choice(LENGTHS)}}
        return _encoded(message) + b"\n", (self._id, None)

    def _twice(self) -> tuple[bytes, tuple[object, ...] | None]:
        first, second = self._next(), self._next()
        method = self._random.choice(sorted(AGENT_METHODS))
        text = (
            f'{{"jsonrpc":"2.0","id":{first},"id":{second},"method":"x","method":"{method}",'
            f'"params":{{"sessionId":"a","sessionId":7}},"params":{{}}}}'
        )
        return text.encode() + b"\n", (first, second, None)

    def _constants(self) -> tuple[bytes, tuple[object, ...] | None]:
        word = self._random.choice(("NaN", "Infinity", "-Infinity", "1e999", "01", "+1", "'x'"))
        text = f'{{"jsonrpc":"2.0","id":{self._next()},"method":"session/list","params":{word}}}'
        return text.encode() + b"\n", (self._id, None)

    def _envelope(self) -> tuple[bytes, tuple[object, ...] | None]:
        message = self._message()
        key = self._random.choice(("jsonrpc", "id", "method", "params", "result", "error"))
        message[key] = self._random.choice(ODD_VALUES)
        if self._random.random() < 0.3:
            del message[self._random.choice(sorted(message))]
        return _encoded(message) + b"\n", (message.get("id"), None)

    def _batch(self) -> tuple[bytes, tuple[object, ...] | None]:
        count = self._random.randrange(0, 4)
        return _encoded([self._message() for _ in range(count)]) + b"\n", (None,)

    def _answer(self) -> tuple[bytes, tuple[object, ...] | None]:
        answer: Json = {"jsonrpc": "2.0", "id": self._random.choice(ODD_VALUES)}
        answer[self._random.choice(("result", "error"))] = self._random.choice(ODD_VALUES)
        return _encoded(answer) + b"\n", (None, answer["id"])

    def _notification(self) -> tuple[bytes, tuple[object, ...] | None]:
        method = self._random.choice([*AGENT_METHODS, "$/cancel_request", "$/x", "session/update"])
        message: Json = {"jsonrpc": "2.0", "method": method, "params": self._params()}
        return _encoded(message) + b"\n", (None,)

    def _request(self) -> tuple[bytes, tuple[object, ...] | None]:
        return _encoded(self._message()) + b"\n", None

    # --- parts

    def _next(self) -> int:
        self._id += 1
        return self._id

    def _message(self) -> Json:
        methods = [*AGENT_METHODS, *AGENT_METHODS, *CLIENT_METHODS, "session/unknown", "_x", ""]
        return {
            "jsonrpc": "2.0",
            "id": self._next(),
            "method": self._random.choice(methods),
            "params": self._params(),
        }

    def _params(self) -> Any:
        if self._random.random() < 0.15:
            return self._random.choice(ODD_VALUES)
        return {field: self._value(field) for field in FIELDS if self._random.random() < 0.35}

    def _value(self, field: str) -> Any:
        if field == "sessionId" and self._sessions and self._random.random() < 0.6:
            return self._random.choice(self._sessions)
        if field == "prompt" and self._random.random() < 0.3:
            return [{"type": "text", "text": self._random.choice(ODD_TEXTS)}]
        if self._random.random() < 0.3:
            return self._random.choice(ODD_TEXTS)
        return self._random.choice(ODD_VALUES)


def _encoded(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

"""A process that is sent one input after the other, and whose answers are held to the reference."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.protocol.byte_fuzz import ByteFuzz
from tests.protocol.byte_reference import Expected, Reference, whole_number
from tests.protocol.byte_unclear import UnclearLines

WAIT = 60.0  # seconds that any single answer may take


class MismatchError(AssertionError):
    """The process answered what it should not have, or not what it should have."""


class FuzzedProcess:
    """A process that speaks JSON-RPC lines, driven without an event loop for speed.

    Args:
        command: how it is started.
        reference: what it is to answer.
        log: the file for its standard error.
    """

    def __init__(
        self, command: Sequence[str], *, reference: Reference, log: Path, env: Mapping[str, str]
    ) -> None:
        self._reference = reference
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
                start_new_session=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in = self.process.stdin.fileno()
        self._out = self.process.stdout.fileno()
        self._buffer = b""
        self._lines: list[bytes] = []
        self._ends = 0
        self._open: list[Expected] = []  # what is still to be answered
        self._unclear = UnclearLines()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(WAIT)
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()

    def ask(self, method: str, params: object) -> Any:
        """A good request, which has to bring a result; gives it."""
        self._ends += 1
        key = f"good {self._ends}"
        message = {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
        self._write(json.dumps(message).encode() + b"\n")
        while True:
            answer = self._receive()
            if isinstance(answer, dict) and answer.get("id") == key and "method" not in answer:
                if "result" not in answer:
                    raise MismatchError(f"a good {method} was answered {answer}")
                return answer["result"]
            self._take(answer)

    def round(self, fuzz: ByteFuzz, count: int, *, name: str) -> None:
        """Send inputs, and wait until all of them are answered.

        Raises:
            MismatchError: one was not answered as it has to be; with `name` and the input.
        """
        for number in range(count):
            data = fuzz.lines()
            try:
                self.feed(data, fuzz.pieces(data))
            except MismatchError as mismatch:
                shown = f"{name}, input {number}: {data[:3000]!r}"
                raise MismatchError(f"{shown}: {mismatch}") from None
        try:
            self.settle()
        except MismatchError as mismatch:
            raise MismatchError(f"{name}: {mismatch}") from None

    def feed(self, data: bytes, pieces: Sequence[bytes]) -> None:
        """Send an input in pieces; whatever is answered without an id has to come at once.

        Raises:
            MismatchError: an answer is wrong, or one is missing.
        """
        for line in data.split(b"\n")[:-1]:
            expected = self._reference.expected(line)
            if expected.unclear:
                self._unclear.add(expected)
            self._open.append(expected)
        for piece in pieces:
            self._write(piece)
        self._ends += 1
        end = f"end {self._ends}"
        self._write(b'{"jsonrpc":"2.0","id":"%b","method":"_fuzz/end"}\n' % end.encode())
        while True:
            answer = self._receive()
            if isinstance(answer, dict) and answer.get("id") == end:
                break
            self._take(answer)
        for expected in self._open:
            late = [one for one in expected.replies if one.id is None and one.code is not None]
            if late:
                raise MismatchError(f"not answered: {late}")
        self._open = [one for one in self._open if one.replies or one.array]

    def settle(self) -> None:
        """Wait until everything is answered that has to be."""
        while any(one.replies or one.array for one in self._open):
            self._take(self._receive())
        self._open.clear()
        # An unclear line of this round may have been a request, whose answer is on its way.
        self._unclear.next_round()

    def end(self) -> int:
        """Close its standard input, and give its exit status."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait(WAIT)

    def _take(self, message: Any) -> None:
        if isinstance(message, dict) and "method" in message:
            return  # a notification of its own, or a request
        for expected in self._open:
            if expected.array is not None and isinstance(message, list):
                pairs = zip(expected.array, message, strict=False)
                same = len(message) == len(expected.array)
                if same and all(reply.fits(one) for reply, one in pairs):
                    expected.array = None
                    return
            elif isinstance(message, dict):
                for place, reply in enumerate(expected.replies):
                    if reply.fits(message):
                        del expected.replies[place]
                        return
        if self._unclear.explain(message if isinstance(message, list) else [message]):
            return
        waiting = [(one.replies, one.array) for one in self._open if one.replies or one.array]
        raise MismatchError(f"answered {message}; expected was {waiting}")

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._in, view[:65536]) :]

    def _receive(self) -> Any:
        deadline = time.monotonic() + WAIT
        while not self._lines:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                raise MismatchError(f"no answer within {WAIT} s; expected {self._open}")
            piece = os.read(self._out, 1 << 16)
            if not piece:
                raise MismatchError(f"the process ended with status {self.process.wait(WAIT)}")
            *self._lines, self._buffer = (self._buffer + piece).split(b"\n")
        line = self._lines.pop(0)
        message = json.loads(line.decode(), parse_int=whole_number)
        for one in message if isinstance(message, list) else [message]:
            if one.get("jsonrpc") != "2.0":
                raise MismatchError(f"no message: {line[:500]!r}")
            if "method" not in one and ("result" in one) == ("error" in one):
                raise MismatchError(f"not one of result and error: {line[:500]!r}")
        if message == []:
            raise MismatchError("an empty array")
        return message

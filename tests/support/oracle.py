"""Judges every line that an agent writes: its framing, its schema, and the order of things.

One oracle watches one connection. It is told what the client sent and what the agent wrote, in the
order in which a client would see it, and raises `ViolationError` for the first line that no
conforming agent would have written. The rules are those of the protocol's documentation; the ids
in the messages are of the project's list of wire requirements.

What is here is JSON-RPC and the choice of a version. What each version adds is in `oracle_v1` and
`oracle_v2`; the answer to `initialize` says which of them applies.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.framing import (
    ClientFaultError,
    Json,
    ViolationError,
    check_error,
    framed,
    is_id,
    key,
    require,
)
from tests.support.oracle_rules import Asked, Rules
from tests.support.oracle_v1 import RulesV1
from tests.support.oracle_v2 import RulesV2
from tests.support.wire_schema import wire_schema

__all__ = ["Json", "Oracle", "ViolationError"]

_RULES: dict[int, type[Rules]] = {1: RulesV1, 2: RulesV2}
_FAULTS = {-32700, -32600}
_LONG_LINE = 1 << 20
_LARGEST_BATCH = 1000


class _Batch:
    """An array of the client's that is to be answered with one array."""

    def __init__(self) -> None:
        self.open: list[str] = []  # requests not answered yet
        self.faults = 0


class Oracle:
    """The rules of one connection."""

    def __init__(self, *, schema: bool = True) -> None:
        self.lines = 0
        self.rules: Rules | None = None  # those of the version, once it is agreed on
        self._with_schema = schema
        self._asked: dict[str, list[tuple[str, Json]]] = {}
        self._batches: dict[str, list[_Batch]] = {}  # of the requests that came in one
        self._faults = 0  # lines sent that may be answered without an id
        self._open: dict[
            str, Asked
        ] = {}  # requests of the agent's that the client has not answered
        self._early: list[tuple[str, Asked]] = []  # what the client said before it knew the version
        self._proposed = 1

    @property
    def version(self) -> int | None:
        """The protocol version that was agreed on."""
        return None if self.rules is None else self.rules.version

    # --- what the client does

    def sent(self, data: bytes) -> None:
        """The client wrote these bytes: one or several lines, right or wrong ones."""
        for line in data.split(b"\n"):
            if line.strip():
                self._sent_line(line)

    def leaving(self) -> None:
        """The client ends the connection: what runs is stopped without its asking."""
        if self.rules is not None:
            self.rules.leaves()

    def vet(self, message: Json) -> None:
        """Hold a message of the client's to the schema, before it is sent.

        Raises:
            ClientFaultError: no conforming client would send it.
        """
        method = message.get("method")
        if method is None:
            waiting = self._open.get(key(message.get("id")))
            if waiting is not None and "result" in message:
                self._vet(waiting.method, "client", "Response", message["result"])
        elif isinstance(method, str) and not method.startswith("_"):
            params = message.get("params", {})
            if method == "initialize" and isinstance(params.get("protocolVersion"), int):
                self._proposed = min(max(params["protocolVersion"], 1), max(_RULES))
            kind = "Request" if "id" in message else "Notification"
            self._vet(method, "protocol" if method.startswith("$/") else "agent", kind, params)

    def _vet(self, method: str, side: str, kind: str, instance: object) -> None:
        schema = wire_schema(f"v{self.version or self._proposed}") if self._with_schema else None
        if schema is None:
            return
        if not schema.knows(method, side, kind):
            raise ClientFaultError(f"{method} is no {kind.lower()} that a client sends")
        problem = schema.problem(method, side, kind, instance)
        if problem is not None:
            raise ClientFaultError(f"{method}: {problem}")

    def _sent_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._faults += 1
            return
        if len(line) > _LONG_LINE:
            self._faults += 1  # over the limit it is answered without having been read
        batched = self.version is not None and self.version >= 2
        if batched and isinstance(message, list) and 0 < len(message) <= _LARGEST_BATCH:
            batch = _Batch()
            for entry in message:
                self._sent_message(entry, batch)
        else:
            self._sent_message(message, None)

    def _sent_message(self, message: Any, batch: _Batch | None) -> None:
        if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
            self._fault(batch)
            return
        method = message.get("method")
        if method is None:
            if "id" in message and ("result" in message or "error" in message):
                request = self._open.pop(key(message["id"]), None)
                if request is not None and self.rules is not None:
                    self.rules.answers(request, message)
            else:
                self._fault(batch)
            return
        params = message["params"] if isinstance(message.get("params"), dict) else {}
        if "id" not in message:
            self._tell_rules("tells", Asked("", method, params))
            return
        if not is_id(message["id"]):
            self._fault(batch)
            return
        if message.get("jsonrpc") != "2.0":
            self._fault(batch)
        name = key(message["id"])
        self._asked.setdefault(name, []).append((method, params))
        if batch is not None:
            batch.open.append(name)
            self._batches.setdefault(name, []).append(batch)
        self._tell_rules("asks", Asked(name, method, params))

    def _fault(self, batch: _Batch | None) -> None:
        if batch is None:
            self._faults += 1
        else:
            batch.faults += 1

    def _tell_rules(self, what: str, request: Asked) -> None:
        if self.rules is None:
            self._early.append((what, request))
        elif what == "asks":
            self.rules.asks(request)
        else:
            self.rules.tells(request.method, request.params)

    # --- what the agent does

    def received(self, line: bytes) -> list[Json]:
        """The agent wrote this line (its end included); the decoded messages, mostly one.

        Raises:
            ViolationError: a conforming agent would not have written it here.
        """
        self.lines += 1
        message = framed(line)
        try:
            if isinstance(message, list):
                self._array(message)
                return message
            if "method" in message:
                self._from_agent(message)
            else:
                batched = self._batches.get(key(message.get("id")))
                require(not batched, "T3: answered outside the array of its batch")
                self._response(message)
        except ViolationError as violation:
            raise ViolationError(f"{violation}\n  line: {line[:2000]!r}") from None
        return [message]

    def finished(self) -> None:
        """The connection ended in order: nothing may be left half said.

        Raises:
            ViolationError: something was begun and not ended.
        """
        if self.rules is not None:
            self.rules.finished()

    def _array(self, messages: list[Json]) -> None:
        """The answers to one batch, all of them."""
        ids = [key(one.get("id")) for one in messages]
        batch = next((self._batches[one][0] for one in ids if one in self._batches), None)
        require(batch is not None or self.version == 2, "T3: an array that answers no batch")
        for one, message in zip(ids, messages, strict=True):
            require("method" not in message, "T3: a request or notification in an array")
            if batch is not None and one in batch.open:
                batch.open.remove(one)
                self._batches[one].remove(batch)
                if not self._batches[one]:
                    del self._batches[one]
            elif batch is not None and one == "null" and batch.faults:
                batch.faults -= 1
                self._faults += 1
            self._response(message)
        require(batch is None or not batch.open, "T3: an array without some of its answers")

    def _response(self, message: Json) -> None:
        require(("result" in message) != ("error" in message), "T2: not one of result and error")
        extra = set(message) - {"jsonrpc", "id", "result", "error"}
        require("id" in message and not extra, f"T2: id missing, or other members {extra}")
        if "error" in message:
            check_error(message["error"])
        name = key(message["id"])
        waiting = self._asked.get(name)
        if not waiting:
            fault = "error" in message and message["id"] is None and self._faults > 0
            require(fault, f"T2: answers {name}, which nobody asked or which was answered before")
            require(message["error"]["code"] in _FAULTS, "T3: not -32700 or -32600 without an id")
            self._faults -= 1
            return
        method, params = waiting.pop(0)
        if not waiting:
            del self._asked[name]
        request = Asked(name, method, params)
        if method == "initialize" and isinstance(message.get("result"), dict):
            self._agree(request, message["result"])
        if self.rules is None:
            require("error" in message, "I2: answered before initialize was")
            self._early = [one for one in self._early if one[1] != request]
            return
        if "result" in message and not self.rules.is_notification(method):
            self.rules.validate(method, "agent", "Response", message["result"])
        self.rules.answered(request, message)

    def _agree(self, request: Asked, result: Json) -> None:
        """Take up the rules of the version in the answer to `initialize`."""
        version, wanted = result.get("protocolVersion"), request.params.get("protocolVersion")
        if type(version) is not int or version not in _RULES:
            raise ViolationError(f"I1: {version} is not a version")
        higher = type(wanted) is int and version > wanted
        require(not higher, f"I1: {version} is higher than {wanted}, which was asked for")
        if self.rules is None:
            kind = _RULES[version]
            self.rules = kind(wire_schema(f"v{version}") if self._with_schema else None)
            early, self._early = self._early, []
            for what, one in early:
                self._tell_rules(what, one)
        require(self.rules.version == version, "I1: the version changed on the connection")
        self.rules.validate("initialize", "agent", "Response", result)
        self.rules.initialized(request.params, result)

    def _from_agent(self, message: Json) -> None:
        extra = set(message) - {"jsonrpc", "id", "method", "params"}
        require(not extra, f"T2: other members {extra}")
        if self.rules is None:
            raise ViolationError("I2: precedes the response to initialize")
        method, params = message["method"], message.get("params")
        require(isinstance(method, str), "T2: the method is not a string")
        if not isinstance(params, dict):
            raise ViolationError(f"T2: {method} without params")
        if "id" not in message:
            side = "protocol" if method.startswith("$/") else "client"
            self.rules.validate(method, side, "Notification", params)
            self.rules.told(method, params)
            return
        require(is_id(message["id"]) and message["id"] is not None, "T2: not an id")
        name = key(message["id"])
        require(name not in self._open, "T2: the id is in use")
        request = Asked(name, method, params)
        self._open[name] = request
        self.rules.validate(method, "client", "Request", params)
        self.rules.asked(request)

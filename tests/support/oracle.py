"""Judges every line that an agent writes: its framing, its schema, and the order of things.

One oracle watches one connection. It is told what the client sent and what the agent wrote, in the
order in which a client would see it, and raises `ViolationError` for the first line that no
conforming agent would have written. The rules are those of the protocol's documentation; the ids
in the messages are of the project's list of wire requirements.
"""

from __future__ import annotations

import json
from typing import Any

from tests.support.framing import ViolationError, check_error, framed, is_id, key, require
from tests.support.wire_schema import Json, WireSchema, wire_schema

_TURN_UPDATES = {
    "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
}  # fmt: skip
_ENDED = {"completed", "failed"}
_OPENS = {"session/new", "session/load", "session/resume", "session/fork"}
_FAULTS = {-32700, -32600}
_LONG_LINE = 1 << 20


class _Session:
    """What the client knows of a session."""

    def __init__(self) -> None:
        self.known = False
        self.loading = 0
        self.prompts: set[str] = set()
        self.calls: dict[str, str] = {}  # status by id

    def open_calls(self) -> list[str]:
        return [call for call, status in self.calls.items() if status not in _ENDED]


class Oracle:
    """The rules of one connection."""

    def __init__(self, *, schema: WireSchema | bool | None = True) -> None:
        self.schema = wire_schema() if schema is True else schema or None
        self.lines = 0
        self._asked: dict[str, list[tuple[str, Json]]] = {}
        self._faults = 0  # lines sent that may be answered without an id
        self._open: dict[str, str] = {}  # requests of the agent's that the client has not answered
        self._sessions: dict[str, _Session] = {}
        self._initialized = False
        self._offers: Json = {}

    # --- what the client does

    def sent(self, data: bytes) -> None:
        """The client wrote these bytes: one or several lines, right or wrong ones."""
        for line in data.split(b"\n"):
            if line.strip():
                self._sent_line(line)

    def _sent_line(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            self._faults += 1
            return
        if len(line) > _LONG_LINE:
            self._faults += 1  # over the limit it is answered without having been read
        if not isinstance(message, dict) or not isinstance(message.get("method", ""), str):
            self._faults += 1
            return
        method = message.get("method")
        if method is None:
            if "id" in message and ("result" in message or "error" in message):
                self._open.pop(key(message["id"]), None)
            else:
                self._faults += 1
            return
        params = message["params"] if isinstance(message.get("params"), dict) else {}
        if "id" not in message:
            return
        if not is_id(message["id"]):
            self._faults += 1
            return
        if message.get("jsonrpc") != "2.0":
            self._faults += 1
        self._asked.setdefault(key(message["id"]), []).append((method, params))
        self._begin(method, params, key(message["id"]))

    def _begin(self, method: str, params: Json, asked: str) -> None:
        if method == "initialize":
            offers = params.get("clientCapabilities")
            self._offers = offers if isinstance(offers, dict) else {}
        session = self._session(params)
        if session is None:
            return
        if method == "session/prompt":
            session.prompts.add(asked)
        if method == "session/load":
            session.loading += 1
            session.calls = {}

    # --- what the agent does

    def received(self, line: bytes) -> Json:
        """The agent wrote this line (its end included); the decoded message.

        Raises:
            ViolationError: a conforming agent would not have written it here.
        """
        self.lines += 1
        message = framed(line)
        try:
            if "method" in message:
                self._from_agent(message)
            else:
                self._response(message)
        except ViolationError as violation:
            raise ViolationError(f"{violation}\n  line: {line[:2000]!r}") from None
        return message

    def finished(self) -> None:
        """The connection ended in order: nothing may be left half said.

        Raises:
            ViolationError: a tool call of a turn that was answered is still open.
        """
        for name, session in self._sessions.items():
            if not session.prompts:
                require(not session.open_calls(), f"P3: calls of {name} never ended")

    def _response(self, message: Json) -> None:
        require(("result" in message) != ("error" in message), "T2: not one of result and error")
        extra = set(message) - {"jsonrpc", "id", "result", "error"}
        require("id" in message and not extra, f"T2: id missing, or other members {extra}")
        if "error" in message:
            check_error(message["error"])
        asked = key(message["id"])
        waiting = self._asked.get(asked)
        if not waiting:
            fault = "error" in message and message["id"] is None and self._faults > 0
            require(fault, f"T2: answers {asked}, which nobody asked or which was answered before")
            require(message["error"]["code"] in _FAULTS, "T3: not -32700 or -32600 without an id")
            self._faults -= 1
            return
        method, params = waiting.pop(0)
        if not waiting:
            del self._asked[asked]
        if "result" in message:
            self._validate(method, "agent", "Response", message["result"])
        self._end(method, params, asked, message)

    def _end(self, method: str, params: Json, asked: str, message: Json) -> None:
        result = message.get("result")
        if method == "initialize" and isinstance(result, dict):
            self._initialized = True
            self._check_initialize(result)
        session = self._session(params)
        if method == "session/prompt" and session is not None:
            session.prompts.discard(asked)
            if not session.prompts:
                require(not session.open_calls(), f"P3: calls still open: {session.open_calls()}")
        if method == "session/load" and session is not None:
            session.loading -= 1
            require(result is None or not session.open_calls(), "S4: replay left calls open")
        if not isinstance(result, dict):
            return
        if method in _OPENS:
            name = result.get("sessionId", params.get("sessionId"))
            if not isinstance(name, str):
                raise ViolationError(f"{method} answered without a session")
            self._sessions.setdefault(name, _Session()).known = True
            self._check_options(result.get("configOptions"))
        if method in {"session/close", "session/delete"} and session is not None:
            session.known = False
        if method == "session/set_config_option":
            self._check_options(result.get("configOptions"))

    def _check_initialize(self, result: Json) -> None:
        terminal = bool(self._offers.get("auth", {}).get("terminal")) or bool(
            (self._offers.get("_meta") or {}).get("terminal-auth")
        )
        for method in result.get("authMethods", []):
            require(terminal or method.get("type") != "terminal", "I4: terminal login not offered")
        require(
            any(method.get("type", "agent") == "agent" for method in result.get("authMethods", [])),
            "I4: no login method of type agent",
        )

    def _from_agent(self, message: Json) -> None:
        extra = set(message) - {"jsonrpc", "id", "method", "params"}
        require(not extra, f"T2: other members {extra}")
        require(self._initialized, "I2: precedes the response to initialize")
        method, params = message["method"], message.get("params")
        require(isinstance(method, str), "T2: the method is not a string")
        if not isinstance(params, dict):
            raise ViolationError(f"T2: {method} without params")
        if "id" not in message:
            if method.startswith("$/"):
                self._validate(method, "protocol", "Notification", params)
                return
            self._validate(method, "client", "Notification", params)
            if method == "session/update":
                self._update(params)
            return
        require(is_id(message["id"]) and message["id"] is not None, "T2: not an id")
        require(key(message["id"]) not in self._open, "T2: the id is in use")
        self._open[key(message["id"])] = method
        self._validate(method, "client", "Request", params)
        self._check_offered(method, params)
        if method == "session/request_permission":
            self._permission(params)

    def _check_offered(self, method: str, params: Json) -> None:
        offers = self._offers
        fs = offers.get("fs") or {}
        elicitation = offers.get("elicitation") or {}
        offered = {
            "fs/read_text_file": fs.get("readTextFile"),
            "fs/write_text_file": fs.get("writeTextFile"),
            "elicitation/create": elicitation.get(params.get("mode", "form")) is not None,
            "session/request_permission": True,
        }.get(method, offers.get("terminal") if method.startswith("terminal/") else None)
        require(bool(offered), f"I6: {method} was not offered")
        if "sessionId" in params:
            require(self._known(params), f"{method} for a session that the client does not know")

    def _permission(self, params: Json) -> None:
        session = self._sessions[params["sessionId"]]
        call = params["toolCall"]["toolCallId"]
        require(bool(session.prompts), "P6: asked for permission outside a turn")
        require(call in session.open_calls(), f"P3: permission for {call}, which is not open")
        ids = [option["optionId"] for option in params["options"]]
        require(len(set(ids)) == len(ids) > 0, "P6: options are missing or not distinct")
        require(params["options"][0]["kind"] == "allow_once", "P6: allow_once is not first")

    def _update(self, params: Json) -> None:
        session = self._sessions.get(params["sessionId"])
        if session is None or not self._known(params):
            raise ViolationError("S2: an update of a session that the client does not know")
        update = params["update"]
        kind = update["sessionUpdate"]
        live = bool(session.prompts) or session.loading > 0
        require(live or kind not in _TURN_UPDATES, f"T6: {kind} outside a turn")
        extensions = self._offers.get("session") or {}
        if kind == "notice":
            require(extensions.get("notices") is not None, "I6: notices were not offered")
        if kind.startswith("compaction"):
            require(extensions.get("compaction") is not None, "I6: compaction was not offered")
        if kind == "config_option_update":
            self._check_options(update.get("configOptions"))
        if kind == "tool_call":
            call = update["toolCallId"]
            require(call not in session.calls, f"P3: tool_call {call} came twice")
            session.calls[call] = update.get("status", "pending")
        if kind == "tool_call_update":
            call = update["toolCallId"]
            require(call in session.calls, f"P3: {call} is updated before its tool_call")
            require(session.calls[call] not in _ENDED, f"P3: {call} is updated after it ended")
            session.calls[call] = update.get("status") or session.calls[call]

    def _check_options(self, options: Any) -> None:
        boolean = ((self._offers.get("session") or {}).get("configOptions") or {}).get("boolean")
        for option in options or ():
            known = boolean is not None or option.get("type") != "boolean"
            require(known, "I6: boolean options were not offered")

    # --- helpers

    def _validate(self, method: str, side: str, kind: str, instance: object) -> None:
        if self.schema is None or method.startswith("_"):
            return
        if not self.schema.knows(method, side, kind):
            require(kind == "Response", f"{method} is no {kind.lower()} of the protocol")
            return
        problem = self.schema.problem(method, side, kind, instance)
        require(problem is None, f"schema: {method}: {problem}")

    def _known(self, params: Json) -> bool:
        session = self._sessions.get(params["sessionId"])
        return session is not None and (session.known or session.loading > 0)

    def _session(self, params: Json) -> _Session | None:
        name = params.get("sessionId")
        return self._sessions.setdefault(name, _Session()) if isinstance(name, str) else None

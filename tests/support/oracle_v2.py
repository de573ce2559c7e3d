"""The rules of protocol version 2, its unstable part included.

What concerns one session is in `oracle_v2_session`.

Sources: Agent Client Protocol v2, Initialization, Session Setup, Prompt Lifecycle, Tool Calls,
Elicitation, and the descriptions in the schema.
"""

from __future__ import annotations

from tests.support.framing import Json, ViolationError, key, require
from tests.support.oracle_rules import Asked, Rules, check_choices, participants
from tests.support.oracle_v2_session import SessionV2
from tests.support.wire_schema import WireSchema

_CLOSES = {"session/close", "session/delete", "session/archive"}
_OPENS = {"session/new", "session/fork"}
_UPDATE = "session/update"
_FINAL = {"completed", "failed", "cancelled"}


class RulesV2(Rules):
    """The rules of version 2."""

    version = 2
    client_capabilities = "capabilities"
    agent_capabilities = "capabilities"

    def __init__(self, schema: WireSchema | None) -> None:
        super().__init__(schema)
        self._sessions: dict[str, SessionV2] = {}
        self._prompts: dict[str, str] = {}  # the session of each prompt that is not answered

    # --- what the client does

    def asks(self, request: Asked) -> None:
        self.declared(request.params)
        session = self._session(request.params)
        if session is None:
            return
        if request.method == "session/prompt":
            session.prompts.add(request.id)
            self._prompts[request.id] = request.params["sessionId"]
        if request.method == "session/resume":
            replay = request.params.get("replayFrom") is not None
            session.resumes(request.id, replay=replay)
        if request.method in _CLOSES:
            session.stops()
        if request.method == "tool_call/cancel":
            for child in session.children:  # it may work for the call
                child.stops(turn=False)

    def tells(self, method: str, params: Json) -> None:
        session = self._session(params)
        if method == "session/cancel" and session is not None:
            session.stops()
        if method == "$/cancel_request":
            prompt = self._prompts.get(key(params.get("requestId")))
            if prompt is not None:
                self._sessions[prompt].stops(turn=False)

    def answers(self, request: Asked, message: Json) -> None:
        session = self._session(request.params)
        if session is None:
            return
        session.asking.pop(request.id, None)
        result = message.get("result")
        outcome = result.get("outcome") if isinstance(result, dict) else None
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            session.stops(turn=False)

    def leaves(self) -> None:
        super().leaves()
        for session in self._sessions.values():
            session.left = True

    # --- what the agent does

    def answered(self, request: Asked, message: Json) -> None:
        method, params, result = request.method, request.params, message.get("result")
        session = self._session(params)
        if method in _OPENS and isinstance(result, dict):
            name = result["sessionId"]
            self._sessions.setdefault(name, SessionV2()).known = True
        if isinstance(result, dict):
            self.check_login(method, result)
        if method == "session/list" and isinstance(result, dict):
            self.check_listed(result, "session", "archive")
        if session is None:
            return
        if method == "session/prompt":
            session.prompts.discard(request.id)
            self._prompts.pop(request.id, None)
            if isinstance(result, dict):
                session.inserted(result["messageId"])
        if method == "session/resume":
            session.resumed(request.id, success=isinstance(result, dict))
            session.known = session.known or isinstance(result, dict)
        if method in _CLOSES and isinstance(result, dict):
            session.closed()
        if method == "tool_call/cancel" and isinstance(result, dict):
            known = params.get("toolCallId") in session.calls
            require(known, "P7: a call was cancelled that is unknown")
        if method == "terminal/cancel" and isinstance(result, dict):
            known = params.get("terminalId") in session.terminals
            require(known, "P7: a terminal was cancelled that is unknown")

    def asked(self, request: Asked) -> None:
        method, params = request.method, request.params
        self.check_shared(method, params)
        if method == "mcp/message" or "sessionId" not in params:
            return
        session = self._known(params["sessionId"], method)
        session.asks(request.id, method)
        if method == "session/request_permission":
            self._permission(session, params)

    def told(self, method: str, params: Json) -> None:
        self.check_shared(method, params)
        if method == "$/cancel_request":
            for session in self._sessions.values():
                session.asking.pop(key(params["requestId"]), None)
        if method == _UPDATE:
            update = params["update"]
            session = self._known(params["sessionId"], update["sessionUpdate"])
            if update["sessionUpdate"] == "session_message":
                for name in participants(update):
                    self._known(name, "a message")
            for name in session.update(update):
                self._announced(session, name)

    def finished(self) -> None:
        if not self.cut_short:
            for session in self._sessions.values():
                session.finished()

    # --- its parts

    def _permission(self, session: SessionV2, params: Json) -> None:
        require(bool(params["title"].strip()), "P6: asked for permission without a title")
        check_choices(params["options"])
        subject = params.get("subject") or {}
        call = subject.get("toolCallId")
        if subject.get("type") == "tool_call":
            call = subject["toolCall"]["toolCallId"]
        if call is not None:
            status = session.calls.get(call, "unknown")
            known = status not in {"unknown", *_FINAL}
            require(known, f"P3: permission for {call}, which is {status}")
        if subject.get("type") == "command":
            require(subject["cwd"].startswith("/"), "P6: a command's cwd is not absolute")

    def _announced(self, parent: SessionV2, name: str) -> None:
        child = self._sessions.setdefault(name, SessionV2())
        require(child.parent in {None, parent}, f"P13: {name} has a parent already")
        if child.parent is None:
            child.parent = parent
            parent.children.append(child)
        child.known = True

    def _known(self, name: str, what: str) -> SessionV2:
        session = self._sessions.get(name)
        if session is None or not (session.known or session.resuming):
            raise ViolationError(f"S2: {what} for a session that the client does not know")
        return session

    def _session(self, params: Json) -> SessionV2 | None:
        name = params.get("sessionId")
        return self._sessions.setdefault(name, SessionV2()) if isinstance(name, str) else None

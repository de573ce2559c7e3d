"""The rules of protocol version 1, its unstable part included.

Sources: Agent Client Protocol v1, Initialization, Session Setup, Prompt Turn, Tool Calls, and the
descriptions in the schema.
"""

from __future__ import annotations

from tests.support.framing import Json, ViolationError, key, require
from tests.support.oracle_rules import Asked, Rules, check_choices, offered, participants
from tests.support.wire_schema import WireSchema

_TURN_UPDATES = {
    "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan",
    "plan_update", "plan_removed",
}  # fmt: skip
_ENDED = {"completed", "failed"}
_OPENS = {"session/new", "session/load", "session/resume", "session/fork"}
_CLOSES = {"session/close", "session/delete", "session/archive"}
# What has to be advertised before an update of a kind may be sent.
_NEEDS = {
    "notice": ("session", "notices"),
    "compaction_update": ("session", "compaction"),
    "compaction_summary_chunk": ("session", "compaction"),
    "plan_update": ("plan",),
    "plan_removed": ("plan",),
    "subagent_update": ("subagents",),
    "session_message": ("subagents",),
    "session_message_chunk": ("subagents",),
}


class _Session:
    """What the client knows of a session."""

    def __init__(self) -> None:
        self.known = False
        self.child = False  # a subagent's: it works without prompts
        self.children: list[_Session] = []  # those that it announced
        self.loading = 0
        self.prompts: set[str] = set()
        self.calls: dict[str, str] = {}  # status by id
        self.asking: set[str] = set()  # ids of permission requests nobody has answered

    def open_calls(self) -> list[str]:
        return [call for call, status in self.calls.items() if status not in _ENDED]


class RulesV1(Rules):
    """The rules of version 1."""

    version = 1
    client_capabilities = "clientCapabilities"
    agent_capabilities = "agentCapabilities"

    def __init__(self, schema: WireSchema | None) -> None:
        super().__init__(schema)
        self._sessions: dict[str, _Session] = {}

    # --- what the client does

    def asks(self, request: Asked) -> None:
        self.declared(request.params)
        session = self._session(request.params)
        if session is None:
            return
        if request.method == "session/prompt":
            session.prompts.add(request.id)
        if request.method == "session/load":
            session.loading += 1
            for one in (session, *session.children):
                one.calls = {}

    def tells(self, method: str, params: Json) -> None:
        pass

    def answers(self, request: Asked, message: Json) -> None:
        session = self._session(request.params)
        if session is not None:
            session.asking.discard(request.id)

    # --- what the agent does

    def answered(self, request: Asked, message: Json) -> None:
        method, result = request.method, message.get("result")
        session = self._session(request.params)
        if method == "session/prompt" and session is not None:
            session.prompts.discard(request.id)
            for one in () if session.prompts else (session, *session.children):
                require(not one.open_calls(), f"P3: calls still open: {one.open_calls()}")
                asking = one.asking and not self.cut_short
                require(not asking, "P7: a permission is still asked for")
        if method == "session/load" and session is not None:
            session.loading -= 1
            quiet = result is not None and not session.prompts
            require(not quiet or not session.open_calls(), "S4: replay left calls open")
        if not isinstance(result, dict):
            return
        if method in _OPENS:
            name = result.get("sessionId", request.params.get("sessionId"))
            if not isinstance(name, str):
                raise ViolationError(f"{method} answered without a session")
            self._sessions.setdefault(name, _Session()).known = True
        if method in _CLOSES and session is not None:
            session.known = False
        if method == "session/list":
            self.check_listed(result, "sessionCapabilities", "archive")
        self.check_login(method, result)
        self._check_options(result)

    def asked(self, request: Asked) -> None:
        method, params = request.method, request.params
        self._check_offered(method)
        self.check_shared(method, params)
        if "sessionId" in params:
            require(self._known(params), f"{method} for a session that the client does not know")
        if method == "session/request_permission":
            self._permission(request)

    def told(self, method: str, params: Json) -> None:
        self.check_shared(method, params)
        if method == "session/update":
            self._update(params)
        if method == "$/cancel_request":
            for session in self._sessions.values():
                session.asking.discard(key(params["requestId"]))

    def finished(self) -> None:
        for name, session in self._sessions.items():
            if not session.prompts:
                require(not session.open_calls(), f"P3: calls of {name} never ended")

    # --- its parts

    def _check_offered(self, method: str) -> None:
        needs = {
            "fs/read_text_file": ("fs", "readTextFile"),
            "fs/write_text_file": ("fs", "writeTextFile"),
        }.get(method, ("terminal",) if method.startswith("terminal/") else ())
        require(not needs or offered(self.client, *needs), f"I6: {method} was not offered")

    def _permission(self, request: Asked) -> None:
        session = self._sessions[request.params["sessionId"]]
        call = request.params["toolCall"]["toolCallId"]
        require(bool(session.prompts) or session.child, "P6: asked for permission outside a turn")
        require(call in session.open_calls(), f"P3: permission for {call}, which is not open")
        check_choices(request.params["options"])
        session.asking.add(request.id)

    def _update(self, params: Json) -> None:
        session = self._sessions.get(params["sessionId"])
        if session is None or not self._known(params):
            raise ViolationError("S2: an update of a session that the client does not know")
        update = params["update"]
        kind = update["sessionUpdate"]
        live = bool(session.prompts) or session.loading > 0 or session.child
        require(live or kind not in _TURN_UPDATES, f"T6: {kind} outside a turn")
        if kind in _NEEDS:
            needs = _NEEDS[kind]
            require(offered(self.client, *needs), f"I6: {'.'.join(needs)} was not offered: {kind}")
        self._check_options(update)
        if kind == "tool_call":
            call = update["toolCallId"]
            require(call not in session.calls, f"P3: tool_call {call} came twice")
            session.calls[call] = update.get("status", "pending")
        if kind == "tool_call_update":
            call = update["toolCallId"]
            require(call in session.calls, f"P3: {call} is updated before its tool_call")
            require(session.calls[call] not in _ENDED, f"P3: {call} is updated after it ended")
            session.calls[call] = update.get("status") or session.calls[call]
        if kind == "session_message":
            for name in participants(update):
                require(self._known({"sessionId": name}), f"P13: a message names {name}")
        if kind == "subagent_update":
            child = self._sessions.setdefault(update["sessionId"], _Session())
            child.known = child.child = True
            if child not in session.children:
                session.children.append(child)

    def _check_options(self, holder: Json) -> None:
        boolean = offered(self.client, "session", "configOptions", "boolean")
        self.check_options(holder.get("configOptions"), boolean=boolean)

    def _known(self, params: Json) -> bool:
        session = self._sessions.get(params["sessionId"])
        return session is not None and (session.known or session.loading > 0)

    def _session(self, params: Json) -> _Session | None:
        name = params.get("sessionId")
        return self._sessions.setdefault(name, _Session()) if isinstance(name, str) else None

"""Types of hooks and their answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.elicitation import Response
from acp_agent.platform.decoding import decode_json

HookFunction = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
Permission = Literal["allow", "ask", "defer", "deny"]
# The strictest of several answers counts.
_STRICTNESS: tuple[Permission, ...] = ("allow", "ask", "defer", "deny")

_MAX_TITLE = 200  # characters of a title
_MAX_UPDATES = 20  # changes of permissions in one answer
_MAX_WATCHED = 100  # files that one answer can name
_MAX_TEXT_LENGTH = 10_000  # characters of a text from a hook, for the model or the user
_DECIDING_EVENTS: frozenset[HookEvent] = frozenset(
    {"PreModelSwitch", "PreToolUse", "PermissionRequest"}
)
# The events at which text that is no JSON is context for the model.
_PLAIN_TEXT: frozenset[HookEvent] = frozenset(
    {"SessionStart", "Setup", "UserPromptExpansion", "UserPromptSubmit"}
)
# The fields of answers without an effect in a replay.
_NOT_RECORDED = frozenset({"by", "failure", "message", "response", "variables", "watch"})


class Hook(Struct, frozen=True, kw_only=True):
    """One hook.

    Attributes:
        matcher: the tools, or the kinds of the event, for which it runs.
        command: a shell command, or with `args` a program.
        args: the arguments of the program; None: the shell runs the command.
        url: the HTTP endpoint that the event is sent to.
        prompt: the question for a model; `$ARGUMENTS` stands for the event.
        verifies: that model reads files of the project before it answers.
        continue_on_block: the turn continues if the model says no after a call.
        server: the MCP server whose `tool` is called.
        input: the arguments of the tool; `${path}` stands for a field of the event.
        headers: HTTP headers; they may name variables of the environment.
        header_variables: the variables that headers may name; None: all.
        shell: the shell that runs the command; "" is `/bin/sh`.
        condition: a permission rule that the call must match; "" matches all.
        timeout: the time limit in seconds.
        runs_async: the session does not wait for the hook, and ignores its decision.
        rewakes: its refusal has the model go on, although the session did not wait for it.
        once: it runs once in a session.
        blocks_on_failure: a failure of the hook refuses the action.
        by_user: it belongs to the user, so it may answer questions for them.
        source: the file that defines it.
        variables: additional variables of its environment.
        function: a Python function that runs in place of a program; same input and output.
        label: its name in messages; "": what it runs.
    """

    event: HookEvent
    matcher: str = ""
    command: str = ""
    args: tuple[str, ...] | None = None
    url: str = ""
    prompt: str = ""
    model: str = ""
    verifies: bool = False
    continue_on_block: bool = False
    server: str = ""
    tool: str = ""
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    header_variables: tuple[str, ...] | None = None
    shell: Literal["", "bash", "powershell"] = ""
    condition: str = ""
    timeout: float = 60.0
    runs_async: bool = False
    rewakes: bool = False
    once: bool = False
    blocks_on_failure: bool = False
    sandbox: bool = True
    by_user: bool = False
    source: str = ""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    function: HookFunction | None = None
    label: str = ""

    @property
    def name(self) -> str:
        """Return its label, or what it runs, for messages."""
        return self.label or self.program

    @property
    def program(self) -> str:
        """Return its program, address, prompt or tool on one line."""
        called = f"{self.server}: {self.tool}" if self.server else ""
        line = " ".join((self.url or self.command or self.prompt or called).split())
        return line if len(line) <= 80 else f"{line[:79]}…"

    @property
    def may_allow(self) -> bool:
        """Return whether it may answer a question for the user; models and servers may not."""
        return self.by_user and not self.prompt and not self.server


class HookAnswer(Struct, frozen=True, kw_only=True):
    """The answer of a hook, or of several together.

    Attributes:
        permission: the decision about a call; None: the rules decide.
        blocked: the action is refused; at the end of a turn: the turn continues.
        arguments: new arguments of the call.
        parts: the arguments of all parts of a call that does several things, if one has new ones.
        context: additional text for the model.
        output: text for the model in place of the call's result; None: the result.
        stop: the turn ends.
        display: text for the user in place of a piece of the answer; None: that piece.
        response: the answer to a form or page of an MCP server; None: the user answers.
        watch: the files whose changes run hooks.
        variables: variables of the environment for commands.
        permissions: changes of the session's rules (`permission_rules`).
        first_message: a message to the model before the first prompt.
        title: the new title of the session; "" leaves it unchanged.
        failure: why the hook itself failed; "" if it did not.
    """

    permission: Permission | None = None
    blocked: bool = False
    reason: str = ""
    arguments: JsonObject | None = None
    parts: tuple[JsonObject, ...] = ()
    context: str = ""
    output: str | None = None
    stop: bool = False
    display: str | None = None
    response: Response | None = None
    watch: tuple[str, ...] = ()
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    permissions: tuple[JsonObject, ...] = ()
    first_message: str = ""
    message: str = ""
    title: str = ""
    failure: str = ""
    by: Hook | None = None

    @property
    def changes_call(self) -> bool:
        """Return whether it has new arguments for the call."""
        return self.arguments is not None or bool(self.parts)

    @property
    def feedback(self) -> str:
        """Return the text with which the model continues at the end of a turn; "" for none."""
        return "\n".join(filter(None, [self.reason if self.blocked else "", self.context]))


NO_ANSWER = HookAnswer()


def recorded_fields(answer: HookAnswer) -> JsonObject:
    """Return the fields of an answer that have an effect in a replay."""
    return {
        name: value
        for name, value in msgspec.structs.asdict(answer).items()
        if name not in _NOT_RECORDED and value != getattr(NO_ANSWER, name)
    }


class _Specific(Struct, rename="camel"):
    """`hookSpecificOutput`: the fields for one event. Other fields are ignored."""

    permission_decision: str | None = None
    permission_decision_reason: str = ""
    updated_input: dict[str, Any] | None = None
    additional_context: str = ""
    updated_tool_output: Any = None
    updated_mcp_tool_output: Any = msgspec.field(default=None, name="updatedMCPToolOutput")
    decision: Any = None  # of a PermissionRequest
    display_content: str | None = None
    action: Literal["accept", "decline", "cancel"] | None = None
    content: dict[str, Any] | None = None
    watch_paths: list[str] = msgspec.field(default_factory=list)
    session_title: str = ""
    initial_user_message: str = ""


class _Output(Struct, rename="camel"):
    """The JSON that a hook prints. Other fields are ignored."""

    go_on: bool = msgspec.field(default=True, name="continue")
    stop_reason: str = ""
    decision: str | None = None
    reason: str = ""
    system_message: str = ""
    hook_specific_output: _Specific | None = None


def read_answer(hook: Hook, text: str) -> HookAnswer:
    """Return the answer that a hook printed before it ended with exit code 0.

    A JSON object is decoded. Other text is context for the model at a prompt and at the start of a
    session, and is ignored at other events.

    Raises:
        ValueError: the output begins like JSON but is not, or has wrong values.
    """
    text = text.strip()
    plain = hook.event in _PLAIN_TEXT
    if not text.startswith("{"):
        return HookAnswer(context=text[:_MAX_TEXT_LENGTH] if plain else "")
    try:
        output = decode_json(text.encode(), _Output)
    except msgspec.DecodeError as error:
        if plain and not isinstance(error, msgspec.ValidationError):
            return HookAnswer(context=text[:_MAX_TEXT_LENGTH])
        raise ValueError(str(error)) from None
    specific = output.hook_specific_output or _Specific()
    permission, reason = _permission(hook, output, specific)
    arguments, interrupts = specific.updated_input, False
    permissions: tuple[JsonObject, ...] = ()
    if isinstance(specific.decision, dict):
        if permission == "allow" and hook.event == "PermissionRequest":
            permissions = _updates(specific.decision)
        interrupts = permission == "deny" and specific.decision.get("interrupt") is True
        if isinstance(specific.decision.get("updatedInput"), dict):
            arguments = specific.decision["updatedInput"]
    output_for_model = specific.updated_tool_output
    if output_for_model is None:
        output_for_model = specific.updated_mcp_tool_output
    return HookAnswer(
        permission=permission if hook.event in _DECIDING_EVENTS else None,
        blocked=permission == "deny",
        reason=(reason or output.reason or output.stop_reason)[:_MAX_TEXT_LENGTH],
        arguments=arguments if hook.event in {"PreToolUse", "PermissionRequest"} else None,
        context=specific.additional_context[:_MAX_TEXT_LENGTH],
        output=_as_text(output_for_model),
        display=specific.display_content,
        response=None
        if specific.action is None
        else Response(action=specific.action, content=specific.content),
        watch=tuple(specific.watch_paths[:_MAX_WATCHED]),
        permissions=permissions,
        first_message=specific.initial_user_message[:_MAX_TEXT_LENGTH]
        if hook.event == "SessionStart"
        else "",
        title=" ".join(specific.session_title.split())[:_MAX_TITLE],
        stop=interrupts or not output.go_on,
        message=(output.system_message or ("" if output.go_on else output.stop_reason))[
            :_MAX_TEXT_LENGTH
        ],
        by=hook,
    )


def _permission(hook: Hook, output: _Output, specific: _Specific) -> tuple[Permission | None, str]:
    """Return the decision about the action, and the reason.

    Raises:
        ValueError: the decision has an unknown value.
    """
    if isinstance(specific.decision, dict):
        behavior = specific.decision.get("behavior")
        if behavior not in {"allow", "deny"}:
            raise ValueError(f"decision.behavior: {behavior!r}, expected allow or deny")
        return behavior, str(specific.decision.get("message") or "")
    if specific.permission_decision is not None:
        if specific.permission_decision not in _STRICTNESS:
            raise ValueError(f"permissionDecision: {specific.permission_decision!r}")
        return specific.permission_decision, specific.permission_decision_reason
    match output.decision:
        case None:
            return None, ""
        case "block":
            return "deny", output.reason
        case "approve":
            return ("allow" if hook.event == "PreToolUse" else None), output.reason
        case other:
            raise ValueError(f"decision: {other!r}, expected approve or block")


def _updates(decision: dict[str, Any]) -> tuple[JsonObject, ...]:
    """Return the changes of permissions in a decision. Raises ValueError for another form."""
    updates = decision.get("updatedPermissions") or []
    if not isinstance(updates, list) or not all(isinstance(update, dict) for update in updates):
        raise ValueError("updatedPermissions: expected a list of objects")
    return tuple(updates[:_MAX_UPDATES])


def _as_text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def combine_answers(answers: Sequence[HookAnswer]) -> HookAnswer:
    """Return the answers of several hooks as one: the strictest decision counts."""
    if len(answers) == 1:
        return answers[0]
    decided = [answer for answer in answers if answer.permission is not None]
    strictest = max(
        decided, key=lambda answer: _STRICTNESS.index(answer.permission or "allow"), default=None
    )
    blocking = next((answer for answer in answers if answer.blocked), None)
    decisive = blocking or strictest or NO_ANSWER
    stopping = next((answer for answer in answers if answer.stop), None)
    return HookAnswer(
        permission=None if strictest is None else strictest.permission,
        blocked=blocking is not None,
        reason=decisive.reason or ("" if stopping is None else stopping.reason),
        arguments=next(
            (answer.arguments for answer in answers if answer.arguments is not None), None
        ),
        context="\n".join(answer.context for answer in answers if answer.context),
        output=next((answer.output for answer in answers if answer.output is not None), None),
        display=next((answer.display for answer in answers if answer.display is not None), None),
        response=next((answer.response for answer in answers if answer.response is not None), None),
        watch=tuple(path for answer in answers for path in answer.watch),
        variables={name: text for answer in answers for name, text in answer.variables.items()},
        permissions=tuple(update for answer in answers for update in answer.permissions),
        first_message="\n".join(answer.first_message for answer in answers if answer.first_message),
        stop=stopping is not None,
        message="\n".join(answer.message for answer in answers if answer.message),
        title=next((answer.title for answer in answers if answer.title), ""),
        failure="\n".join(answer.failure for answer in answers if answer.failure),
        by=decisive.by or next((answer.by for answer in answers if answer.by is not None), None),
    )


def without_unallowed_decision(answer: HookAnswer) -> HookAnswer:
    """Return an answer without a permission or response that its hook may not give."""
    may_allow = answer.by is not None and answer.by.may_allow
    if answer.response is not None and answer.response.action == "accept" and not may_allow:
        answer = replace(answer, response=None)
    if answer.permission == "allow" and not may_allow:
        return replace(answer, permission=None)
    return answer

"""Requests of the agent to the user: permissions, forms and pages to visit.

Source: Agent Client Protocol v1, session/request_permission and elicitation/create.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import webbrowser
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from urllib.parse import urlsplit

from acp_agent.cli.chat.frontend import Field, Frontend
from acp_agent.cli.chat.session_state import Calls, Choice, ShownCall
from acp_agent.cli.localization import translate
from acp_agent.cli.permission_answers import response
from acp_agent.platform.posix import has_browser
from protocol.jsonrpc.handlers import Call
from protocol.v1 import types as acp

_MAX_COMPARED_BYTES = 2_000_000  # largest file that is compared with a permission request's diff
_MAX_ANSWER_LENGTH = 10_000  # characters of an answer
_MAX_FIELDS = 50

_Value = acp.ElicitationContentValue


class Requests:
    """Asks the user what the agent requests, and returns the answers.

    Args:
        send_instruction: sends what the agent should do instead of a rejected call.
        is_current: returns whether a session is open and its turn is not cancelled.
    """

    def __init__(
        self,
        frontend: Frontend,
        *,
        calls: Callable[[], Calls],
        send_instruction: Callable[[str], Awaitable[None]],
        is_current: Callable[[str], bool],
        cwd: Path,
    ) -> None:
        self._frontend = frontend
        self._calls = calls
        self._send_instruction = send_instruction
        self._is_current = is_current
        self._cwd = cwd
        self._pages: dict[str, str] = {}  # messages of the pages that the user visits, by ID

    async def permission(
        self, params: acp.RequestPermissionRequest, _: Call
    ) -> acp.RequestPermissionResponse:
        """Ask the user. Without an answer the request is cancelled, which ends the call."""
        if not self._is_current(params.session_id):
            return response(None)
        call = self._calls().update(params.tool_call)
        warning = await asyncio.to_thread(_file_warning, call, self._cwd)
        answer = await self._frontend.ask_permission(call, params.options, warning)
        if not self._frontend.interactive:
            return response(None if answer is None else answer.option, by="nobody")
        if answer is None:
            return response(None)
        if answer.instruction:
            # First, so that the next request includes it.
            await self._send_instruction(answer.instruction)
        call.answer = answer.option.name
        return response(answer.option)

    async def elicitation(
        self, params: acp.CreateElicitationRequest, _: Call
    ) -> acp.CreateElicitationResponse:
        """Ask the user to fill in a form or visit a page."""
        match params:
            case acp.ElicitationFormMode():
                return await _answer_form(self._frontend, params)
            case acp.ElicitationUrlMode():
                self._pages[params.elicitation_id] = params.message
                return await _visit(self._frontend, params)
            case _:
                return acp.ElicitationDeclineAction()

    def elicitation_completed(self, params: acp.CompleteElicitationNotification) -> None:
        """Show that the user has finished with a page."""
        message = self._pages.pop(params.elicitation_id, None)
        if message is not None:
            self._frontend.say(translate("Done: {what}", what=message), "good")


def _file_warning(call: ShownCall, cwd: Path) -> str:
    """Return a warning if a file differs from the old text of the call's diff; else empty."""
    for diff in call.diffs:
        path = Path(diff.path)
        if not path.is_absolute() or not path.is_relative_to(cwd) or "[secret]" in diff.new_text:
            continue
        try:
            if not path.is_file():
                current = None
            elif path.stat().st_size > _MAX_COMPARED_BYTES:
                continue
            else:
                current = path.read_text("utf-8")
        except (OSError, ValueError):
            continue
        old = diff.old_text
        if _normalise_text(current) != _normalise_text(old) and "[secret]" not in (old or ""):
            name = path.relative_to(cwd)
            return translate("{file} has changed since this edit was proposed.", file=name)
    return ""


def _normalise_text(text: str | None) -> str:
    return "" if text is None else text.replace("\r\n", "\n").removeprefix("\ufeff").rstrip("\n")


class _InvalidError(Exception):
    """The field does not accept the input; the message says why."""


async def _answer_form(
    frontend: Frontend, form: acp.ElicitationFormMode
) -> acp.ElicitationAcceptAction | acp.ElicitationDeclineAction:
    """Ask the user to fill in a form; Esc in any field declines the form."""
    schema = form.requested_schema
    required = set(schema.required or ())
    frontend.say(f"? {form.message}", "warning")
    for text in (schema.title, schema.description):
        if text:
            frontend.say(f"  {text}")
    values: dict[str, _Value] = {}
    if len(schema.properties) > _MAX_FIELDS:
        frontend.say(translate("Declined the form: it has too many fields."), "bad")
        return acp.ElicitationDeclineAction()
    for name, field in schema.properties.items():
        if isinstance(field, acp.OtherPropertySchema):
            if name in required:
                frontend.say(
                    translate("Declined the form: the chat cannot ask for {field}.", field=name),
                    "bad",
                )
                return acp.ElicitationDeclineAction()
            continue
        value = await _ask_value(frontend, name, field, required=name in required)
        if value is None:
            return acp.ElicitationDeclineAction()
        if value != "" or name in required:
            values[name] = value
    return acp.ElicitationAcceptAction(content=values)


async def _visit(
    frontend: Frontend, page: acp.ElicitationUrlMode
) -> acp.ElicitationAcceptAction | acp.ElicitationDeclineAction | acp.ElicitationCancelAction:
    """Ask the user to visit a page; the browser opens only with the user's consent."""
    openable = page.url.lower().startswith(("http://", "https://")) and has_browser(
        os.environ, sys.platform
    )
    items = [
        *([Choice("open", translate("Open it in the browser"))] if openable else []),
        Choice("self", translate("I will open it myself")),
        Choice("no", translate("Do not open it")),
    ]
    frontend.say(f"? {page.message}\n  {page.url}", "warning")
    picked = await frontend.pick(translate("Open this page?"), items, page.url)
    if picked == "open" and not await asyncio.to_thread(_open_browser, page.url):
        frontend.say(translate("No browser found; open the address yourself."), "warning")
    if picked is None:
        return acp.ElicitationCancelAction()
    if picked == "no":
        return acp.ElicitationDeclineAction()
    frontend.say(translate("The agent waits until the command ends."), "dim")
    return acp.ElicitationAcceptAction()


def _open_browser(url: str) -> bool:
    try:
        return webbrowser.open(url)
    except (OSError, webbrowser.Error):
        return False


async def _ask_value(
    frontend: Frontend, name: str, field: acp.ElicitationPropertySchema, *, required: bool
) -> _Value | None:
    """Return the value of one field; empty if it is left out, None if the user declines."""
    match field:
        case acp.BooleanPropertySchema():
            items = [
                Choice("yes", translate("Yes"), current=field.default is True),
                Choice("no", translate("No"), current=field.default is False),
            ]
            picked = await _pick(frontend, name, field, items, required=required)
            return picked if picked is None or picked == "" else picked == "yes"
        case acp.StringPropertySchema(one_of=[*options]):
            items = [
                Choice(
                    option.const,
                    option.title,
                    option.description or "",
                    option.const == field.default,
                )
                for option in options
            ]
            return await _pick(frontend, name, field, items, required=required)
        case acp.StringPropertySchema(enum=[*values]):
            items = [Choice(v, v, current=v == field.default) for v in values]
            return await _pick(frontend, name, field, items, required=required)
        case acp.StringPropertySchema():
            return await _enter(
                frontend, name, field, lambda text: _text(text, field), required=required
            )
        case acp.IntegerPropertySchema() | acp.NumberPropertySchema():
            return await _enter(
                frontend, name, field, lambda text: _number(text, field), required=required
            )
        case acp.MultiSelectPropertySchema():
            return await _pick_several(frontend, name, field, required=required)
        case _:
            return ""


async def _pick(
    frontend: Frontend,
    name: str,
    field: acp.StringPropertySchema | acp.BooleanPropertySchema,
    choices: Sequence[Choice],
    *,
    required: bool,
) -> str | None:
    none = [] if required else [Choice("", translate("(leave empty)"))]
    return await frontend.pick(field.title or name, [*choices, *none], field.description or "")


async def _enter(
    frontend: Frontend,
    name: str,
    field: acp.StringPropertySchema | acp.NumberPropertySchema | acp.IntegerPropertySchema,
    parse: Callable[[str], _Value],
    *,
    required: bool,
) -> _Value | None:
    complaint = ""
    default = "" if field.default is None else str(field.default)
    while True:
        text = await frontend.enter_text(
            Field(
                title=field.title or name,
                description=field.description or "",
                default=default,
                complaint=complaint,
            )
        )
        if text is None:
            return None
        default = text = text[:_MAX_ANSWER_LENGTH]
        if not text.strip() and not required:
            return ""
        try:
            return parse(text)
        except _InvalidError as error:
            complaint = str(error)


async def _pick_several(
    frontend: Frontend, name: str, field: acp.MultiSelectPropertySchema, *, required: bool
) -> _Value | None:
    options: Mapping[str, str]
    match field.items:
        case acp.StringMultiSelectItems():
            options = {value: value for value in field.items.enum}
        case acp.TitledMultiSelectItems():
            options = {option.const: option.title for option in field.items.any_of}
        case _:
            return ""
    chosen = [value for value in field.default or () if value in options]
    minimum = field.min_items or (1 if required else 0)
    maximum = field.max_items if field.max_items is not None else len(options)
    complaint = ""
    while True:
        items = [
            Choice(value, f"[{'x' if value in chosen else ' '}] {title}")
            for value, title in options.items()
        ]
        done = Choice("", translate("Done ({count} chosen)", count=len(chosen)), current=True)
        picked = await frontend.pick(
            field.title or name, [*items, done], complaint or field.description or ""
        )
        if picked is None:
            return None
        if picked != "":
            chosen = [v for v in options if (v in chosen) != (v == picked)]
            complaint = ""
        elif minimum <= len(chosen) <= maximum:
            return chosen
        else:
            complaint = translate(
                "choose from {least} to {most} of them", least=minimum, most=maximum
            )


def _text(text: str, field: acp.StringPropertySchema) -> str:
    if field.min_length is not None and len(text) < field.min_length:
        raise _InvalidError(translate("at least {count} characters", count=field.min_length))
    if field.max_length is not None and len(text) > field.max_length:
        raise _InvalidError(translate("at most {count} characters", count=field.max_length))
    # Patterns are checked by the agent: a hostile one could block the terminal.
    if field.format is not None and not _has_format(text, field.format):
        raise _InvalidError(translate("not a valid {format}", format=field.format))
    return text


def _has_format(text: str, form: acp.StringFormat) -> bool:
    try:
        match form:
            case "email":
                return re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None
            case "uri":
                return bool(urlsplit(text).scheme)
            case "date":
                return bool(date.fromisoformat(text))
            case "date-time":
                return bool(datetime.fromisoformat(text))
    except ValueError:
        return False


def _number(text: str, field: acp.NumberPropertySchema | acp.IntegerPropertySchema) -> int | float:
    kind = int if isinstance(field, acp.IntegerPropertySchema) else float
    try:
        value = kind(text.strip())
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise _InvalidError(translate("not a number"))
    if field.minimum is not None and value < field.minimum:
        raise _InvalidError(translate("at least {count}", count=field.minimum))
    if field.maximum is not None and value > field.maximum:
        raise _InvalidError(translate("at most {count}", count=field.maximum))
    return value

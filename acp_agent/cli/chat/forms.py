"""Questions of the agent's to the user: forms, field by field, and pages to visit.

Source: Agent Client Protocol v1, elicitation/create.
"""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from urllib.parse import urlsplit

from acp_agent.cli.chat.front import Field, Front, Item
from acp_agent.cli.localization import translate
from protocol.v1 import types as acp

_LONGEST = 10_000  # characters of an answer
_FIELDS = 50

_Value = acp.ElicitationContentValue


class _RefusedError(Exception):
    """What was entered is not what the field takes; the message says why."""


async def answer_form(
    front: Front, form: acp.ElicitationFormMode
) -> acp.ElicitationAcceptAction | acp.ElicitationDeclineAction:
    """Let the user fill in a form; leaving a field with Esc declines the whole."""
    schema = form.requested_schema
    required = set(schema.required or ())
    front.say(f"? {form.message}", "warning")
    for text in (schema.title, schema.description):
        if text:
            front.say(f"  {text}")
    given: dict[str, _Value] = {}
    if len(schema.properties) > _FIELDS:
        front.say(translate("The form has too many fields; it is declined."), "bad")
        return acp.ElicitationDeclineAction()
    for name, field in schema.properties.items():
        if isinstance(field, acp.OtherPropertySchema):
            if name in required:
                front.say(
                    translate("The chat cannot ask for {field}; the form is declined.", field=name),
                    "bad",
                )
                return acp.ElicitationDeclineAction()
            continue
        value = await _value(front, name, field, required=name in required)
        if value is None:
            return acp.ElicitationDeclineAction()
        if value != "" or name in required:
            given[name] = value
    return acp.ElicitationAcceptAction(content=given)


async def visit(
    front: Front, page: acp.ElicitationUrlMode
) -> acp.ElicitationAcceptAction | acp.ElicitationDeclineAction | acp.ElicitationCancelAction:
    """Send the user to a page; it is never opened without being asked for."""
    openable = _scheme(page.url) in {"http", "https"} and _has_browser()
    items = [
        *([Item(value="open", name=translate("Open it in the browser"))] if openable else []),
        Item(value="self", name=translate("I open it myself")),
        Item(value="no", name=translate("Do not open it")),
    ]
    front.say(f"? {page.message}\n  {page.url}", "warning")
    picked = await front.pick(translate("Open this page?"), items, page.url)
    if picked == "open" and not await asyncio.to_thread(_open, page.url):
        front.say(translate("There is no browser here; open the address yourself."), "warning")
    if picked is None:
        return acp.ElicitationCancelAction()
    if picked == "no":
        return acp.ElicitationDeclineAction()
    front.say(translate("The agent waits until you are done there."), "dim")
    return acp.ElicitationAcceptAction()


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:
        return ""


def _has_browser() -> bool:
    """Whether there is a browser with a window; one for terminals would take this one."""
    return sys.platform == "darwin" or any(
        os.environ.get(name) for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
    )


def _open(url: str) -> bool:
    try:
        return webbrowser.open(url)
    except (OSError, webbrowser.Error):
        return False


async def _value(
    front: Front, name: str, field: acp.ElicitationPropertySchema, *, required: bool
) -> _Value | None:
    """The value of one field; an empty text where it is left out, None where the user left."""
    match field:
        case acp.BooleanPropertySchema():
            items = [
                Item(value="yes", name=translate("Yes"), current=field.default is True),
                Item(value="no", name=translate("No"), current=field.default is False),
            ]
            picked = await _pick(front, name, field, items, required=required)
            return picked if picked is None or picked == "" else picked == "yes"
        case acp.StringPropertySchema(one_of=[*titled]):
            items = [_item(option, field.default) for option in titled]
            return await _pick(front, name, field, items, required=required)
        case acp.StringPropertySchema(enum=[*values]):
            items = [Item(value=v, name=v, current=v == field.default) for v in values]
            return await _pick(front, name, field, items, required=required)
        case acp.StringPropertySchema():
            return await _enter(
                front, name, field, lambda text: _text(text, field), required=required
            )
        case acp.IntegerPropertySchema():
            return await _enter(
                front, name, field, lambda text: _number(int, text, field), required=required
            )
        case acp.NumberPropertySchema():
            return await _enter(
                front, name, field, lambda text: _number(float, text, field), required=required
            )
        case acp.MultiSelectPropertySchema():
            return await _several(front, name, field, required=required)
        case _:
            return ""


async def _pick(
    front: Front,
    name: str,
    field: acp.StringPropertySchema | acp.BooleanPropertySchema,
    items: Sequence[Item],
    *,
    required: bool,
) -> str | None:
    none = [] if required else [Item(value="", name=translate("(leave it out)"))]
    return await front.pick(field.title or name, [*items, *none], field.description or "")


async def _enter(
    front: Front,
    name: str,
    field: acp.StringPropertySchema | acp.NumberPropertySchema | acp.IntegerPropertySchema,
    read: Callable[[str], _Value],
    *,
    required: bool,
) -> _Value | None:
    complaint = ""
    entered = "" if field.default is None else str(field.default)
    while True:
        text = await front.enter(
            Field(
                title=field.title or name,
                description=field.description or "",
                default=entered,
                complaint=complaint,
            )
        )
        if text is None:
            return None
        entered = text = text[:_LONGEST]
        if not text.strip() and not required:
            return ""
        try:
            return read(text)
        except _RefusedError as refused:
            complaint = str(refused)


async def _several(
    front: Front, name: str, field: acp.MultiSelectPropertySchema, *, required: bool
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
    least = field.min_items or (1 if required else 0)
    most = field.max_items if field.max_items is not None else len(options)
    complaint = ""
    while True:
        items = [
            Item(value=value, name=f"[{'x' if value in chosen else ' '}] {title}")
            for value, title in options.items()
        ]
        done = Item(
            value="", name=translate("Done ({count} chosen)", count=len(chosen)), current=True
        )
        picked = await front.pick(
            field.title or name, [*items, done], complaint or field.description or ""
        )
        if picked is None:
            return None
        if picked != "":
            chosen = [v for v in options if (v in chosen) != (v == picked)]
            complaint = ""
        elif least <= len(chosen) <= most:
            return chosen
        else:
            complaint = translate("choose from {least} to {most} of them", least=least, most=most)


def _item(option: acp.EnumOption, default: str | None) -> Item:
    return Item(
        value=option.const,
        name=option.title,
        description=option.description or "",
        current=option.const == default,
    )


def _text(text: str, field: acp.StringPropertySchema) -> str:
    if field.min_length is not None and len(text) < field.min_length:
        raise _RefusedError(translate("at least {count} characters", count=field.min_length))
    if field.max_length is not None and len(text) > field.max_length:
        raise _RefusedError(translate("at most {count} characters", count=field.max_length))
    # A pattern is left to the agent: a hostile one could hold up the terminal for ever.
    if field.format is not None and not _is(field.format, text):
        raise _RefusedError(translate("this is no {format}", format=field.format))
    return text


def _is(form: acp.StringFormat, text: str) -> bool:
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


def _number(
    kind: type[int | float],
    text: str,
    field: acp.NumberPropertySchema | acp.IntegerPropertySchema,
) -> int | float:
    try:
        value = kind(text.strip())
    except ValueError:
        raise _RefusedError(translate("this is no number")) from None
    if not math.isfinite(value):
        raise _RefusedError(translate("this is no number"))
    if field.minimum is not None and value < field.minimum:
        raise _RefusedError(translate("at least {count}", count=field.minimum))
    if field.maximum is not None and value > field.maximum:
        raise _RefusedError(translate("at most {count}", count=field.maximum))
    return value

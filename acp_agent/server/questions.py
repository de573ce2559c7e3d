"""Turns the model's questions into forms, and the user's input into an answer to the model.

A form of one question has the field `answer`; further questions are `answer_2` and so on. The
user's own text, beside options, is in `answer_other`.
"""

from __future__ import annotations

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import JsonObject
from acp_agent.elicitation import Form, Response
from acp_agent.tools.base import Answer, Question

MAX_TITLE = 200  # characters of a question that is a field's title; more of it is described


def form_of(question: Question, translate: Translator = ENGLISH) -> Form:
    """Return the form for a question and its further questions."""
    asked = _by_field(question)
    properties: JsonObject = {}
    required: list[str] = []
    for name, one in asked.items():
        properties[name] = _field(one, translate, alone=len(asked) == 1)
        if one.options:
            properties[_own(name)] = {"type": "string", "title": translate("Something else")}
        elif not one.optional:
            required.append(name)
    message = question.text
    if len(asked) > 1:
        message = translate("{count} questions", count=len(asked))
    schema: JsonObject = {"type": "object", "properties": properties}
    return Form(message=message, schema=schema | ({"required": required} if required else {}))


def answer_of(question: Question, response: Response) -> Answer:
    """Return the user's answer; declined if no required question has one."""
    if response.action != "accept":
        return Answer(declined=True)
    filled = response.content or {}
    asked = _by_field(question)
    answers = {name: _answer(name, filled) for name in asked}
    if not any(answers.values()) and not all(one.optional for one in asked.values()):
        return Answer(declined=True)
    if len(asked) == 1:
        return Answer(text=answers[_name(1)])
    lines = [f"- {one.text}: {answers[name] or '(no answer)'}" for name, one in asked.items()]
    return Answer(text="\n".join(lines))


def _by_field(question: Question) -> dict[str, Question]:
    return {_name(number): one for number, one in enumerate((question, *question.further), 1)}


def _name(number: int) -> str:
    return "answer" if number == 1 else f"answer_{number}"


def _own(name: str) -> str:
    return f"{name}_other"


def _field(question: Question, translate: Translator, *, alone: bool) -> JsonObject:
    field: JsonObject = {"title": translate("Answer") if alone else question.text[:MAX_TITLE]}
    if not alone and len(question.text) > MAX_TITLE:
        field["description"] = question.text
    choices = [_choice(label, description) for label, description in question.options]
    preset: object = question.preset
    if choices and question.several:
        field |= {"type": "array", "items": {"anyOf": choices}}
        preset = None if preset is None else list(_labels(question))
    elif choices:
        field |= {"type": "string", "oneOf": choices}
        preset = next(iter(_labels(question)), None)
    else:
        field["type"] = _TYPES[question.kind]
    return field if preset is None else field | {"default": preset}


_TYPES = {"text": "string", "number": "number", "integer": "integer", "yes_no": "boolean"}


def _labels(question: Question) -> tuple[str, ...]:
    return question.preset if isinstance(question.preset, tuple) else ()


def _choice(label: str, description: str) -> JsonObject:
    choice = {"const": label, "title": label}
    return choice | {"description": description} if description else choice


def _answer(name: str, filled: JsonObject) -> str:
    chosen = _told(filled.get(name))
    own: str = filled.get(_own(name), "").strip()
    if chosen and own:
        return f"{chosen}; and in their own words: {own}"
    return chosen or own


def _told(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(value)
        case _:
            return str(value).strip()

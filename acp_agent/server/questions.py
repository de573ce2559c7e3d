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
_TYPES = {"text": "string", "number": "number", "integer": "integer", "yes_no": "boolean"}


def build_form(question: Question, translate: Translator = ENGLISH) -> Form:
    """Return the form for a question and its further questions."""
    questions = _questions_by_field(question)
    properties: JsonObject = {}
    required: list[str] = []
    for name, field_question in questions.items():
        properties[name] = _field(field_question, translate, single=len(questions) == 1)
        if field_question.options:
            properties[_other_field(name)] = {
                "type": "string",
                "title": translate("Something else"),
            }
        elif not field_question.optional:
            required.append(name)
    message = question.text
    if len(questions) > 1:
        message = translate("{count} questions", count=len(questions))
    schema: JsonObject = {"type": "object", "properties": properties}
    return Form(message=message, schema=schema | ({"required": required} if required else {}))


def build_answer(question: Question, response: Response) -> Answer:
    """Return the user's answer; declined if no required question has one."""
    if response.action != "accept":
        return Answer(declined=True)
    content = response.content or {}
    questions = _questions_by_field(question)
    answers = {name: _answer(name, content) for name in questions}
    if not any(answers.values()) and not all(
        field_question.optional for field_question in questions.values()
    ):
        return Answer(declined=True)
    if len(questions) == 1:
        return Answer(text=answers[_field_name(1)])
    lines = [
        f"- {field_question.text}: {answers[name] or '(no answer)'}"
        for name, field_question in questions.items()
    ]
    return Answer(text="\n".join(lines))


def _questions_by_field(question: Question) -> dict[str, Question]:
    return {
        _field_name(number): field_question
        for number, field_question in enumerate((question, *question.further), 1)
    }


def _field_name(number: int) -> str:
    return "answer" if number == 1 else f"answer_{number}"


def _other_field(name: str) -> str:
    return f"{name}_other"


def _field(question: Question, translate: Translator, *, single: bool) -> JsonObject:
    field: JsonObject = {"title": translate("Answer") if single else question.text[:MAX_TITLE]}
    if not single and len(question.text) > MAX_TITLE:
        field["description"] = question.text
    choices = [_choice(label, description) for label, description in question.options]
    preset: object = question.preset
    if choices and question.several:
        field |= {"type": "array", "items": {"anyOf": choices}}
        preset = None if preset is None else list(_preset_labels(question))
    elif choices:
        field |= {"type": "string", "oneOf": choices}
        preset = next(iter(_preset_labels(question)), None)
    else:
        field["type"] = _TYPES[question.kind]
    return field if preset is None else field | {"default": preset}


def _preset_labels(question: Question) -> tuple[str, ...]:
    return question.preset if isinstance(question.preset, tuple) else ()


def _choice(label: str, description: str) -> JsonObject:
    choice = {"const": label, "title": label}
    return choice | {"description": description} if description else choice


def _answer(name: str, content: JsonObject) -> str:
    chosen = _format_value(content.get(name))
    free_text: str = content.get(_other_field(name), "").strip()
    if chosen and free_text:
        return f"{chosen}; and in their own words: {free_text}"
    return chosen or free_text


def _format_value(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(value)
        case _:
            return str(value).strip()

"""The forms of calls in `data/written_forms.toml`: alone, in pieces, quoted and cut off."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from acp_agent.models.base import CallDone, Finished, StreamEvent, TextDelta
from acp_agent.models.dialects.form import Tools
from acp_agent.models.dialects.written_calls import WrittenCalls
from acp_agent.tools.spec import ToolSpec

Form = dict[str, str]
Call = tuple[str, dict[str, object]]

FORMS: dict[str, Form] = tomllib.loads(
    (Path(__file__).parent / "data" / "written_forms.toml").read_text("utf-8")
)
PROPERTIES = {
    "path": "string", "content": "string", "edits": "array", "deep": "object", "limit": "integer",
    "whole": "boolean",
}  # fmt: skip
TOOLS = Tools(
    ToolSpec(
        name=name,
        description="",
        parameters={
            "type": "object",
            "properties": {key: {"type": kind} for key, kind in PROPERTIES.items()},
        },
    )
    for name in ("read", "write")
)
OTHER: Call = ("read", {"path": "b.py"})
WORDS = re.compile(r"(NAME|VALUES|QUOTED|ARGS(?!\]))")
SIZES = [1, 13, 100_000]


def value_of(form: Form, value: object) -> str:
    """A value in the notation of a form."""
    notation = form.get("values", "text")
    if notation == "python":
        return repr(value)
    if notation.startswith("<"):
        return noted(value, notation)
    if isinstance(value, str) and notation == "text":
        return value
    return json.dumps(value, ensure_ascii=False)


def noted(value: object, mark: str) -> str:
    """A value in the notation of Gemma."""
    if isinstance(value, str):
        return f"{mark}{value}{mark}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{noted(event, mark)}" for key, event in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(noted(event, mark) for event in value) + "]"
    return json.dumps(value)


def written(form: Form, *calls: Call) -> str:
    """The calls as a model writes them."""
    texts = []
    for name, arguments in calls:
        as_json = json.dumps(arguments, ensure_ascii=False)
        pairs = [
            form["pair"].replace("KEY", key).replace("VALUE", value_of(form, value))
            for key, value in (arguments.items() if "pair" in form else ())
        ]
        words = {
            "NAME": name,
            "VALUES": form.get("join", "").join(pairs),
            "QUOTED": json.dumps(as_json, ensure_ascii=False),
            "ARGS": as_json,
        }
        texts.append("".join(words.get(part, part) for part in WORDS.split(form["call"])))
    return form.get("before", "") + form.get("between", "").join(texts) + form.get("after", "")


def examples(form: Form) -> Iterator[dict[str, object]]:
    """Arguments of a call, one of them with the end marks of the form in a text."""
    marks = re.findall(
        r"</[\w:｜]+>|<[|｜][^<>]*[|｜]>|<end_function_call>|<tool_call\|>|\[END_TOOL_REQUEST\]|```",
        form["call"] + form.get("after", ""),
    )
    yield {"path": "src/a.py"}
    yield {
        "path": "a.py",
        "edits": [{"old": "x {", "new": 'y "q" }]'}],
        "deep": {"a": [1, 2.5, True, None], "b": {"c": "d"}},
        "limit": 3,
        "whole": False,
    }
    yield {"path": "a.py", "content": f"one {' '.join(dict.fromkeys(marks))} two\nthree"}
    yield {
        "path": "é😀文.py",
        "content": "« ｜▁ » \u2028 ✓\nif x < 1 and 'it\\'s' > \"\":\n\tpass\n",
    }
    yield {}


def read(
    text: str, size: int, stop: Literal["end_turn", "max_tokens"] = "end_turn"
) -> list[StreamEvent]:
    reader = WrittenCalls(lambda: TOOLS)
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in reader.read([piece])]
    return [*events, *reader.read([Finished(stop=stop)])]


def calls_in(events: list[StreamEvent]) -> list[Call]:
    """The calls that can run."""
    done = [event for event in events if isinstance(event, CallDone)]
    return [
        (event.name, json.loads(event.arguments)) for event in done if event.arguments[0] == "{"
    ]


def shown(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", FORMS)
def test_calls_of_each_form_are_read_and_their_tags_are_not_shown(name: str, size: int) -> None:
    form = FORMS[name]
    for arguments in examples(form):
        call: Call = ("write", arguments)
        for lead in [""] if form.get("alone") else ["", "I'll look at it now.\n\n"]:
            for calls in [[call]] if form.get("single") else [[call], [call, OTHER], [OTHER, call]]:
                events = read(lead + written(form, *calls), size)
                assert calls_in(events) == calls
                assert shown(events).strip() == lead.strip()
                assert events[-1] == Finished(stop="tool_calls")


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize("name", [name for name in FORMS if not name.startswith("harmony")])
def test_a_quoted_call_of_a_form_is_text(name: str, size: int) -> None:
    for arguments in examples(FORMS[name]):
        call = written(FORMS[name], ("write", arguments))
        for text in (
            f"The model writes:\n\n````\n{call}\n````\n",
            f"You could write this:\n\n{call}",
            f"{call}\n\nThat is how it is written, as an example.",
        ):
            assert not calls_in(read(text, size))


@pytest.mark.parametrize("name", FORMS)
def test_a_call_that_is_cut_off_runs_completely_or_not_at_all(name: str) -> None:
    form = FORMS[name]
    for arguments in examples(form):
        call: Call = ("write", arguments)
        text = written(form, call)
        complete = len(text) - len(form.get("after", "")) - 9
        for end in range(1, len(text), 11):
            assert calls_in(read(text[:end], 9)) in ([], [call])
            if end < complete:
                assert not calls_in(read(text[:end], 9, "max_tokens"))

"""Calls that models write as text: which are taken for calls, however the stream is cut."""

from __future__ import annotations

import tomllib
import tracemalloc
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_agent.models.base import CallDone, Finished, StreamEvent, TextDelta, ThoughtDelta
from acp_agent.models.dialects.form import Tools
from acp_agent.models.dialects.written_calls import WrittenCalls
from acp_agent.tools.spec import ToolSpec

CASES = tomllib.loads((Path(__file__).parent / "data" / "written_calls.toml").read_text("utf-8"))
TOOLS = [
    ToolSpec(name=name, description="", parameters={"type": "object", "properties": {}})
    for name in ("read", "shell", "write")
]


def read(text: str, size: int, stop: str = "end_turn") -> list[StreamEvent]:
    reader = WrittenCalls(lambda: Tools(TOOLS, lambda name: name == "Bash"))
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in reader.read([piece])]
    last = Finished(stop="refusal" if stop == "refusal" else "end_turn")
    return [*events, *reader.read([last])]


def shown(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


@pytest.mark.parametrize("size", [1, 3, 7, 100_000])
@pytest.mark.parametrize("text", CASES["calls"])
def test_an_answer_that_is_only_a_call_is_a_call(text: str, size: int) -> None:
    events = read(text, size)
    assert any(isinstance(event, CallDone) for event in events)
    assert events[-1] == Finished(stop="tool_calls")
    assert not set("<{}>`[]") & set(shown(events))


@pytest.mark.parametrize("size", [1, 3, 7, 100_000])
@pytest.mark.parametrize("text", CASES["text"])
def test_a_text_about_a_call_stays_a_text(text: str, size: int) -> None:
    events = read(text, size)
    assert shown(events) == text
    assert events[-1] == Finished(stop="end_turn")


@pytest.mark.parametrize("size", [1, 3, 7, 100_000])
@pytest.mark.parametrize("text", CASES["shown"])
def test_template_tokens_are_not_shown(text: str, size: int) -> None:
    assert shown(read(text, size)) == CASES["shown"][text]


@pytest.mark.parametrize("text", [CASES["calls"][0], "[TOOL_CALLS]read[ARGS]{}"])
def test_a_call_in_the_reasoning_of_an_empty_answer_is_a_call(text: str) -> None:
    def ended(*more: StreamEvent) -> Sequence[StreamEvent]:
        reader = WrittenCalls(lambda: Tools(TOOLS))
        return reader.read([ThoughtDelta(f"I read it.\n{text}"), *more, Finished(stop="end_turn")])

    assert any(isinstance(event, CallDone) for event in ended())
    assert not any(isinstance(event, CallDone) for event in ended(TextDelta("Hello.")))


def test_a_refused_answer_calls_nothing() -> None:
    text = CASES["calls"][0]
    assert shown(read(text, 5, stop="refusal")) == text


def test_reasoning_between_tags_is_no_text_of_the_answer() -> None:
    events = read("<think>a < b</think>\n\nYes.", 2)
    assert shown(events) == "Yes."
    assert "".join(e.text for e in events if isinstance(e, ThoughtDelta)) == "a < b"


def test_text_that_may_be_no_call_is_shown_at_once() -> None:
    reader = WrittenCalls(lambda: Tools(TOOLS))
    for piece in ("The file", " a < b", ",\n", "- [x] ", "done\n"):
        assert shown(list(reader.read([TextDelta(piece)]))) == piece


@pytest.mark.parametrize("sign", ["<", "[", "< ", "\n<"])
def test_text_that_was_shown_is_not_buffered(sign: str) -> None:
    read(sign * 1_000, 40)  # imports what it needs
    reader = WrittenCalls(lambda: Tools(TOOLS))
    tracemalloc.start()
    try:
        for _ in range(1_500):
            reader.read([TextDelta(sign * 40)])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30_000  # the whole text has 60,000 characters or more


BLOCK = "<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n"


@pytest.mark.parametrize("size", [1, 7, 100_000])
@pytest.mark.parametrize(
    ("text", "is_call"),
    [
        (f"a.py\n{BLOCK}", True),
        (f"a.py\n```python\n{BLOCK}```\n\nb.py\n```python\n{BLOCK}```\n", True),
        (f"a.py\n{BLOCK.replace('x', 'x' * 2_000)}", True),
        (BLOCK, False),
        (f"a.py\n{BLOCK}\nThat is the form of such an edit.\n", False),
    ],
)
def test_an_answer_that_is_only_edits_of_named_files_is_shown_and_is_a_call(
    text: str, is_call: bool, size: int
) -> None:
    edit = ToolSpec(name="edit", description="", parameters={"type": "object"})
    reader = WrittenCalls(lambda: Tools([*TOOLS, edit]))
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    events = [event for piece in pieces for event in reader.read([piece])]
    events += reader.read([Finished(stop="end_turn")])
    assert shown(events) == text
    assert any(isinstance(event, CallDone) for event in events) == is_call

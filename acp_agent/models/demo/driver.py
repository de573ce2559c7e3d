"""The offline model `demo/demo`, which uses the real tools but no network and no language model.

It is for trying the agent without a key, for showing all features in an editor, and for tests.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import cache
from importlib.resources import files

import msgspec
from msgspec import Struct, field

from acp_agent.events import Usage
from acp_agent.models.base import (
    AnswerCall,
    CallDelta,
    CallDone,
    CallStarted,
    Driver,
    Finished,
    Message,
    ModelRequest,
    ModelSide,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ToolResult,
    UserText,
)
from acp_agent.models.demo.requests import Step, script, todo
from acp_agent.platform.decoding import decode_json

_WORDS_PER_BATCH = 8
_CHARACTERS_PER_TOKEN = 4  # an estimate: this model has no tokenizer
_EXCERPT_LINES = 12


class DemoDriver(Driver):
    """Answers every request from a small script; see the module docstring."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Yield the text, a few words per batch, then the calls, then `Finished`."""
        step = next_step(request)
        for batch in _batches(step):
            yield batch
            await asyncio.sleep(0)  # like a real model, let the loop run between two batches
        usage = _usage(request, step)
        yield [Finished(stop="tool_calls" if step.calls else "end_turn", usage=usage)]

    async def connect(self) -> None:
        """Do nothing: there is no network."""

    async def aclose(self) -> None:
        """Do nothing: there are no connections."""


def _batches(step: Step) -> Iterator[Sequence[StreamEvent]]:
    yield from _worded(step.thought, ThoughtDelta)
    yield from _worded(step.text, TextDelta)
    for index, call in enumerate(step.calls):
        arguments = msgspec.json.encode(call.arguments).decode()
        half = len(arguments) // 2
        yield [
            CallStarted(index=index, name=call.tool),
            CallDelta(index=index, text=arguments[:half]),
        ]
        yield [
            CallDelta(index=index, text=arguments[half:]),
            CallDone(index=index, name=call.tool, arguments=arguments),
        ]


def _worded(text: str, kind: type[TextDelta | ThoughtDelta]) -> Iterator[Sequence[StreamEvent]]:
    """Yield `text` in batches of words, each with the space after it."""
    pieces = text.split(" ")
    words = [f"{piece} " for piece in pieces[:-1]] + [piece for piece in pieces[-1:] if piece]
    for start in range(0, len(words), _WORDS_PER_BATCH):
        yield [kind(word) for word in words[start : start + _WORDS_PER_BATCH]]


def _usage(request: ModelRequest, step: Step) -> Usage:
    input_characters = len(request.system) + sum(
        len(msgspec.json.encode(part)) for part in (*request.messages, *request.tools)
    )
    output_characters = len(step.text) + len(step.thought) + len(msgspec.json.encode(step.calls))
    return Usage(
        input=input_characters // _CHARACTERS_PER_TOKEN,
        output=output_characters // _CHARACTERS_PER_TOKEN,
    )


# A prompt is converted to a script: a list of steps, each with text and tool calls. The next step
# depends only on the conversation, so the same conversation always gets the same answer.


class _Texts(Struct, frozen=True, forbid_unknown_fields=True):
    help: str
    tour_start: Step
    tour_plan: tuple[str, ...]
    tour_of_the_sample: tuple[Step, ...]
    tour_of_any_folder: tuple[Step, ...]


class _CompletedCall(Struct, frozen=True):
    """A call that was made for the current prompt, and its result."""

    call: AnswerCall
    result: ToolResult


class _Progress(Struct, frozen=True, kw_only=True):
    """The state of the conversation: the last prompt, and the calls of each answer to it so far."""

    words: str = ""
    answers: tuple[tuple[_CompletedCall, ...], ...] = field(default_factory=tuple)


def next_step(request: ModelRequest) -> Step:
    """Return the next answer of a conversation, which depends on nothing else."""
    progress = _progress(request.messages)
    step = _next(progress)
    missing = {call.tool for call in step.calls} - {tool.name for tool in request.tools}
    if missing:
        names = ", ".join(f"`{name}`" for name in sorted(missing))
        return Step(text=f"I would need {names} for that, which this session does not offer.")
    return step


@cache
def _texts() -> _Texts:
    source = files("acp_agent.models.demo").joinpath("demo.json").read_bytes()
    return decode_json(source, _Texts)


def _progress(messages: Sequence[Message]) -> _Progress:
    words = ""
    answers: list[tuple[_CompletedCall, ...]] = []
    calls: dict[str, AnswerCall] = {}
    for message in messages:
        if isinstance(message, ModelSide):
            calls = {part.call: part for part in message.parts if isinstance(part, AnswerCall)}
            continue
        done = tuple(
            _CompletedCall(calls[part.call], part)
            for part in message.parts
            if isinstance(part, ToolResult) and part.call in calls
        )
        if done:
            answers.append(done)
        texts = [part.text.strip() for part in message.parts if isinstance(part, UserText)]
        if texts:
            words = next((text for text in texts if not _is_note(text)), texts[0])
            answers = []
    return _Progress(words=words, answers=tuple(answers))


def _is_note(text: str) -> bool:
    """Return whether a text is a note of the agent, as after a cancelled turn, not the user's."""
    return text.startswith("[") and text.endswith("]")


def _next(progress: _Progress) -> Step:
    words = _plain(progress.words)
    if words.lower().startswith(("tour", "show me what you can do")):
        return _tour(progress.answers)
    steps = script(words)
    if steps is None:
        return Step(text=_texts().help)
    at = len(progress.answers)
    failed = [done for done in _last(progress) if done.result.failed]
    if failed:
        return Step(text=_failure(failed))
    return steps[at] if at < len(steps) else Step(text=_summary(_last(progress)))


def _last(progress: _Progress) -> tuple[_CompletedCall, ...]:
    return progress.answers[-1] if progress.answers else ()


def _plain(words: str) -> str:
    """Return the prompt without "please" at its beginning."""
    head, _, remainder = words.partition(" ")
    return (
        remainder.strip() if head.lower().rstrip(",") == "please" and remainder.strip() else words
    )


def _tour(answers: Sequence[Sequence[_CompletedCall]]) -> Step:
    texts = _texts()
    if not answers:
        return _with_plan(texts.tour_start)
    failed = [done for done in answers[-1] if done.result.failed]
    if failed:
        return Step(text=f"{_failure(failed)} So the tour ends here.")
    listing = "\n".join(done.result.text for done in answers[0] if done.call.name == "list")
    sample = "test_greeting.py" in listing
    steps = texts.tour_of_the_sample if sample else texts.tour_of_any_folder
    at = len(answers) - 1
    return _with_plan(steps[min(at, len(steps) - 1)])


def _with_plan(step: Step) -> Step:
    if step.plan is None:
        return step
    return Step(
        text=step.text,
        thought=step.thought,
        calls=(todo(_texts().tour_plan, step.plan.active), *step.calls),
    )


def _failure(failed: Sequence[_CompletedCall]) -> str:
    return " ".join(
        f"`{done.call.name}` did not work: {_first_line(done.result.text)}" for done in failed
    )


def _first_line(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "no reason was given")
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _summary(done: Sequence[_CompletedCall]) -> str:
    if not done:
        return "Done."
    paragraphs = ["Done. This is what came back:"]
    for completed in done:
        lines = completed.result.text.splitlines()
        excerpt = "\n".join(lines[:_EXCERPT_LINES])
        more = len(lines) - _EXCERPT_LINES
        note = f"\n… and {more} more lines" if more > 0 else ""
        paragraphs.append(f"`{completed.call.name}`:\n\n~~~~\n{excerpt}{note}\n~~~~")
    return "\n\n".join(paragraphs)

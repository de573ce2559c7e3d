"""The cases of the corpus: a folder, the answers of a model, and the expected outcome.

They are TOML files in `benchmarks/harness_corpus`, each with a `topic`, texts that several cases
use, and its cases. `docs/benchmarks.md` describes the keys.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

CORPUS = Path(__file__).resolve().parents[1] / "harness_corpus"
Api = Literal["chat", "responses", "anthropic", "gemini"]
APIS: tuple[Api, ...] = ("chat", "responses", "anthropic", "gemini")
DEFAULT_FILE = "app.py"

Tree = Mapping[str, bytes]


class CorpusError(Exception):
    """A case that contradicts itself."""


class Step(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of an answer: text, reasoning, a call with an object or raw JSON as arguments.

    `events` is a part of the event stream as it is.
    """

    text: str | None = None
    thought: str | None = None
    tool: str | None = None
    args: dict[str, Any] | None = None
    raw: str | None = None
    id: str | None = None
    events: str | None = None


class ModelAnswer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One answer of the model.

    `stop` is why it ends ("length"), `cut` breaks the connection after the steps, `status` is an
    HTTP error instead of an answer, `page` a body instead of a stream. Without `ended` the stream
    stops without the events that end an answer. The files of `meanwhile` are written before the
    answer is sent.
    """

    steps: list[Step] = []
    stop: Literal["length", "refusal"] | None = None
    cut: bool = False
    status: int | None = None
    page: str | None = None
    ended: bool = True
    meanwhile: dict[str, str] = {}


class _Written(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A case as it is written; `Case` says what the keys mean."""

    name: str
    apis: tuple[Api, ...] = APIS
    # The folder
    files: dict[str, str] = {}
    file: str | None = None
    before: str | None = None
    outside: dict[str, str] = {}
    links: dict[str, str] = {}
    encoding: str = "utf-8"
    newline: str = "\n"
    # What the model answers
    read: bool | None = None
    old: str | None = None
    new: str | None = None
    all: bool | None = None
    content: str | None = None
    tool: str | None = None
    args: dict[str, Any] | None = None
    raw: str | None = None
    text: str | None = None
    answers: list[ModelAnswer] = []
    # The expected outcome
    change: list[str] = []
    after: str | None = None
    results: dict[str, str] = {}
    gone: list[str] = []
    refused: bool = False
    failed: int | None = None
    says: list[str] = []
    never: list[str] = []
    hint: list[str] = []
    shown: list[str] = []
    shown_never: list[str] = []
    body: list[str] = []
    body_never: list[str] = []
    requests: int | None = None
    fails: bool = False
    mode: Literal["ask", "full"] = "full"
    decision: Literal["allow", "reject"] = "allow"
    asked: int | None = None
    mcp_tool: str | None = None


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    topic: str
    texts: dict[str, str] = {}
    case: list[_Written]


class Case(Struct, frozen=True, kw_only=True):
    """A case: the folder, the answers, and the expected outcome.

    Attributes:
        read: the file that the model reads first, if any.
        before: the folder, by relative path.
        unchanged: the folder if no call changes anything: with what was written meanwhile.
        after: the expected folder.
        refused: nothing may change, and the model must read why.
        failed: how many calls are to fail; -1: any number.
        says: what the model must read after its answers, in results and in messages.
        never: what it must not read there.
        hint: what the model must read if a call was refused that should have been run.
        shown: what the user must see of the answers.
        body: what the last request must contain.
        requests: how many requests the model is to get after the first read.
        fails: whether the prompt may end with an error.
        asked: how often the user is to be asked.
    """

    topic: str
    name: str
    apis: tuple[Api, ...]
    read: str | None
    before: Tree
    unchanged: Tree
    outside: Tree
    links: Mapping[str, str]
    answers: tuple[ModelAnswer, ...]
    after: Tree
    refused: bool
    failed: int
    says: tuple[str, ...]
    never: tuple[str, ...]
    hint: tuple[str, ...]
    shown: tuple[str, ...]
    shown_never: tuple[str, ...]
    body: tuple[str, ...]
    body_never: tuple[str, ...]
    requests: int | None
    fails: bool
    mode: str
    decision: str
    asked: int | None
    mcp_tool: str | None


def load(folder: Path = CORPUS) -> list[Case]:
    """Return all cases, in the order of the files' names.

    Raises:
        CorpusError: a case contradicts itself, or two have one name.
    """
    cases = [case for path in sorted(folder.glob("*.toml")) for case in _load_file(path)]
    seen: set[str] = set()
    for case in cases:
        if case.name in seen:
            raise CorpusError(f"two cases are named {case.name!r}")
        seen.add(case.name)
    return cases


def _load_file(path: Path) -> Iterator[Case]:
    try:
        written = msgspec.convert(tomllib.loads(path.read_text("utf-8")), _File)
    except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
        raise CorpusError(f"{path.name}: {error}") from error
    for one in written.case:
        try:
            yield _case(written.topic, written.texts, one)
        except (CorpusError, ValueError) as error:
            raise CorpusError(f"{path.name}: {one.name}: {error}") from error


def _case(topic: str, texts: Mapping[str, str], one: _Written) -> Case:
    name = one.file or DEFAULT_FILE
    before = dict(one.files)
    if one.before is not None:
        before[name] = one.before
    elif one.file in texts:
        before[name] = texts[name]
    after = {**before, **one.results}
    if one.after is not None:
        after[name] = one.after
    elif one.change:
        after[name] = _changed(before[name], one.change)
    for gone in one.gone:
        del after[gone]
    answers = tuple(_answers(one, name))
    unchanged = dict(before)
    for answer in answers:
        unchanged.update(answer.meanwhile)
    if one.refused and after != before:
        raise CorpusError("it is refused and yet changes files")
    reads = one.read if one.read is not None else name in before and _edits(one)
    failed = one.failed if one.failed is not None else int(one.refused)
    return Case(
        topic=topic,
        name=one.name,
        apis=tuple(api for api in one.apis if api != "gemini" or _fits_gemini(answers)),
        read=name if reads else None,
        before=_encoded(before, one),
        unchanged=_encoded(unchanged, one),
        outside=_encoded(one.outside, one),
        links=one.links,
        answers=answers,
        after=_encoded(after, one),
        refused=one.refused,
        failed=failed,
        says=tuple(one.says),
        never=tuple(one.never),
        hint=tuple(one.hint),
        shown=tuple(one.shown),
        shown_never=tuple(one.shown_never),
        body=tuple(one.body),
        body_never=tuple(one.body_never),
        requests=one.requests,
        fails=one.fails,
        mode=one.mode,
        decision=one.decision,
        asked=one.asked if one.asked is not None else 0 if one.mode == "full" else None,
        mcp_tool=one.mcp_tool,
    )


def _edits(one: _Written) -> bool:
    """Whether the case has a short form of an edit or a write, which comes after a read."""
    return one.old is not None or one.content is not None


def _answers(one: _Written, name: str) -> Iterator[ModelAnswer]:
    steps: list[Step] = []
    if one.text is not None:
        steps.append(Step(text=one.text))
    if one.old is not None:
        args: dict[str, Any] = {"path": name, "old": one.old, "new": one.new}
        steps.append(Step(tool="edit", args=args if one.all is None else {**args, "all": one.all}))
    elif one.content is not None:
        steps.append(Step(tool="write", args={"path": name, "content": one.content}))
    elif one.tool is not None:
        steps.append(Step(tool=one.tool, args=one.args, raw=one.raw))
    if bool(steps) == bool(one.answers):
        raise CorpusError("it needs either a short form or `answers`")
    yield from one.answers or [ModelAnswer(steps=steps)]


def _changed(text: str, pairs: list[str]) -> str:
    for wanted, replacement in zip(pairs[::2], pairs[1::2], strict=True):
        if text.count(wanted) != 1:
            raise CorpusError(f"`change`: {wanted!r} is there {text.count(wanted)} times")
        text = text.replace(wanted, replacement)
    return text


def _encoded(files: Mapping[str, str], one: _Written) -> dict[str, bytes]:
    return {
        name: text.replace("\n", one.newline).encode(one.encoding) for name, text in files.items()
    }


def _fits_gemini(answers: tuple[ModelAnswer, ...]) -> bool:
    """Whether all arguments are objects: Gemini's API has no text of arguments to be wrong."""
    for answer in answers:
        for step in answer.steps:
            if step.raw is None:
                continue
            try:
                if not isinstance(msgspec.json.decode(step.raw), dict):
                    return False
            except msgspec.DecodeError:
                return False
    return True

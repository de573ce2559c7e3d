"""Grade the outcome of a case: best, refused, poor or wrong."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

from benchmarks.harness.cases import Case, Tree

Grade = Literal["best", "refused", "poor", "wrong"]
GRADES: tuple[Grade, ...] = ("best", "refused", "poor", "wrong")


class Happened(Struct, frozen=True, kw_only=True):
    """What happened in a case.

    Attributes:
        after: the folder as it is now.
        outside_changed: whether a file outside of the folder changed.
        calls: how the model's calls ended, without the first read.
        read: what the model read after its first answer.
        text: what the user read.
        error: what the prompt failed with.
    """

    after: Tree
    outside_changed: bool
    calls: Sequence[str]
    read: Sequence[str]
    text: str
    asked: int
    bodies: Sequence[Any]
    error: str = ""

    @property
    def failed(self) -> int:
        """How many calls failed."""
        return sum(status == "failed" for status in self.calls)

    @property
    def completed(self) -> int:
        """How many calls were reported as done."""
        return sum(status == "completed" for status in self.calls)


class Judgement(Struct, frozen=True, kw_only=True):
    """The grade of a case, with the reasons if it is not the best."""

    case: Case
    grade: Grade
    reasons: tuple[str, ...]
    happened: Happened


def judge(case: Case, happened: Happened) -> Judgement:
    """Compare the actual with the expected outcome."""
    grade, reasons = _grade(case, happened)
    return Judgement(case=case, grade=grade, reasons=tuple(reasons), happened=happened)


def _grade(case: Case, happened: Happened) -> tuple[Grade, list[str]]:
    if happened.outside_changed:
        return "wrong", ["a file outside of the folder changed"]
    wrong = [*_differences(case.after, happened.after)]
    if wrong:
        only_old = all(
            happened.after.get(name) in (case.unchanged.get(name), case.after.get(name))
            for name in {*case.unchanged, *case.after, *happened.after}
        )
        if case.refused or not only_old:
            return "wrong", wrong
        if happened.failed > case.failed:
            return _refused(case, happened, wrong)
        if happened.completed >= max(1, _calls(case)):
            return "wrong", ["a call was reported as done, yet its change is lost", *wrong]
        return "poor", wrong
    if happened.failed > case.failed >= 0:
        return _refused(case, happened, ["a call failed"])
    if happened.failed < case.failed:
        # A call that is not run and not answered is no harm, but the model does not learn of it.
        grade: Grade = "wrong" if happened.completed > _calls(case) - case.failed else "poor"
        return grade, [f"only {happened.failed} of {case.failed} calls failed"]
    missing = [*_missing(case, happened)]
    return ("poor", missing) if missing else ("best", [])


def _calls(case: Case) -> int:
    """How many calls the model makes, those that it writes as text included."""
    steps = [step for answer in case.answers for step in answer.steps]
    texts = [step.text or "" for step in steps]
    marks = ('"arguments"', '"parameters"', "<function=")
    written = [text for text in texts if any(mark in text for mark in marks)]
    return sum(step.tool is not None for step in steps) + len(written)


def _refused(case: Case, happened: Happened, reasons: list[str]) -> tuple[Grade, list[str]]:
    """Grade a refusal of what was clearly right: does the model know how to do it better?"""
    text = "\n".join(happened.read)
    hints = [*case.hint] or [*_changed_lines(case)]
    if hints and all(hint in text for hint in hints):
        return "refused", reasons
    return "poor", [*reasons, f"no hint of {hints}" if hints else "no hint"]


def _changed_lines(case: Case) -> Iterable[str]:
    """The first line, as the files have it, that was to be changed in each of them."""
    for name, data in case.unchanged.items():
        before, after = (_lines(tree.get(name, b"")) for tree in (case.unchanged, case.after))
        if data != case.after.get(name):
            pairs = enumerate(before)
            first = next((at for at, line in pairs if at >= len(after) or line != after[at]), 0)
            yield before[first].strip() if before else ""


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "replace").splitlines()


def _missing(case: Case, happened: Happened) -> Iterable[str]:
    """What the model, the user or the requests lack, where the files are right."""
    read = "\n".join(happened.read)
    body = json.dumps(happened.bodies[-1], ensure_ascii=False) if happened.bodies else ""
    yield from _of_text("the model does not read", "the model reads", read, case.says, case.never)
    yield from _of_text(
        "the user does not see", "the user sees", happened.text, case.shown, case.shown_never
    )
    yield from _of_text(
        "the last request lacks", "the last request has", body, case.body, case.body_never
    )
    if case.requests is not None and len(happened.bodies) != case.requests:
        yield f"{len(happened.bodies)} requests instead of {case.requests}"
    if case.asked is not None and happened.asked != case.asked:
        yield f"the user was asked {happened.asked} times instead of {case.asked}"
    if happened.error and not case.fails:
        yield f"the prompt failed: {happened.error}"


def _of_text(
    lacks: str, has: str, text: str, wanted: Sequence[str], unwanted: Sequence[str]
) -> Iterable[str]:
    folded = text.casefold()
    for one in wanted:
        # Alternatives are separated by " | ".
        if not any(part.casefold() in folded for part in one.split(" | ")):
            yield f"{lacks} {one!r}"
    for one in unwanted:
        if one.casefold() in folded:
            yield f"{has} {one!r}"


def _differences(wanted: Tree, found: Tree) -> Iterable[str]:
    for name in sorted({*wanted, *found}):
        if wanted.get(name) != found.get(name):
            yield _difference(name, wanted, found)


def _difference(name: str, wanted: Mapping[str, bytes], found: Mapping[str, bytes]) -> str:
    if name not in found:
        return f"{name} is not there"
    if name not in wanted:
        return f"{name} should not be there: {found[name][:200]!r}"
    one, other = (
        [repr(line) for line in tree[name].decode("utf-8", "replace").splitlines(keepends=True)]
        for tree in (wanted, found)
    )
    diff = list(difflib.unified_diff(one, other, "intended", "found", n=1, lineterm=""))
    return f"{name} differs\n" + "\n".join(diff[2:40])

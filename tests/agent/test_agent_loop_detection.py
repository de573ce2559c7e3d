"""Loops are noticed from the journal's events alone, and only loops are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, strategies as st

from acp_agent.agent.loop_detection import LoopDetector, LoopLimits
from acp_agent.content import TextBlock
from acp_agent.events import (
    AnyEvent,
    LoopDecision,
    LoopNoticed,
    ToolCalled,
    ToolEnded,
    ToolKind,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId

Given = tuple[str, str, str, bool]  # tool, arguments, result, failed
DEFAULT = LoopLimits()
KINDS: dict[str, ToolKind] = {"read": "read", "write": "edit", "shell": "execute"}


class Run:
    """Feeds calls to a guard as the journal has them, and heeds it as a turn does."""

    def __init__(self, patience: LoopLimits = DEFAULT) -> None:
        self.guard = LoopDetector()
        self.patience = patience
        self.events: list[AnyEvent] = []
        self.steps: list[str] = []
        self._number = 0

    def feed(self, *events: AnyEvent) -> None:
        self.events += events
        self.guard.feed(events)

    def answer(self, *calls: Given, decision: LoopDecision = "go_on") -> str:
        """One answer's calls; gives the step that was due behind them."""
        ended = []
        for name, arguments, result, failed in calls:
            self._number += 1
            call = CallId(f"call_{self._number}")
            kind = KINDS.get(name, "other")
            self.feed(
                ToolCalled(
                    call=call,
                    message=MessageId("m"),
                    name=name,
                    arguments=arguments,
                    title=name,
                    kind=kind,
                )
            )
            ended.append(ToolEnded(call=call, result=result, failed=failed))
        self.feed(*reversed(ended))  # in another order than they were made in
        due = self.guard.next_step(self.patience, lambda name: name == "poll")
        step = ""
        if due is not None:
            step, loop = due
            self.feed(
                LoopNoticed(
                    call=loop.call,
                    kind=loop.kind,
                    rounds=loop.rounds,
                    step=step,
                    decision=decision if step == "asked" else "",
                )
            )
        self.steps.append(step)
        return step

    def say(self) -> None:
        self.feed(UserMessage(message=MessageId("u"), content=(TextBlock(text="go on"),)))


def read(name: str = "a", result: str = "text") -> Given:
    return "read", f'{{"path":"{name}"}}', result, False


def write(name: str, text: str) -> Given:
    return "write", f'{{"path":"{name}","content":"{text}"}}', f"{name} written", False


def failing(tool: str, arguments: str, error: str = "no such thing") -> Given:
    return tool, arguments, error, True


EIGHT = ["", "", "told", "", "asked", "", "", "stopped"]


def test_the_same_call_warns_at_three_asks_at_five_and_stops_at_eight() -> None:
    run = Run()
    for _ in range(8):
        run.answer(read())
    assert run.steps == EIGHT


@pytest.mark.parametrize("size", [2, 3, 6])
def test_calls_that_come_again_in_the_same_order_are_a_loop(size: int) -> None:
    run = Run()
    for _ in range(8):
        for place in range(size):
            run.answer(read(f"f{place}"))
    assert [step for step in run.steps if step] == ["told", "asked", "stopped"]
    assert run.steps.index("told") == 3 * size - 1
    assert run.steps.index("stopped") == 8 * size - 1


def test_the_same_error_of_different_calls_is_a_loop_despite_reads_between() -> None:
    run = Run()
    for number in range(8):
        run.answer(failing("write", f'{{"n":{number}}}'))
        run.answer(read("a", f"text {number}"))
    assert run.steps[::2] == EIGHT


def test_errors_that_differ_only_in_the_arguments_are_the_same() -> None:
    run = Run()
    for number in range(8):
        path = f"src/guess_{number}.py"
        run.answer(failing("read", f'{{"path":"{path}"}}', f"Error: {path} does not exist"))
    assert run.steps == EIGHT
    different = Run()
    for number in range(8):
        different.answer(failing("read", '{"path":"a"}', f"Error: a has {number} bad bytes"))
    assert not any(different.steps)


def test_an_error_is_the_same_where_a_part_of_an_argument_or_the_time_differs() -> None:
    run = Run()
    for number in range(8):
        command = f'{{"command":"ls -l /no/such_{number}.d"}}'
        error = f"ls: cannot access '/no/such_{number}.d': No such file\n[exit code 2]"
        run.answer(failing("shell", command, error))
    assert run.steps == EIGHT
    again = Run()
    for number in range(8):
        error = f"14:03:0{number} 1 failed, 20 passed in {number}.2{number}s"
        again.answer(failing("shell", '{"command":"make test"}', error))
    assert again.steps == EIGHT


def test_a_measurement_with_changing_results_is_no_loop() -> None:
    run = Run()
    for number in range(12):
        run.answer(("shell", '{"command":"./measure"}', f"it took 0.{number} s", False))
    assert not any(run.steps)


def test_the_order_in_which_arguments_are_written_makes_no_difference() -> None:
    run = Run()
    for number in range(8):
        written = '{"path":"a","limit":5}' if number % 2 else '{ "limit": 5, "path": "a" }'
        run.answer(("read", written, "text", False))
    assert run.steps == EIGHT


def test_no_step_is_skipped_however_many_calls_one_answer_has() -> None:
    run = Run()
    assert run.answer(*[read()] * 8) == "told"
    assert run.answer(read()) == "asked"
    assert run.answer(read()) == "stopped"


def test_errors_before_and_after_a_change_are_no_loop() -> None:
    run = Run()
    for number in range(12):
        run.answer(failing("shell", '{"command":"make"}', "1 failed"))
        run.answer(write("a", f"try {number}"))
    assert not any(run.steps)


def test_searches_that_find_nothing_are_no_row_of_errors() -> None:
    run = Run()
    for number in range(12):
        run.feed(
            ToolCalled(
                call=CallId(f"c{number}"),
                message=MessageId("m"),
                name="shell",
                arguments=f'{{"command":"grep word{number} ."}}',
                title="",
                kind="execute",
            ),
            ToolEnded(
                call=CallId(f"c{number}"),
                result="[no output; exit code 1]",
                failed=True,
                exit_code=1,
            ),
        )
        assert run.guard.next_step(LoopLimits()) is None


@pytest.mark.parametrize(
    "call",
    [
        ("poll", '{"id":"1"}', "running", False),
        ("shell", '{"command":"sleep 5"}', "[no output; exit code 0]", False),
        ("shell", '{"command":"sleep 5 && tail log"}', "building", False),
        ("shell", '{"command":"make &\\nsleep 5"}', "building", False),
        ("shell", '{"command":"tail -n 5 -f log"}', "timed out", True),
    ],
)
def test_repeated_waiting_is_no_loop(call: Given) -> None:
    run = Run()
    for _ in range(20):
        run.answer(call)
        run.answer(read("log", "building"))
    assert not any(run.steps)


def test_a_tool_whose_name_only_begins_like_a_wait_counts() -> None:
    run = Run()
    for _ in range(3):
        run.answer(("shell", '{"command":"cat waiting.txt sleeper"}', "x", False))
    assert run.steps[-1] == "told"


def test_a_message_of_the_user_resets_the_count_to_the_warning() -> None:
    run = Run()
    for _ in range(5):
        run.answer(read())
    run.say()
    steps = [run.answer(read()) for _ in range(6)]
    assert steps == ["told", "", "asked", "", "", "stopped"]


def test_a_reopened_session_knows_the_earlier_calls() -> None:
    run = Run()
    for _ in range(4):
        run.answer(read())
    again = Run()
    again.feed(*run.events)
    assert again.answer(read()) == "asked"


def test_a_disabled_step_is_skipped() -> None:
    run = Run(LoopLimits(warn=2, ask=0, stop=4))
    for _ in range(4):
        run.answer(read())
    assert run.steps == ["", "told", "", "stopped"]
    off = Run(LoopLimits(0, 0, 0))
    for _ in range(20):
        assert off.answer(read()) == ""


@pytest.mark.parametrize(
    ("patience", "steps"),
    [
        (LoopLimits(warn=3, ask=5, stop=4), ["", "", "told", "stopped"]),
        (LoopLimits(warn=8, ask=5, stop=3), ["", "", "stopped"]),
        (LoopLimits(warn=2, ask=2, stop=2), ["", "told", "asked", "stopped"]),
        (LoopLimits(warn=6, ask=0, stop=4), ["", "", "", "stopped"]),
    ],
)
def test_a_step_after_a_later_one_is_skipped(patience: LoopLimits, steps: list[str]) -> None:
    run = Run(patience)
    for _ in steps:
        run.answer(read())
    assert run.steps == steps


def test_a_single_call_is_no_loop_with_any_settings() -> None:
    run = Run(LoopLimits(warn=0, ask=0, stop=1))
    for number in range(9):
        run.answer(read(f"f{number}"))
    assert not any(run.steps)
    assert run.answer(read("f8")) == "stopped"


def test_calls_that_the_user_stopped_are_no_loop() -> None:
    run = Run()
    for number in range(12):
        call = CallId(f"c{number}")
        run.feed(
            ToolCalled(call=call, message=MessageId("m"), name="x", arguments="{}", title="x"),
            ToolEnded(call=call, failed=True, cancelled=True, result="stopped"),
        )
        assert run.guard.next_step(LoopLimits()) is None


STEPS = st.sampled_from(
    [read("a"), read("b"), write("a", "x"), failing("edit", "{}"), ("x", "{}", "y", False)]
)


@given(st.lists(STEPS, max_size=60))
def test_reads_behind_changes_are_no_loop(calls: Sequence[Given]) -> None:
    run = Run()
    for number, call in enumerate(calls):
        run.answer(call)
        run.answer(write("other", str(number)))
    assert not any(run.steps)


@given(st.lists(STEPS, max_size=40), st.lists(STEPS, min_size=1, max_size=6, unique=True))
def test_a_cycle_is_stopped_after_any_beginning(
    before: Sequence[Given], block: Sequence[Given]
) -> None:
    run = Run()
    for call in before:
        run.answer(call)
    run.say()
    rounds = 0
    while "stopped" not in run.steps and rounds < 20:
        rounds += 1
        for call in block:
            run.answer(call)
    assert "stopped" in run.steps
    assert rounds <= 11


@given(st.lists(st.one_of(STEPS, st.none()), max_size=60), st.integers(0, 60))
def test_the_guard_is_a_fold(calls: Sequence[Given | None], cut: int) -> None:
    run = Run()
    for call in calls:
        if call is None:
            run.say()
        else:
            run.answer(call)
    pieces = LoopDetector()
    pieces.feed(run.events[:cut])
    pieces.feed(run.events[cut:])
    assert pieces.next_step(LoopLimits()) == run.guard.next_step(LoopLimits())

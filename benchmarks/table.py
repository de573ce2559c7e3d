"""One measurement, and how all of them are printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

HEADER = """\
| what | median | lowest | floor | ratio | goal | reached |
| --- | ---: | ---: | --- | ---: | --- | --- |"""


class Row(NamedTuple):
    """A measurement: the median of many, against its floor in the same run.

    Attributes:
        ours: the median.
        floor: the median of the floor.
        times: with `plus`, the goal: the highest that is good, as a multiple of the floor,
        plus: and a constant beside that.
        lowest: the least of all.
        ratio: the median of what each round took, as a multiple of the floor in that round.
        over: the median of what each round took beyond the goal that its floor gives.
    """

    name: str
    ours: float
    unit: str
    floor_name: str = ""
    floor: float = 0.0
    times: float = 0.0
    plus: float = 0.0
    lowest: float = 0.0
    ratio: float = 0.0
    over: float = 0.0

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.over <= 0


def pairs(
    ours: Callable[[], float], floor: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Measure the two in turn, so that whatever else the machine does meets both.

    Which of them comes first changes from round to round.
    """
    found: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        if number % 2:
            found[0].append(ours())
            found[1].append(floor())
        else:
            found[1].append(floor())
            found[0].append(ours())
    return found


def row(
    name: str,
    unit: str,
    values: Sequence[float],
    floor_name: str = "",
    floors: Sequence[float] = (),
    *,
    times: float = 0.0,
    plus: float = 0.0,
) -> Row:
    """A row from the values of many rounds, with the floor of each where there is one."""
    rounds = list(zip(values, floors or [0.0] * len(values), strict=True))
    goal = times or plus
    return Row(
        name=name,
        ours=statistics.median(values),
        unit=unit,
        floor_name=floor_name,
        floor=statistics.median(floors) if floors else 0.0,
        times=times,
        plus=plus,
        lowest=min(values),
        ratio=statistics.median(one / floor for one, floor in rounds) if floors else 0.0,
        over=statistics.median(one - times * floor - plus for one, floor in rounds)
        if goal
        else 0.0,
    )


def format_row(row: Row) -> str:
    """Return the row as a line of a Markdown table below `HEADER`."""
    floor = f"{row.floor_name} {_number(row.floor)}" if row.floor_name else ""
    ratio = f"{row.ratio:.2f}" if row.floor_name else ""
    multiple = f"{row.times:g} × floor" if row.times else ""
    constant = f"{row.plus:g} {row.unit}" if row.plus else ""
    goal = " + ".join(filter(None, (multiple, constant)))
    reached = ("yes" if row.reached else "NO") if goal else ""
    return (
        f"| {row.name} | {_number(row.ours)} {row.unit} | {_number(row.lowest)} "
        f"| {floor} | {ratio} | {goal} | {reached} |"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"

"""One measurement, and how all of them are printed."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """A measurement: the median of many, against the median of its floor in the same run.

    `goal` is the highest `ours` may be: as a multiple of the floor, plus a constant.
    """

    name: str
    ours: float
    unit: str
    floor_name: str = ""
    floor: float = 0.0
    times: float = 0.0
    plus: float = 0.0
    lowest: float = 0.0
    spread: float = 0.0

    @property
    def limit(self) -> float:
        """The highest value that reaches the goal; 0 where there is none."""
        return self.times * self.floor + self.plus

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.limit == 0 or self.ours <= self.limit


def pairs(
    ours: Callable[[], float], floor: Callable[[], float], rounds: int
) -> tuple[list[float], list[float]]:
    """Measure the two in turn, so that whatever else the machine does meets both."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
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
    """A row from the values of many rounds; with a floor, `ours` is its median by pair."""
    ours = statistics.median(values)
    floor = statistics.median(floors) if floors else 0.0
    return Row(
        name=name,
        ours=ours,
        unit=unit,
        floor_name=floor_name,
        floor=floor,
        times=times,
        plus=plus,
        lowest=min(values),
        spread=max(values) - min(values),
    )


def show(rows: Iterable[Row]) -> str:
    """The table as Markdown."""
    lines = [
        "| what | median | lowest | floor | ratio | goal | reached |",
        "| --- | ---: | ---: | --- | ---: | --- | --- |",
    ]
    for one in rows:
        floor = f"{one.floor_name} {_number(one.floor)}" if one.floor_name else ""
        ratio = f"{one.ours / one.floor:.2f}" if one.floor else ""
        goal = " + ".join(
            part
            for part in (
                f"{one.times:g} × floor" if one.times else "",
                f"{one.plus:g} {one.unit}" if one.plus else "",
            )
            if part
        )
        reached = ("yes" if one.reached else "NO") if goal else ""
        lines.append(
            f"| {one.name} | {_number(one.ours)} {one.unit} | {_number(one.lowest)} "
            f"| {floor} | {ratio} | {goal} | {reached} |"
        )
    return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"

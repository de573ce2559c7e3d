"""Bar charts of tokens and cost by turn, as positions of bars and labels.

A bar is one turn, or several turns if there are more than `MAX_BARS`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct

from acp_agent.view.page import Section, Spend

MAX_BARS = 80
WIDTH, HEIGHT = 720, 180  # of the chart
LEFT, RIGHT, TOP, BOTTOM = 64, 8, 8, 32  # margins around the bars
_GAP = 0.25  # the empty part of a bar's space
_MAX_WIDTH = 48.0
_TICKS = 4


class Part(Struct, frozen=True):
    """A part of a bar: its kind, its top `y` and its height."""

    name: str
    y: float
    height: float


class Bar(Struct, frozen=True, kw_only=True):
    """The bar of the turns `first` to `last`, with their usage and cost."""

    first: int
    last: int
    spend: Spend
    x: float
    width: float
    tokens: list[Part]
    cost: list[Part]


class Tick(Struct, frozen=True):
    """A mark on an axis: its position and value."""

    at: float
    value: float


class Plot(Struct, frozen=True, kw_only=True):
    """Both charts: their bars, and the marks of their axes."""

    bars: list[Bar]
    turns: list[Tick]
    tokens: list[Tick]
    cost: list[Tick]


def plot(turns: Sequence[Section]) -> Plot | None:
    """Return the charts of a session; None if no model reported its usage."""
    if not any(turn.spend.usage for turn in turns):
        return None
    size = math.ceil(len(turns) / MAX_BARS)
    groups = [turns[start : start + size] for start in range(0, len(turns), size)]
    spends = [_sum(group) for group in groups]
    max_tokens = _ceiling(max(spend.usage.input + spend.usage.output for spend in spends))
    max_cost = _ceiling(max(spend.cost for spend in spends))
    room = (WIDTH - LEFT - RIGHT) / len(groups)
    width = min(_MAX_WIDTH, room * (1 - _GAP))
    bars = [
        Bar(
            first=group[0].number or 0,
            last=group[-1].number or 0,
            spend=spend,
            x=round(LEFT + index * room + (room - width) / 2, 2),
            width=round(width, 2),
            tokens=_stack(_token_parts(spend), max_tokens),
            cost=_stack([("cost", spend.cost)], max_cost),
        )
        for index, (group, spend) in enumerate(zip(groups, spends, strict=True))
    ]
    every = math.ceil(len(bars) / 12)
    return Plot(
        bars=bars,
        turns=[Tick(round(bar.x + bar.width / 2, 2), bar.first) for bar in bars[::every]],
        tokens=_axis(max_tokens),
        cost=_axis(max_cost) if any(spend.cost for spend in spends) else [],
    )


def _sum(turns: Sequence[Section]) -> Spend:
    total = Spend()
    for turn in turns:
        total.add(turn.spend)
    return total


def _token_parts(spend: Spend) -> list[tuple[str, float]]:
    usage = spend.usage
    return [
        ("cached", usage.cache_read),
        ("input", max(0, usage.input - usage.cache_read)),
        ("output", usage.output),
    ]


def _stack(values: Sequence[tuple[str, float]], maximum: float) -> list[Part]:
    """Return the parts, stacked upwards from the axis."""
    bars: list[Part] = []
    y = float(HEIGHT - BOTTOM)
    for name, value in values:
        height = value / maximum * (HEIGHT - TOP - BOTTOM) if maximum else 0.0
        y -= height
        if height:
            bars.append(Part(name, round(y, 2), round(height, 2)))
    return bars


def _axis(maximum: float) -> list[Tick]:
    return [
        Tick(
            round(HEIGHT - BOTTOM - step / _TICKS * (HEIGHT - TOP - BOTTOM), 2),
            maximum * step / _TICKS,
        )
        for step in range(_TICKS + 1)
    ]


def _ceiling(value: float) -> float:
    """Return the next 1, 2, 4 or 8 times a power of ten, so that quarters are round too."""
    if value <= 0:
        return 0.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 2, 4, 8) if value <= step * power), 10 * power)

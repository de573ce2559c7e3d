"""`acp-agent usage`: token usage and cost by day, model or project, as a table and as bars."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from shutil import get_terminal_size
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from acp_agent.cli.localization import translate, user_translator
from acp_agent.cli.output import on_terminal, pad, say, say_json, say_table, width
from acp_agent.cli.parser import Parser, number
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.amounts import format_decimal
from acp_agent.events import Usage
from acp_agent.models.catalog import Catalog
from acp_agent.session.history.questions import QuestionCounts
from acp_agent.session.store.store import Store
from acp_agent.session.store.usage import UsageRow
from acp_agent.session.turns.budget import midnight

By = Literal["day", "model", "project"]

MAX_DAYS = 3_660
_DROP_ORDER = 5, 3, 4, 2, 1  # columns that are dropped first in a narrow terminal
_MAX_EVERY_DAY = 62  # up to this many days, the bars include days without requests
COLUMNS = 80  # maximum width of a line
_MAX_NAME = 28  # columns of a name; longer names are cut at the start
_MIN_COLUMNS = 8  # minimum columns for a name and for a bar in a narrow terminal
_EIGHTHS = " ▏▎▍▌▋▊▉"


class Total(Struct, kw_only=True):
    """Usage of a day, a model or a project; `unpriced` requests are not in the `cost`."""

    name: str
    requests: int = 0
    usage: Usage = Usage()
    cost: float = 0.0
    unpriced: int = 0

    @property
    def tokens(self) -> int:
        """Return the input and output tokens."""
        return self.usage.input + self.usage.output

    @property
    def cached(self) -> float:
        """Return the share of input tokens read from the provider's cache."""
        if not self.usage.input:
            return 0.0
        return min(1.0, self.usage.cache_read / self.usage.input)  # not so on some servers


def run(argv: list[str]) -> int:
    """Show usage and cost; return the exit status."""
    parser = Parser(
        prog="acp-agent usage",
        description="Show token usage and cost in US dollars of all sessions, including running "
        "ones, and how many questions were asked and avoided.",
    )
    parser.add_argument(
        "--days",
        type=number(1, MAX_DAYS),
        default=30,
        metavar="N",
        help="show the last N days including today (default: 30)",
    )
    parser.add_argument(
        "--by",
        choices=["day", "model", "project"],
        default="day",
        help="group by day, model or project (default: day)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return asyncio.run(_show(options))


def _columns() -> int:
    """Return the maximum line width: the usual one, or that of a narrower terminal."""
    if not on_terminal():
        return COLUMNS
    return min(COLUMNS, get_terminal_size((COLUMNS, 24)).columns)


async def _show(options: argparse.Namespace) -> int:
    setup = load_user_config()
    today = datetime.now().astimezone().date()
    first = today - timedelta(days=options.days - 1)
    catalog = Catalog(setup.config.models)
    rows, questions = await _read(setup, options.days, options.by, catalog)
    totals = totals_by(options.by, rows, catalog)
    if options.json:
        say_json(
            {
                "from": first.isoformat(),
                "to": today.isoformat(),
                "by": options.by,
                "currency": "USD",
                "rows": [_as_json(total) for total in totals],
                "total": _as_json(_sum("total", totals)),
                "questions": asdict(questions),
            }
        )
    elif not totals:
        say(
            translate(
                "No model was used since {day}; show more days with --days, or start a session "
                "with `acp-agent chat`.",
                day=first.isoformat(),
            )
        )
    else:
        _say_totals(totals, options.by)
        say()
        encoding = sys.stdout.encoding or "utf-8"
        for line in text_bars(_bars(totals, options.by, today), encoding, _columns()):
            say(line)
        if question_counts := questions.describe(user_translator()):
            say(f"\n{question_counts}")
    return 0


async def _read(
    setup: UserConfig, days: int, by: By, catalog: Catalog
) -> tuple[Sequence[UsageRow], QuestionCounts]:
    path, questions, since = setup.paths.sessions_file, QuestionCounts(), midnight(days=1 - days)
    if not path.exists():  # do not create the file
        return [], questions
    store = await Store.open(path)
    try:
        for events in await store.decisions_since(since):
            questions.add(events)
        keys, by_length = ["time" if by == "day" else by], catalog.priced_by_length()
        return await store.usage_since(since, by=keys, separate=by_length), questions
    finally:
        await store.close()


def totals_by(by: By, rows: Iterable[UsageRow], catalog: Catalog) -> list[Total]:
    """Return the totals: days in order, models and projects by descending cost.

    A request without a stored price is counted at the current price, if there is one.
    """
    totals: dict[str, Total] = {}
    for row in rows:
        total = totals.setdefault(name := _name(by, row), Total(name=name))
        total.requests += row.requests
        total.usage += row.usage
        price = catalog.cost_now(row.model, row.usage) if row.cost is None else row.cost
        if price is None:
            total.unpriced += row.requests
        else:
            total.cost += price
    if by == "day":
        return sorted(totals.values(), key=lambda total: total.name)
    return sorted(totals.values(), key=lambda total: (-total.cost, -total.tokens, total.name))


def _name(by: By, row: UsageRow) -> str:
    if by == "day":
        return datetime.fromtimestamp(row.at / 1000).astimezone().date().isoformat()
    if by == "model":
        return row.model
    home = str(Path.home())
    if row.project == home or row.project.startswith(f"{home}/"):
        return f"~{row.project[len(home) :]}"
    return row.project or translate("(deleted sessions)")


def _sum(name: str, totals: Iterable[Total]) -> Total:
    combined = Total(name=name)
    for total in totals:
        combined.requests += total.requests
        combined.usage += total.usage
        combined.cost += total.cost
        combined.unpriced += total.unpriced
    return combined


def _say_totals(totals: Sequence[Total], by: By) -> None:
    combined = _sum(translate("all"), totals)
    headings = [
        {"day": translate("DAY"), "model": translate("MODEL"), "project": translate("PROJECT")}[by],
        translate("REQUESTS"),
        translate("INPUT"),
        translate("CACHED"),
        translate("OUTPUT"),
        translate("REASONING"),
        translate("COST (USD)"),
    ]
    table = [headings, *(_cells(total) for total in (*totals, combined))]
    fitted = _fit_columns(table, _columns()) if on_terminal() else table
    say_table(fitted[0], fitted[1:], numbers=len(fitted[0]) - 1)
    if combined.unpriced:
        say()
        say(
            translate(
                "{mark}: {count} requests have no known price; set one in `[models]` in the "
                "configuration.",
                mark="+?" if combined.cost else "?",
                count=f"{combined.unpriced:,}",
            )
        )


def _fit_columns(table: Sequence[Sequence[str]], max_width: int) -> Sequence[Sequence[str]]:
    """Return the table without the least important columns if there is no room."""
    columns = list(range(len(table[0])))
    for dropped in _DROP_ORDER:
        widths = [max(width(row[column]) for row in table) for column in columns]
        if sum(widths) + 2 * (len(columns) - 1) <= max_width:
            break
        columns.remove(dropped)
    return [[row[column] for column in columns] for row in table]


def _cells(total: Total) -> list[str]:
    return [
        total.name,
        f"{total.requests:,}",
        f"{total.usage.input:,}",
        f"{total.cached:.0%}",
        f"{total.usage.output:,}",
        f"{total.usage.reasoning:,}",
        _money(total),
    ]


def _money(total: Total, sign: str = "") -> str:
    if total.unpriced and not total.cost:
        return "?"
    return f"{sign}{format_decimal(total.cost)}{' +?' if total.unpriced else ''}"


def _bars(totals: Sequence[Total], by: By, today: date) -> list[Bar]:
    """Return bars of cost if there is any, otherwise of tokens."""
    money = any(total.cost for total in totals)
    listed = list(totals)
    if by == "day" and totals:
        first_day = date.fromisoformat(totals[0].name)
        last = max(today, date.fromisoformat(totals[-1].name))  # the clock may have been set back
        count = (last - first_day).days + 1
        if count <= _MAX_EVERY_DAY:
            by_day = {total.name: total for total in totals}
            days = [(first_day + timedelta(days=day)).isoformat() for day in range(count)]
            listed = [by_day.get(day) or Total(name=day) for day in days]
    return [
        Bar(
            total.name,
            total.cost if money else total.tokens,
            _money(total, sign="$")
            if money
            else translate("{count} tokens", count=f"{total.tokens:,}"),
        )
        for total in listed
    ]


def _as_json(total: Total) -> dict[str, object]:
    usage = total.usage
    return {
        "name": total.name,
        "requests": total.requests,
        "input_tokens": usage.input,
        "cached_read_tokens": usage.cache_read,
        "cached_write_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "thought_tokens": usage.reasoning,
        "cost": float(f"{total.cost:.12g}"),  # rounds off meaningless digits of sums
        "unpriced_requests": total.unpriced,
    }


class Bar(NamedTuple):
    """A bar: its name, its length in any unit, and its label."""

    name: str
    value: float
    label: str


def text_bars(
    bars: Sequence[Bar], encoding: str = "utf-8", columns: int = COLUMNS
) -> Iterator[str]:
    """Yield one line per bar; the longest one fills the width.

    If the encoding has no block characters, bars consist of `#`.
    """
    if not bars:
        return
    label = max(width(bar.label) for bar in bars)
    name_limit = max(_MIN_COLUMNS, min(_MAX_NAME, columns - label - _MIN_COLUMNS - 3))
    names = [_short(bar.name, name_limit) for bar in bars]
    name_width = max(map(width, names))
    bar_width = max(1, columns - name_width - label - 3)
    blocks = _has_blocks(encoding)
    longest = max(bar.value for bar in bars) or 1.0
    for name, bar in zip(names, bars, strict=True):
        length = bar.value / longest * bar_width
        bar_text = f"│{_draw_bar(length)}" if blocks else f"|{'#' * round(length)}"
        yield f"{pad(name, name_width)} {bar_text} {bar.label}".rstrip()


def _has_blocks(encoding: str) -> bool:
    try:
        f"│█{_EIGHTHS}".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _draw_bar(length: float) -> str:
    eighths = round(length * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()


def _short(name: str, max_width: int) -> str:
    name = "".join(char if char.isprintable() else " " for char in name)
    if width(name) <= max_width:
        return name
    while width(name) >= max_width:
        name = name[1:]
    return f"…{name}"

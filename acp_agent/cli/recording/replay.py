"""`acp-agent replay`: a recorded session as a test of the agent."""

from __future__ import annotations

from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.output import FAILED, guarded, say, say_json
from acp_agent.cli.parser import Parser
from acp_agent.replay.comparison import Difference
from acp_agent.replay.record import read_record, requests_of
from acp_agent.replay.replay import Replayed, replay

_SHOWN = 5  # differences


def run(argv: list[str]) -> int:
    """Replay a record; the exit status is 1 where the agent behaves differently."""
    parser = Parser(
        prog="acp-agent replay",
        description="Replay a recorded session offline, and report where the agent behaves "
        "differently. No command runs, and no file is changed.",
    )
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="a file that `acp-agent sessions record` wrote"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return guarded(lambda: _replay(options.file, as_json=options.json))


def _replay(path: Path, *, as_json: bool) -> int:
    record = read_record(path)
    replayed = replay(record)
    requests = requests_of(record.steps)
    if as_json:
        say_json(
            {
                "turns": replayed.turns,
                "requests": requests,
                "differences": [_as_json(one) for one in replayed.differences],
            }
        )
    else:
        _show(path, replayed, requests)
    return FAILED if replayed.differences else 0


def _show(path: Path, replayed: Replayed, requests: int) -> None:
    count = len(replayed.differences)
    if not count:
        say(
            translate(
                "{file} replays as recorded: {turns} turns, {requests} requests.",
                file=path,
                turns=replayed.turns,
                requests=requests,
            )
        )
        return
    for one in replayed.differences[:_SHOWN]:
        place = translate("Turn {turn}, {field}", turn=one.turn, field=one.field)
        if one.request:
            place = translate(
                "Turn {turn}, request {request}, {field}",
                turn=one.turn,
                request=one.request,
                field=one.field,
            )
        say(f"{place}\n{one.diff}\n")
    if count > _SHOWN:
        say(translate("… and {count} more differences", count=count - _SHOWN))
    say(translate("{file} does not replay as recorded.", file=path))


def _as_json(one: Difference) -> dict[str, object]:
    return {"turn": one.turn, "request": one.request, "field": one.field, "diff": one.diff}

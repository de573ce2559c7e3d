"""A gate with a project on disk, and the buttons of what it asks."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from acp_agent.permissions.access import (
    Ask,
    Choice,
    CommandAccess,
    FetchAccess,
    Mode,
    Verdict,
    WriteAccess,
)
from acp_agent.permissions.gate import PolicyGate
from acp_agent.permissions.grants import GrantStore

MODES: tuple[Mode, ...] = get_args(Mode)


class Room:
    """A gate with a project folder on disk."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.project = self.home / "project"
        (self.project / "src" / "deep").mkdir(parents=True)
        (self.project / ".git").mkdir()
        self.store = GrantStore(folder / "data" / "grants.json")
        self.gate = PolicyGate(self.store, home=str(self.home))

    def command(self, line: str, mode: Mode = "ask", cwd: Path | None = None) -> Verdict:
        access = CommandAccess(line, str(cwd or self.project))
        return self.gate.judge(access, mode=mode, project=str(self.project))

    def write(self, *paths: str, mode: Mode = "ask") -> Verdict:
        access = WriteAccess(tuple(str(self.project / path) for path in paths))
        return self.gate.judge(access, mode=mode, project=str(self.project))

    def fetch(self, url: str, mode: Mode = "ask") -> Verdict:
        return self.gate.judge(FetchAccess(url), mode=mode, project=str(self.project))

    def request(self, url: str, mode: Mode = "ask", *, named: bool = False) -> Verdict:
        access = FetchAccess(url, user_named=named, changes=True)
        return self.gate.judge(access, mode=mode, project=str(self.project))

    def press(self, verdict: Verdict, kind: str) -> Choice:
        assert isinstance(verdict, Ask), verdict
        (choice,) = [each for each in verdict.choices if each.kind == kind]
        self.gate.remember(choice)
        return choice


def kinds(verdict: Verdict) -> list[str]:
    assert isinstance(verdict, Ask), verdict
    return [choice.kind for choice in verdict.choices]


ALL_FOUR = ["allow_once", "allow_always", "reject_once", "reject_always"]

ONCE = ["allow_once", "reject_once"]

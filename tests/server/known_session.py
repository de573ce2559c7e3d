"""What a test knows of a session, and what a replay of it has to show.

`tests/server/test_server_statemachine_sessions.py` keeps one `Known` for each session.
"""

from __future__ import annotations

from msgspec import Struct, field

from tests.server.session_driver import Shown, Work


class Known(Struct):
    """What the test knows of a session."""

    id: str
    open: bool = True
    said: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)  # said, and maybe cancelled before it was heard
    working: str = ""  # the conduct that runs: `stall`, `run` or `wait`
    number: int = 0  # of that conduct
    works: list[Work] = field(default_factory=list)
    title: str | None = None
    archived: bool = False
    before: Shown = field(default_factory=Shown)  # shown before it was opened
    seen: bool = True  # the test has seen all of it
    crashed: bool = False  # the agent was killed while it ran, so more may be kept than was seen
    begun: bool = False  # it has a conversation, by which it is listed
    configured: bool = False  # an option was chosen, by which it is listed if that changed it


def compare_words(known: Known, said: list[str]) -> None:
    """The user's words are there, in order, but maybe those that were taken back at once."""
    wanted = [words for words in known.said if words in said or words not in known.unsure]
    assert said == wanted, (said, known.said)


def compare(known: Known, told: Shown, replayed: Shown) -> None:
    """A replay shows what was shown live; after a crash it may show more, and has a note."""
    for message, text in told.agent.items():
        again = replayed.agent.get(message, "")
        assert again.startswith(text) if known.crashed else again == text, (text, again)
    if not known.crashed:
        assert list(replayed.agent) == list(told.agent)
        assert replayed.calls.keys() == told.calls.keys()
    for call in told.calls.keys() - (told.cut if known.crashed else set()):
        statuses = {replayed.calls[call], told.calls[call]}
        # Version 1 has no word for a call that was cancelled.
        assert len(statuses) == 1 or statuses == {"cancelled", "failed"}, (call, statuses)

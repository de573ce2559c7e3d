"""What a turn is to do with the words that begin it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from acp_agent.events import AnyEvent

if TYPE_CHECKING:
    from acp_agent.session.chosen import Chosen
    from acp_agent.session.repetition import Repetition
    from acp_agent.session.turn_host import SessionHost

Work = Callable[["SessionHost"], Awaitable[str]]


class Assignment(Struct, frozen=True, kw_only=True):
    """Without anything in it the model is asked once, with what the user chose.

    Attributes:
        reply: the agent's own answer, given in the place of the model's.
        work: what is done instead of asking the model; it gives what the agent says in the end.
        repetition: asks the model, maybe more than once.
        chosen: what a skill wants the turn to be run with.
        call: what is called before the model is asked: a tool's name, and its arguments as JSON.
    """

    reply: Sequence[AnyEvent] = ()
    work: Work | None = None
    repetition: Repetition | None = None
    chosen: Chosen | None = None
    call: tuple[str, str] | None = None

"""`/loop N prompt`: one turn in which the model is asked the same again until it says it is done.

Every round begins with the same words and ends as a turn would. The rounds are one turn, so that
cancelling stops all of them, and what a turn may spend holds for all of them together; how many
requests may be made holds for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.agent.spoken import aside, spoken
from acp_agent.config.words import Words
from acp_agent.events import PromptRepeated, StopReason
from acp_agent.ids import new_message_id

if TYPE_CHECKING:
    from acp_agent.session.session import Session
    from acp_agent.session.turn_host import SessionHost

MAX_ROUNDS = 100


async def usage(session: Session) -> str:
    """What the user is told where nothing can be repeated."""
    return session.services.words(
        "Say how often, and what: `/loop N prompt`, where N is a number from 1 to {most}.",
        most=MAX_ROUNDS,
    )


def turn_runs(words: Words) -> str:
    """What the user is told where a turn runs already."""
    return words("A loop begins a turn of its own; say it again when the turn that runs has ended.")


class Repetition:
    """A prompt that is repeated.

    Args:
        prompt: what the user wants done.
        rounds: how often at most.

    Attributes:
        finished: whether the model said that nothing is left to do.
    """

    def __init__(self, prompt: str, rounds: int) -> None:
        self._prompt = prompt
        self._rounds = rounds
        self.finished = False

    @property
    def told(self) -> str:
        """What the model is told with the user's words."""
        return (
            f"[The user has this prompt repeated, up to {self._rounds} times in all: {self._prompt}"
            "\nDo as much in each round as makes sense. Call finish_loop as soon as there is "
            "nothing left to do.]"
        )

    async def run(self, host: SessionHost) -> StopReason:
        """All rounds; why the last one stopped.

        They end early where the model is done, a round did not come to its own end, or the user has
        to say something first.
        """
        from acp_agent.agent.turn import run_turn  # noqa: PLC0415 - brings what only prompts need

        words = host.words
        stop: StopReason = "end_turn"
        for number in range(1, self._rounds + 1):
            if number > 1:
                await host.emit(self._repeated(number))
            title = words("Round {number} of {rounds}", number=number, rounds=self._rounds)
            await host.emit(*spoken(f"\n\n**{title}**\n\n"))
            stop = await run_turn(host)
            if stop != "end_turn" or self.finished or host.context.awaits_answer:
                return stop
        ending = words("The loop ended after {rounds} rounds.", rounds=self._rounds)
        await host.emit(*aside(ending))
        return stop

    def _repeated(self, number: int) -> PromptRepeated:
        return PromptRepeated(
            message=new_message_id(),
            round=number,
            rounds=self._rounds,
            text=f"[Round {number} of {self._rounds}. Again, unless nothing is left to do; then "
            f"call finish_loop:]\n{self._prompt}",
        )


def parse_loop(rest: str) -> Repetition | None:
    """What follows `/loop`; None where it says no number of rounds, or nothing to do."""
    count, _, prompt = rest.strip().partition(" ")
    if not (count.isascii() and count.isdigit() and len(count) <= len(str(MAX_ROUNDS))):
        return None
    rounds, prompt = int(count), prompt.strip()
    if not 1 <= rounds <= MAX_ROUNDS or not prompt:
        return None
    return Repetition(prompt, rounds)

"""One turn in which the model is asked the same again until it says that it is done.

Every round begins with the same words and ends as a turn would. The rounds are one turn, so that
cancelling stops all of them, and what a turn may spend holds for all of them together; how many
requests may be made holds for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.agent.spoken import aside, spoken
from acp_agent.events import PromptRepeated, StopReason
from acp_agent.ids import new_message_id

if TYPE_CHECKING:
    from acp_agent.session.turn_host import SessionHost


class Repetition:
    """A prompt that is repeated.

    Args:
        prompt: what the user wants done, in the user's words.
        rounds: how often at most.
        ask: what the model is told with these words in each round; "": nothing.
        call: what is called at the beginning of each round: a tool's name, its arguments as JSON.

    Attributes:
        finished: whether the model said that nothing is left to do.
    """

    def __init__(
        self, prompt: str, rounds: int, *, ask: str = "", call: tuple[str, str] | None = None
    ) -> None:
        self._prompt = prompt
        self._rounds = rounds
        self._ask = ask
        self._call = call
        self.finished = False

    @property
    def told(self) -> str:
        """What the model is told with the user's words."""
        return self._with_ask(
            f"[The user has this prompt repeated, up to {self._rounds} times in all: {self._prompt}"
            "\nDo as much in each round as makes sense. Call finish_loop as soon as there is "
            "nothing left to do.]"
        )

    async def run(self, host: SessionHost) -> StopReason:
        """All rounds; why the last one stopped.

        They end early where the model is done, a round did not come to its own end, or the user has
        to say something first.
        """
        from acp_agent.agent.turn import make_call, run_turn  # noqa: PLC0415 - brings what only prompts need

        translate = host.translate
        stop: StopReason = "end_turn"
        for number in range(1, self._rounds + 1):
            if number > 1:
                await host.emit(self._repeated(number, host))
            title = translate("Round {number} of {rounds}", number=number, rounds=self._rounds)
            await host.emit(*spoken(f"\n\n**{title}**\n\n"))
            if self._call is not None:
                await make_call(host, *self._call)
            stop = await run_turn(host)
            if stop != "end_turn" or self.finished or host.context.awaits_answer:
                return stop
        ending = (
            translate("The loop ended after one round.")
            if self._rounds == 1
            else translate("The loop ended after {rounds} rounds.", rounds=self._rounds)
        )
        await host.emit(*aside(ending))
        return stop

    def _with_ask(self, text: str) -> str:
        return f"{text}\n\n{self._ask}" if self._ask else text

    def _repeated(self, number: int, host: SessionHost) -> PromptRepeated:
        told = self._with_ask(
            f"[Round {number} of {self._rounds}. Again, unless nothing is left to do; then "
            f"call finish_loop:]\n{self._prompt}"
        )
        return PromptRepeated(
            message=new_message_id(),
            round=number,
            rounds=self._rounds,
            text=host.clean(told),
        )

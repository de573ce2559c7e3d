"""The plan of a turn: what it does with its first prompt, and with which options."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.events import AnyEvent, PromptRepeated, StopReason, agent_message, agent_notice
from acp_agent.extensions.definitions.types import SMALL, RunSettings
from acp_agent.ids import new_message_id
from acp_agent.models.base import ModelInfo, ThoughtLevel
from acp_agent.session.services import Services
from acp_agent.session.settings import thought_option
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # brings pydantic
    from acp_agent.session.turns.flow import FlowRun
    from acp_agent.tools.toolset import Toolset

Action = Callable[[TurnResources], Awaitable[str]]


class TurnPlan(Struct, frozen=True, kw_only=True):
    """The plan of a turn. By default the model is run once, with the user's settings.

    Attributes:
        reply: the agent's own answer, given instead of the model's.
        action: is run instead of the model; returns the agent's answer.
        repetition: runs the model, maybe more than once.
        call: a call before the model is run: a tool's name, and its arguments as JSON.
    """

    reply: Sequence[AnyEvent] = ()
    action: Action | None = None
    repetition: Repetition | None = None
    flow: FlowRun | None = None
    options: RunOptions | None = None
    call: tuple[str, str] | None = None


class RunOptions(Struct, frozen=True, kw_only=True):
    """The options with which a turn or an agent runs instead of the session's settings.

    `uses` limits the tools and has further settings; tools in `always` are available in any case.
    `skill` is the skill that the turn follows; "" if there is none. `inherited` limits the tools of
    agents that work for the turn.
    """

    model: ModelInfo
    thought_level: ThoughtLevel | None
    uses: RunSettings
    always: tuple[str, ...] = ()
    skill: str = ""
    inherited: RunSettings = RunSettings()

    def filter(self, toolset: Toolset) -> Toolset:
        """Return the toolset without tools that may not be used."""
        return toolset.filtered(lambda tool: tool in self.always or self.uses.allows(tool))


def run_options(
    uses: RunSettings, *, main: ModelInfo, thought: str | None, services: Services
) -> RunOptions:
    """Return the run options of a skill or an agent.

    The session's settings apply to everything that `uses` does not set.

    Raises:
        InvalidInputError: there is no such model, or it cannot be used; the message says why.
    """
    model = main if uses.model is None else _find_model(uses.model, main, services)
    option = thought_option(model, uses.thought_level or thought)
    level = None if option is None else cast("ThoughtLevel", option.current)
    if uses.max_output is not None:
        model = replace(model, max_output=min(uses.max_output, model.max_output))
    # The author of the file did not know which model would run it.
    if uses.temperature is not None and not reasons(model, level):
        model = replace(model, temperature=uses.temperature)
    return RunOptions(model=model, thought_level=level, uses=uses)


def reasons(model: ModelInfo, level: str | None) -> bool:
    """Return whether a model reasons: then most accept only their default temperature."""
    return level not in {None, "off"} or model.reasoning in {"adaptive", "between_tools"}


def _find_model(name: str, main: ModelInfo, services: Services) -> ModelInfo:
    models = services.models
    if name == SMALL:
        from acp_agent.models.roles import small_model  # noqa: PLC0415 - rarely needed

        return small_model(models, services.config, main)
    try:
        model = models.resolve(name)
        models.require(model)
    except (AuthRequiredError, ConfigError, InvalidInputError) as error:
        raise InvalidInputError(f"its model {name} cannot be used: {error}") from error
    return model


class Repetition:
    """A turn that repeats a prompt until the model reports that it is done.

    Every round begins with the prompt and ends as a turn would. All rounds are one turn, so
    cancelling stops all of them, and they share the turn's budget; the limit of requests applies to
    each round.

    Args:
        rounds: the maximum number of rounds.
        call: a call at the beginning of each round: a tool's name, and its arguments as JSON.

    Attributes:
        finished: whether the model has reported that it is done.
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
    def first_note(self) -> str:
        """The text that the model is sent with the user's prompt."""
        return self._with_ask(
            f"[The user has this prompt repeated, up to {self._rounds} times in all: {self._prompt}"
            "\nDo as much in each round as makes sense. Call finish_loop as soon as there is "
            "nothing left to do.]"
        )

    async def run(self, turn: TurnResources) -> StopReason:
        """Run all rounds; return why the last one stopped.

        They end early if the model is done, a round is cut short, or the user has to answer first.
        """
        from acp_agent.agent.turn import run_turn, run_user_call  # noqa: PLC0415 - brings pydantic

        translate, journal = turn.user.translate, turn.journal
        stop: StopReason = "end_turn"
        for number in range(1, self._rounds + 1):
            if number > 1:
                await journal.emit(self._next_round(number, journal.secrets))
            title = translate("Round {number} of {rounds}", number=number, rounds=self._rounds)
            await journal.emit(*agent_message(f"\n\n**{title}**\n\n"))
            if self._call is not None:
                await run_user_call(turn, *self._call)
            stop = await run_turn(turn)
            if stop != "end_turn" or self.finished or journal.context.awaits_answer:
                return stop
        ending = (
            translate("The loop ended after one round.")
            if self._rounds == 1
            else translate("The loop ended after {rounds} rounds.", rounds=self._rounds)
        )
        await journal.emit(*agent_notice(ending))
        return stop

    def _with_ask(self, text: str) -> str:
        return f"{text}\n\n{self._ask}" if self._ask else text

    def _next_round(self, number: int, secrets: Sequence[str]) -> PromptRepeated:
        text = self._with_ask(
            f"[Round {number} of {self._rounds}. Again, unless nothing is left to do; then "
            f"call finish_loop:]\n{self._prompt}"
        )
        return PromptRepeated(
            message=new_message_id(), round=number, rounds=self._rounds, text=scrub(text, secrets)
        )

"""What a turn is to do with the prompt that begins it, and what it is run with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.agent.resources import TurnResources
from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.events import AnyEvent, PromptRepeated, StopReason, agent_message, agent_notice
from acp_agent.extensions.definitions.types import SMALL, RunSettings
from acp_agent.ids import new_message_id
from acp_agent.models.base import ModelInfo, ThoughtLevel
from acp_agent.models.registry import Models
from acp_agent.session.settings import thought_option
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:  # brings pydantic
    from acp_agent.session.turns.flow import FlowRun
    from acp_agent.tools.toolset import Toolset

Action = Callable[[TurnResources], Awaitable[str]]


class TurnPlan(Struct, frozen=True, kw_only=True):
    """Without anything in it the model is asked once, with what the user chose.

    Attributes:
        reply: the agent's own answer, given in the place of the model's.
        action: what is done instead of asking the model; returns what the agent says in the end.
        repetition: asks the model, maybe more than once.
        flow: tells the model the steps of a flow.
        options: what a skill wants the turn to be run with.
        call: what is called before the model is asked: a tool's name, and its arguments as JSON.
    """

    reply: Sequence[AnyEvent] = ()
    action: Action | None = None
    repetition: Repetition | None = None
    flow: FlowRun | None = None
    options: RunOptions | None = None
    call: tuple[str, str] | None = None


class RunOptions(Struct, frozen=True, kw_only=True):
    """What a turn, or an agent in it, is run with instead of the session's own choice.

    `uses` says which tools it has, and what else it may do; those that `always` names it has in any
    case. `skill` is the skill that the turn follows; "" if it follows none. `inherited` says which
    tools agents that work for it have at most.
    """

    model: ModelInfo
    thought_level: ThoughtLevel | None
    uses: RunSettings
    always: tuple[str, ...] = ()
    skill: str = ""
    inherited: RunSettings = RunSettings()

    def filter(self, toolset: Toolset) -> Toolset:
        """Return the tools among these that may be used."""
        return toolset.filtered(lambda tool: tool in self.always or self.uses.allows(tool))


def run_options(
    uses: RunSettings, *, main: ModelInfo, thought: str | None, models: Models, config: Config
) -> RunOptions:
    """Return what a skill or an agent is run with.

    The session's choice holds for whatever it does not name, and the configuration's where the
    session has none.

    Args:
        uses: what it names.
        main: the session's model.
        thought: how much that is to reason.
        models: the models that there are.
        config: which of them is the small one.

    Raises:
        InvalidInputError: there is no such model, or it cannot be used; the message says why.
    """
    model = main if uses.model is None else _named(uses.model, main, models, config)
    option = thought_option(model, uses.thought_level or thought)
    level = None if option is None else cast("ThoughtLevel", option.current)
    if uses.max_output is not None:
        model = replace(model, max_output=min(uses.max_output, model.max_output))
    # Most models refuse any temperature but their own while they reason, and some always; whoever
    # wrote the file did not know which model would read it.
    reasons = level not in {None, "off"} or model.reasoning in {"adaptive", "between_tools"}
    if uses.temperature is not None and not reasons:
        model = replace(model, temperature=uses.temperature)
    return RunOptions(model=model, thought_level=level, uses=uses)


def _named(name: str, main: ModelInfo, models: Models, config: Config) -> ModelInfo:
    if name == SMALL:
        from acp_agent.models.roles import small_model  # noqa: PLC0415 - rarely needed

        return small_model(models, config, main)
    try:
        model = models.resolve(name)
        models.require(model)
    except (AuthRequiredError, ConfigError, InvalidInputError) as error:
        raise InvalidInputError(f"its model {name} cannot be used: {error}") from error
    return model


class Repetition:
    """One turn in which the model is asked the same again until it says that it is done.

    Every round begins with the same words and ends as a turn would. The rounds are one turn, so
    cancelling stops all of them, and a turn's budget holds for all of them together; the limit of
    requests holds for each.

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
    def first_note(self) -> str:
        """What the model is told with the user's words."""
        return self._with_ask(
            f"[The user has this prompt repeated, up to {self._rounds} times in all: {self._prompt}"
            "\nDo as much in each round as makes sense. Call finish_loop as soon as there is "
            "nothing left to do.]"
        )

    async def run(self, turn: TurnResources) -> StopReason:
        """Run all rounds; return why the last one stopped.

        They end early where the model is done, a round was cut short, or the user has to say
        something first.
        """
        from acp_agent.agent.turn import run_turn, run_user_call  # noqa: PLC0415 - brings pydantic

        translate, journal = turn.user.translate, turn.journal
        stop: StopReason = "end_turn"
        for number in range(1, self._rounds + 1):
            if number > 1:
                await journal.emit(self._repeated(number, journal.secrets))
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

    def _repeated(self, number: int, secrets: Sequence[str]) -> PromptRepeated:
        text = self._with_ask(
            f"[Round {number} of {self._rounds}. Again, unless nothing is left to do; then "
            f"call finish_loop:]\n{self._prompt}"
        )
        return PromptRepeated(
            message=new_message_id(),
            round=number,
            rounds=self._rounds,
            text=scrub(text, secrets),
        )

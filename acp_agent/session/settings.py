"""The settings of a session: mode, model, thought level and agent."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.errors import AuthRequiredError, InvalidInputError, SessionError
from acp_agent.events import AnyEvent, ConfigChanged
from acp_agent.extensions.definitions.locations import bundled_agents
from acp_agent.models.base import ModelInfo, ThoughtLevel
from acp_agent.permissions.access import Mode
from acp_agent.session.services import Services

OptionId = Literal["mode", "model", "thought_level", "agent"]
DEFAULT_AGENT = "default"  # the built-in agent


class Value(Struct, frozen=True, kw_only=True):
    """A value of an option, with its name and description."""

    id: str
    name: str
    description: str | None = None


class Option(Struct, frozen=True, kw_only=True):
    """An option with its values and the current value."""

    id: OptionId
    name: str
    description: str
    current: str
    values: tuple[Value, ...]

    @property
    def category(self) -> str:
        """The option's category in ACP; categories that ACP does not define begin with `_`."""
        return f"_{self.id}" if self.id == "agent" else self.id

    def check(self, value: str) -> str:
        """Return `value` after a check that the option has it. Raises InvalidInputError."""
        if not any(value == candidate.id for candidate in self.values):
            value_ids = ", ".join(candidate.id for candidate in self.values)
            raise InvalidInputError(
                f"value: {value!r} is no value of {self.id}; it can be {value_ids}", field="value"
            )
        return value


MODES = (
    Value(id="ask", name="Ask", description="Ask before files change or commands run"),
    Value(
        id="accept-edits",
        name="Accept edits",
        description="Change files of the project without asking; ask before commands run",
    ),
    Value(id="plan", name="Plan", description="Only read, then answer with a plan"),
    Value(
        id="draft",
        name="Draft",
        description="Write new files in one folder without asking, and change nothing else",
    ),
    Value(
        id="full",
        name="Full",
        description=(
            "Ask only about unfamiliar web pages, agent instructions and files that run "
            "automatically"
        ),
    ),
)
MODE_IDS = frozenset(mode.id for mode in MODES)


def translated(option: Option, translate: Translator) -> Option:
    """Return an option in the user's language; names of models are not translated."""
    values = option.values
    if option.id != "model":
        values = tuple(
            Value(
                id=value.id,
                name=translate(value.name),
                description=None if value.description is None else translate(value.description),
            )
            for value in values
        )
    name, description = translate(option.name), translate(option.description)
    return replace(option, name=name, description=description, values=values)


def mode_option(current: str) -> Option:
    """Return the option of the permission mode."""
    return Option(
        id="mode",
        name="Mode",
        description="What the agent may do without asking",
        current=current,
        values=MODES,
    )


def model_option(current: ModelInfo, available: Sequence[ModelInfo]) -> Option:
    """Return the option of the model; its values always include the current one."""
    models = list(available)
    if all(model.ref != current.ref for model in models):
        models.insert(0, current)
    return Option(
        id="model",
        name="Model",
        description="The language model that answers",
        current=current.ref,
        values=tuple(Value(id=model.ref, name=model.name or model.ref) for model in models),
    )


def thought_option(model: ModelInfo, current: str | None) -> Option | None:
    """Return the option of the thought level; None if the model has no levels."""
    levels = model.thought_levels
    if not levels:
        return None
    default = model.default_thought or levels[0]
    return Option(
        id="thought_level",
        name="Thinking",
        description="How much the model reasons before it answers",
        current=current if current in levels else default,
        values=tuple(Value(id=level, name=level.capitalize()) for level in levels),
    )


def agent_option(current: str, agents: Sequence[Value]) -> Option:
    """Return the option of the agent that the session runs as."""
    values = (
        Value(id=DEFAULT_AGENT, name="Default", description="The built-in agent"),
        *(agent for agent in agents if agent.id != DEFAULT_AGENT),
    )
    if all(value.id != current for value in values):
        values = (*values, Value(id=current, name=current))
    return Option(
        id="agent",
        name="Agent",
        description="The agent that the session runs as",
        current=current,
        values=values,
    )


class Settings:
    """The current settings, computed from the session's events, and the resulting model.

    Attributes:
        follows_agent: whether the next turn changes the model to the one that the agent names: true
            from the choice of the agent until a model is chosen.
    """

    def __init__(self, services: Services, model: ModelInfo | None) -> None:
        self.agent = DEFAULT_AGENT
        self.follows_agent = False
        self._agents: tuple[Value, ...] | None = None  # None until their files are read
        self._services = services
        self._model = model
        self._stored_model: str | None = None
        self._mode: Mode = services.config.mode
        self._thought: str | None = services.config.thought_level

    def apply(self, events: Sequence[AnyEvent]) -> None:
        """Apply further events."""
        for event in events:
            if isinstance(event, ConfigChanged):
                self._apply_change(event)

    def _apply_change(self, event: ConfigChanged) -> None:
        match event.option:
            case "mode" if event.value in MODE_IDS:
                self._mode = cast("Mode", event.value)
            case "model":
                self._stored_model = event.value
                self.follows_agent = False
                self._follow(event.value)
            case "thought_level":
                self._thought = event.value
            case "agent":
                self.agent, self.follows_agent = event.value, True

    def _follow(self, ref: str) -> None:
        """Use the chosen model; if there is no model yet, `choose_model` does so later."""
        if self._model is None or self._model.ref == ref:
            return
        try:
            self._model = self._services.models.resolve(ref)
        except InvalidInputError:
            self._model = None

    @property
    def mode(self) -> Mode:
        """The permission mode."""
        return self._mode

    @property
    def model(self) -> ModelInfo:
        """The model. Raises SessionError if no model is chosen yet."""
        if self._model is None:
            raise SessionError("no model is chosen yet")
        return self._model

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """The thought level; None if the model has no levels."""
        option = thought_option(self.model, self._thought)
        return None if option is None else cast("ThoughtLevel", option.current)

    @property
    def agents(self) -> tuple[Value, ...]:
        """The available agents besides the built-in one."""
        if self._agents is None:
            translate = self._services.translate
            self._agents = tuple(
                Value(id=agent.name, name=agent.name, description=translate(agent.description))
                for agent in bundled_agents(self._services.config)
            )
        return self._agents

    def offer_agents(self, agents: Sequence[Value]) -> bool:
        """Set the available agents; return whether they have changed."""
        previous, self._agents = self.agents, tuple(agents)
        return self._agents != previous

    def options(self) -> list[Option]:
        """Return the current options with their values."""
        options = [mode_option(self._mode)]
        if self._model is not None:
            options.append(model_option(self._model, self._services.models.available()))
            thought = thought_option(self._model, self._thought)
            if thought is not None:
                options.append(thought)
        if self.agents or self.agent != DEFAULT_AGENT:
            options.append(agent_option(self.agent, self.agents))
        translate = self._services.translate
        return (
            options
            if translate is ENGLISH
            else [translated(option, translate) for option in options]
        )

    async def change(self, option: str, value: str) -> ConfigChanged:
        """Return the event that sets an option, after a check of the value.

        Raises:
            InvalidInputError: there is no such option, or it has no such value.
            AuthRequiredError: the model cannot be used.
        """
        options = self.options()
        for candidate in options:
            if candidate.id == option:
                candidate.check(value)
                break
        else:
            raise InvalidInputError(
                f"configId: there is no option {option!r}; the options are "
                + ", ".join(candidate.id for candidate in options),
                field="configId",
            )
        if option == "model":
            await self._services.models.choose(value, None)  # raises if it cannot be used
        return ConfigChanged(option=option, value=value)

    async def choose_model(self) -> ModelInfo:
        """Return the session's model, or the configured one if the session has not chosen.

        Raises:
            AuthRequiredError: no model can be used, or the session's model no longer can.
            InvalidInputError: the named model does not exist.
        """
        if self._model is None:
            self._model = await self._services.account.choose(self._stored_model)
        else:
            self._services.account.require(self._model)
        return self._model

    async def find_model(self) -> None:
        """Choose the model if one can be used; reading a conversation needs no model."""
        with contextlib.suppress(AuthRequiredError, InvalidInputError):
            await self.choose_model()

"""What a user can choose for a session: mode, model, thought level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.errors import InvalidInputError
from acp_agent.models.base import ModelInfo

OptionId = Literal["mode", "model", "thought_level"]


class Value(Struct, frozen=True, kw_only=True):
    """One value of an option, and what the user reads of it."""

    id: str
    name: str
    description: str | None = None


class Option(Struct, frozen=True, kw_only=True):
    """An option with its values and the current one."""

    id: OptionId
    name: str
    description: str
    current: str
    values: tuple[Value, ...]

    def check(self, value: str) -> str:
        """`value`, if it is one of the option's.

        Raises:
            InvalidInputError: it is not; the message lists those that are.
        """
        if not any(value == known.id for known in self.values):
            known_ids = ", ".join(known.id for known in self.values)
            raise InvalidInputError(
                f"value: {value!r} is no value of {self.id}; it can be {known_ids}", field="value"
            )
        return value


MODES = (
    Value(id="ask", name="Ask", description="Ask before files change or commands run"),
    Value(
        id="accept-edits",
        name="Accept edits",
        description="Change files of the project without asking; ask before commands run",
    ),
    Value(id="plan", name="Plan", description="Read only, and answer with a plan"),
    Value(id="full", name="Full", description="Ask nothing; only what is never allowed is refused"),
)
MODE_IDS = frozenset(mode.id for mode in MODES)


def translated(option: Option, translate: Translator) -> Option:
    """An option in the user's language; models keep their names."""
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
    return Option(
        id=option.id,
        name=translate(option.name),
        description=translate(option.description),
        current=option.current,
        values=values,
    )


def mode_option(current: str) -> Option:
    """The permission mode."""
    return Option(
        id="mode",
        name="Mode",
        description="What the agent may do without asking",
        current=current,
        values=MODES,
    )


def model_option(current: ModelInfo, available: Sequence[ModelInfo]) -> Option:
    """The model; the current one is always among the values."""
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
    """How much the model reasons; None where it does not let one choose."""
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

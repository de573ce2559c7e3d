"""What a turn, or an agent in it, is run with where it is not the session's own choice.

A skill or an agent names a model, or how much it is to reason; the session's choice holds for
whatever it does not name, and the configuration's where the session has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.extensions.definitions.types import SMALL, Uses
from acp_agent.models.base import ModelInfo, ThoughtLevel
from acp_agent.models.registry import Models
from acp_agent.session.options import thought_option

if TYPE_CHECKING:  # brings pydantic
    from acp_agent.tools.toolset import Toolset


class Chosen(Struct, frozen=True, kw_only=True):
    """A model and how much it reasons; `uses` says which tools it has, and what else it may.

    Those that `always` names it has whatever that says.
    """

    model: ModelInfo
    thought_level: ThoughtLevel | None
    uses: Uses
    always: tuple[str, ...] = ()

    def of(self, toolset: Toolset) -> Toolset:
        """The tools among these that may be used."""
        return toolset.filtered(lambda tool: tool in self.always or self.uses.allows(tool))


def choose(
    uses: Uses, *, main: ModelInfo, thought: str | None, models: Models, config: Config
) -> Chosen:
    """What a skill or an agent is run with.

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
    return Chosen(model=model, thought_level=level, uses=uses)


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

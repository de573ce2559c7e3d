"""The settings of one session: mode, model, thought level."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import cast

from acp_agent.config.localization import ENGLISH
from acp_agent.errors import AuthRequiredError, InvalidInputError, SessionError
from acp_agent.events import AnyEvent, ConfigChanged
from acp_agent.models.base import ModelInfo, ThoughtLevel
from acp_agent.permissions.access import Mode
from acp_agent.session.options import (
    MODE_IDS,
    Option,
    mode_option,
    model_option,
    thought_option,
    translated,
)
from acp_agent.session.services import Services


class Settings:
    """What the user chose, a fold of the session's events, and the model that follows from it."""

    def __init__(self, services: Services, model: ModelInfo | None) -> None:
        self._services = services
        self._model = model
        self._stored_model: str | None = None
        self._mode: Mode = services.config.mode
        self._thought: str | None = services.config.thought_level

    def take(self, events: Sequence[AnyEvent]) -> None:
        """Bring the settings up to further events."""
        for event in events:
            if isinstance(event, ConfigChanged):
                self._changed(event)

    def _changed(self, event: ConfigChanged) -> None:
        match event.option:
            case "mode" if event.value in MODE_IDS:
                self._mode = cast("Mode", event.value)
            case "model":
                self._stored_model = event.value
                self._follow(event.value)
            case "thought_level":
                self._thought = event.value
            case _:
                pass

    def _follow(self, ref: str) -> None:
        """Use the model that was chosen; where none was yet, `choose_model` does so."""
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
        """The model.

        Raises:
            SessionError: none could be chosen yet.
        """
        if self._model is None:
            raise SessionError("no model is chosen yet")
        return self._model

    @property
    def thought_level(self) -> ThoughtLevel | None:
        """How much the model is to reason; None where it does not let one choose."""
        option = thought_option(self.model, self._thought)
        return None if option is None else cast("ThoughtLevel", option.current)

    def options(self) -> list[Option]:
        """The options with their values as they are now."""
        options = [mode_option(self._mode)]
        if self._model is not None:
            options.append(model_option(self._model, self._services.models.available()))
            thought = thought_option(self._model, self._thought)
            if thought is not None:
                options.append(thought)
        translate = self._services.translate
        return options if translate is ENGLISH else [translated(one, translate) for one in options]

    async def change(self, option: str, value: str) -> ConfigChanged:
        """The event that gives an option a value, once the value is known to be good.

        Raises:
            InvalidInputError: there is no such option, or it has no such value.
            AuthRequiredError: the model cannot be used.
        """
        options = self.options()
        for known in options:
            if known.id == option:
                known.check(value)
                break
        else:
            raise InvalidInputError(
                f"configId: there is no option {option!r}; the options are "
                + ", ".join(known.id for known in options),
                field="configId",
            )
        if option == "model":
            await self._services.models.choose(value, None)  # raises where it cannot be used
        return ConfigChanged(option=option, value=value)

    async def choose_model(self) -> ModelInfo:
        """The model to use: the session's own choice, or what the configuration gives.

        Raises:
            AuthRequiredError: none can be used, or the one that was can be no more.
            InvalidInputError: the one that was named does not exist.
        """
        if self._model is None:
            self._model = await self._services.account.choose(self._stored_model)
        else:
            self._services.account.require(self._model)
        return self._model

    async def find_model(self) -> None:
        """Choose the model if one can be used; a conversation can be read without one."""
        with contextlib.suppress(AuthRequiredError, InvalidInputError):
            await self.choose_model()

"""The chat's commands that change what the agent lets be changed: mode, model, any option."""

from __future__ import annotations

from acp_agent.cli.chat.chat_command import ChatCommand
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.front import Front, Item
from acp_agent.cli.chat.state import choices
from acp_agent.cli.localization import translate
from protocol.v1 import types as acp


class OptionCommands:
    """Acts on the options of the open session.

    Args:
        conversation: whose session.
        front: where they answer.
    """

    def __init__(self, conversation: Conversation, front: Front) -> None:
        self._conversation = conversation
        self._front = front

    def all(self) -> list[ChatCommand]:
        """The commands."""
        return [
            ChatCommand(name="mode", description=translate("change the mode"), run=self.mode),
            ChatCommand(name="model", description=translate("change the model"), run=self.model),
            ChatCommand(
                name="options", description=translate("change any option"), run=self.options
            ),
        ]

    async def mode(self, rest: str) -> None:
        """Show or change the mode."""
        await self._change("mode", rest)

    async def model(self, rest: str) -> None:
        """Show or change the model."""
        await self._change("model", rest)

    async def options(self, rest: str) -> None:
        """Show or change any option of the session's."""
        name, _, value = rest.partition(" ")
        if not name:
            items = [
                Item(value=option.id, name=option.name, description=option.description or "")
                for option in self._conversation.state.options
            ]
            if not items:
                self._front.say(translate("This agent has no options."))
                return
            picked = await self._front.pick(translate("Options"), items)
            if picked is None:
                return
            name = picked
        await self._change(name, value.strip())

    async def _change(self, name: str, value: str) -> None:
        state = self._conversation.state
        option = state.option(name)
        if isinstance(option, acp.SessionConfigBoolean):
            await self._switch(option, value)
            return
        if isinstance(option, acp.SessionConfigSelect):
            title, current, offered = option.name, option.current_value, list(choices(option))
        elif name == "mode" and state.modes is not None:
            title, current, offered = translate("Mode"), state.mode_id, state.mode_choices()
        else:
            self._front.say(translate("This agent has no option {name}.", name=name), "warning")
            return
        items = [
            Item(
                value=choice.value,
                name=choice.name,
                description=choice.description,
                current=choice.value == current,
            )
            for choice in offered
        ]
        picked = value or await self._front.pick(title, items)
        if not picked:
            return
        named = next((item for item in items if picked in {item.value, item.name}), None)
        # The agent judges a value that it does not list, such as another model.
        await self._conversation.set_option(name, named.value if named else picked)
        self._front.say(f"{title}: {named.name if named else picked}", "good")

    async def _switch(self, option: acp.SessionConfigBoolean, value: str) -> None:
        items = [
            Item(value="on", name=translate("on"), current=option.current_value),
            Item(value="off", name=translate("off"), current=not option.current_value),
        ]
        picked = value or await self._front.pick(option.name, items)
        if picked in {"on", "off"}:
            await self._conversation.set_option(option.id, picked == "on")

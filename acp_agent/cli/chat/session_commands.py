"""The chat's commands for sessions and their options: open, fork, delete, mode, model."""

from __future__ import annotations

from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.frontend import Field, Frontend
from acp_agent.cli.chat.session_state import Choice, choices
from acp_agent.cli.localization import translate
from protocol.v1 import types as acp


class SessionCommands:
    """Each method is a command; its argument is the text after the command's name."""

    def __init__(self, conversation: Conversation, frontend: Frontend) -> None:
        self._conversation = conversation
        self._frontend = frontend

    async def open(self, session: str) -> None:
        """Open an earlier session: the named one, or one that the user picks."""
        session_id = (
            await self._conversation.find_session(session) if session else await self._pick()
        )
        if session_id and (session or session_id != self._conversation.state.id):
            await self._conversation.load(session_id)

    async def create(self, _: str) -> None:
        """Create a session."""
        if await self._conversation.create_session():
            self._frontend.say(translate("Started a new session."), "good")

    async def fork(self, _: str) -> None:
        """Continue in a copy of the session; both contain the conversation so far."""
        before = self._conversation.state.id
        await self._conversation.fork()
        text = translate("Continuing in a copy; return with /sessions {before}.", before=before)
        self._frontend.say(text, "good")

    async def rename(self, title: str) -> None:
        """Set the title of the open session; ask for it if it is empty."""
        if not title:
            field = Field(title=translate("Title"), default=self._conversation.state.title)
            title = (await self._frontend.enter_text(field) or "").strip()
        if title:
            stored_title = await self._conversation.rename(title)
            self._frontend.say(
                translate("Renamed the session: {title}", title=stored_title), "good"
            )

    async def delete(self, session: str) -> None:
        """Delete the named session, or one that the user picks, after a confirmation."""
        current = self._conversation.state.id
        if session:
            session_id: str | None = await self._conversation.find_session(session)
        else:
            session_id = await self._pick() if self._conversation.agent_can("list") else current
        if not session_id or not await self._confirm_delete(session_id, current):
            return
        if await self._conversation.delete(session_id):
            self._frontend.say(translate("Deleted the session."), "good")
            if session_id == current:
                self._frontend.say(translate("Started a new session."), "good")

    async def mode(self, value: str) -> None:
        """Change the mode."""
        await self._change("mode", value)

    async def model(self, value: str) -> None:
        """Change the model."""
        await self._change("model", value)

    async def options(self, argument: str) -> None:
        """Change any option of the session."""
        name, _, value = argument.partition(" ")
        if not name:
            items = [
                Choice(option.id, option.name, option.description or "")
                for option in self._conversation.state.options
            ]
            if not items:
                self._frontend.say(translate("This agent has no options."))
                return
            name = await self._frontend.pick(translate("Options"), items) or ""
        if name:
            await self._change(name, value.strip())

    async def _confirm_delete(self, session: str, current: str) -> bool:
        items = [
            Choice("no", translate("Cancel"), current=True),
            Choice("yes", translate("Delete permanently")),
        ]
        which = translate("the open session") if session == current else session
        title = translate("Delete this session? ({which})", which=which)
        return await self._frontend.pick(title, items) == "yes"

    async def _pick(self) -> str | None:
        current = self._conversation.state.id
        items = [
            Choice(
                session.session_id,
                session.title or translate("(untitled)"),
                (session.updated_at or "")[:16].replace("T", " "),
                session.session_id == current,
            )
            for session in await self._conversation.list_sessions()
        ]
        if not items:
            self._frontend.say(translate("This folder has no sessions yet."))
            return None
        return await self._frontend.pick(translate("Sessions of this folder"), items)

    async def _change(self, name: str, value: str) -> None:
        state = self._conversation.state
        option = state.option(name)
        if isinstance(option, acp.SessionConfigBoolean):
            await self._switch(option, value)
            return
        if isinstance(option, acp.SessionConfigSelect):
            title, offered = option.name, list(choices(option))
        elif name == "mode" and state.modes is not None:
            title, offered = translate("Mode"), state.mode_choices()
        else:
            self._frontend.say(translate("This agent has no option {name}.", name=name), "warning")
            return
        picked = value or await self._frontend.pick(title, offered)
        if picked:
            # The agent checks values that it does not list, such as other models.
            unlisted = Choice(picked, picked)
            choice = next(
                (choice_ for choice_ in offered if picked in {choice_.value, choice_.name}),
                unlisted,
            )
            await self._conversation.set_option(name, choice.value)
            self._frontend.say(f"{title}: {choice.name}", "good")

    async def _switch(self, option: acp.SessionConfigBoolean, value: str) -> None:
        offered = [
            Choice("on", translate("on"), current=option.current_value),
            Choice("off", translate("off"), current=not option.current_value),
        ]
        picked = value or await self._frontend.pick(option.name, offered)
        if picked in {"on", "off"}:
            await self._conversation.set_option(option.id, picked == "on")

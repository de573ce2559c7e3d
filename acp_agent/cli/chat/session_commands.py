"""The chat's commands that are about sessions: open, begin, fork, rename, delete."""

from __future__ import annotations

from collections.abc import Callable

from acp_agent.cli.chat.agent_sessions import AgentSessions
from acp_agent.cli.chat.chat_command import ChatCommand
from acp_agent.cli.chat.conversation import Conversation
from acp_agent.cli.chat.front import Field, Front, Item
from acp_agent.cli.localization import translate


class SessionCommands:
    """Acts on the sessions of a conversation.

    Args:
        conversation: whose sessions.
        front: where they answer.
    """

    def __init__(self, conversation: Conversation, front: Front) -> None:
        self._conversation = conversation
        self._front = front

    def all(self) -> list[ChatCommand]:
        """The commands; those that the agent has no method for are not there."""
        return [
            ChatCommand(
                name="sessions",
                description=translate("open an earlier session"),
                run=self.open,
                idle=True,
            ),
            ChatCommand(
                name="new", description=translate("begin a new session"), run=self.begin, idle=True
            ),
            ChatCommand(
                name="fork",
                description=translate("go on in a copy of this session"),
                run=self.fork,
                idle=True,
                there=self._has(lambda sessions: sessions.forks),
            ),
            ChatCommand(
                name="rename",
                description=translate("give this session a title"),
                run=self.rename,
                there=self._has(lambda sessions: sessions.renames),
            ),
            ChatCommand(
                name="delete",
                description=translate("delete a session"),
                run=self.delete,
                idle=True,
                there=self._has(lambda sessions: sessions.deletes),
            ),
        ]

    async def open(self, rest: str) -> None:
        """Open an earlier session: the one named, or one that is picked."""
        picked = await self._conversation.meant(rest) if rest else await self._pick()
        if picked and (rest or picked != self._conversation.state.id):
            await self._conversation.load(picked)

    async def begin(self, _: str) -> None:
        """Begin a new session."""
        if await self._conversation.new_session():
            self._front.say(translate("A new session begins."), "good")

    async def fork(self, _: str) -> None:
        """Go on in a copy; what was said so far is in both."""
        before = self._conversation.state.id
        await self._conversation.fork()
        text = translate(
            "A copy of the session goes on; /sessions {before} goes back.", before=before
        )
        self._front.say(text, "good")

    async def rename(self, rest: str) -> None:
        """Give the open session a title, which is asked for where none was typed."""
        title: str | None = rest
        if not rest:
            field = Field(title=translate("Title"), default=self._conversation.state.title)
            title = await self._front.enter(field)
        if title and title.strip():
            kept = await self._conversation.rename(title.strip())
            self._front.say(translate("The session is named: {title}", title=kept), "good")

    async def delete(self, rest: str) -> None:
        """Delete a session, the one named or one that is picked, once the user is sure."""
        open_now = self._conversation.state.id
        if rest:
            picked: str | None = await self._conversation.meant(rest)
        else:
            picked = await self._pick() if self._lists() else open_now
        if not picked or not await self._is_sure(picked, open_now):
            return
        if await self._conversation.delete(picked):
            self._front.say(translate("The session is deleted."), "good")
            if picked == open_now:
                self._front.say(translate("A new session begins."), "good")

    async def _is_sure(self, session: str, open_now: str) -> bool:
        items = [
            Item(value="no", name=translate("Keep it"), current=True),
            Item(value="yes", name=translate("Delete it for good")),
        ]
        which = translate("the open one") if session == open_now else session
        title = translate("Delete this session? ({which})", which=which)
        return await self._front.pick(title, items) == "yes"

    async def _pick(self) -> str | None:
        found = await self._conversation.earlier_sessions()
        current = self._conversation.state.id
        items = [
            Item(
                value=one.session_id,
                name=one.title or translate("(untitled)"),
                description=_when(one.updated_at),
                current=one.session_id == current,
            )
            for one in found
        ]
        if not items:
            self._front.say(translate("This folder has no sessions yet."))
            return None
        return await self._front.pick(translate("Sessions of this folder"), items)

    def _lists(self) -> bool:
        return self._has(lambda sessions: sessions.lists)()

    def _has(self, what: Callable[[AgentSessions], bool]) -> Callable[[], bool]:
        def has() -> bool:
            agent = self._conversation.agent
            return agent is None or what(agent.sessions)  # that there is none is said then

        return has


def _when(updated_at: str | None) -> str:
    return (updated_at or "")[:16].replace("T", " ")

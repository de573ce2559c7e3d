"""The prompts of MCP servers as slash commands: `/server:prompt one two "and three"`."""

from __future__ import annotations

import shlex

import mcp_types as types

from acp_agent.errors import ToolError
from acp_agent.extensions.mcp.server import McpServer
from acp_agent.session.commands import Command
from acp_agent.tools.mcp_result import prompt_text
from acp_agent.tools.mcp_tool import asked
from acp_agent.tools.quoting import one_line

LONGEST = 50_000  # characters of a prompt that the model is sent
_DESCRIPTION = 300  # characters
_HINT = 200


class ServerPrompt:
    """A prompt of a server, under the name of its command.

    Args:
        name: the command's name.
        prompt: the prompt as the server describes it.
        server: whose it is.
        seconds: how long fetching it may take.
    """

    def __init__(
        self, name: str, prompt: types.Prompt, server: McpServer, *, seconds: float
    ) -> None:
        self._prompt = prompt
        self._server = server
        self._seconds = seconds
        about = prompt.description or prompt.title or f"A prompt of {server.config.name}"
        self.command = Command(
            name=name, description=one_line(about, _DESCRIPTION), hint=self._hint()
        )

    async def fetch(self, rest: str) -> str:
        """The prompt's text, with what stands behind the command as its arguments.

        Raises:
            ToolError: an argument is missing, or the server failed.
        """
        given = self._given(rest)
        result = await asked(
            self._server,
            lambda: self._server.client.get_prompt(self._prompt.name, given),
            seconds=self._seconds,
        )
        text = prompt_text(result)
        return text if len(text) <= LONGEST else text[:LONGEST] + "\n[the rest is left out]"

    def _given(self, rest: str) -> dict[str, str]:
        """Words go to the arguments in their order; the last one gets all that is left.

        Quotes keep words together where there are several arguments. The last one is taken as it
        is written, since it is mostly prose, with apostrophes in it.
        """
        names = [argument.name for argument in self._prompt.arguments or ()]
        given: dict[str, str] = {}
        rest = rest.strip()
        for name in names[:-1]:
            word, rest = _first_word(rest)
            if word:
                given[name] = word
        if names and rest:
            given[names[-1]] = _unquoted(rest) if len(names) > 1 else rest
        missing = [
            argument.name
            for argument in self._prompt.arguments or ()
            if argument.required and argument.name not in given
        ]
        if missing:
            raise ToolError(
                f"/{self.command.name} needs {', '.join(missing)}: write "
                f"/{self.command.name} {self.command.hint or ''}".rstrip()
            )
        return given

    def _hint(self) -> str | None:
        names = [
            argument.name if argument.required else f"[{argument.name}]"
            for argument in self._prompt.arguments or ()
        ]
        return one_line(" ".join(names), _HINT) if names else None


def _first_word(text: str) -> tuple[str, str]:
    """The first word, whole where it is quoted, and what follows it."""
    if text[:1] in {'"', "'"}:
        end = text.find(text[0], 1)
        if end > 0:
            return text[1:end], text[end + 1 :].lstrip()
    word, _, rest = text.partition(" ")
    return word, rest.lstrip()


def _unquoted(text: str) -> str:
    """`text` without the quotes around it, where it is one quoted word."""
    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return words[0] if len(words) == 1 else text

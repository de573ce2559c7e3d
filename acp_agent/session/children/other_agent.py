"""Run another program's agent in a child session, with a time limit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

from acp_agent.acp_client.agent import ExternalAgent, Program
from acp_agent.acp_client.programs import find_command
from acp_agent.config.types import AgentConfig
from acp_agent.content import printable_line
from acp_agent.errors import ToolError
from acp_agent.events import StopReason
from acp_agent.extensions.mcp.config import ChannelServer, HttpServer, ProgramServer, ServerConfig
from acp_agent.platform.posix import absolute_folders
from acp_agent.session.children.child import ChildSession
from acp_agent.session.children.other_agent_host import OtherAgentHost
from acp_agent.session.children.task_run import NextTurn
from acp_agent.session.core import SessionCore
from acp_agent.workspace.environment import command_environ
from acp_agent.workspace.threads import run_to_end


@asynccontextmanager
async def run_other_agent(
    core: SessionCore,
    child: ChildSession,
    name: str,
    config: AgentConfig,
    servers: Sequence[ServerConfig],
) -> AsyncIterator[NextTurn]:
    """Start another agent and run it in a child session. Raises ToolError."""
    try:
        async with asyncio.timeout(config.timeout) as limit:
            host = OtherAgentHost(core, child, name, limit)
            agent = await ExternalAgent.start(_program(core, name, config, servers), host)
            finished = False
            try:

                async def next_turn(prompt: str) -> StopReason:
                    stop = await agent.prompt(prompt)
                    while stop == "end_turn" and (messages := await host.unsent_messages()):
                        stop = await agent.prompt(messages)
                    return stop

                yield next_turn
                finished = True
            finally:
                await run_to_end(_close(agent, cancelled=not finished))
    except TimeoutError:
        raise ToolError(f"{name} was not done within {config.timeout:g} s, and was ended") from None


async def _close(agent: ExternalAgent, *, cancelled: bool) -> None:
    await agent.aclose()
    await agent.finish(cancelled=cancelled)


def _program(
    core: SessionCore, name: str, config: AgentConfig, servers: Sequence[ServerConfig]
) -> Program:
    """Return the command, environment and settings to start an agent's program.

    Raises:
        ToolError: the program does not exist, or a server cannot be passed to it.
    """
    environ = core.services.environ
    executable = find_command(config.command, environ, (core.cwd, *core.directories))
    if executable is None:
        raise ToolError(
            f"{name} cannot be started: there is no program {printable_line(config.command)!r} in "
            "PATH; install it, or correct the command in the configuration"
        )
    hidden = set(core.services.config.key_variables) - set(config.env_vars)
    child_environ = command_environ(environ, keep=config.env_vars, hide=hidden)
    return Program(
        name=name,
        command=(executable, *config.args),
        # The interpreter of a script is searched in PATH too.
        environ={
            **child_environ,
            "PATH": absolute_folders(child_environ.get("PATH", os.defpath)),
            **config.env,
        },
        cwd=core.cwd,
        mode=config.mode,
        servers=tuple(_servers(name, config.mcp_servers, servers)),
    )


def _servers(
    agent: str, names: Sequence[str], servers: Sequence[ServerConfig]
) -> Iterator[ProgramServer | HttpServer]:
    """Yield the session's servers that an agent gets.

    Raises:
        ToolError: a named server has limits that another program would not respect.
    """
    for server in servers:
        if server.name not in names and "*" not in names:
            continue
        limits = server.options
        limited = limits.allowed is not None or limits.denied or limits.sandbox
        if not isinstance(server, ChannelServer) and not limited and not getattr(server, "cwd", ""):
            yield server
        elif server.name in names:
            raise ToolError(
                f"{agent} cannot get the MCP server {printable_line(server.name)!r}: another "
                "program would not keep to its tools, sandbox or folder; take it out of "
                "mcp_servers in the configuration"
            )

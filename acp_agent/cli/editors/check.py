"""Start the agent as an editor does, and report problems."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from acp_agent import __version__
from acp_agent.cli.editors.launch import Launch, desktop_environment
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.models import Choice, chosen_model
from acp_agent.cli.output import complain, say
from acp_agent.cli.user_config import load_user_config
from acp_agent.config.load import locate_errors
from acp_agent.errors import AcpAgentError, InvalidInputError
from acp_agent.models.providers import load_providers
from acp_agent.models.registry import Models
from acp_agent.platform.posix import end_group

START_SECONDS = 20.0  # the first start of a fresh installation compiles Python


def check_agent(launch: Launch, *, from_shell: bool) -> bool:
    """Start the agent and return whether it responds; print its name, model and the next step.

    Args:
        from_shell: whether the editor inherits the environment of a shell.
    """
    environ = dict(os.environ)
    if not from_shell:
        environ = desktop_environment(os.environ, platform=sys.platform)
    environ |= launch.variables
    try:
        agent = greet(launch.command, environ)
    except InvalidInputError as error:
        complain(translate("the agent fails when the editor starts it: {why}", why=str(error)))
        return False
    say(
        translate("{name} {version} started and responded.", name=agent.name, version=agent.version)
    )
    if launch.model is not None:
        say(translate("Model: {model} (from its arguments).", model=launch.model))
    else:
        _print_model(environ)
    return True


def _print_model(environ: dict[str, str]) -> None:
    try:
        choice = asyncio.run(_choose_model(environ))
        if choice.model is not None:
            say(translate("Model: {model} ({why}).", model=choice.model.ref, why=choice.why))
            return
        in_shell = asyncio.run(_choose_model(os.environ))
    except AcpAgentError as error:
        say(translate("No model: {why}", why=translate_rendered(str(error))))
        return
    if in_shell.model is None:
        say(translate("No model is available yet. Next: acp-agent login"))
        return
    say(translate("A model is available in this shell only: {why}.", why=in_shell.why))
    say(
        translate(
            "An editor started from the desktop does not have this variable. Next: acp-agent login"
        )
    )


class Agent(Struct, frozen=True):
    """The agent that responded."""

    name: str
    version: str


def greet(
    command: Sequence[str], environ: Mapping[str, str], *, seconds: float = START_SECONDS
) -> Agent:
    """Start an agent, ask it for its name, and end it.

    Args:
        environ: the environment that an editor would give it.

    Raises:
        InvalidInputError: it cannot be started, or does not respond as an agent does.
    """
    request = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {
            "protocolVersion": 1,
            "clientCapabilities": {},
            "clientInfo": {"name": "acp-agent setup", "version": __version__},
        },
    }
    line = json.dumps(request).encode() + b"\n"
    try:
        with subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(line, timeout=seconds)
            finally:
                end_group(process.pid, at_once=True)
    except subprocess.TimeoutExpired:
        raise InvalidInputError(f"{command[0]} did not answer within {seconds:g} s") from None
    except OSError as error:
        raise InvalidInputError(f"{command[0]}: {error.strerror}") from None
    agent = _parse_agent(out)
    if agent is None:
        lines = (err or out).decode("utf-8", "replace").strip().splitlines()
        output = f"; it said: {lines[-1][:200]}" if lines else ""
        raise InvalidInputError(
            f"{command[0]} exited with status {process.returncode} without an answer{output}"
        )
    return agent


def _parse_agent(out: bytes) -> Agent | None:
    for line in out.splitlines():
        try:
            message = json.loads(line)
            info = message["result"]["agentInfo"]
            return Agent(str(info["name"]), str(info["version"]))
        except (ValueError, KeyError, TypeError):
            continue
    return None


async def _choose_model(environ: Mapping[str, str]) -> Choice:
    """Return the model that an agent with this environment would use. May query a local server.

    Raises:
        ConfigError: the agent's own configuration is invalid.
    """
    user = load_user_config(environ)
    with locate_errors(user.paths.config_file):
        providers = await asyncio.to_thread(load_providers, user.config, user.secrets, environ)
        models = Models(user.config, user.secrets, environ)
    try:
        return await chosen_model(user, models, providers)
    finally:
        await models.aclose()

"""Starting the agent as an editor will, and saying what is missing."""

from __future__ import annotations

import os
import sys

from acp_agent.cli.editors.handshake import greet
from acp_agent.cli.editors.launch import Launch, desktop_environment
from acp_agent.cli.editors.readiness import model_in
from acp_agent.cli.output import complain, say
from acp_agent.cli.words import told, words
from acp_agent.errors import AcpAgentError, InvalidInputError


def answers(launch: Launch, *, from_shell: bool) -> bool:
    """Whether an agent answers; who it is, its model, and what to do next are told.

    Args:
        launch: what the editor starts.
        from_shell: whether the editor has the environment of a shell.
    """
    environ = dict(os.environ)
    if not from_shell:
        environ = desktop_environment(os.environ, platform=sys.platform)
    environ |= launch.variables
    try:
        agent = greet(launch.command, environ)
    except InvalidInputError as error:
        complain(words("the agent does not start as the editor starts it: {why}", why=str(error)))
        return False
    say(words("{name} {version} answers.", name=agent.name, version=agent.version))
    if launch.model is not None:
        say(words("Its arguments name the model: {model}.", model=launch.model))
    else:
        _tell_model(environ)
    return True


def _tell_model(environ: dict[str, str]) -> None:
    try:
        ready = model_in(environ)
        if ready.model is not None:
            say(words("It would use {model}: {why}.", model=ready.model, why=told(ready.why)))
            return
        in_shell = model_in(os.environ)
    except AcpAgentError as error:
        say(words("It has no model: {why}", why=told(str(error))))
        return
    if in_shell.model is None:
        say(words("No model can be used yet. Next: acp-agent login"))
        return
    say(words("Only in this shell a model can be used: {why}.", why=told(in_shell.why)))
    say(words("An editor that is started from the desktop does not see it. Next: acp-agent login"))

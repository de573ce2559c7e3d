"""The environment of the commands that the model runs, and the settings that every git gets.

Variables whose name says that they hold a credential are left out: a command that the model writes
needs no credential to build or to test, and `env | curl` would give them all away. A variable that
only names a file or a socket (SSH_AUTH_SOCK, GOOGLE_APPLICATION_CREDENTIALS, KUBECONFIG) stays, and
so does every program's own configuration, so that git, cloud tools and package managers that are
logged in keep working.

What git reads from GIT_CONFIG_COUNT comes after all files and so overrides them (git-config(1)).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from acp_agent.config.secrets import is_secret_name
from acp_agent.platform.programs import absolute_folders

# Nothing may wait for a person: no pager, no editor, no question on a terminal. `true` as git's
# editor keeps a message that is there already and lets a commit without one fail at once.
QUIET = {
    "ACP_AGENT": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "TERM": "dumb",
    "NO_COLOR": "1",
}

_FORCED_COLOUR = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE"})
# A folder among a project's files must not be a repository, with settings, by looking like one.
EXPLICIT: Mapping[str, str] = {"safe.bareRepository": "explicit"}
# No program of the repository's runs, and nothing is fetched that a partial clone lacks.
INERT: Mapping[str, str] = {
    **EXPLICIT,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "protocol.allow": "never",
}
NO_FETCH: Mapping[str, str] = {"GIT_NO_LAZY_FETCH": "1"}  # git 2.44 and later


def command_environ(
    environ: Mapping[str, str], *, keep: Collection[str] = (), hide: Collection[str] = ()
) -> dict[str, str]:
    """The environment for a command.

    Args:
        environ: the user's environment.
        keep: names that are passed on although they look like credentials.
        hide: further names that are never passed on.
    """
    passed = {
        name: value
        for name, value in environ.items()
        if name not in _FORCED_COLOUR
        and name not in hide
        and (name in keep or not is_secret_name(name))
    }
    return passed | QUIET | added_variables(environ, only_reads=False)


def with_settings(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that give git these settings after those that `environ` gives it."""
    counted = environ.get("GIT_CONFIG_COUNT", "")
    first = int(counted) if counted.isascii() and counted.isdecimal() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings.items(), first):
        variables[f"GIT_CONFIG_KEY_{number}"] = name
        variables[f"GIT_CONFIG_VALUE_{number}"] = value
    return variables


def added_variables(environ: Mapping[str, str], *, only_reads: bool) -> dict[str, str]:
    """Return the variables that a command of the model gets in addition to `environ`.

    Args:
        environ: the environment that it gets otherwise.
        only_reads: it runs unasked, since it only reads: git runs no hook, and no program is looked
            up in the current folder. What the user allowed runs with the user's hooks.
    """
    if not only_reads:
        return with_settings(EXPLICIT, environ)
    added = {**with_settings(INERT, environ), **NO_FETCH, "GIT_OPTIONAL_LOCKS": "0"}
    path = environ.get("PATH", "")
    if absolute_folders(path) != path:
        added["PATH"] = absolute_folders(path)
    return added

"""The environment of commands that the model runs, and the settings that git gets.

Variables whose names look like credentials are removed: builds and tests do not need them, and
`env | curl` would leak them all. A variable that only names a file or a socket (SSH_AUTH_SOCK,
GOOGLE_APPLICATION_CREDENTIALS, KUBECONFIG) is preserved, and so is the configuration of programs,
so that git, cloud tools and package managers stay logged in.

Settings passed with GIT_CONFIG_COUNT override those in git's configuration files (git-config(1)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping

from acp_agent.config.secrets import is_secret_name
from acp_agent.platform.posix import absolute_folders

# No program may wait for a person: no pager, no editor, no terminal prompt. With `true` as git's
# editor, an existing commit message is used, and a commit without one fails.
QUIET = {
    "ACP_AGENT": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "TERM": "dumb",
    "NO_COLOR": "1",
}

_UNSAFE_PREFIXES = ("GIT_", "LD_", "DYLD_", "BASH", "PYTHON", "PERL", "RUBY", "NODE_", "LESS")
_UNSAFE_NAMES = frozenset(
    {"PATH", "ENV", "IFS", "SHELLOPTS", "CDPATH", "PAGER", "EDITOR", "VISUAL"}
)
_PLAIN_VALUE = re.compile(r"[\w.,:@%+-]*")
_COLOR_VARIABLES = frozenset({"FORCE_COLOR", "CLICOLOR_FORCE"})
# A folder of the project that looks like a bare repository must not supply git settings.
EXPLICIT: Mapping[str, str] = {"safe.bareRepository": "explicit"}
# Git runs no programs that the repository names, and fetches no missing objects.
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
    """Return the environment for a command.

    Args:
        keep: names that are passed on although they look like credentials.
        hide: further names that are never passed on.
    """
    passed_on = {
        name: value
        for name, value in environ.items()
        if name not in _COLOR_VARIABLES
        and name not in hide
        and (name in keep or not is_secret_name(name))
    }
    return passed_on | QUIET | added_variables(environ, only_reads=False)


def plain_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that commands get which run without permission.

    These neither lead programs to files of the project nor name programs to run.
    """
    return {
        name: value
        for name, value in variables.items()
        if _PLAIN_VALUE.fullmatch(value) and not leads_programs(name)
    }


def leads_programs(name: str) -> bool:
    """Return whether a variable leads programs to files or names programs, with any value."""
    return name.startswith(_UNSAFE_PREFIXES) or name in _UNSAFE_NAMES


def with_settings(settings: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that pass settings to git, in addition to those in `environ`."""
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
        only_reads: whether the command runs without permission because it only reads. Then git
            runs no hooks, and no program is looked up in the current folder. Commands that the
            user allowed run with hooks.
    """
    if not only_reads:
        return with_settings(EXPLICIT, environ)
    added = {**with_settings(INERT, environ), **NO_FETCH, "GIT_OPTIONAL_LOCKS": "0"}
    path = environ.get("PATH", "")
    if absolute_folders(path) != path:
        added["PATH"] = absolute_folders(path)
    return added

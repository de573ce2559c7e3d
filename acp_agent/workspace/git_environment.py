"""The settings that every git gets by its environment, whatever the repository says.

What git reads from GIT_CONFIG_COUNT comes after all files and so overrides them (git-config(1)).
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from acp_agent.platform.programs import absolute_folders

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
    """Return the variables that a command of the model gets beside those of `environ`.

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

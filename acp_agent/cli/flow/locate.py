"""Find the workflow that the user named: a file, or the name of one in the places for them."""

from __future__ import annotations

import os
from pathlib import Path

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.config.load import load_config
from acp_agent.config.paths import find_paths
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.workflows.find import (
    SUFFIXES,
    WorkflowFile,
    find_workflows,
    read_workflow,
)
from acp_agent.trust.store import TrustStore

_LISTED = 20  # mistakes of a file


def is_file_name(named: str) -> bool:
    """Whether what the user named is a file, and not a name in the list."""
    return "/" in named or named.endswith(SUFFIXES) or Path(named).exists()


def listed(cwd: Path) -> list[WorkflowFile]:
    """Return the workflows that can be run by name, each name once. Blocks."""
    found = find_workflows(cwd, user=find_paths(os.environ).config_file.parent)
    trusts = trust_store().trusts
    named: dict[str, WorkflowFile] = {}
    for one in found:  # a project's hides the user's only if it can be run
        known = named.get(one.name)
        can_run = one.workflow is not None and one.item is not None and trusts(one.item)
        if known is None or known.source == "project" or can_run:
            named[one.name] = one
    return sorted(named.values(), key=lambda one: one.name)


def locate(named: str, cwd: Path) -> WorkflowFile:
    """Return the workflow that a file or a name stands for. Blocks.

    Raises:
        InvalidInputError: there is none of this name.
    """
    if is_file_name(named):
        return read_workflow(Path(named).expanduser().absolute())
    found = next((one for one in listed(cwd) if one.name == named), None)
    if found is None:
        raise InvalidInputError(
            f"workflow not found: {named}; see acp-agent flow list, or give a file"
        )
    return found


def trust_store() -> TrustStore:
    """The user's store of trust."""
    paths = find_paths(os.environ)
    return TrustStore(paths.trust_file, load_config(paths.config_file, os.environ).trusted_folders)


def require_trust(file: WorkflowFile) -> None:
    """Raise ConfigError unless the user trusts a project's workflow that is run by name."""
    if file.item is None or trust_store().trusts(file.item):
        return
    raise ConfigError(
        f"{file.path} is of a folder that you do not trust; look at it, then run acp-agent trust "
        f"{file.item.folder}, or name the file itself"
    )


def mistake_lines(file: WorkflowFile) -> list[str]:
    """The mistakes of a file in the user's language, one a line."""
    lines = []
    for one in file.mistakes[:_LISTED]:
        where = f"{file.path}:{one.line}" if one.line else str(file.path)
        lines.append(f"{where}: {translate_rendered(one.why)}")
    if len(file.mistakes) > _LISTED:
        more = len(file.mistakes) - _LISTED
        lines.append(translate("and {count} more", count=more))
    return lines


def by_name(file: WorkflowFile, named: str) -> str:
    """The name that a workflow was found by; "" where the user gave the path."""
    return "" if is_file_name(named) else file.name

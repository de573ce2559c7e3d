"""Find a workflow by file path or by name."""

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

_LISTED = 20  # errors listed per file


def is_file_name(named: str) -> bool:
    """Return whether the argument is a file, and not a name."""
    return "/" in named or named.endswith(SUFFIXES) or Path(named).exists()


def listed(cwd: Path) -> list[WorkflowFile]:
    """Return the workflows that can be run by name, each name once. Blocks."""
    found = find_workflows(cwd, user=find_paths(os.environ).config_file.parent)
    trusts = trust_store().trusts
    named: dict[str, WorkflowFile] = {}
    for one in found:  # a project's workflow overrides the user's only if it can be run
        known = named.get(one.name)
        can_run = one.workflow is not None and one.item is not None and trusts(one.item)
        if known is None or known.source == "project" or can_run:
            named[one.name] = one
    return sorted(named.values(), key=lambda one: one.name)


def locate(named: str, cwd: Path) -> WorkflowFile:
    """Return the workflow for a file or a name. Blocks.

    Raises:
        InvalidInputError: no workflow has this name.
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
    """Return the user's trust store."""
    paths = find_paths(os.environ)
    return TrustStore(paths.trust_file, load_config(paths.config_file, os.environ).trusted_folders)


def require_trust(file: WorkflowFile) -> None:
    """Raise ConfigError if a project's workflow that is run by name is not trusted."""
    if file.item is None or trust_store().trusts(file.item):
        return
    raise ConfigError(
        f"{file.path} is of a folder that you do not trust; look at it, then run acp-agent trust "
        f"{file.item.folder}, or name the file itself"
    )


def mistake_lines(file: WorkflowFile) -> list[str]:
    """Return the errors in a file in the user's language, one per line."""
    lines = []
    for one in file.mistakes[:_LISTED]:
        where = f"{file.path}:{one.line}" if one.line else str(file.path)
        lines.append(f"{where}: {translate_rendered(one.why)}")
    if len(file.mistakes) > _LISTED:
        more = len(file.mistakes) - _LISTED
        lines.append(translate("and {count} more", count=more))
    return lines


def by_name(file: WorkflowFile, named: str) -> str:
    """Return the name that a workflow was found by; "" if the user gave the path."""
    return "" if is_file_name(named) else file.name

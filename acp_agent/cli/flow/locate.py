"""Find a workflow by file path or by name."""

from __future__ import annotations

from pathlib import Path

from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.parser import user_path
from acp_agent.cli.user_config import load_user_config
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.workflows.find import (
    SUFFIXES,
    WorkflowFile,
    find_workflows,
    read_workflow,
)

_MAX_LISTED = 20  # errors listed per file


def is_file_name(argument: str) -> bool:
    """Return whether the argument is a file, and not a name."""
    return "/" in argument or argument.endswith(SUFFIXES) or Path(argument).exists()


def list_workflows(cwd: Path) -> list[WorkflowFile]:
    """Return the workflows that can be run by name, each name once. Blocks."""
    setup = load_user_config()
    files = find_workflows(cwd, user=setup.paths.config_file.parent)
    trusts = setup.trusts
    files_by_name: dict[str, WorkflowFile] = {}
    for file in files:  # a project's workflow overrides the user's only if it can be run
        current = files_by_name.get(file.name)
        can_run = file.workflow is not None and file.item is not None and trusts(file.item)
        if current is None or current.source == "project" or can_run:
            files_by_name[file.name] = file
    return sorted(files_by_name.values(), key=lambda file: file.name)


def locate(argument: str, cwd: Path) -> WorkflowFile:
    """Return the workflow for a file or a name. Blocks.

    Raises:
        InvalidInputError: no workflow has this name.
    """
    if is_file_name(argument):
        return read_workflow(user_path(argument))
    match = next((file for file in list_workflows(cwd) if file.name == argument), None)
    if match is None:
        raise InvalidInputError(
            f"workflow not found: {argument}; see acp-agent flow list, or give a file"
        )
    return match


def require_trust(file: WorkflowFile) -> None:
    """Raise ConfigError if a project's workflow that is run by name is not trusted."""
    if file.item is None or load_user_config().trusts(file.item):
        return
    raise ConfigError(
        f"{file.path} is of a folder that you do not trust; look at it, then run acp-agent trust "
        f"{file.item.folder}, or name the file itself"
    )


def mistake_lines(file: WorkflowFile) -> list[str]:
    """Return the errors in a file in the user's language, one per line."""
    lines = []
    for mistake in file.mistakes[:_MAX_LISTED]:
        location = f"{file.path}:{mistake.line}" if mistake.line else str(file.path)
        lines.append(f"{location}: {translate_rendered(mistake.why)}")
    if len(file.mistakes) > _MAX_LISTED:
        more = len(file.mistakes) - _MAX_LISTED
        lines.append(translate("and {count} more", count=more))
    return lines


def workflow_name(file: WorkflowFile, argument: str) -> str:
    """Return the name that a workflow was found by; "" if the user gave the path."""
    return "" if is_file_name(argument) else file.name

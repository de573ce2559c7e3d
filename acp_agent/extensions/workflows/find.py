"""Find workflows by name in the user's and the project's folders, and read their files.

The user's are in `flows` beside the configuration file, a project's in `.acp-agent/flows` of its
top folder and of the session's folder. Of two with the same name the most specific is used.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.locations import Source, project_top
from acp_agent.extensions.definitions.reading import MAX_FILE_SIZE, MAX_FILES, decode
from acp_agent.extensions.workflows.fields import Mistake
from acp_agent.extensions.workflows.parse import parse_workflow
from acp_agent.extensions.workflows.types import Workflow
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.trusted_files import (
    NOT_REGULAR,
    RefusedFileError,
    read_trusted,
    read_user_file,
    trusted_owners,
)
from acp_agent.trust.store import Item, folder_name, text_item

PROJECT_PLACE = Path(".acp-agent") / "flows"
SUFFIXES = (".yaml", ".yml")


class WorkflowFile(Struct, frozen=True, kw_only=True):
    """A parsed file: a workflow, or the errors in it.

    `item` is the trust item of a project's file; None for the user's own file.
    """

    path: Path
    source: Source
    raw: bytes = b""
    item: Item | None = None
    workflow: Workflow | None = None
    mistakes: Sequence[Mistake] = ()

    @property
    def name(self) -> str:
        """Return the name by which it is run."""
        return self.path.stem


def workflow_folders(cwd: Path, *, user: Path) -> Sequence[tuple[Path, Source]]:
    """Return the folders that may contain workflows, from the most general to the most specific.

    Args:
        cwd: the session's folder, absolute.
    """
    top = project_top(cwd)
    user_folder = user / "flows"
    projects = [folder / PROJECT_PLACE for folder in dict.fromkeys((top, cwd))]
    return [
        (user_folder, "user"),
        *((folder, "project") for folder in projects if folder != user_folder),
    ]


def find_workflows(cwd: Path, *, user: Path) -> Sequence[WorkflowFile]:
    """Return all workflows of the folders, in order. Blocks: reads every file.

    Args:
        cwd: the session's folder, absolute.
    """
    files: list[WorkflowFile] = []
    for folder, source in workflow_folders(cwd, user=user):
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(SUFFIXES))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            why = f"cannot be read ({describe_os_error(error)}); check who may read it"
            files.append(WorkflowFile(path=folder, source=source, mistakes=[Mistake(0, why)]))
            continue
        top = project_top(cwd)
        project = None if source == "user" else (folder.parent.parent, top)
        files += (_read(folder / name, source, project) for name in names[:MAX_FILES])
    return files


def workflow_items(cwd: Path, *, user: Path) -> Sequence[Item]:
    """Return the trust items of a project's workflows; see `find_workflows`."""
    return [file.item for file in find_workflows(cwd, user=user) if file.item is not None]


def read_workflow(path: Path) -> WorkflowFile:
    """Return the workflow of a file that the user named. Blocks."""
    return _read(path, "user", None)


def _read(path: Path, source: Source, project: tuple[Path, Path] | None) -> WorkflowFile:
    """Read and parse a file.

    Args:
        project: the folder that contains `.acp-agent`, and the top folder of the project.
    """
    item = None
    try:
        raw = _content(path, None if project is None else project[0])
        if project is not None:
            item = text_item("workflow", folder_name(project[1]), path, raw)
        text = decode(raw)
    except ConfigError as error:
        return WorkflowFile(path=path, source=source, mistakes=[_mistake(str(error))], item=item)
    workflow, mistakes = parse_workflow(text, path.stem)
    return WorkflowFile(
        path=path, source=source, raw=raw, item=item, workflow=workflow, mistakes=mistakes
    )


def _content(path: Path, project: Path | None) -> bytes:
    try:
        if project is None:
            raw = read_user_file(path, limit=MAX_FILE_SIZE + 1)
        else:
            raw = read_trusted(path, project, trusted_owners(project), limit=MAX_FILE_SIZE + 1)
    except RefusedFileError as error:
        if error.why == NOT_REGULAR:
            raise ConfigError("it is no ordinary file; put a YAML file there") from None
        raise ConfigError(error.why) from None
    except FileNotFoundError:
        raise ConfigError("there is no such file; check the name") from None
    except (OSError, ValueError) as error:
        why = describe_os_error(error) if isinstance(error, OSError) else "not a file name"
        raise ConfigError(f"cannot be read ({why}); check who may read it") from None
    if len(raw) > MAX_FILE_SIZE:
        raise ConfigError("it is larger than 100 kB; split it, or have its steps read files")
    return raw


def _mistake(why: str) -> Mistake:
    """Return an error for the whole file, or for the line that the text begins with."""
    words = why.split()
    if words[0] == "line" and words[1].isdigit():
        return Mistake(int(words[1]), why)
    return Mistake(0, why)

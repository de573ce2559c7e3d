"""Decisions that depend on the mode alone: refusals in plan and draft mode, and notes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import PurePath

from acp_agent.permissions.access import Allow, Ask, Mode, NoteAccess, Refuse, Verdict, WriteAccess
from acp_agent.permissions.choices import Texts, once_choices
from acp_agent.permissions.paths import is_below

_PLAN = Refuse(
    by="mode",
    why="the session is in plan mode, in which nothing is changed",
    advice="use tools that only read, finish your plan, and let the user choose another mode",
)
_DRAFT = Refuse(
    by="mode",
    why="the session is in draft mode, in which commands and tools of servers only read",
    advice="use tools that only read, and write your results as new files",
)

# For commands and MCP servers.
READ_ONLY_REFUSALS: dict[Mode, Refuse] = {"plan": _PLAN, "draft": _DRAFT}


def judge_note(access: NoteAccess, mode: Mode, texts: Texts) -> Verdict:
    """Judge a change of a note for later sessions; modes that accept edits accept it.

    A note for sessions in all folders always needs a question, because content that the model read
    in this session may have caused it.
    """
    match mode:
        case "plan" | "draft":
            return READ_ONLY_REFUSALS[mode]
        case "accept-edits" | "full" if not access.everywhere:
            return Allow(by="mode", why="edits are accepted")
        case _:
            return Ask(choices=once_choices(texts))


def edit_refusal(access: WriteAccess, mode: Mode, project: str, draft_folder: str) -> Refuse | None:
    """Return the refusal of an edit by the mode or a skill's output folder, or None.

    Reads the disk in draft mode, and for an output folder.

    Args:
        project: the session's folder, resolved.
        draft_folder: the folder for new files, relative to the session's folder.
    """
    refused: Refuse | None = None
    if mode == "plan":
        refused = _PLAN
    elif mode == "draft":
        refused = _draft_refusal(access.paths, access.requested_names, project, draft_folder)
    return refused or _output_refusal(access, project)


def _output_refusal(access: WriteAccess, project: str) -> Refuse | None:
    folder = access.output_folder
    if folder is None:
        return None
    output_folder = os.path.realpath(os.path.join(project, folder))  # noqa: PTH118 - is a text
    if all(is_below(path, [output_folder]) for path in access.paths):
        return None
    why = f"the skill that is in use writes only below {folder}"
    return Refuse(by="rule", why=why, advice=f"write the file below {folder}")


def _draft_refusal(
    paths: Sequence[str], requested_names: Sequence[str], project: str, folder: str
) -> Refuse | None:
    target_folder = os.path.normpath(os.path.join(project, folder))  # noqa: PTH118 - is a text
    # The repository may contain a link of that name.
    if os.path.realpath(target_folder) != target_folder or not is_below(target_folder, [project]):
        return _refuse(f"the session is in draft mode, and {folder} is a link", folder)
    if any(".." in PurePath(name).parts for name in requested_names):
        return _refuse("the session is in draft mode, which takes no paths with `..`", folder)
    if target_folder in paths or not all(is_below(path, [target_folder]) for path in paths):
        return _refuse(f"the session is in draft mode, which writes only below {folder}", folder)
    if any(os.path.lexists(path) for path in paths):
        return _refuse("the session is in draft mode, which overwrites no files", folder)
    return None


def _refuse(why: str, folder: str) -> Refuse:
    advice = f"write a new file below {folder}, under a name that is not taken"
    return Refuse(by="mode", why=why, advice=advice)

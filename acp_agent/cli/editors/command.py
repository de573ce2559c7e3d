"""`acp-agent setup EDITOR`: add the agent to an editor, or remove it."""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from collections.abc import Sequence
from difflib import get_close_matches, unified_diff
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.editors import config_file
from acp_agent.cli.editors.catalog import Editor, Setting, editors
from acp_agent.cli.editors.launch import Launch, launch_command, runs_from_cache
from acp_agent.cli.editors.plan import (
    Plan,
    find_files,
    find_launches,
    lines,
    plan_setup,
    plan_undo,
    settings_to_write,
)
from acp_agent.cli.localization import translate, translate_rendered
from acp_agent.cli.output import (
    FAILED,
    USAGE,
    complain,
    confirm,
    say,
    say_styled,
    say_table,
)
from acp_agent.cli.parser import Parser, user_path
from acp_agent.errors import InvalidInputError
from acp_agent.workspace.scrub import scrub

# A whole word of limited length: a file may contain words of a million characters.
_KEY_PATTERN = (
    r"(?<![\w.-])[\w.-]{0,80}(?:key|token|secret|passw|credential|authorization)[\w.-]{0,80}"
)
# The same after the first dash of a command line option.
_OPTION_PATTERN = r"-[\w.-]{0,80}(?:key|token|secret|passw|credential|authorization)[\w.-]{0,80}"
_HEAD_LENGTH, _TAIL_LENGTH = 300, 700  # characters shown of a longer line
# The value of a key or an option, as in `"API_KEY": "…"`, `"--api-key", "…"`, `"--token=…"`.
_SECRET = re.compile(
    rf"""(["']?{_KEY_PATTERN}["']?\s*[:=]\s*|["']{_OPTION_PATTERN}["']\s*,\s*)"""
    r"""(["'])(?!\2)(?:[^"'\\]|\\.)+\2""",
    re.IGNORECASE,
)
_SECRET_ASSIGNMENT = re.compile(rf"""(["']{_OPTION_PATTERN}=)(?:[^"'\\]|\\.)+""", re.IGNORECASE)
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class _Task(Struct, frozen=True):
    """An editor, and the settings to write for it."""

    editor: Editor
    paths: list[Path]
    exists: bool
    chosen: list[Setting]
    command: list[str]


def run(argv: list[str]) -> int:
    """Set up an editor; return the exit status."""
    parser = Parser(
        prog="acp-agent setup",
        description="Add the agent to an editor: show the change to its configuration, apply it "
        "once you agree, and test the agent.",
    )
    add = parser.add_argument
    add(
        "editor",
        nargs="?",
        metavar="EDITOR",
        help="the editor's name; without it, list all editors",
    )
    add("--yes", action="store_true", help="apply the change without asking")
    add("--print", action="store_true", help="print the lines to add and change nothing")
    add("--undo", action="store_true", help="revert the change")
    add(
        "--file",
        type=user_path,
        metavar="FILE",
        help="the editor's configuration file, if not in its usual place",
    )
    add("--insiders", action="store_true", help="with vscode: VS Code Insiders")
    add("--no-check", action="store_true", help="do not test whether the agent starts")
    options = parser.parse_args(argv)
    return _list() if options.editor is None else _setup(options)


def _list() -> int:
    rows = []
    for name, editor in editors().items():
        paths, exists = find_files(editor, os.environ, sys.platform)
        location = ", ".join(str(path) for path in paths) if exists else "-"
        rows.append([name, editor.title, location])
    say_table(("NAME", "EDITOR", "CONFIGURATION"), rows)
    return 0


def _setup(options: Namespace) -> int:
    task = _task(options)
    if options.print:
        _print_lines(task)
        return 0
    if task.editor.form == "print":
        if not options.undo:
            say(translate("Your configuration is code, so change it yourself. Add:"))
            _print_lines(task)
            return _end(task, [], check=not options.no_check)
        say(translate("Your configuration is code, so change it yourself. Remove:"))
        _print_lines(task)
        return 0
    plans, failed = _plans(task, undo=options.undo)
    changing = [plan for plan in plans if plan.changes]
    if changing and not task.exists:
        say(translate("{editor} has no configuration yet; it will read this file.",
                  editor=task.editor.title))  # fmt: skip
    for plan in changing:
        show(plan)
    status = FAILED if failed else 0
    if changing:
        if not confirm(translate("Apply this change? [y/N] "), "--yes", given=options.yes):
            if not options.undo:
                _print_lines(task)
            return USAGE
        for plan in changing:
            _apply(plan)
    elif plans:
        say(translate("{file} needs no change.", file=_file_names(plans)))
    if options.undo or status:
        return status
    return _end(task, plans, check=not options.no_check)


def _task(options: Namespace) -> _Task:
    catalog = editors()
    name = str(options.editor).strip().lower()
    if options.insiders and name == "vscode":
        name = "vscode-insiders"
    if name not in catalog:
        matches = get_close_matches(name, catalog, n=1)
        hint = f"did you mean {matches[0]}?" if matches else f"known are {', '.join(catalog)}"
        raise InvalidInputError(f"unknown editor {name!r}; {hint}", field="editor")
    editor = catalog[name]
    if options.file is not None:
        paths, exists = [options.file], True
    else:
        paths, exists = find_files(editor, os.environ, sys.platform)
    chosen, _ = settings_to_write(editor, os.environ, sys.platform)
    command = launch_command(sys.argv[0], os.environ)
    return _Task(editor, paths, exists, chosen, command)


def _plans(task: _Task, *, undo: bool) -> tuple[list[Plan], bool]:
    """Return the planned changes, and whether a file cannot be changed, which is reported."""
    plans, failed = [], False
    for path in task.paths:
        try:
            plan = (
                plan_undo(task.editor, path, task.command)
                if undo
                else plan_setup(task.editor, path, task.chosen, task.command)
            )
        except InvalidInputError as error:
            failed = True
            complain(
                translate(
                    "{file} was not changed: {why}",
                    file=str(path),
                    why=translate_rendered(str(error)),
                )
            )
            if not undo:
                say(translate("Add these lines yourself:"))
                say(lines(task.editor, task.chosen, task.command))
        else:
            plans.append(plan)
    return plans, failed


def _apply(plan: Plan) -> None:
    """Write a change, and report it.

    Raises:
        InvalidInputError: it could not be written; the file is unchanged.
    """
    file = plan.file
    try:
        if plan.after is None:
            config_file.delete(file)
            say(translate("Deleted {file}.", file=str(file.path)))
            return
        config_file.write(file, plan.after, keep=plan.keep)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file.path} was not changed: {error}") from None
    if plan.restores:
        config_file.drop_backup(file)
        say(translate("Restored {file}.", file=str(file.path)))
    elif not plan.keep:
        say(translate("Wrote {file}.", file=str(file.path)))
    else:
        say(
            translate(
                "Wrote {file}; the previous version is saved as {backup}.",
                file=str(file.path),
                backup=str(file.backup),
            )
        )


def _end(task: _Task, plans: Sequence[Plan], *, check: bool) -> int:
    """Print the next step, after checking that the agent starts; return the exit status."""
    if check:
        from acp_agent.cli.editors.check import check_agent  # noqa: PLC0415 - heavy, and not always

        all_launches = [
            launch for plan in plans for launch in find_launches(task.editor, plan, task.command)
        ]
        distinct = list(
            {str(launch): launch for launch in all_launches or [Launch(task.command)]}.values()
        )
        if not all(check_agent(launch, from_shell=task.editor.shell) for launch in distinct):
            return FAILED
    _report_extension(task)
    if task.editor.plugin and runs_from_cache(task.command):
        say(
            translate(
                "The plugin is in a cache that may be emptied. Install the package permanently: "
                "uv tool install acp-agent-server, or pipx install acp-agent-server"
            )
        )
    say(translate(task.editor.next))
    return 0


def _report_extension(task: _Task) -> None:
    """Report a missing extension that would read the setting."""
    _, installed = settings_to_write(task.editor, os.environ, sys.platform)
    if installed or not task.editor.settings:
        return
    extensions = " / ".join(setting.extension for setting in task.editor.settings)
    say(
        translate(
            "The extension that reads this setting is not installed yet: {wanted}",
            wanted=extensions,
        )
    )


def _print_lines(task: _Task) -> None:
    for path in task.paths:
        say(f"# {path}")
    say(lines(task.editor, task.chosen, task.command))


def _file_names(plans: Sequence[Plan]) -> str:
    return ", ".join(str(plan.file.path) for plan in plans)


def show(plan: Plan) -> None:
    """Print the change to a file."""
    for line in diff(plan):
        say_styled(line, _STYLES.get(line[:1], ""), wrap=False)


def diff(plan: Plan) -> list[str]:
    """Return the lines of a unified diff, without text that looks like a secret."""
    before, after = _lines(plan.file.data), _lines(plan.after)
    name = str(plan.file.path)
    if plan.file.real != plan.file.path:
        name += f" (a link to {plan.file.real})"
    nothing = str(Path("/dev/null"))
    return [
        _cut(_without_secrets(line))
        for line in unified_diff(
            before,
            after,
            nothing if plan.file.data is None else name,
            nothing if plan.after is None else name,
            lineterm="",
        )
    ]


def _without_secrets(line: str) -> str:
    line = _SECRET_ASSIGNMENT.sub(r"\1[secret]", _SECRET.sub(r"\1\2[secret]\2", line))
    return scrub(line, ())  # removes text in the form of a credential, whatever its name


def _cut(line: str) -> str:
    """Return a line cut to a readable length: minified settings may have millions of characters."""
    if len(line) <= _HEAD_LENGTH + _TAIL_LENGTH:
        return line
    return f"{line[:_HEAD_LENGTH]} … {line[-_TAIL_LENGTH:]}"


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines()

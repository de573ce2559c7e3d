"""The command `/rewind`: list the points to go back to, preview going back to one, and do it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from msgspec import Struct

from acp_agent.config.localization import Translator
from acp_agent.content import JsonObject
from acp_agent.elicitation import Form
from acp_agent.errors import AcpAgentError, InvalidInputError, WorkspaceError
from acp_agent.session.commands.command import FoundCommand
from acp_agent.session.core import SessionCore
from acp_agent.session.history.checkpoint_files import NotSaved, RestoredFiles
from acp_agent.session.history.rewind import (
    Kind,
    Point,
    Rewinder,
    RewindResult,
    changed_lines,
    parse_scope,
)
from acp_agent.workspace.file_io import display_name

_LISTED = 30  # points
_SHOWN = 50  # changes
_ALONE = 10  # files named as left unchanged or not saved

FORCE = "--force"
TURN_RUNS = "A turn is running. Stop it before you go back."


class _Arguments(Struct, frozen=True, kw_only=True):
    """The arguments: a point, what to restore, and whether to restore others' changes too."""

    point: str
    what: str
    force: bool


def _parse(rest: str) -> _Arguments:
    given = rest.split()
    point, *what = [word for word in given if word != FORCE] or [""]
    return _Arguments(point=point, what=" ".join(what), force=FORCE in given)


def rewind_command(core: SessionCore, rewinder: Rewinder, rest: str) -> FoundCommand:
    """Return the effect of `/rewind`.

    Args:
        core: the session.
        rewinder: executes the rewind.
        rest: the text after the command.
    """
    answer = partial(_describe, core, rewinder, rest)
    if not rest.strip():
        return FoundCommand(action=lambda _: _pick(core, rewinder), answer=answer)
    if not _parse(rest).what:
        return FoundCommand(answer=answer)
    return FoundCommand(action=lambda _: _go_back(core, rewinder, rest), refusal=TURN_RUNS)


async def _describe(core: SessionCore, rewinder: Rewinder, rest: str) -> str:
    """List the points, or preview going back to one."""
    arguments, translate = _parse(rest), core.translate
    try:
        if not arguments.point:
            points = await rewinder.points()
            return core.clean(_list(points, await rewinder.not_saved(points), translate))
        back = await rewinder.preview(arguments.point, "both", force=arguments.force)
    except (InvalidInputError, WorkspaceError) as error:
        return core.clean(
            f"{_sentence(error, translate)} {translate('`/rewind` lists the points.')}"
        )
    return core.clean(_preview(back, translate))


async def _pick(core: SessionCore, rewinder: Rewinder) -> str:
    """Ask the user for a point in a form and go back to it; without forms, list the points."""
    translate = core.translate
    points = (await rewinder.points())[: -_LISTED - 1 : -1]  # the newest first
    response = None
    if points:
        titles = {
            str(point.number): f"{point.number}: {_name(point, translate)}" for point in points
        }
        whats = {
            "both": translate("Conversation and files"),
            "conversation": translate("The conversation only"),
            "files": translate("The files only"),
        }
        form = Form(
            message=translate("Go back to an earlier point of this conversation."),
            schema={
                "type": "object",
                "properties": {
                    "point": _one_of(translate("Go back to before"), titles),
                    "what": _one_of(translate("Restore"), whats),
                },
                "required": ["point", "what"],
            },
        )
        response = await core.client.ask_form(core.id, form)
    if response is None:
        return await _describe(core, rewinder, "")
    chosen = response.content or {}
    if response.action != "accept" or chosen.keys() < {"point", "what"}:
        return translate("Nothing was changed.")
    return await _go_back(core, rewinder, f"{chosen['point']} {chosen['what']}")


def _one_of(title: str, choices: Mapping[str, str]) -> JsonObject:
    """Return the schema of a field with these choices, the first one as the default."""
    return {
        "type": "string",
        "title": title,
        "oneOf": [{"const": value, "title": shown} for value, shown in choices.items()],
        "default": next(iter(choices)),
    }


async def _go_back(core: SessionCore, rewinder: Rewinder, rest: str) -> str:
    """Go back, and return a description of the result."""
    arguments = _parse(rest)
    force = arguments.force
    try:
        what = parse_scope(arguments.what)
        if not force and what != "conversation":
            preview = await rewinder.preview(arguments.point, what)
            answer = await _ask_for_others(core, preview)
            if answer is None:
                return core.translate("Nothing was changed.")
            force = answer
        back = await rewinder.rewind(arguments.point, what, force=force, in_turn=True)
    except (InvalidInputError, WorkspaceError) as error:
        return core.clean(_sentence(error, core.translate))
    return core.clean(_result(back, core.translate))


async def _ask_for_others(core: SessionCore, preview: RewindResult) -> bool | None:
    """Ask whether to also restore files that others changed; None: do not go back.

    If the client shows no forms, they are left unchanged.
    """
    others, translate = preview.files.by_others, core.translate
    if not others:
        return False
    names = "\n".join(
        f"- `{display_name(one.path)}`: {translate.rendered(one.why)}" for one in others[:_SHOWN]
    )
    asks = translate("These files are left unchanged. Restore them, too?")
    label = translate("Restore them, too")
    restore: JsonObject = {"type": "boolean", "title": label, "default": False}
    form = Form(
        message=core.clean(f"{asks}\n{names}"),
        schema={"type": "object", "properties": {"restore": restore}},
    )
    response = await core.client.ask_form(core.id, form)
    if response is None:
        return False
    if response.action != "accept":
        return None
    return (response.content or {}).get("restore") is True


def _sentence(error: AcpAgentError, translate: Translator) -> str:
    text = translate.rendered(str(error))
    if isinstance(error, InvalidInputError) and error.field is not None:
        text = text.removeprefix(f"{error.field}: ")
    return translate("{sentence}.", sentence=f"{text[:1].upper()}{text[1:]}")


def _list(points: list[Point], not_saved: NotSaved, translate: Translator) -> str:
    if not points:
        return translate("There are no points to go back to yet.")
    lines = [_line(point, translate) for point in points[-_LISTED:]]
    if len(points) > _LISTED:
        lines.insert(0, translate("- … {count} earlier ones, from 1", count=len(points) - _LISTED))
    lines += _not_saved(not_saved, translate)
    how = translate(
        "`/rewind N` previews going back to before N; `/rewind N files`, `/rewind N "
        "conversation` and `/rewind N both` do it."
    )
    lines.append(f"\n{how}")
    return "\n".join(lines)


def _line(point: Point, translate: Translator) -> str:
    about = [] if point.current else [translate("removed")]
    if point.files:
        about.append(translate("files are saved"))
    more = translate(" ({about})", about=translate(", ").join(about)) if about else ""
    return f"- **{point.number}** {_name(point, translate)}{more}"


def _name(point: Point, translate: Translator) -> str:
    names: dict[Kind, str] = {
        "message": translate("“{title}”", title=point.title),
        "rewind": translate("rewind to before “{title}”", title=point.title),
        "restore": translate("before {title}", title=point.title),
    }
    return names[point.kind]


def _preview(back: RewindResult, translate: Translator) -> str:
    number, name = back.point.number, _name(back.point, translate)
    lines = [
        translate(("Preview of going back to before {number}, {point}:"), number=number, point=name)
    ]
    if not back.point.files:
        lines.append(translate("- no files are saved for this point; they stay unchanged"))
    elif not back.files.changes:
        lines.append(translate("- no file changes"))
    lines += _files(back.files, translate)
    lines += _not_saved(back.not_saved, translate)
    how = translate(
        "To go back, use `/rewind {number} files`, `/rewind {number} conversation` or `/rewind "
        "{number} both`. The current files are saved first.",
        number=number,
    )
    lines.append(f"\n{how}")
    lines += _forcing(back, translate)
    return "\n".join(lines)


def _files(files: RestoredFiles, translate: Translator) -> list[str]:
    lines = [f"- `{line}`" for line in changed_lines(files, _SHOWN, translate)]
    # Files that others changed come first: their work is not lost.
    alone = sorted(files.unchanged, key=lambda one: not one.by_others)
    shown = max(_ALONE, min(_SHOWN, len(files.by_others)))
    lines += [
        translate(
            "- `{path}` is left unchanged: {why}",
            path=display_name(one.path),
            why=translate.rendered(one.why),
        )
        for one in alone[:shown]
    ]
    if len(alone) > shown:
        lines.append(translate("- {count} more are left unchanged", count=len(alone) - shown))
    return lines


def _forcing(back: RewindResult, translate: Translator) -> list[str]:
    """Return a paragraph on how to restore files that others changed; empty if there are none."""
    if not back.files.by_others:
        return []
    what = "files" if back.rewind else back.scope
    how = translate(
        "`/rewind {number} {what} --force` also restores files that someone else changed.",
        number=back.point.number,
        what=what,
    )
    return [f"\n{how}"]


def _not_saved(not_saved: NotSaved, translate: Translator) -> list[str]:
    """Return a paragraph that names files that cannot be restored; empty if there are none."""
    if not not_saved.count:
        return []
    shown = translate(", ").join(
        translate("`{path}` ({why})", path=display_name(one.path), why=translate.rendered(one.why))
        for one in not_saved.files[:_ALONE]
    )
    more = not_saved.count - min(_ALONE, len(not_saved.files))
    said = translate("Not saved, and never changed: {files}", files=shown)
    return [f"\n{said}" + (translate(" and {count} more", count=f"{more:,}") if more else "")]


def _result(back: RewindResult, translate: Translator) -> str:
    lines = []
    if back.scope != "files":
        lines.append(
            translate(
                (
                    "The conversation was rewound to before {number}, {point}. You still see "
                    "all of it."
                ),
                number=back.point.number,
                point=_name(back.point, translate),
            )
        )
    if back.files.replaced:
        count = len(back.files.changes)
        many = translate(
            "Restored {count} files; the previous versions are saved:", count=f"{count:,}"
        )
        one = translate("Restored a file; the previous version is saved:")
        lines.append(many if count > 1 else one)
    elif back.scope != "conversation":
        nothing = translate("The files are unchanged: none are saved for this point.")
        lines.append(translate("No file was changed.") if back.point.files else nothing)
    lines += _files(back.files, translate)
    lines += _not_saved(back.not_saved, translate)
    lines += _forcing(back, translate)
    undoes = translate("To undo this, go back to the new point in `/rewind`.")
    lines.append(f"\n{undoes}")
    return "\n".join(lines)

"""The command `/rewind`: list the points to go back to, preview going back to one, and do it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

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

_MAX_POINTS = 30  # points
_MAX_CHANGES = 50  # changes
_MAX_UNCHANGED = 10  # files named as left unchanged or not saved

FORCE = "--force"
TURN_RUNS = "A turn is running. Stop it before you go back."


def _parse(arguments: str) -> tuple[str, str, bool]:
    """Return the point, what to restore, and whether to restore others' changes too."""
    words = arguments.split()
    point, *scope = [word for word in words if word != FORCE] or [""]
    return point, " ".join(scope), FORCE in words


def rewind_command(core: SessionCore, rewinder: Rewinder, arguments: str) -> FoundCommand:
    """Return the effect of `/rewind`."""
    answer = partial(_describe, core, rewinder, arguments)
    if not arguments.strip():
        return FoundCommand(action=lambda _: _pick(core, rewinder), answer=answer)
    _, scope, _ = _parse(arguments)
    if not scope:
        return FoundCommand(answer=answer)
    return FoundCommand(action=lambda _: _go_back(core, rewinder, arguments), refusal=TURN_RUNS)


async def _describe(core: SessionCore, rewinder: Rewinder, text: str) -> str:
    """List the points, or preview going back to one."""
    (point, _, force), translate = _parse(text), core.translate
    try:
        if not point:
            points = await rewinder.points()
            return core.clean(_list(points, await rewinder.not_saved(points), translate))
        preview = await rewinder.preview(point, "both", force=force)
    except (InvalidInputError, WorkspaceError) as error:
        return core.clean(
            f"{_sentence(error, translate)} {translate('`/rewind` lists the points.')}"
        )
    return core.clean(_preview(preview, translate))


async def _pick(core: SessionCore, rewinder: Rewinder) -> str:
    """Ask the user for a point in a form and go back to it; without forms, list the points."""
    translate = core.translate
    points = (await rewinder.points())[: -_MAX_POINTS - 1 : -1]  # the newest first
    response = None
    if points:
        titles = {
            str(point.number): f"{point.number}: {_name(point, translate)}" for point in points
        }
        scopes = {
            "both": translate("Conversation and files"),
            "conversation": translate("The conversation only"),
            "files": translate("The files only"),
        }
        form = Form(
            message=translate("Go back to an earlier point of this conversation."),
            schema={
                "type": "object",
                "properties": {
                    "point": _choice_schema(translate("Go back to before"), titles),
                    "what": _choice_schema(translate("Restore"), scopes),
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


def _choice_schema(title: str, choices: Mapping[str, str]) -> JsonObject:
    """Return the schema of a field with these choices, the first one as the default."""
    return {
        "type": "string",
        "title": title,
        "oneOf": [{"const": value, "title": label} for value, label in choices.items()],
        "default": next(iter(choices)),
    }


async def _go_back(core: SessionCore, rewinder: Rewinder, text: str) -> str:
    """Go back, and return a description of the result."""
    point, what, force = _parse(text)
    try:
        scope = parse_scope(what)
        if not force and scope != "conversation":
            preview = await rewinder.preview(point, scope)
            answer = await _ask_for_others(core, preview)
            if answer is None:
                return core.translate("Nothing was changed.")
            force = answer
        result = await rewinder.rewind(point, scope, force=force, in_turn=True)
    except (InvalidInputError, WorkspaceError) as error:
        return core.clean(_sentence(error, core.translate))
    return core.clean(_result(result, core.translate))


async def _ask_for_others(core: SessionCore, preview: RewindResult) -> bool | None:
    """Ask whether to also restore files that others changed; None: do not go back.

    If the client shows no forms, they are left unchanged.
    """
    files, translate = preview.files.by_others, core.translate
    if not files:
        return False
    names = "\n".join(
        f"- `{display_name(file.path)}`: {translate.rendered(file.why)}"
        for file in files[:_MAX_CHANGES]
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
    lines = [_line(point, translate) for point in points[-_MAX_POINTS:]]
    if len(points) > _MAX_POINTS:
        lines.insert(
            0, translate("- … {count} earlier ones, from 1", count=len(points) - _MAX_POINTS)
        )
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


def _preview(preview: RewindResult, translate: Translator) -> str:
    number, name = preview.point.number, _name(preview.point, translate)
    lines = [
        translate("Preview of going back to before {number}, {point}:", number=number, point=name)
    ]
    if not preview.point.files:
        lines.append(translate("- no files are saved for this point; they stay unchanged"))
    elif not preview.files.changes:
        lines.append(translate("- no file changes"))
    lines += _files(preview.files, translate)
    lines += _not_saved(preview.not_saved, translate)
    how = translate(
        "To go back, use `/rewind {number} files`, `/rewind {number} conversation` or `/rewind "
        "{number} both`. The current files are saved first.",
        number=number,
    )
    lines.append(f"\n{how}")
    lines += _forcing(preview, translate)
    return "\n".join(lines)


def _files(files: RestoredFiles, translate: Translator) -> list[str]:
    lines = [f"- `{line}`" for line in changed_lines(files, _MAX_CHANGES, translate)]
    # Files that others changed come first: their work is not lost.
    unchanged = sorted(files.unchanged, key=lambda file: not file.by_others)
    count = max(_MAX_UNCHANGED, min(_MAX_CHANGES, len(files.by_others)))
    lines += [
        translate(
            "- `{path}` is left unchanged: {why}",
            path=display_name(file.path),
            why=translate.rendered(file.why),
        )
        for file in unchanged[:count]
    ]
    if len(unchanged) > count:
        lines.append(translate("- {count} more are left unchanged", count=len(unchanged) - count))
    return lines


def _forcing(result: RewindResult, translate: Translator) -> list[str]:
    """Return a paragraph on how to restore files that others changed; empty if there are none."""
    if not result.files.by_others:
        return []
    scope = "files" if result.rewind else result.scope
    how = translate(
        "`/rewind {number} {what} --force` also restores files that someone else changed.",
        number=result.point.number,
        what=scope,
    )
    return [f"\n{how}"]


def _not_saved(not_saved: NotSaved, translate: Translator) -> list[str]:
    """Return a paragraph that names files that cannot be restored; empty if there are none."""
    if not not_saved.count:
        return []
    names = translate(", ").join(
        translate(
            "`{path}` ({why})", path=display_name(file.path), why=translate.rendered(file.why)
        )
        for file in not_saved.files[:_MAX_UNCHANGED]
    )
    hidden = not_saved.count - min(_MAX_UNCHANGED, len(not_saved.files))
    sentence = translate("Not saved, and never changed: {files}", files=names)
    return [
        f"\n{sentence}" + (translate(" and {count} more", count=f"{hidden:,}") if hidden else "")
    ]


def _result(result: RewindResult, translate: Translator) -> str:
    lines = []
    if result.scope != "files":
        lines.append(
            translate(
                "The conversation was rewound to before {number}, {point}. "
                "You still see all of it.",
                number=result.point.number,
                point=_name(result.point, translate),
            )
        )
    if result.files.replaced:
        count = len(result.files.changes)
        many = translate(
            "Restored {count} files; the previous versions are saved:", count=f"{count:,}"
        )
        single = translate("Restored a file; the previous version is saved:")
        lines.append(many if count > 1 else single)
    elif result.scope != "conversation":
        nothing = translate("The files are unchanged: none are saved for this point.")
        lines.append(translate("No file was changed.") if result.point.files else nothing)
    lines += _files(result.files, translate)
    lines += _not_saved(result.not_saved, translate)
    lines += _forcing(result, translate)
    undoes = translate("To undo this, go back to the new point in `/rewind`.")
    lines.append(f"\n{undoes}")
    return "\n".join(lines)

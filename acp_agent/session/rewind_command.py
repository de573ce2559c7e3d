"""`/rewind`: where one can go back to, what that would change, and going there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_agent.config.words import Words
from acp_agent.errors import AcpAgentError, InvalidInputError, WorkspaceError
from acp_agent.session.files_back import FilesBack, NotKept
from acp_agent.session.points import Kind, Point
from acp_agent.session.rewinder import Back, changed_lines, wanted_what
from acp_agent.workspace.names import display_name

if TYPE_CHECKING:
    from acp_agent.session.session import Session
    from acp_agent.session.turn_host import SessionHost

_LISTED = 30  # points
_SHOWN = 50  # changes
_ALONE = 10  # files that are left as they are, or not kept

TURN_RUNS = "A turn runs. Stop it first, then go back."


def goes(rest: str) -> bool:
    """Whether the words behind the command are to do it, rather than to tell about it."""
    return len(rest.split()) > 1


async def told(session: Session, rest: str) -> str:
    """The points, or what going back to one would change."""
    wanted, words = rest.strip(), session.services.words
    rewinder = session.workbench.rewinder
    try:
        if not wanted:
            points = await rewinder.points()
            return session.clean(_list(points, await rewinder.not_kept(points), words))
        back = await rewinder.preview(wanted, "both")
    except (InvalidInputError, WorkspaceError) as error:
        return session.clean(f"{_sentence(error, words)} {words('`/rewind` lists the points.')}")
    return session.clean(_preview(back, words))


async def gone(host: SessionHost, rest: str) -> str:
    """Go back, and say what was done."""
    wanted, what = rest.split(maxsplit=1)
    try:
        back = await host.rewinder.go(wanted, wanted_what(what), in_turn=True)
    except (InvalidInputError, WorkspaceError) as error:
        return host.clean(_sentence(error, host.words))
    return host.clean(_result(back, host.words))


def _sentence(error: AcpAgentError, words: Words) -> str:
    text = words.told(str(error))
    if isinstance(error, InvalidInputError) and error.field is not None:
        text = text.removeprefix(f"{error.field}: ")
    return words("{sentence}.", sentence=f"{text[:1].upper()}{text[1:]}")


def _list(points: list[Point], not_kept: NotKept, words: Words) -> str:
    if not points:
        return words("There is nothing to go back to yet.")
    lines = [_line(point, words) for point in points[-_LISTED:]]
    if len(points) > _LISTED:
        lines.insert(0, words("- … {count} earlier ones, from 1", count=len(points) - _LISTED))
    lines += _not_kept(not_kept, words)
    how = words(
        "`/rewind N` shows what going back to before N would change; `/rewind N files`, "
        "`/rewind N conversation` and `/rewind N both` do it."
    )
    lines.append(f"\n{how}")
    return "\n".join(lines)


def _line(point: Point, words: Words) -> str:
    about = [] if point.current else [words("taken back")]
    if point.files:
        about.append(words("files are kept"))
    more = words(" ({about})", about=words(", ").join(about)) if about else ""
    return f"- **{point.number}** {_name(point, words)}{more}"


def _name(point: Point, words: Words) -> str:
    names: dict[Kind, str] = {
        "message": words("“{title}”", title=point.title),
        "rewind": words("back to before “{title}”", title=point.title),
        "restore": words("before {title}", title=point.title),
    }
    return names[point.kind]


def _preview(back: Back, words: Words) -> str:
    number, name = back.point.number, _name(back.point, words)
    lines = [words("Going back to before {number}, {point}:", number=number, point=name)]
    if not back.point.files:
        lines.append(words("- no files are kept for this point: they stay as they are"))
    elif not back.files.changes:
        lines.append(words("- the files are as they were"))
    lines += _files(back.files, words)
    lines += _not_kept(back.not_kept, words)
    how = words(
        "What is there now is kept. `/rewind {number} files`, `/rewind {number} conversation` or "
        "`/rewind {number} both` does it.",
        number=number,
    )
    lines.append(f"\n{how}")
    return "\n".join(lines)


def _files(files: FilesBack, words: Words) -> list[str]:
    lines = [f"- `{line}`" for line in changed_lines(files, _SHOWN, words)]
    alone = files.left_alone
    lines += [
        words(
            "- `{path}` is left as it is: {why}",
            path=display_name(one.path),
            why=words.told(one.why),
        )
        for one in alone[:_ALONE]
    ]
    if len(alone) > _ALONE:
        lines.append(words("- {count} more are left as they are", count=len(alone) - _ALONE))
    return lines


def _not_kept(not_kept: NotKept, words: Words) -> list[str]:
    """A paragraph that names what can never go back; nothing where there is none."""
    if not not_kept.count:
        return []
    shown = words(", ").join(
        words("`{path}` ({why})", path=display_name(one.path), why=words.told(one.why))
        for one in not_kept.named[:_ALONE]
    )
    more = not_kept.count - min(_ALONE, len(not_kept.named))
    said = words("Not kept, and never touched: {files}", files=shown)
    return [f"\n{said}" + (words(" and {count} more", count=f"{more:,}") if more else "")]


def _result(back: Back, words: Words) -> str:
    lines = []
    if back.what != "files":
        lines.append(
            words(
                "The conversation is as it was before {number}, {point}. You still see all of it.",
                number=back.point.number,
                point=_name(back.point, words),
            )
        )
    if back.files.replaced:
        count = len(back.files.changes)
        many = words("{count} files are as they were then:", count=f"{count:,}")
        lines.append(many if count > 1 else words("A file is as it was then:"))
    elif back.what != "conversation":
        nothing = words("The files stay as they are: none are kept for this point.")
        lines.append(words("No file had to be changed.") if back.point.files else nothing)
    lines += _files(back.files, words)
    lines += _not_kept(back.not_kept, words)
    undoes = words("`/rewind` lists this as a point, too: going back to it undoes it.")
    lines.append(f"\n{undoes}")
    return "\n".join(lines)

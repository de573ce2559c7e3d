"""The prompts that the demo model understands, and the steps for each of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

from msgspec import Struct

from acp_agent.content import JsonObject

_COUNT_LIMIT = 100_000
_FILLERS = {"a", "all", "an", "called", "file", "files", "folder", "in", "named", "new", "the"}
_BEFORE_TEXT = re.compile(r"^(the )?(text|contents?|words?) ", re.IGNORECASE)


class DemoCall(Struct, frozen=True):
    """A tool call that a step makes."""

    tool: str
    arguments: JsonObject


class PlanState(Struct, frozen=True):
    """The progress of the tour's plan: the index of the active step."""

    active: int


class Step(Struct, frozen=True, kw_only=True):
    """One answer: reasoning, text and calls. `plan` marks the active step of the tour's plan."""

    text: str = ""
    thought: str = ""
    calls: tuple[DemoCall, ...] = ()
    plan: PlanState | None = None


def call(tool: str, **arguments: object) -> DemoCall:
    """Return a call of `tool` with these arguments."""
    return DemoCall(tool, arguments)


def todo(steps: Sequence[str], active: int) -> DemoCall:
    """Return a call that shows a plan in which the steps before `active` are completed."""
    todos = [
        {
            "content": step,
            "status": "completed" if at < active else "in_progress" if at == active else "pending",
        }
        for at, step in enumerate(steps)
    ]
    return call("todo", todos=todos)


def script(words: str) -> tuple[Step, ...] | None:
    """Return the steps for a prompt, or None if it is not understood."""
    if words.startswith("$"):
        return _run(words[1:].strip())
    verb, _, arguments = words.partition(" ")
    understand = _VERBS.get(verb.lower().rstrip(":"))
    return understand(arguments.strip()) if understand is not None else None


def _read(arguments: str) -> tuple[Step, ...] | None:
    paths = [path for path in (_name(part) for part in _split_list(arguments)) if path]
    if not paths:
        return None
    names = ", ".join(f"`{path}`" for path in paths)
    return (Step(text=f"I read {names}.", calls=tuple(call("read", path=p) for p in paths)),)


def _list(arguments: str) -> tuple[Step, ...] | None:
    folder = _name(arguments.partition("files in ")[2] or arguments)
    folder = "" if folder.lower() in _FILLERS else folder
    list_call = call("list", path=folder) if folder else call("list")
    return (Step(text=f"I list {f'`{folder}`' if folder else 'the folder'}.", calls=(list_call,)),)


def _search(arguments: str) -> tuple[Step, ...] | None:
    query = arguments.removeprefix("for ").strip()
    pattern, _, folder = query.rpartition(" in ")
    if not pattern:
        pattern, folder = query, ""
    pattern, folder = _unquoted(pattern), _unquoted(folder)
    if not pattern:
        return None
    options = {"path": folder} if folder else {}
    search_call = call("grep", pattern=pattern, **options)
    return (Step(text=f"I search for `{pattern}`.", calls=(search_call,)),)


def _find(arguments: str) -> tuple[Step, ...] | None:
    pattern = _unquoted(arguments.removeprefix("files named ").removeprefix("files "))
    if not pattern:
        return None
    wide = pattern if "/" in pattern else f"**/{pattern}"
    return (Step(text=f"I look for `{pattern}`.", calls=(call("glob", pattern=wide),)),)


def _run(arguments: str) -> tuple[Step, ...] | None:
    command = arguments.strip()
    if len(command) > 2 and command[0] == command[-1] == "`":
        command = command[1:-1].strip()
    if not command:
        return None
    return (Step(text=f"I run `{command}`.", calls=(call("shell", command=command),)),)


def _replace(arguments: str) -> tuple[Step, ...] | None:
    try:
        words = shlex.split(arguments)
    except ValueError:
        words = arguments.split()
    lowered = [word.lower() for word in words]
    if "with" not in lowered or "in" not in lowered:
        return None
    joint = lowered.index("with")
    end = len(lowered) - 1 - lowered[::-1].index("in")
    old, new, path = " ".join(words[:joint]), " ".join(words[joint + 1 : end]), words[end + 1 :]
    if not old or joint > end or len(path) != 1:
        return None
    change = call("edit", path=path[0], old=old, new=new)
    return (
        Step(text=f"I read `{path[0]}` first.", calls=(call("read", path=path[0]),)),
        Step(text=f"I replace `{old}` with `{new}`.", calls=(change,)),
    )


def _create(arguments: str) -> tuple[Step, ...] | None:
    path, joint, text = arguments.partition(" with ")
    path = _name(path)
    if not path or not joint:
        return None
    body = _unquoted(_BEFORE_TEXT.sub("", text))
    body = body if body.endswith("\n") else f"{body}\n"
    return (Step(text=f"I create `{path}`.", calls=(call("write", path=path, content=body),)),)


def _fetch(arguments: str) -> tuple[Step, ...] | None:
    url = _unquoted(arguments)
    if not url:
        return None
    return (Step(text=f"I fetch {url}.", calls=(call("web_fetch", url=url),)),)


def _plan(arguments: str) -> tuple[Step, ...] | None:
    steps = [step.strip() for step in arguments.replace("\n", ";").split(";") if step.strip()]
    if not steps:
        return None
    return (
        Step(text="Here is the plan.", calls=(todo(steps, 0),)),
        Step(text="All of it is only planned, so I tick it off.", calls=(todo(steps, len(steps)),)),
    )


def _ask(arguments: str) -> tuple[Step, ...] | None:
    question, mark, answers = arguments.removeprefix("me ").strip().partition("?")
    if not question:
        return None
    options = [{"label": _unquoted(part)} for part in _split_list(answers.replace(" or ", ","))]
    more = {"options": options} if options else {}
    return (Step(text="I ask you.", calls=(call("ask_user", question=question + mark, **more),)),)


def _think(arguments: str) -> tuple[Step, ...] | None:
    subject = arguments.removeprefix("about ").strip() or "nothing in particular"
    thought = f"The user wants me to think about {subject}. I am a script, so that was all of it."
    return (Step(thought=thought, text=f"I thought about {subject}."),)


def _count(arguments: str) -> tuple[Step, ...] | None:
    number = arguments.removeprefix("to ").strip().rstrip(".")
    if not number.isdecimal() or int(number) > _COUNT_LIMIT:
        return None
    return (Step(text=" ".join(str(n) for n in range(1, int(number) + 1))),)


_VERBS: dict[str, Callable[[str], tuple[Step, ...] | None]] = {
    "read": _read, "open": _read, "list": _list, "ls": _list, "search": _search, "grep": _search,
    "find": _find, "run": _run, "replace": _replace, "create": _create, "write": _create,
    "fetch": _fetch, "plan": _plan, "ask": _ask, "think": _think, "count": _count,
}  # fmt: skip


def _split_list(text: str) -> list[str]:
    return [part for piece in text.split(",") for part in piece.split(" and ") if part.strip()]


def _name(text: str) -> str:
    """Return the name in texts such as "the file NAME" or "a new file called NAME"."""
    bare = text.strip()
    while (words := bare.split(maxsplit=1))[1:] and words[0].lower() in _FILLERS:
        bare = words[1]
    return _unquoted(bare)


def _unquoted(text: str) -> str:
    bare = text.strip()
    if len(bare) >= 2 and bare[0] == bare[-1] and bare[0] in "\"'`":
        return bare[1:-1]
    return bare

"""Finds the texts in the sources that a user may read, by where they stand."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import acp_agent

PACKAGE = Path(acp_agent.__file__).parent
HELP = {"help", "description", "epilog"}  # what a parser is given for its help


def sources(*rooms: str) -> Iterator[tuple[str, ast.Module]]:
    """The modules of some rooms, or of all, with their paths in the package."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if not rooms or name.startswith(rooms):
            yield name, ast.parse(path.read_text("utf-8"))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Every call in a module."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def called(call: ast.Call) -> str:
    """The name of what is called, without what it belongs to."""
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def keyed(tree: ast.AST) -> set[str]:
    """The texts that a module says by `translate("…")`, or as the headings of a table."""
    said: list[ast.AST] = []
    for call in calls(tree):
        if called(call).lstrip("_") == "translate":
            said += call.args[:1]
        elif called(call) == "say_table":
            said += ast.walk(call.args[0])
    texts = (text.value for text in said if isinstance(text, ast.Constant))
    return {text for text in texts if text and isinstance(text, str)}


def explained(tree: ast.AST) -> set[str]:
    """The texts of the help of a command's arguments."""
    return {
        text
        for call in calls(tree)
        if called(call) in {"Parser", "add_argument", "add_parser", "add"}
        for keyword in call.keywords
        if keyword.arg in HELP
        for text in templates(keyword.value)
    }


def templates(node: ast.expr | None) -> list[str]:
    """What an expression can be, as templates: `{}` stands where a value is put in."""
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(_part(part) for part in parts)]
        case ast.IfExp(body=body, orelse=other):
            return templates(body) + templates(other)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return [
                f"{left_template}{two}"
                for left_template in templates(left) or ["{}"]
                for two in templates(right) or ["{}"]
            ]
    return []


def _part(part: ast.expr) -> str:
    match part:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=ast.Call(func=ast.Name(id="code_span"))):
            return "`{}`"  # how titles show what is not words
    return "{}"


def wordless(template: str) -> bool:
    """Whether a template says nothing in words: values, marks, the names of programs."""
    bare = template.replace("{}", " ").replace("acp-agent", " ").replace("\\n", " ")
    return not any(len(word) > 1 and word.isalpha() for word in bare.split())


ERRORS = {
    "AuthRequiredError", "CheckpointTooSlowError", "ConfigError", "EditorGoneError",
    "InvalidInputError", "ModelError", "NoTurnError", "PromptCancelledError", "SessionBusyError",
    "MissingFileError", "OutsideWorkspaceError", "PermissionRefusedError", "SessionError",
    "StoreDamagedError", "StoreError", "StoreNewerError", "ToolError", "TurnRunsError",
    "WorkspaceError",
}  # fmt: skip
# What else is kept in English and shown: what is called, and which of its arguments that is.
SHOWN_ARGUMENTS: dict[str, tuple[str | int, ...]] = {
    "NoticeShown": ("title", "description"),
    "tell": ("title", "description", 0, 1),
    "Prepared": ("title",),
    "prepare_change": ("title",),
    "Problem": (1,),
    "ArgumentTypeError": (0,),
    "Failed": ("message",),
    "Allow": ("why",),
    "Refuse": ("why",),
}
NO_BUTTONS = (
    "changed_tool",
    "runs_by_itself",
    "warning",
    "separator",
    "quote",
)  # of what the gate says
_PARAMETER = re.compile(r"(?!--)[\w.{}-]+: ")
_TELLS = ("extensions/", "session/mcp")  # where `tell` is about the user
# What some texts are said behind: a file's line and a key, and the name of an argument.
_BEHIND = {"Problem": "{}: {}: ", "ArgumentTypeError": "argument {}: "}
# Modules whose constants say why a call did not run.
_REASONS = ("agent/call_permissions.py", "agent/tool_calls.py")


def told() -> Iterator[tuple[str, str]]:
    """The texts that are English where they arise and are shown to a user, with their modules.

    What is wrong with a parameter of a request is for those who write clients, and left out.
    """
    for name, tree in sources():
        module = _Module(tree)
        for call in calls(tree):
            kind = called(call)
            for argument in _shown_arguments(call, kind):
                for text in module.templates(argument):
                    if kind == "InvalidInputError" and _of_a_request(name, text):
                        continue
                    if kind == "tell" and not name.startswith(_TELLS):
                        continue
                    if not wordless(text):
                        yield name, f"{_BEHIND.get(kind, '')}{text}"
        if name in _REASONS:
            yield from ((name, text) for text in module.constants() if not wordless(text))
        if name.startswith("tools/"):
            yield from ((name, text) for text in module.returned("title") if not wordless(text))


def _of_a_request(module: str, text: str) -> bool:
    outside = module.startswith("server/") and not text.startswith("--")
    return outside or _PARAMETER.match(text) is not None


def _shown_arguments(call: ast.Call, kind: str) -> Iterator[ast.expr]:
    replaced = any(keyword.arg == "shown" for keyword in call.keywords)
    error: str | int = "shown" if replaced else 0
    for position in (error,) if kind in ERRORS else SHOWN_ARGUMENTS.get(kind, ()):
        if isinstance(position, int):
            yield from call.args[position : position + 1]
        else:
            yield from (keyword.value for keyword in call.keywords if keyword.arg == position)


class _Module:
    """What names and functions of a module stand for, as far as their texts are written in it."""

    def __init__(self, tree: ast.Module) -> None:
        self._values: dict[str, list[ast.expr]] = {}
        self._functions: dict[str, ast.AST] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._values.setdefault(name, []).append(value)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    self._functions[name] = node

    def constants(self) -> list[str]:
        """The texts that the module gives names to."""
        return [
            text
            for values in self._values.values()
            for value in values
            for text in templates(value)
        ]

    def templates(self, node: ast.expr | None, depth: int = 0) -> list[str]:
        """What an expression can be, those of the module's names and functions too."""
        if depth > 3:
            return []
        match node:
            case ast.Name(id=name):
                values = self._values.get(name, [])
                return [text for value in values for text in self.templates(value, depth + 1)]
            case ast.Call(func=ast.Name(id=name)):
                return self.returned(name, depth + 1)
            case ast.IfExp(body=body, orelse=other):
                return self.templates(body, depth) + self.templates(other, depth)
            case ast.BoolOp(values=several):
                return [text for value in several for text in self.templates(value, depth)]
            case ast.JoinedStr(values=parts):
                choices = [self._choices(part, depth) for part in parts]
                return ["".join(chosen) for chosen in product(*choices)]
        return templates(node)

    def _choices(self, part: ast.expr, depth: int) -> list[str]:
        """What can stand in a place of an f-string."""
        if isinstance(part, ast.FormattedValue) and isinstance(part.value, ast.Name):
            return self.templates(part.value, depth + 1) or ["{}"]
        return [_part(part)]

    def returned(self, function: str, depth: int = 0) -> list[str]:
        """The texts that a function of the module can return."""
        body = self._functions.get(function)
        return [
            text
            for node in ([] if body is None else ast.walk(body))
            if isinstance(node, ast.Return)
            for text in self.templates(node.value, depth)
        ]


def every_template() -> set[str]:
    """Every text of the sources, as a template: no translation is of anything else."""
    return button_templates() | {
        text
        for _, tree in sources()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant | ast.JoinedStr)
        for text in templates(node)
    }


def button_templates() -> set[str]:
    """What the gate's buttons say in English: the journal has the one that was pressed."""
    texts = tomllib.loads((PACKAGE / "permissions" / "gate_texts.toml").read_text("utf-8"))["en"]
    buttons = (text for name, text in texts.items() if not name.endswith(NO_BUTTONS))
    return {re.sub(r"\{\w+\}", "{}", text) for text in buttons}


# What speaks to the user: in a terminal, and as the agent.
PRINTS = {"agent_message", "complain", "failed", "getpass", "input", "print", "say"}
WRITES = {"sys.stdout.write", "sys.stderr.write"}
SCREEN = {"_line", "_paint"}  # in cli/screen.py
ANSWERS = {"session/commands/find.py", "session/commands/budget.py", "session/commands/rewind.py"}


def unsaid() -> Iterator[tuple[str, str]]:
    """Texts that are printed or answered as they are, instead of in the user's language."""
    for name, tree in sources("cli/", "session/", "agent/"):
        module = _Module(tree)
        prints = PRINTS | SCREEN if name == "cli/screen.py" else PRINTS
        spoken = [
            call.args[0]
            for call in calls(tree)
            if call.args and (called(call) in prints or ast.unparse(call.func) in WRITES)
        ]
        if name in ANSWERS:
            spoken += [
                node.value for node in ast.walk(tree) if isinstance(node, ast.Return) and node.value
            ]
        yield from (
            (name, text)
            for argument in spoken
            for text in module.templates(argument)
            if not wordless(text)
        )

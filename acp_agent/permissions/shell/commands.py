"""Read single commands of the syntax tree: words, assignments, redirections, substitutions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.shell.expansion import Expander
from acp_agent.permissions.shell.redirects import (
    Attached,
    is_certain_input,
    is_quoted_document,
    read_redirect,
)
from acp_agent.permissions.shell.syntax import (
    Assignment,
    Command,
    Redirect,
    static_output,
    without_reserved,
)
from acp_agent.permissions.shell.words import (
    LISTED,
    NONEMPTY,
    UNKNOWN,
    Origin,
    Piece,
    TooComplexError,
    Word,
)

if TYPE_CHECKING:
    from tree_sitter import Node


_COMMAND_LIMIT = 2_000  # commands of a line that are checked
# Builtins that evaluate subscripts in their words: `unset 'a[$(x)]'`.
_EVALUATING = frozenset({"let", "test", "[", "unset", "read", "declare", "typeset", "local"})
_BACKQUOTED = re.compile(r"(?<!\\)`((?:[^`\\]|\\.)*)`", re.DOTALL)
_SUM = re.compile(r"\$\(\([\w\s+*/%<>!&|^~()-]*\)\)", re.ASCII)  # sets no variable
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_TEXTS = frozenset({"word", "regex", "extglob_pattern", "heredoc_content"})
_SIMPLE_PATH = re.compile(r"(?!-)[\w.-]+(?:/[\w.-]+)*", re.ASCII)
_TOP_LEVEL = ["git", "rev-parse", "--show-toplevel"]

ListedNames = Callable[[Command], tuple[Word, ...]]


class WalkState(Struct, frozen=True, kw_only=True):
    """The position of the walker in the line."""

    stdin: Word | None = None
    piped: bool = False
    concurrent: bool = False
    function: str | None = None
    source: Command | None = None
    calls: tuple[str, ...] = ()
    depth: int = 0


class CommandReader(ABC):
    """Collects the commands of one line, and facts about the line.

    `followed` and `unparsed` describe the line as in `ShellLine`. `composed` is true if the line
    has a loop, a substitution or the like, `sums` if it has a `((`, and `misread` if the grammar
    assigned words of one command line to another. `functions` maps each function to its node and
    text, `sites` maps each variable to the places where it is set, and `printing` maps the text and
    the position of a substitution to the last command in it. `listed` returns the names of files
    that a command prints.
    """

    def __init__(self, *, cwd: str, home: str, public: frozenset[str], listed: ListedNames) -> None:
        self.expander = Expander(
            home=home, cwd=cwd, public=public, substituted=self._substitution_output
        )
        self.commands: list[Command] = []
        self.functions: dict[str, tuple[Node, bytes]] = {}
        self.listed = listed
        self.printing: dict[tuple[bytes, int], Command] = {}
        self.followed = True
        self.composed = False
        self.sites: dict[str, set[int]] = {}
        self.unparsed = False
        self.sums = False
        self.misread = False
        self.budget = _COMMAND_LIMIT

    @abstractmethod
    def read(self, text: str, state: WalkState) -> None:
        """Read a whole text that a shell runs."""

    @abstractmethod
    def walk(self, node: Node, state: WalkState) -> None:
        """Read a statement."""

    @abstractmethod
    def call(self, name: str, arguments: tuple[Word, ...], state: WalkState) -> None:
        """Read the body of a function of this line, called with these arguments."""

    def command(self, node: Node, state: WalkState) -> None:
        """Read a simple command."""
        pieces: list[Piece] = []
        assignments: list[Assignment] = []
        attached = Attached()
        at = node.start_byte
        for child in node.children:
            self.check_gap(node, at, child.start_byte)
            source = self.expander.source(child)
            adjacent = bool(pieces) and child.start_byte == at
            if source[:1].isspace() or (source[:1] == "#" and not adjacent):
                self.misread = self.unparsed = True  # a word of another line, or a comment
            at = child.end_byte
            if child.type == "variable_assignment":
                assignments += self.assignments(child, state)
            elif child.type.endswith("redirect"):
                attached = attached.combine(self.redirect(child, state))
            else:
                self.walk_nested(child, state)
                if child.type == "subshell":
                    # After `time` or `! {` the grammar reads a group as an argument.
                    self.followed = False
                    self.walk(child, state)
                    continue
                piece = self.expander.piece(child)
                if adjacent:
                    # To the shell this is one word; the grammar loses a `$` in some of these.
                    self.followed = False
                    pieces[-1].join(self.expander.after_dollar(pieces[-1], piece))
                else:
                    pieces.append(piece)
        words = [word for piece in pieces for word in self.expander.to_words(piece)]
        self._finish_command(words, assignments, attached, state, node.start_byte)

    def _finish_command(
        self,
        words: list[Word],
        assignments: list[Assignment],
        attached: Attached,
        state: WalkState,
        at: int,
    ) -> None:
        effective = without_reserved(words)
        self.followed = self.followed and len(effective) == len(words)
        command = Command(
            words=(*effective, *attached.words),
            assignments=tuple(assignments),
            redirects=attached.redirects,
            stdin=attached.stdin or state.stdin,
            piped=state.piped,
            concurrent=state.concurrent,
            function=state.function,
            source=None if attached.stdin else state.source,
        )
        self.add_command(command)
        if not command.words:
            return
        name, *arguments = command.words
        if name.text == "set" and arguments and arguments[0].text == "--":
            self.set_positional(tuple(arguments[1:]))
        if name.text in _EVALUATING:
            for word in arguments:
                self._read_hidden(word.text, state)
        if name.text == "read":
            if command.stdin is not None and arguments:
                self.expander.variables[arguments[-1].text] = command.stdin.text.strip()
            names = arguments[1:] if arguments and arguments[0].text == "-r" else arguments
            names_of_files = self.listed(command.source) if command.source else ()
            for word in arguments:
                self.bind(word.text, at, "output")
            if len(names) == 1 and len({word.text for word in names_of_files}) == 1:
                self.expander.variables[names[0].text] = names_of_files[0].text
                self.bind(names[0].text, at, names_of_files[0].origin)
        if name.text == "printf" and len(arguments) > 2 and arguments[0].text == "-v":
            self._read_hidden(arguments[1].text, state)
            printed = static_output(replace(command, words=(name, *arguments[2:])))
            self.expander.variables[arguments[1].text] = printed or UNKNOWN
        if name.text in self.functions:
            self.call(name.text, tuple(arguments), state)

    def assignments(self, node: Node, state: WalkState) -> list[Assignment]:
        """Read one or several `name=value`, and store the values."""
        if node.type == "variable_assignments":
            return [a for child in node.named_children for a in self.assignments(child, state)]
        self.walk_nested(node, state)
        name = self.expander.source(node.child_by_field_name("name") or node).partition("[")[0]
        value = node.child_by_field_name("value")
        word = Word("", origin="exact")
        if value is not None and value.type == "array":
            words = [w for child in value.named_children for w in self.expander.words(child)]
            word = Word(" ".join(w.text for w in words), all(w.static for w in words))
        elif value is not None:
            word = self.expander.assigned_word(value)
        variables = self.expander.variables
        appended = any(child.type == "+=" for child in node.children)
        variables[name] = variables.get(name, "") + word.text if appended else word.text
        if appended or not self.expander.source(node).startswith(f"{name}="):
            word = replace(word, static=False, origin="")
        self._read_hidden(word.text, state)  # ${name@P}, sums and [[ … ]] would run it
        return [Assignment(name, word)]

    def test(self, node: Node, state: WalkState) -> None:
        """Read `[ … ]` as a command."""
        self.walk_nested(node, state)
        words = [Word("[")]
        redirects: list[Redirect] = []
        operator = ""
        pending = list(reversed(node.children[1:-1]))
        while pending:
            child = pending.pop()
            if child.type.endswith("_expression") and child.type != "brace_expression":
                pending.extend(reversed(child.children))
            elif child.type in {"<", ">"} and not child.is_named:
                operator = child.type  # the grammar reads it as a comparison
            elif operator:
                redirects += [Redirect(operator, word) for word in self.expander.words(child)]
                operator = ""
            else:
                words += self.expander.words(child)
        self._finish_command(
            words, [], Attached(redirects=tuple(redirects)), state, node.start_byte
        )

    def redirect(self, node: Node, state: WalkState) -> Attached:
        """Read a redirection."""
        self.walk_nested(node, state)
        for body in node.children:
            if (
                body.type == "heredoc_body"
                and not body.child_count
                and not is_quoted_document(node)
            ):
                # The grammar misses backquotes.
                self._read_hidden(self.expander.source(body), state)
        attached = read_redirect(node, self.expander)
        if attached.stdin is not None and not is_certain_input(node, self.expander):
            self.followed = False
        return attached

    def walk_nested(self, node: Node, state: WalkState) -> None:
        """Walk the substitutions in a word."""
        if self.expander.quoted_document(node) is not None:
            return
        if node.type in {"command_substitution", "process_substitution"}:
            self.walk(node, replace(state, stdin=None, piped=False, source=None))
        else:
            if node.type in _TEXTS and not node.child_count:
                self._read_hidden(self.expander.source(node), state)
            if node.type == "simple_expansion" and self.expander.source(node)[1:2] in set(
                " \t\n\\"
            ):
                # `"$ $(x)"`: after a lone dollar the grammar overlooks the substitution.
                self.followed = False
                self.misread = self.unparsed = True
            if node.type == "subscript" or (
                node.type == "arithmetic_expansion"
                and not self._is_plain_sum(self.expander.source(node))
            ):
                self.followed = False  # the shell evaluates the values of variables
            for child in node.children:
                if child.child_count or child.type in _TEXTS:
                    self.walk_nested(child, state)

    def _is_plain_sum(self, raw: str) -> bool:
        """Return whether a sum sets nothing and all of its variables hold plain numbers."""
        origins, variables = self.expander.origins, self.expander.variables
        return (
            _SUM.fullmatch(raw) is not None
            and not {"++", "--"} & {raw[at : at + 2] for at in range(len(raw))}
            and all(
                origins.get(name) == "exact" and variables[name].isdecimal()
                for name in _NAME.findall(raw)
            )
        )

    def walk_evaluated(self, node: Node, state: WalkState) -> None:
        """Walk quoted text in `[[ … ]]`: the shell evaluates it in a numeric comparison."""
        if node.type == "raw_string":
            self._read_hidden(self.expander.source(node), state)
        for child in node.children:
            self.walk_evaluated(child, state)

    def _read_hidden(self, raw: str, state: WalkState) -> None:
        """Read substitutions that the grammar read as text: `${x:+`…`}`."""
        for mark, end in (("`", "`"), ("$(", ")")):
            start = raw.find(mark)
            if start >= 0 and (start == 0 or raw[start - 1] != "\\"):
                self.followed = False
                self.read(raw[start + len(mark) : max(raw.rfind(end), start)], state)
                for text in _BACKQUOTED.findall(raw) if mark == "`" else ():
                    self.read(text, state)

    def check_gap(self, node: Node, start: int, end: int) -> None:
        """Clear `followed` if there is more than blanks between two parts of a statement."""
        if end > start:
            raw = (node.text or b"")[start - node.start_byte : end - node.start_byte]
            in_command = node.type == "command"
            if raw.replace(b"\\\n", b"").strip(b" \t" if in_command else b" \t\n"):
                self.followed = False

    def add_command(self, command: Command) -> None:
        """Add a command to the commands of the line."""
        self.budget -= 1
        if self.budget < 0:
            raise TooComplexError
        if any((command.words, command.assignments, command.redirects)):
            self.commands.append(command)

    def bind(self, name: str, at: int, origin: Origin) -> None:
        """Record where in the line a variable is set, and the origin of its value."""
        self.sites.setdefault(name, set()).add(at)
        text = self.expander.variables.get(name, UNKNOWN)
        certain = origin in {"exact", "match"} and UNKNOWN not in text and NONEMPTY not in text
        is_kept = certain or origin in {"", "revision", "top_level", "folder", *LISTED}
        self.expander.origins[name] = origin if is_kept else "output"

    def set_positional(self, arguments: tuple[Word, ...]) -> None:
        """Set $1 and so on."""
        texts = [word.text for word in arguments]
        variables = self.expander.variables
        variables.update({str(number): text for number, text in enumerate(texts[:9], 1)})
        variables["@"] = variables["*"] = " ".join(texts)

    def _substitution_output(self, node: Node) -> tuple[str, Origin]:
        """Return what a command substitution prints, as far as it is known, and its origin."""
        last = self.printing.get((self.expander.raw, node.start_byte))
        names = self.listed(last) if last is not None else ()
        if names:
            return " ".join(word.text for word in names), names[0].origin
        children = [child for child in node.children if child.is_named]
        if len(children) != 1 or children[0].type != "command":
            return UNKNOWN, "output"
        words = [
            word
            for child in children[0].children
            if child.is_named and not child.type.endswith("redirect")
            for word in self.expander.words(child)
        ]
        texts = [word.text for word in words]
        if texts == ["pwd"]:
            return self.expander.cwd, "folder"
        if texts == _TOP_LEVEL and all(word.fixed for word in words) and last is not None:
            return UNKNOWN, "output" if last.assignments else "top_level"
        if texts[:1] == ["pwd"]:
            return self.expander.cwd, "output"
        if texts[:1] == ["which"] or texts[:2] == ["command", "-v"]:
            return texts[-1], "output"
        is_exact = len(words) == 2 and (words[1].fixed or words[1].origin == "exact")
        if is_exact and texts[0] in {"dirname", "basename"} and _SIMPLE_PATH.fullmatch(texts[1]):
            folder, _, name = texts[1].rpartition("/")
            return (folder or "." if texts[0] == "dirname" else name), "exact"
        output = static_output(Command(words=tuple(words)))
        return (UNKNOWN if output is None else output.rstrip("\n")), "output"

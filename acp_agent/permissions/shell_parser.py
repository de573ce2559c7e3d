"""Reads a shell command line and finds every simple command in it, wherever it hides.

The tree comes from tree-sitter-bash, imported at the first use. The walker follows what a line says
about itself: the variables it sets, the words it loops over, the functions it defines and calls.
The grammar of the shell is in POSIX.1-2017, XCU chapter 2, and the Bash manual.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.permissions.condense import condense
from acp_agent.permissions.expansion import Expander
from acp_agent.permissions.known_output import known_output
from acp_agent.permissions.redirection import Attached, read_redirect
from acp_agent.permissions.shell_syntax import (
    Assignment,
    Command,
    ShellLine,
    without_reserved,
)
from acp_agent.permissions.words import UNKNOWN, Piece, TooComplexError, Word

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LINE_LIMIT = 128 * 1024  # characters of a line that are looked at
_COMMAND_LIMIT = 2_000  # commands of a line that are looked at
_DEPTH_LIMIT = 150  # nested groups and substitutions
_LOOP_LIMIT = 8  # words of a loop that its body is looked at with
_PLAIN = frozenset(
    {
        "program",
        "list",
        "command",
        "pipeline",
        "redirected_statement",
        "comment",
        "negated_command",
        "subshell",
        "compound_statement",
        "if_statement",
        "elif_clause",
        "else_clause",
        "test_command",
    }
)
_TEXTS = frozenset({"word", "regex", "extglob_pattern", "heredoc_content"})


@cache
def _parser() -> Parser:
    import tree_sitter_bash  # noqa: PLC0415 - only the first command of a session needs it
    from tree_sitter import Language, Parser  # noqa: PLC0415 - likewise

    return Parser(Language(tree_sitter_bash.language()))


def parse_line(text: str, *, cwd: str, home: str) -> ShellLine:
    """All commands of `text`, run in the absolute folder `cwd` by a user whose home is `home`.

    Never raises: what cannot be read comes back as `unparsed` or with a `problem`.
    """
    if len(text) > LINE_LIMIT:
        return ShellLine(plain=False, problem="is too long to be checked")
    walker = _Walker(cwd=cwd, home=home)
    try:
        walker.read(text)
    except (TooComplexError, RecursionError):
        return ShellLine(plain=False, problem="is too complex to be checked")
    return ShellLine(
        commands=tuple(walker.commands),
        functions=frozenset(walker.functions),
        plain=walker.plain,
        unparsed=walker.unparsed,
    )


class _Place(Struct, frozen=True, kw_only=True):
    """Where in the line the walker is."""

    stdin: Word | None = None
    piped: bool = False
    concurrent: bool = False
    function: str | None = None
    calls: tuple[str, ...] = ()
    depth: int = 0


class _Walker:
    """Collects the commands of one line."""

    def __init__(self, *, cwd: str, home: str) -> None:
        self.expander = Expander(home=home, cwd=cwd, substituted=self._printed)
        self.commands: list[Command] = []
        self.functions: dict[str, tuple[Node, bytes]] = {}
        self.plain = True
        self.unparsed = False
        self.sums = False
        self.misread = False
        self.budget = _COMMAND_LIMIT

    def read(self, text: str, place: _Place | None = None) -> None:
        """Read a whole text."""
        here = place or _Place()
        if any(_is_odd(character) for character in text):
            # The shell and the grammar may see different words here, so believe neither.
            self.plain = False
            self.unparsed = self.unparsed or any(c in text for c in "\r\v\f")
        joined = text.replace("\\\n", "")
        if joined != text and any(
            before and after and not before[-1].isspace() and not after[0].isspace()
            for before, after in _around(text, "\\\n")
        ):
            # The shell joins a word that goes on in the next line; the grammar cuts it in two.
            self.plain = False
            self._read(joined, here)
        self._read(text, here)

    def _read(self, text: str, place: _Place) -> None:
        condensed = condense(text)
        raw = condensed.text.encode("utf-8", "replace")
        # The grammar's scanner looks characters up in C tables that end at 255, whatever they are;
        # to the shell all that is not ASCII is a letter like any other.
        root = _parser().parse(_tame(raw.translate(_ASCII_ONLY))).root_node
        condensed.check(root)
        outer, self.expander.raw = self.expander.raw, raw
        before = len(self.commands)
        if root.has_error:
            self.plain = False
            self.unparsed = True
        self._walk(root, place)
        if root.has_error or self.misread:
            for line in text.translate(_LOOSE).splitlines():
                self._found(Command(words=tuple(self._loose_words(line))))
        if "((" in text and (root.has_error or self.sums):
            # What the grammar takes for a sum may be groups to the shell.
            while "((" in text:
                text = text.replace("((", "( (")
            self._read(text.replace("))", ") )"), place)
        self.expander.raw = outer
        self.commands[before:] = map(condensed.restore, self.commands[before:])

    def _loose_words(self, line: str) -> list[Word]:
        """The words of a line that is not valid, so that a refused command is found in it too."""
        words = [word for text in line.split() for word in self.expander.loose(text)]
        return list(without_reserved(words))

    def _found(self, command: Command) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise TooComplexError
        if any((command.words, command.assignments, command.redirects)):
            self.commands.append(command)

    # -- statements

    def _walk(self, node: Node, place: _Place) -> None:
        if place.depth > _DEPTH_LIMIT:
            raise TooComplexError
        inner = replace(place, depth=place.depth + 1)
        kind = node.type
        if kind in {"command", "declaration_command", "unset_command"}:
            self._command(node, inner)
        elif kind == "redirected_statement":
            self._redirected(node, inner)
        elif kind == "pipeline":
            self._pipeline(node.children, inner)
        elif kind in {"variable_assignment", "variable_assignments"}:
            self._found(
                Command(assignments=tuple(self._assignments(node, inner)), function=place.function)
            )
        elif kind == "function_definition":
            self._function(node, inner)
        elif kind == "for_statement":
            self._loop(node, inner)
        elif kind == "test_command" and self.expander.source(node).startswith("[ "):
            self._test(node, inner)
        elif kind in {"command_substitution", "process_substitution"}:
            self._substitution(node, inner)
        elif kind != "comment":
            if (node.is_named and kind not in _PLAIN) or self.expander.source(node)[:2] in {
                "((",
                "[[",
            }:
                self.plain = False
                self.sums = self.sums or self.expander.source(node)[:2] == "(("
            self._children(node, inner)

    def _children(self, node: Node, place: _Place) -> None:
        children = node.children
        at = node.start_byte
        for index, child in enumerate(children):
            self._check_gap(node, at, child.start_byte)
            at = child.end_byte
            if not child.is_named:
                continue
            background = index + 1 < len(children) and children[index + 1].type == "&"
            self._walk(child, replace(place, concurrent=True) if background else place)

    def _check_gap(self, node: Node, start: int, end: int) -> None:
        """Between its parts a plain statement has blanks only."""
        if end > start:
            raw = (node.text or b"")[start - node.start_byte : end - node.start_byte]
            in_command = node.type == "command"
            if raw.replace(b"\\\n", b"").strip(b" \t" if in_command else b" \t\n"):
                self.plain = False

    def _nested(self, node: Node, place: _Place) -> None:
        """Walk the substitutions in a word."""
        if node.type in {"command_substitution", "process_substitution"}:
            self._walk(node, replace(place, stdin=None, piped=False))
        else:
            if node.type in _TEXTS and not node.child_count:
                self._hidden(self.expander.source(node), place)
            if node.type in {"arithmetic_expansion", "subscript"}:
                self.plain = False  # the shell evaluates what variables hold
            for child in node.children:
                if child.child_count or child.type in _TEXTS:
                    self._nested(child, place)

    def _hidden(self, raw: str, place: _Place) -> None:
        """Read substitutions that the grammar took for text: `${x:+`…`}`."""
        for mark, end in (("`", "`"), ("$(", ")")):
            start = raw.find(mark)
            if start >= 0 and (start == 0 or raw[start - 1] != "\\"):
                self.plain = False
                self.read(raw[start + len(mark) : max(raw.rfind(end), start)], place)

    def _substitution(self, node: Node, place: _Place) -> None:
        self.plain = False
        raw = self.expander.source(node).strip()
        if raw.startswith("`") and "\\" in raw:
            inner = raw[1:-1].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
            self.read(inner, place)
        for child in node.children:
            if child.type == "file_redirect":
                self._found(Command(redirects=self._redirect(child, place).redirects))
            elif child.is_named:
                self._walk(child, place)

    def _pipeline(self, children: list[Node], place: _Place) -> None:
        piped = replace(place, concurrent=True)
        for child in children:
            if child.is_named:
                before = len(self.commands)
                self._walk(child, piped)
                stages = self.commands[before:]
                output = known_output(stages[-1]) if stages else None
                piped = replace(piped, stdin=Word(output) if output else None, piped=True)

    def _loop(self, node: Node, place: _Place) -> None:
        self.plain = False
        name = self.expander.source(node.child_by_field_name("variable") or node)
        values: list[Word] = []
        for value in node.children_by_field_name("value"):
            self._nested(value, place)
            values += self.expander.words(value)
        body = node.child_by_field_name("body")
        if body is None:
            return
        values.sort(key=lambda word: not word.text.startswith(("/", "..")))
        for text in [word.text for word in values[:_LOOP_LIMIT]] or [UNKNOWN]:
            self.expander.variables[name] = text
            self._walk(body, place)
        if len(values) > _LOOP_LIMIT:
            self.expander.variables[name] = UNKNOWN
            self._walk(body, place)

    def _function(self, node: Node, place: _Place) -> None:
        self.plain = False
        name = self.expander.source(node.child_by_field_name("name") or node)
        self.functions[name] = (node, self.expander.raw)
        inside = replace(place, function=name, calls=(*place.calls, name), concurrent=False)
        for child in node.children:
            if child.is_named and child != node.child_by_field_name("name"):
                if child.type.endswith("redirect"):
                    self._found(Command(redirects=self._redirect(child, inside).redirects))
                else:
                    self._walk(child, inside)

    def _call(self, name: str, arguments: tuple[Word, ...], place: _Place) -> None:
        """Walk the body of a function of this line with the arguments that it is called with."""
        node, raw = self.functions[name]
        body = node.child_by_field_name("body")
        if body is None or name in place.calls:
            return
        before = dict(self.expander.variables)
        outer, self.expander.raw = self.expander.raw, raw
        self._set_positional(arguments)
        self._walk(body, replace(place, function=name, calls=(*place.calls, name)))
        self.expander.raw = outer
        for parameter in [key for key in self.expander.variables if key in _POSITIONAL]:
            del self.expander.variables[parameter]
        self.expander.variables.update({k: v for k, v in before.items() if k in _POSITIONAL})

    def _set_positional(self, arguments: tuple[Word, ...]) -> None:
        texts = [word.text for word in arguments]
        variables = self.expander.variables
        variables.update({str(number): text for number, text in enumerate(texts[:9], 1)})
        variables["@"] = variables["*"] = " ".join(texts)

    # -- commands

    def _command(self, node: Node, place: _Place) -> None:
        pieces: list[Piece] = []
        assignments: list[Assignment] = []
        attached = Attached()
        at = node.start_byte
        for child in node.children:
            self._check_gap(node, at, child.start_byte)
            if self.expander.source(child)[:1].isspace():
                self.misread = self.unparsed = True  # it belongs to another line
            adjacent = bool(pieces) and child.start_byte == at
            at = child.end_byte
            if child.type == "variable_assignment":
                assignments += self._assignments(child, place)
            elif child.type.endswith("redirect"):
                attached = attached.and_also(self._redirect(child, place))
            else:
                self._nested(child, place)
                if child.type == "subshell":
                    # After `time` or `! {` the grammar takes a group for an argument.
                    self.plain = False
                    self._walk(child, place)
                    continue
                piece = self.expander.piece(child)
                if adjacent:
                    # To the shell this is one word; the grammar loses a `$` in some.
                    self.plain = False
                    pieces[-1].join(self.expander.after_dollar(pieces[-1], piece))
                else:
                    pieces.append(piece)
        words = [word for piece in pieces for word in self.expander.to_words(piece)]
        self._finish(words, assignments, attached, place)

    def _redirected(self, node: Node, place: _Place) -> None:
        body = node.child_by_field_name("body")
        attached = Attached()
        for child in node.children:
            if child.type.endswith("redirect"):
                attached = attached.and_also(self._redirect(child, place))
        following = attached.following
        inside = replace(place, concurrent=True) if following else place
        if attached.stdin is not None:
            inside = replace(inside, stdin=attached.stdin)
        before = len(self.commands)
        if body is not None:
            self._walk(body, inside)
        stages = self.commands[before:]
        if stages and body is not None and body.type == "command":
            last = stages[-1]
            self.commands[-1] = replace(
                last,
                words=(*last.words, *attached.words),
                redirects=(*last.redirects, *attached.redirects),
            )
        else:
            self._found(Command(words=attached.words, redirects=attached.redirects))
        for statement in following:
            if statement.type == "pipeline":
                output = known_output(self.commands[-1]) if stages else None
                known = Word(output) if output else None
                self._pipeline(statement.children, replace(place, stdin=known, piped=True))
            else:
                self._walk(statement, place)

    def _redirect(self, node: Node, place: _Place) -> Attached:
        self._nested(node, place)
        attached = read_redirect(node, self.expander)
        if attached.stdin is not None:
            self.plain = False
        return attached

    def _finish(
        self,
        words: list[Word],
        assignments: list[Assignment],
        attached: Attached,
        place: _Place,
    ) -> None:
        real = without_reserved(words)
        self.plain = self.plain and len(real) == len(words)
        command = Command(
            words=(*real, *attached.words),
            assignments=tuple(assignments),
            redirects=attached.redirects,
            stdin=attached.stdin or place.stdin,
            piped=place.piped,
            concurrent=place.concurrent,
            function=place.function,
        )
        self._found(command)
        if not command.words:
            return
        name, *rest = command.words
        if name.text == "set" and rest and rest[0].text == "--":
            self._set_positional(tuple(rest[1:]))
        if name.text in self.functions:
            self._call(name.text, tuple(rest), place)

    def _assignments(self, node: Node, place: _Place) -> list[Assignment]:
        if node.type == "variable_assignments":
            return [a for child in node.named_children for a in self._assignments(child, place)]
        self._nested(node, place)
        name = self.expander.source(node.child_by_field_name("name") or node).partition("[")[0]
        value = node.child_by_field_name("value")
        word = Word("")
        if value is not None and value.type == "array":
            words = [w for child in value.named_children for w in self.expander.words(child)]
            word = Word(" ".join(w.text for w in words), all(w.static for w in words))
        elif value is not None:
            word = self.expander.one(value)
        known = self.expander.variables
        appended = any(child.type == "+=" for child in node.children)
        known[name] = known.get(name, "") + word.text if appended else word.text
        return [Assignment(name, word)]

    def _test(self, node: Node, place: _Place) -> None:
        """`[ … ]` as the command that it is."""
        self._nested(node, place)
        words = [Word("[")]
        waiting = list(reversed(node.children[1:-1]))
        while waiting:
            child = waiting.pop()
            if child.type.endswith("_expression") and child.type != "brace_expression":
                waiting.extend(reversed(child.children))
            else:
                words += self.expander.words(child)
        self._finish(words, [], Attached(), place)

    def _printed(self, node: Node) -> str | None:
        """What a command substitution prints, where that is known."""
        children = [child for child in node.children if child.is_named]
        if len(children) != 1 or children[0].type != "command":
            return None
        words = [
            word
            for child in children[0].children
            if child.is_named and not child.type.endswith("redirect")
            for word in self.expander.words(child)
        ]
        texts = [word.text for word in words]
        if texts[:1] == ["pwd"]:
            return self.expander.cwd
        if texts[:1] == ["which"] or texts[:2] == ["command", "-v"]:
            return texts[-1]
        output = known_output(Command(words=tuple(words)))
        return None if output is None else output.rstrip("\n")


_ASCII_ONLY = b"%%" + bytes(range(2, 128)) + b"%" * 128  # UNKNOWN and NONEMPTY are letters too
_POSITIONAL = frozenset("123456789@*")
_LOOSE = str.maketrans({**dict.fromkeys(";|&()`\r", "\n"), **dict.fromkeys("\"'\\$", None)})


def _is_odd(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return character.isspace() or unicodedata.category(character) in {"Cf", "Cc", "Cs", "Co"}


def _around(text: str, mark: str) -> list[tuple[str, str]]:
    parts = text.split(mark)
    return list(pairwise(parts))


def _tame(raw: bytes) -> bytes:
    """A text of the same length in which no line begins with a backslash before a plain character.

    The grammar takes such a line for a part of the one before it. What stands there is read from
    the text itself.
    """
    at = raw.find(b"\\")
    if at < 0:
        return raw
    tamed = bytearray(raw)
    while at >= 0:
        before = raw[:at].rstrip(b" \t")
        if before.endswith(b"\n") and raw[at + 1 : at + 2].isalnum():
            tamed[at] = ord("%")
        at = raw.find(b"\\", at + 1)
    return bytes(tamed)

"""Parse a shell command line and find every simple command in it, at any depth.

The tree comes from tree-sitter-bash, imported at the first use. The walker follows the variables
that a line sets, the words it loops over, and the functions it defines and calls. The grammar of
the shell is in POSIX.1-2017, XCU chapter 2, and the Bash manual.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.permissions.shell.commands import CommandReader, ListedNames, WalkState
from acp_agent.permissions.shell.grammar import is_ambiguous, parse
from acp_agent.permissions.shell.placeholders import shorten_line
from acp_agent.permissions.shell.redirects import Attached
from acp_agent.permissions.shell.syntax import (
    Assignment,
    Command,
    Redirect,
    ShellLine,
    static_output,
    without_reserved,
)
from acp_agent.permissions.shell.words import UNKNOWN, Origin, TooComplexError, Word

if TYPE_CHECKING:
    from tree_sitter import Node


LINE_LIMIT = 128 * 1024  # characters of a line that are checked
_DEPTH_LIMIT = 150  # nested groups and substitutions
_LOOP_LIMIT = 8  # words of a loop for which its body is walked
_PLAIN = frozenset(
    {
        "program", "list", "command", "pipeline", "redirected_statement", "comment",
        "negated_command", "subshell", "compound_statement", "if_statement", "elif_clause",
        "else_clause", "test_command", "for_statement", "while_statement", "do_group",
    }
)  # fmt: skip
_COMPOSED = frozenset({"for_statement", "while_statement"})
_ALTERNATIVES = frozenset({"elif_clause", "else_clause"})
# Tests in double brackets that compare texts or check one file, and evaluate nothing.
_OPERAND = r"""(?:"(?:[^"`\\$]|\$\w+|\$\{\w+\})*"|'[^']*'|\$\w+|[\w./][\w./-]*)"""
_SIMPLE_TEST = re.compile(
    rf"\[\[ (?:! )?(?:-[defhLnrswxz] {_OPERAND}|{_OPERAND} (?:==?|!=) {_OPERAND}) \]\]"
)


_CASE_PATTERN = r"""(?:[\w.*?/:+=@%,!^\[\]-]+|"[^"`\\$]*"|'[^']*')"""
_CASE_PATTERNS = re.compile(rf"\(?{_CASE_PATTERN}(?:\|{_CASE_PATTERN})*\)")
_SETTING = frozenset({"program", "variable_assignment", "variable_assignments", "command"})
_OUTPUT_PATH = re.compile(r">[>|&]*\s*[\"']?(/[^\s;|&()<>\"']*)")  # absolute paths after a `>`
_POSITIONAL = frozenset("123456789@*")
_LOOSE = str.maketrans({**dict.fromkeys(";|&()`\r", "\n"), **dict.fromkeys("\"'\\$", None)})


def parse_line(
    text: str,
    *,
    cwd: str,
    home: str,
    stdin: Word | None = None,
    piped: bool = False,
    public: frozenset[str] = frozenset(),
    listed: ListedNames = lambda _: (),
) -> ShellLine:
    """Return all commands of `text`, run in the absolute folder `cwd`; `home` is the user's.

    `stdin` and `piped` describe the known input that the shell's commands inherit. `public` are
    variables of the environment with values that may be shown. `listed` returns words that stand
    for the names of files that a command prints, if it prints nothing else.

    Never raises: a text that cannot be parsed is returned as `unparsed` or with a `problem`.
    """
    if len(text) > LINE_LIMIT:
        return ShellLine(
            plain=False,
            followed=False,
            problem="is too long to be checked: split it, or put long texts into files",
        )
    walker = _Walker(cwd=cwd, home=home, public=public, listed=listed)
    try:
        walker.read(text, WalkState(stdin=stdin, piped=piped))
    except (TooComplexError, RecursionError):
        return ShellLine(
            plain=False,
            followed=False,
            problem="is too complex to be checked: split it, or put it into a script file",
        )
    return ShellLine(
        commands=tuple(walker.commands),
        functions=frozenset(walker.functions),
        plain=walker.followed and not walker.composed,
        followed=walker.followed
        and all(len(positions) == 1 for positions in walker.sites.values()),
        unparsed=walker.unparsed,
    )


class _Walker(CommandReader):
    """Collects the commands of one line."""

    def read(self, text: str, state: WalkState) -> None:
        """Read a whole text that a shell runs."""
        if any(is_ambiguous(character) for character in text):
            # The shell and the grammar may split this differently, so trust neither.
            self.followed = False
            self.unparsed = self.unparsed or any(c in text for c in "\r\v\f")
        joined = text.replace("\\\n", "")
        if joined != text and any(
            before and after and not before[-1].isspace() and not after[0].isspace()
            for before, after in pairwise(text.split("\\\n"))
        ):
            # The shell joins a word that continues on the next line; the grammar splits it in two.
            self.followed = False
            self._read(joined, state)
        self._read(text, state)

    def _read(self, text: str, state: WalkState) -> None:
        shortened_line = shorten_line(text)
        raw = shortened_line.text.encode("utf-8", "replace")
        root = parse(raw)
        shortened_line.check(root)
        outer, self.expander.raw = self.expander.raw, raw
        shortened, self.expander.shortened = (
            self.expander.shortened,
            bool(shortened_line.placeholders),
        )
        start = len(self.commands)
        if root.has_error:
            self.followed = False
            self.unparsed = True
        self.walk(root, state)
        if root.has_error or self.misread:
            for line in text.translate(_LOOSE).splitlines():
                self.add_command(Command(words=tuple(self._uncertain_words(line))))
            for target in _OUTPUT_PATH.findall(text):
                self.add_command(Command(redirects=(Redirect(">", Word(target, static=False)),)))
        if "((" in text and (root.has_error or self.sums):
            # A `((` may start groups in the shell where the grammar sees a sum.
            while "((" in text:
                text = text.replace("((", "( (")
            self._read(text.replace("))", ") )"), state)
        self.expander.raw, self.expander.shortened = outer, shortened
        self.commands[start:] = map(shortened_line.restore, self.commands[start:])

    def _uncertain_words(self, line: str) -> list[Word]:
        """Return the words of an invalid line, so that refused commands are found in it too."""
        words = [word for text in line.split() for word in self.expander.uncertain_words(text)]
        return list(without_reserved(words))

    def walk(self, node: Node, state: WalkState) -> None:
        """Read a statement."""
        if state.depth > _DEPTH_LIMIT:
            raise TooComplexError
        inner = replace(state, depth=state.depth + 1)
        kind = node.type
        self.composed = self.composed or kind in _COMPOSED
        origins = None if kind in _SETTING else dict(self.expander.origins)
        self._statement(node, kind, inner)
        if origins is not None:
            self.expander.origins = origins  # elsewhere the variable may not be set

    def _statement(self, node: Node, kind: str, inner: WalkState) -> None:
        if kind in {"command", "declaration_command", "unset_command"}:
            self.command(node, inner)
        elif kind == "redirected_statement":
            self._redirected(node, inner)
        elif kind == "pipeline":
            self._pipeline(node.children, inner)
        elif kind in {"variable_assignment", "variable_assignments"}:
            assignments = self.assignments(node, inner)
            self.add_command(Command(assignments=tuple(assignments), function=inner.function))
            for assignment in assignments:
                self.bind(assignment.name, node.start_byte, assignment.value.origin)
        elif kind == "function_definition":
            self._function(node, inner)
        elif kind == "for_statement":
            self._loop(node, inner)
        elif kind == "case_statement":
            self._case(node, inner)
        elif kind == "test_command" and self.expander.source(node).startswith("[ "):
            self.test(node, inner)
        elif kind == "test_command" and _SIMPLE_TEST.fullmatch(self.expander.source(node)):
            self.composed = True
            self.test(node, inner)
        elif kind in {"command_substitution", "process_substitution"}:
            self._substitution(node, inner)
        elif kind != "comment":
            sums = self.expander.source(node).startswith("((")
            self.sums = self.sums or sums
            evaluates = kind == "test_command" and self.expander.source(node).startswith("[[")
            if (node.is_named and kind not in _PLAIN) or sums or evaluates:
                self.followed = False
            if kind == "test_command":
                self.walk_evaluated(node, inner)
            self._children(node, inner)

    def _case(self, node: Node, state: WalkState) -> None:
        self.composed = True
        known = dict(self.expander.origins)
        for child in node.children:
            if child.type != "case_item":
                self.walk_nested(child, state)
                continue
            self.expander.origins = dict(known)
            self.walk_nested(child, state)
            sources = [self.expander.source(each) for each in child.children]
            end = sources.index(")") + 1 if ")" in sources else len(sources)
            if not _CASE_PATTERNS.fullmatch("".join(sources[:end])):
                self.followed = False
            self._children(child, state, child.children[end:])

    def _children(
        self, node: Node, state: WalkState, children: Sequence[Node] | None = None
    ) -> None:
        children = node.children if children is None else children
        origins = dict(self.expander.origins)
        at = children[0].start_byte if children else node.start_byte
        for index, child in enumerate(children):
            self.check_gap(node, at, child.start_byte)
            at = child.end_byte
            if not child.is_named:
                continue
            background = index + 1 < len(children) and children[index + 1].type == "&"
            if child.type in _ALTERNATIVES:
                self.expander.origins = dict(origins)
            self.walk(child, replace(state, concurrent=True) if background else state)
            if background:
                self.expander.origins = dict(origins)

    def _substitution(self, node: Node, state: WalkState) -> None:
        self.composed = True
        raw = self.expander.source(node).strip()
        if raw[:2] not in {"$(", "<("} or "<<" in raw:
            self.followed = False
        at = node.start_byte
        for child in node.children:
            self.check_gap(node, at, child.start_byte)
            at = child.end_byte
        if raw.startswith("`") and "\\" in raw:
            inner = raw[1:-1].replace("\\`", "`").replace("\\$", "$").replace("\\\\", "\\")
            self.read(inner, state)
        start = len(self.commands)
        for child in node.children:
            if child.type == "file_redirect":
                self.add_command(Command(redirects=self.redirect(child, state).redirects))
            elif child.is_named:
                self.walk(child, state)
        statements = [child for child in node.children if child.is_named]
        if len(statements) == 1 and _ends_in_command(statements[0]) and self.commands[start:]:
            self.printing[self.expander.raw, node.start_byte] = self.commands[-1]

    def _pipeline(self, children: list[Node], state: WalkState) -> None:
        piped = replace(state, concurrent=True)
        origins = dict(self.expander.origins)
        for child in children:
            if child.is_named:
                start = len(self.commands)
                self.walk(child, piped)
                self.expander.origins = dict(origins)
                stages = self.commands[start:]
                output = static_output(stages[-1]) if stages else None
                piped = replace(
                    piped,
                    stdin=Word(output) if output else None,
                    piped=True,
                    source=stages[0] if len(stages) == 1 else None,
                )

    def _loop(self, node: Node, state: WalkState) -> None:
        name = self.expander.source(node.child_by_field_name("variable") or node)
        values: list[Word] = []
        for value in node.children_by_field_name("value"):
            self.walk_nested(value, state)
            values += self.expander.words(value)
        body = node.child_by_field_name("body")
        if body is None:
            return
        values.sort(key=lambda word: not word.text.startswith(("/", "..")))
        if self.expander.source(node).split(maxsplit=1)[0] != "for" or not values:
            self.followed = False
        self.add_command(
            Command(assignments=(Assignment(name, Word("")),), function=state.function)
        )
        origins = dict(self.expander.origins)
        unknown_words = (
            [Word(UNKNOWN, static=False, origin="output")] if len(values) > _LOOP_LIMIT else []
        )
        values = list(dict.fromkeys(values))
        for word in [*values[:_LOOP_LIMIT], *unknown_words] or [Word(UNKNOWN, static=False)]:
            self.expander.origins = dict(origins)
            self.expander.variables[name] = word.text
            self.bind(name, node.start_byte, _loop_origin(word))
            self.walk(body, state)

    def _function(self, node: Node, state: WalkState) -> None:
        self.followed = False
        name = self.expander.source(node.child_by_field_name("name") or node)
        self.functions[name] = (node, self.expander.raw)
        inside = replace(state, function=name, calls=(*state.calls, name), concurrent=False)
        for child in node.children:
            if child.is_named and child != node.child_by_field_name("name"):
                if child.type.endswith("redirect"):
                    self.add_command(Command(redirects=self.redirect(child, inside).redirects))
                else:
                    self.walk(child, inside)

    def call(self, name: str, arguments: tuple[Word, ...], state: WalkState) -> None:
        """Walk the body of a function of this line, called with these arguments."""
        node, raw = self.functions[name]
        body = node.child_by_field_name("body")
        if body is None or name in state.calls:
            return
        saved_variables = dict(self.expander.variables)
        outer, self.expander.raw = self.expander.raw, raw
        self.set_positional(arguments)
        self.walk(body, replace(state, function=name, calls=(*state.calls, name)))
        self.expander.raw = outer
        for parameter in [key for key in self.expander.variables if key in _POSITIONAL]:
            del self.expander.variables[parameter]
        self.expander.variables.update(
            {k: v for k, v in saved_variables.items() if k in _POSITIONAL}
        )

    def _redirected(self, node: Node, state: WalkState) -> None:
        body = node.child_by_field_name("body")
        attached = Attached()
        for child in node.children:
            if child.type.endswith("redirect"):
                attached = attached.combine(self.redirect(child, state))
        following = attached.following
        inside = replace(state, concurrent=True) if following else state
        if attached.stdin is not None:
            inside = replace(inside, stdin=attached.stdin)
        start = len(self.commands)
        if body is not None:
            self.walk(body, inside)
        if any(redirect.operator == "<" for redirect in attached.redirects):
            # It belongs to the last command of a pipeline, which then does not read the pipe.
            self.commands[start:] = [replace(each, source=None) for each in self.commands[start:]]
        stages = self.commands[start:]
        if stages and body is not None and body.type == "command":
            last = stages[-1]
            self.commands[-1] = replace(
                last,
                words=(*last.words, *attached.words),
                redirects=(*last.redirects, *attached.redirects),
            )
        else:
            self.add_command(Command(words=attached.words, redirects=attached.redirects))
        for statement in following:
            if statement.type == "pipeline":
                output = static_output(self.commands[-1]) if stages else None
                output_word = Word(output) if output else None
                self._pipeline(statement.children, replace(state, stdin=output_word, piped=True))
            else:
                self.walk(statement, state)


def _ends_in_command(node: Node) -> bool:
    """Return whether a statement is a simple command, or a pipeline that ends in one."""
    if node.type == "pipeline":
        return _ends_in_command(node.children[-1])
    body = node.child_by_field_name("body") if node.type == "redirected_statement" else node
    return body is not None and body.type == "command"


def _loop_origin(word: Word) -> Origin:
    """Return the origin of a loop variable's value, for one of the loop's words."""
    if word.pattern and (word.static or word.origin in {"exact", "match", "split"}):
        return "match"
    if word.static:
        return "exact"
    return "output" if word.origin == "unquoted" else word.origin

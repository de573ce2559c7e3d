"""Parse the parts of D2 (d2lang.com) that flows need: shapes, labels, connections, block strings.

Everything in a shape's braces except its `label` is ignored. Styles, classes, variables and layout
are skipped.
"""

from __future__ import annotations

import textwrap

from acp_agent.extensions.flows.flow import Chart, Flow
from acp_agent.extensions.flows.scanner import Scanner

_ARROWS = ("<->", "<-", "->", "--")
# Keys that define the appearance (d2lang.com/tour/keywords) or apply to the whole file.
_APPEARANCE_KEYS = {
    "shape", "style", "link", "icon", "near", "width", "height", "direction", "tooltip", "class",
    "constraint", "top", "left", "grid-rows", "grid-columns", "grid-gap", "vertical-gap",
    "horizontal-gap", "classes", "vars", "layers", "scenarios", "steps", "source-arrowhead",
    "target-arrowhead",
}  # fmt: skip
_LABEL = "label"
_MAX_DEPTH = 32  # nested braces
_VALUE_ENDS = "\n;{}"


class D2Parser:
    """The parser of a diagram."""

    def __init__(self, text: str, line: int) -> None:
        """Args: line: the number of the first line of `text` in its file."""
        self._scanner = Scanner(text, line)
        self._chart = Chart()

    def parse(self) -> Flow:
        """Return the flow of the diagram.

        Raises:
            ConfigError: the diagram is invalid; the message has the line and what to do.
        """
        while True:
            self._skip_between()
            if not self._scanner.next:
                return self._chart.finish()
            if self._scanner.next == "}":
                raise self._scanner.make_error("a } has no { before it; take it out")
            self._statement()

    def _skip_between(self) -> None:
        """Skip whitespace, ends of statements and comments."""
        scanner = self._scanner
        while True:
            scanner.take_while(lambda character: character.isspace() or character == ";")
            if scanner.take('"""'):
                if scanner.take_until('"""', within_line=False) is None:
                    raise scanner.make_error('a comment does not end; put """ there')
            elif scanner.peek("#"):
                scanner.skip_line()
            else:
                return

    def _statement(self) -> None:
        scanner, line = self._scanner, self._scanner.line
        if scanner.next in "(&*!." or "*" in scanner.line_remainder.partition(":")[0]:
            self._skip_statement()  # only changes the appearance of existing shapes
            return
        keys, arrows = [self._key()], list[str]()
        while arrow := scanner.take(*_ARROWS):
            if arrow == "<->":
                raise scanner.make_error("an arrow points both ways; write two")
            arrows.append(arrow)
            self._skip_continuation()
            keys.append(self._key())
        label = self._value() if scanner.take(":") else None
        scanner.skip_blanks()
        inner = self._map() if scanner.take("{") else None
        if not arrows:
            self._shape(keys[0], label or inner, line)
            return
        names = [".".join(key) for key in keys]
        if any(_is_appearance(key) for key in keys):
            return
        for name in names:
            self._chart.add_node(name, None, line)
        for number, arrow in enumerate(arrows):
            source, target = names[number : number + 2]
            if arrow == "<-":
                source, target = target, source
            is_last = number == len(arrows) - 1
            self._chart.add_edge(source, target, (label or inner or "") if is_last else "", line)

    def _shape(self, key: list[str], label: str | None, line: int) -> None:
        if len(key) > 1 and key[-1] == _LABEL:
            self._chart.add_node(".".join(key[:-1]), label, line)
        elif not _is_appearance(key):
            self._chart.add_node(".".join(key), label or None, line)

    def _key(self) -> list[str]:
        """Return the parts of a name, which are separated by dots."""
        scanner, names = self._scanner, list[str]()
        while True:
            scanner.skip_blanks()
            quote = scanner.take('"', "'")
            part = self._quoted(quote) if quote else self._plain_part()
            if not part:
                raise scanner.make_error(f"expected a name, found {scanner.line_remainder[:30]!r}")
            names.append(part)
            scanner.skip_blanks()
            if not scanner.take("."):
                return names

    def _plain_part(self) -> str:
        scanner, part = self._scanner, ""
        while True:
            part += scanner.take_while(lambda character: character not in '.:;{}\n<-#"')
            if scanner.next not in {"-", "<", "#"} or scanner.peek(*_ARROWS):
                return part.strip()
            if scanner.next == "#" and (not part or part[-1].isspace()):
                return part.strip()
            part += scanner.take("-", "<", "#")

    def _quoted(self, quote: str) -> str:
        scanner, text = self._scanner, ""
        while True:
            text += scanner.take_while(lambda character: character not in (quote, "\\"))
            if scanner.take(quote):
                return text
            if not scanner.take("\\"):
                raise scanner.make_error(f"a quoted text does not end; put {quote} there")
            escaped = scanner.next
            scanner.take(escaped)
            text += {"n": "\n", "t": "\t", "\n": ""}.get(escaped, escaped)

    def _value(self) -> str:
        """Return the text after a colon; "" if there is none."""
        scanner = self._scanner
        scanner.skip_blanks()
        if quote := scanner.take('"', "'"):
            return self._quoted(quote)
        if scanner.peek("|"):
            return self._block()
        text = ""
        while True:
            text += scanner.take_while(lambda character: character not in f"{_VALUE_ENDS}#\\")
            if scanner.take("\\\n"):
                text += " "
            elif scanner.peek("#") and (not text or text[-1].isspace()):
                scanner.skip_line()
            elif mark := scanner.take("#", "\\"):
                text += mark
            else:
                return text.strip()

    def _block(self) -> str:
        """Return the text of a block string: `|md … |`, `||md … ||` or |`md … `|."""
        scanner = self._scanner
        marks = scanner.take_while(lambda character: character == "|")
        marks += scanner.take_while(lambda character: character in "`'*%")
        # The language.
        scanner.take_while(lambda character: character.isalnum() or character in "-_+")
        # The text starts on the next line, unless the whole block is on one line.
        text = scanner.take_until(marks[::-1])
        if text is not None:
            return text.strip()
        scanner.skip_line()
        text = scanner.take_lines_until(marks[::-1])
        if text is None:
            raise scanner.make_error(f"a block of text does not end; put {marks[::-1]} below it")
        return textwrap.dedent(text).strip()

    def _map(self, depth: int = 1) -> str | None:
        """Skip the content of braces; return the `label` in it."""
        scanner, label, first_line = self._scanner, None, self._scanner.line
        if depth > _MAX_DEPTH:
            raise scanner.make_error("braces are nested too deeply; take some out")
        while True:
            self._skip_between()
            if scanner.take("}"):
                return label
            if not scanner.next:
                raise scanner.make_error(f"the {{ of line {first_line} is not closed; put }} there")
            if scanner.next in "(&*!.":
                self._skip_statement(depth)
                continue
            if scanner.next == "{":
                raise scanner.make_error("a { has no name before it; take it out")
            key = self._key()
            while scanner.take(*_ARROWS):
                self._skip_continuation()
                key = [*self._key(), ""]
            value = self._value() if scanner.take(":") else None
            scanner.skip_blanks()
            if scanner.take("{"):
                self._map(depth + 1)
            if key == [_LABEL] and value:
                label = value

    def _skip_continuation(self) -> None:
        self._scanner.skip_blanks()
        if self._scanner.take("\\\n"):
            self._scanner.skip_blanks()

    def _skip_statement(self, depth: int = 0) -> None:
        """Skip a statement that does not affect the flow, with its braces."""
        scanner = self._scanner
        while scanner.next and scanner.next not in ";}\n":
            if scanner.take("{"):
                self._map(depth + 1)
            else:
                scanner.take(scanner.next)


def _is_appearance(key: list[str]) -> bool:
    return key[0] in _APPEARANCE_KEYS or any(part in _APPEARANCE_KEYS for part in key[1:])

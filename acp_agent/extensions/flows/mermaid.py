"""Parse the parts of Mermaid flowcharts (mermaid.js.org/syntax/flowchart.html) that flows need.

Supported are nodes with shapes in brackets or with `@{ … }`, all arrows and their texts, `A & B`,
subgraphs and comments. Styles, classes, clicks and directions are skipped.
"""

from __future__ import annotations

import html

from acp_agent.extensions.flows.flow import Chart, Flow
from acp_agent.extensions.flows.scanner import Scanner

# Longest first, so that `([` is not read as `(`.
_SHAPES = {
    "(((": (")))",),
    "([": ("])",),
    "((": ("))",),
    "[[": ("]]",),
    "[(": (")]",),
    "[/": ("/]", "\\]"),
    "[\\": ("\\]", "/]"),
    "{{": ("}}",),
    "[": ("]",),
    "(": (")",),
    "{": ("}",),
    ">": ("]",),
}
_IGNORED_WORDS = {
    "classDef", "class", "style", "linkStyle", "click", "direction", "accTitle", "accDescr",
    "subgraph", "end",
}  # fmt: skip
_HEADERS = {"flowchart", "flowchart-elk", "graph"}
_STROKES = "-=.~"
_HEADS = "><ox"


class MermaidParser:
    """The parser of a chart."""

    def __init__(self, text: str, line: int) -> None:
        """Args: line: the number of the first line of `text` in its file."""
        self._scanner = Scanner(text, line)
        self._chart = Chart()

    def parse(self) -> Flow:
        """Return the flow of the chart.

        Raises:
            ConfigError: the chart is invalid; the message has the line and what to do.
        """
        scanner = self._scanner
        while True:
            scanner.take_while(lambda character: character.isspace() or character == ";")
            if not scanner.next:
                return self._chart.finish()
            if scanner.take("---"):  # front matter with a title
                if scanner.take_until("\n---", within_line=False) is None:
                    raise scanner.make_error("the front matter does not end; put --- below it")
                scanner.skip_line()
            elif scanner.peek("%%"):
                scanner.skip_line()
            else:
                self._statement()

    def _statement(self) -> None:
        scanner = self._scanner
        word = scanner.line_remainder.replace(";", " ").split(maxsplit=1)[0].rstrip(":")
        if word in _IGNORED_WORDS or word in _HEADERS:
            if word not in _HEADERS or scanner.take_until(";") is None:
                scanner.skip_line()
            return
        sources = self._nodes()
        while True:
            scanner.skip_blanks()
            if scanner.peek("%%"):
                scanner.skip_line()
            if scanner.next in {"", "\n", ";"}:
                return
            line = scanner.line
            label = self._arrow()
            targets = self._nodes()
            for source in sources if label is not None else ():
                for target in targets:
                    self._chart.add_edge(source, target, label or "", line)
            sources = targets

    def _nodes(self) -> list[str]:
        """Return the ids of one node, or of several separated by &."""
        ids = [self._node()]
        while True:
            self._scanner.skip_blanks()
            if not self._scanner.take("&"):
                return ids
            ids.append(self._node())

    def _node(self) -> str:
        scanner = self._scanner
        # An arrow may end a line.
        scanner.take_while(str.isspace)
        line, id_ = scanner.line, self._id()
        if not id_:
            raise scanner.make_error(f"expected a node, found {scanner.line_remainder[:30]!r}")
        label = self._label()
        self._chart.add_node(id_, label, line)
        if scanner.take(":::"):
            self._id()
        return id_

    def _id(self) -> str:
        scanner, id_ = self._scanner, ""
        while True:
            id_ += scanner.take_while(lambda character: character.isalnum() or character in "_/#")
            # A hyphen or a dot inside a name, not the start of an arrow.
            after = scanner.line_remainder[1:2]
            if not id_ or scanner.next not in {"-", "."} or not (after.isalnum() or after == "_"):
                return id_
            id_ += scanner.take("-", ".")

    def _label(self) -> str | None:
        scanner = self._scanner
        if scanner.take("@{"):
            return self._attributes()
        opening = scanner.take(*_SHAPES)
        if not opening:
            return None
        scanner.take_while(str.isspace)
        if scanner.take('"'):
            text = self._quoted()
            scanner.take_while(str.isspace)
            if not scanner.take(*_SHAPES[opening]):
                raise scanner.make_error(
                    f"expected {_SHAPES[opening][0]} behind the text of a node"
                )
            return text
        text_in_brackets = scanner.take_until(*_SHAPES[opening])
        if text_in_brackets is None:
            raise scanner.make_error(
                f"the text of a node does not end; put {_SHAPES[opening][0]} there"
            )
        return _plain(text_in_brackets)

    def _quoted(self) -> str:
        text = self._scanner.take_until('"', within_line=False)
        if text is None:
            raise self._scanner.make_error('a quoted text does not end; put " there')
        text = text.strip()
        return _plain(text[1:-1] if len(text) > 1 and text[0] == text[-1] == "`" else text)

    def _attributes(self) -> str | None:
        """Return the label in `@{ shape: diamond, label: "…" }`."""
        scanner, label = self._scanner, None
        while True:
            scanner.take_while(lambda character: character.isspace() or character == ",")
            if scanner.take("}"):
                return label
            name = scanner.take_while(lambda character: character.isalnum() or character in "_-")
            scanner.take_while(str.isspace)
            if not name or not scanner.take(":"):
                raise scanner.make_error("expected name: value, or } at the end of @{")
            scanner.take_while(str.isspace)
            value = (
                self._quoted()
                if scanner.take('"')
                else scanner.take_while(lambda character: character not in ",}\n").strip()
            )
            label = value if name == "label" else label

    def _arrow(self) -> str | None:
        """Skip an arrow; return its text, or None for an invisible one (only for the layout)."""
        scanner = self._scanner
        if scanner.peek("<"):
            raise scanner.make_error("an arrow points both ways; write two")
        # The name of an arrow: e1@-->
        if (name := scanner.line_remainder.partition("@")[0]).isalnum() and scanner.line_remainder[
            len(name) + 1 :
        ][:1] in _STROKES:
            scanner.take(f"{name}@")
        strokes = scanner.take_while(lambda character: character in _STROKES)
        if len(strokes) < 2:
            raise scanner.make_error(f"expected an arrow, found {scanner.line_remainder[:30]!r}")
        label = ""
        after = scanner.line_remainder[1:2]
        if scanner.next and scanner.next in _HEADS and (scanner.next == ">" or not after.isalnum()):
            scanner.take(*_HEADS)
        elif len(strokes) == 2:
            label = self._arrow_text(strokes)
        scanner.skip_blanks()
        if scanner.take("|"):
            arrow_text = scanner.take_until("|")
            if arrow_text is None:
                raise scanner.make_error("the text of an arrow does not end; put | there")
            label = arrow_text
        return None if strokes.startswith("~") else _plain(label.strip().strip('"'))

    def _arrow_text(self, strokes: str) -> str:
        """Return the text of `-- text -->`, `== text ==>` and `-. text .->`."""
        scanner, ending = self._scanner, {"--": "--", "==": "==", "-.": ".-"}.get(strokes)
        scanner.skip_blanks()
        quoted = self._quoted() if scanner.take('"') else ""
        text = None if ending is None else scanner.take_until(ending)
        if text is None:
            raise scanner.make_error("an arrow does not end; write -->")
        scanner.take_while(lambda character: character in _STROKES)
        scanner.take(">", "o ", "x ")
        return quoted or text


def _plain(text: str) -> str:
    """Return a label as plain text: `<br/>` is a new line, `#quot;` a quotation mark."""
    for tag in ("<br>", "<br/>", "<br />"):
        text = text.replace(tag, "\n")
    return html.unescape(text.replace("#quot;", '"').replace("\\n", "\n")).strip()

"""Flows: steps and branches between `BEGIN` and `END`, as in kimi-cli's flow skills.

No maintained Python library parses both languages (those for Mermaid run Node.js), so `mermaid` and
`d2` parse the parts of them that flows need.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from msgspec import Struct

from acp_agent.errors import ConfigError

MAX_NODES = 200
BEGIN_LABEL, END_LABEL = "begin", "end"  # labels of the first and last node; case is ignored


class Branch(Struct, frozen=True):
    """A branch from one node to the next; the model chooses it by its `label`."""

    target: str
    label: str = ""


class Node(Struct, frozen=True):
    """A step: the text for the model, and the branches to the next steps."""

    id: str
    text: str
    branches: tuple[Branch, ...] = ()


class Flow(Struct, frozen=True, kw_only=True):
    """A flow that can be run.

    Attributes:
        nodes: the steps by their ids, nearest to the beginning first; without `BEGIN` and `END`.
        first: the id of the first step.
        end: the id of the node that ends it.
        notes: the text of the file outside the chart.
    """

    nodes: Mapping[str, Node]
    first: str
    end: str
    notes: str = ""


class Chart:
    """Collects the nodes and edges of a chart while it is parsed."""

    def __init__(self) -> None:
        self._labels: dict[str, str] = {}
        self._lines: dict[str, int] = {}
        self._edges: list[tuple[str, Branch, int]] = []

    def add_node(self, id_: str, label: str | None, line: int) -> None:
        """Add a node, or a label to an existing node.

        Raises:
            ConfigError: the node already has another label, or there are too many nodes.
        """
        self._lines.setdefault(id_, line)
        if len(self._lines) > MAX_NODES:
            raise ConfigError(f"line {line}: the flow has more than {MAX_NODES} nodes; divide it")
        if label is None:
            return
        if not label.strip():
            raise ConfigError(f"line {line}: the node {id_} has no text; write what is to be done")
        if self._labels.setdefault(id_, label) != label:
            raise ConfigError(f"line {line}: the node {id_} has two texts; take one out")

    def add_edge(self, source: str, target: str, label: str, line: int) -> None:
        """Add an edge. Raises ConfigError if there are too many edges."""
        self._edges.append((source, Branch(target, " ".join(label.split())), line))
        if len(self._edges) > MAX_NODES * 5:
            raise ConfigError(f"line {line}: the flow has too many arrows; divide it")

    def finish(self) -> Flow:
        """Return the flow.

        Raises:
            ConfigError: the chart does not lead from one `BEGIN` to one `END`, or a choice is
                ambiguous.
        """
        start, end = self._find_only_node(BEGIN_LABEL), self._find_only_node(END_LABEL)
        nodes: dict[str, Node] = {}
        pending, visited = deque([start]), {start}
        while pending:
            id_ = pending.popleft()
            node = Node(id_, self._labels.get(id_, id_), self._branches(id_))
            if id_ == end:
                continue
            if not node.branches:
                raise ConfigError(
                    f"line {self._lines[id_]}: no arrow leads on from {id_}; add one to the next "
                    "step or to END"
                )
            nodes[id_] = node
            for branch in node.branches:
                if branch.target not in visited:
                    visited.add(branch.target)
                    pending.append(branch.target)
        if end not in visited:
            raise ConfigError(f"line {self._lines[end]}: no way leads from BEGIN to END; add one")
        first = nodes.pop(start).branches
        if len(first) > 1:
            raise ConfigError(f"line {self._lines[start]}: BEGIN has several arrows; leave one")
        return Flow(nodes=nodes, first=first[0].target, end=end)

    def _find_only_node(self, label: str) -> str:
        ids = [id_ for id_ in self._lines if self._labels.get(id_, id_).strip().lower() == label]
        if len(ids) == 1:
            return ids[0]
        name = label.upper()
        if not ids:
            raise ConfigError(f"the flow has no node {name}; add one")
        raise ConfigError(f"line {self._lines[ids[1]]}: there is a second {name}; leave one")

    def _branches(self, id_: str) -> tuple[Branch, ...]:
        branches = [(branch, line) for source, branch, line in self._edges if source == id_]
        labels: set[str] = set()
        for branch, line in branches if len(branches) > 1 else ():
            label = branch.label.casefold()
            if not label:
                raise ConfigError(
                    f"line {line}: an arrow from {id_} has no text, and there are several; write "
                    "when each is taken"
                )
            if label in labels:
                raise ConfigError(
                    f"line {line}: two arrows from {id_} have the same text; give each its own"
                )
            labels.add(label)
        return tuple(branch for branch, _ in branches)

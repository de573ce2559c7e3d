"""Charts in Mermaid and D2 as flows: what they mean, and what is wrong with them."""

from __future__ import annotations

import contextlib
import random
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acp_agent.errors import ConfigError
from acp_agent.extensions.flows.d2 import D2Parser
from acp_agent.extensions.flows.find import find_flow
from acp_agent.extensions.flows.flow import MAX_NODES
from acp_agent.extensions.flows.mermaid import MermaidParser

CHARTS = tomllib.loads((Path(__file__).parent / "charts.toml").read_text("utf-8"))["charts"]
PARSERS: dict[str, type[MermaidParser | D2Parser]] = {"mermaid": MermaidParser, "d2": D2Parser}


@pytest.mark.parametrize("chart", CHARTS, ids=range(len(CHARTS)))
def test_a_chart_means_its_steps_or_is_wrong_at_a_line(chart: dict[str, Any]) -> None:
    parser = PARSERS[chart["language"]]
    if "why" in chart:
        with pytest.raises(ConfigError) as caught:
            parser(chart["text"], 1).parse()
        assert str(caught.value) == chart["why"]
        return
    flow = parser(chart["text"], 1).parse()
    assert [
        [
            node.text,
            *(f"{one.label} > {one.target}" if one.label else one.target for one in node.branches),
        ]
        for node in flow.nodes.values()
    ] == chart["steps"]


def test_the_first_chart_of_a_text_is_the_flow_and_the_rest_are_notes() -> None:
    text = "Be short.\n\n```python\nx\n```\n\n~~~d2\nBEGIN -> a -> END\n~~~\n\nAnd kind."
    flow = find_flow(text, 10)
    assert list(flow.nodes) == ["a"]
    assert flow.notes == "Be short.\n\n```python\nx\n```\n\n\nAnd kind."
    with pytest.raises(ConfigError, match=r"line 17: expected a name"):
        find_flow(text.replace("-> END", "-> "), 10)
    with pytest.raises(ConfigError, match="a flow needs a chart"):
        find_flow("None.", 1)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("d2", "a: {" * 50_000),
        ("mermaid", "BEGIN --> a0\n" + "".join(f"a{n} --> a{n + 1}\n" for n in range(MAX_NODES))),
        ("d2", "BEGIN -> " + " -> ".join(f"a{n}" for n in range(MAX_NODES + 1))),
        ("mermaid", "BEGIN --> " + " & ".join(["a"] * 2_000)),
        ("mermaid", "[" * 90_000),
        ("d2", "'" * 90_001),
    ],
)
def test_a_chart_that_is_too_large_is_refused_soon(language: str, text: str) -> None:
    with pytest.raises(ConfigError):
        PARSERS[language](text, 1).parse()


def test_no_text_breaks_the_parsers() -> None:
    chance = random.Random(7)
    pieces = [
        *"[](){}<>|-=.~\"'`\\#%&:;@/\n ox",
        "-->",
        "->",
        "BEGIN",
        "END",
        "|md",
        "a",
        "é",
        "end",
    ]
    for _ in range(3_000):
        text = "".join(chance.choices(pieces, k=chance.randrange(30)))
        for parser in PARSERS.values():
            with contextlib.suppress(ConfigError):
                parser(text, 1).parse()

"""A page as one HTML file, with its style, script and pictures in it; it fetches nothing.

The security policy of the page (CSP level 3) allows that one style and that one script by their
hashes, pictures from `data:` addresses, and nothing else. All text goes through the template
engine's escaping, but Markdown, which `markdown` makes safe.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import tzinfo
from functools import cache
from importlib.resources import files as package_files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from acp_agent.config.words import Language
from acp_agent.view import plot as plotting, words as writing
from acp_agent.view.markdown import code_spans, markdown
from acp_agent.view.page import Page
from acp_agent.view.steps import every_step
from acp_agent.view.words import PageWords

_OPEN_LINES = 40  # up to so many lines, what a call changed is shown at once
_OPEN_CALLS = 400  # in a page of more calls all are folded


def render(page: Page, *, language: Language, zone: tzinfo | None = None) -> Iterator[str]:
    """The file, piece by piece.

    Args:
        page: what it shows.
        language: what it says it in.
        zone: the time zone of its clocks; None: that of the system.
    """
    say = PageWords(language, zone)
    steps = (step for section in page.sections for step in every_step(section.steps))
    calls = sum(step.kind == "call" for step in steps)
    yield from (
        _environment()
        .get_template("page.html")
        .generate(
            page=page,
            say=say,
            plot=plotting.plot(page.turns),
            plotting=plotting,
            open_lines=_OPEN_LINES if calls <= _OPEN_CALLS else -1,
            calls=calls,
            style=Markup(_file("page.css")),  # noqa: S704 - our own
            script=Markup(_file("page.js")),  # noqa: S704 - our own
            policy=policy(),
        )
    )


def policy() -> str:
    """The page's security policy."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src 'sha256-{_hash('page.js')}'",
            f"style-src 'sha256-{_hash('page.css')}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
        )
    )


def _hash(name: str) -> str:
    return base64.b64encode(hashlib.sha256(_file(name).encode()).digest()).decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FunctionLoader(_file),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "markdown": markdown,
        "code_spans": code_spans,
        "iso": writing.iso,
        "count": writing.count,
        "bytes": writing.size,
    }
    return environment


@cache
def _file(name: str) -> str:
    return (package_files(__package__) / name).read_text("utf-8")

"""The HTML of the login page, without scripts, in English or Chinese."""

from __future__ import annotations

import base64
import functools
import hashlib
from html import escape
from importlib.resources import files as package_files
from string import Template
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.models.providers import Provider
from acp_agent.platform.data_tables import read_table

Language = Literal["en", "zh"]


class PageText(Struct, frozen=True):
    """The content of a page. `kind` is `form`, or names the text that makes up the page.

    `problem` names the text about an error in the submitted form; `name` is the provider's.
    """

    language: Language
    kind: str
    problem: str = ""
    name: str = ""
    chosen: str = ""
    providers: tuple[Provider, ...] = ()
    action: str = ""
    word: str = ""


def language_for(accepted: str) -> Language:
    """Return the language for an Accept-Language header (RFC 9110, section 12.5.4)."""
    candidates: list[tuple[float, int, Language]] = []
    for index, part in enumerate(accepted[:1_000].split(",")):
        tag, _, weight = part.partition(";")
        try:
            quality = float(weight.strip().removeprefix("q=") or 1)
        except ValueError:
            quality = 0.0
        primary = tag.strip().lower().partition("-")[0]
        if primary in {"en", "zh"} and quality > 0:
            candidates.append((-quality, index, "zh" if primary == "zh" else "en"))
    return min(candidates)[2] if candidates else "en"


def render(page: PageText) -> str:
    """Return the page as HTML."""
    texts = _texts()[page.language]
    if page.kind == "form":
        content = _form(page, texts)
    else:
        content = f"<p>{escape(_insert_name(texts[page.kind], page.name))}</p>"
    return _template("page.html").substitute(
        language=page.language, title=escape(texts["title"]), style=_style(), content=content
    )


def style_hash() -> str:
    """Return the hash for the page's security policy that allows its style sheet (CSP level 3)."""
    return base64.b64encode(hashlib.sha256(_style().encode()).digest()).decode()


def _form(page: PageText, texts: dict[str, str]) -> str:
    problem = ""
    if page.problem:
        message = escape(_insert_name(texts[page.problem], page.name))
        problem = f'<p class="problem" role="alert">{message}</p>'
    return _template("form.html").substitute(
        problem=problem,
        explanation=escape(texts["explanation"]),
        action=escape(page.action),
        word=escape(page.word),
        provider_label=escape(texts["provider"]),
        options="\n".join(
            _option(provider, provider.id == page.chosen, texts) for provider in page.providers
        ),
        key_label=escape(texts["key"]),
        button=escape(texts["button"]),
        small_print=escape(texts["small_print"]),
    )


def _option(provider: Provider, chosen: bool, texts: dict[str, str]) -> str:
    notes = [urlsplit(provider.base_url).hostname or ""]
    notes += [texts["has_key"]] if provider.key else []
    label = f"{provider.name} ({', '.join(note for note in notes if note)})"
    selected = " selected" if chosen else ""
    return f'<option value="{escape(provider.id)}"{selected}>{escape(label)}</option>'


def _insert_name(text: str, name: str) -> str:
    return text.replace("{name}", name)


@functools.cache
def _texts() -> dict[Language, dict[str, str]]:
    return read_table(__package__, "texts.toml", dict[Language, dict[str, str]])


@functools.cache
def _style() -> str:
    return _file("page.css")


def _template(name: str) -> Template:
    return Template(_file(name))


def _file(name: str) -> str:
    return (package_files(__package__) / name).read_text("utf-8")

"""What a session says can do nothing in the page, and hides nothing from its reader."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import types
import typing
from typing import Any, Literal, get_args, get_origin

import msgspec
import pytest
from bs4 import BeautifulSoup

from acp_agent import events
from acp_agent.content import (
    AudioBlock,
    ContentPart,
    DiffPart,
    Location,
    ResourceBlock,
    ResourceContents,
    ResourceLinkBlock,
    TextBlock,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.session.store.records import UnknownEvent
from acp_agent.view.blocks import TextCleaner
from acp_agent.view.html import markdown
from acp_agent.view.page import Page
from tests.view.made_page import SECRET, Timed, attribute, data_of, html_of, one, page_of, parsed

HOSTILE = (
    "</script></style></title></pre><script>alert(1)</script>"
    "<img src=x onerror=alert(2)><a href='javascript:alert(3)' onclick=\"alert(4)\">x</a>"
    "<!-- <svg/onload=alert(5)> {{ 7 * 7 }} {% raw %} ]]> "
    "[a](javascript:alert(6)) [b](data:text/html,x) [c](vbscript:x) <javascript:alert(7)> "
    "![d](https://evil.test/p.png) [e](https://good.test/?q=\"'>) [f](//evil.test) [g](a.py) "
    '" autofocus onfocus=alert(8) x="'
)
SPECIAL: dict[object, list[Any]] = {
    # What a field of these types may be; every text in it is hostile.
    events.Usage: [events.Usage(input=1)],
    str: [HOSTILE],
    int: [7],
    bool: [True],
    float: [0.5],
    bytes: [b""],
}


def values(kind: Any, text: str) -> Any:
    """A value of a type, its texts all `text`."""
    origin = get_origin(kind)
    if isinstance(kind, typing.NewType):
        return text
    if origin is Literal:
        return get_args(kind)[-1]
    if origin in {typing.Union, types.UnionType}:
        options = [one for one in get_args(kind) if one is not type(None)]
        return values(options[0], text)
    if origin is tuple:
        inner = get_args(kind)[0]
        blocks = content_of(inner, text)
        return tuple(blocks) if blocks else (values(inner, text),)
    if origin is dict:
        return {"key": text}
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind in SPECIAL:
            return SPECIAL[kind][0]
        fields = msgspec.structs.fields(kind)
        return kind(**{field.name: values(field.type, text) for field in fields})
    return text if kind is str else SPECIAL[kind][0]


def content_of(kind: Any, text: str) -> list[Any]:
    """Every kind of content, where a field holds content."""
    blocks: list[Any] = [
        TextBlock(text=text),
        AudioBlock(data=text, mime_type=text),
        ResourceLinkBlock(uri=text, name=text, title=text),
        ResourceBlock(resource=ResourceContents(uri=text, text=text)),
    ]
    options = get_args(kind)
    if TextBlock in options:
        return blocks
    if DiffPart in options:
        return [*map(ContentPart, blocks), DiffPart(text, f"{text}\nnew", f"{text}\nold")]
    return [Location(text, 1)] if kind is Location else []


def every_event(text: str) -> list[Timed]:
    """An event of each kind with `text` wherever it has room for one, in an order that shows it."""
    kinds = list(get_args(events.AnyEvent))
    late = (events.TurnEnded, events.TurnInterrupted, events.ToolEnded)
    made = [values(kind, text) for kind in sorted(kinds, key=lambda kind: kind in late)]
    return [
        events.TurnStarted(turn=TurnId("turn_0")),
        events.AgentText(message=MessageId("msg_0"), text=text),
        *made,
        # A further turn, since the last events above ended the first, and a call without output.
        *made,
        *(
            msgspec.structs.replace(event, call=f"{text}.", **others)
            for kind, others in (
                (events.ToolCalled, {}),
                (events.ToolEnded, {"exit_code": None, "signal": None}),
            )
            for event in made
            if isinstance(event, kind)
        ),
        # All that a child session can do, for the last of these calls.
        *(
            events.ChildWorked(session=SessionId(text), call=CallId(f"{text}."), did=event)
            for event in made
            if not isinstance(event, events.ChildWorked)
        ),
        UnknownEvent(text, b"{}"),
    ]


def hostile_page() -> Page:
    """A page all of whose texts are hostile."""
    return data_of(*every_event(HOSTILE), title=HOSTILE, cwd=HOSTILE)


@pytest.fixture(scope="module")
def html() -> str:
    return html_of(hostile_page())


@pytest.fixture(scope="module")
def dom(html: str) -> BeautifulSoup:
    return parsed(html)


def test_the_page_has_its_own_script_and_style_and_no_other(dom: BeautifulSoup) -> None:
    policy = one(dom, "meta[http-equiv]")["content"]
    assert isinstance(policy, str)
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    for element, rule in (("script", "script-src"), ("style", "style-src")):
        (found,) = dom.select(element)
        digest = hashlib.sha256(found.get_text().encode()).digest()
        assert rules[rule] == f"'sha256-{base64.b64encode(digest).decode()}'"
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["base-uri"] == rules["form-action"] == "'none'"


def test_no_element_and_no_attribute_comes_from_a_text(dom: BeautifulSoup) -> None:
    known = set(parsed(html_of(data_of(*every_event("plain"), title="t"))).find_all(True))
    allowed = {element.name for element in known} | {"a", "code", "em", "img"}
    for element in dom.find_all(True):
        assert element.name in allowed, element
        assert not [name for name in element.attrs if name.startswith("on") or name == "style"]
        assert not element.has_attr("autofocus")
    assert dom.select("iframe, object, embed, base, link:not([rel=icon]), form[action]") == []


def test_links_lead_to_the_web_or_into_the_page_without_a_referrer(dom: BeautifulSoup) -> None:
    links = [link for link in dom.select("[href]") if link.name != "link"]
    outside = [link for link in links if not attribute(link, "href").startswith("#")]
    assert outside
    for link in outside:
        assert attribute(link, "href").startswith("https://good.test/"), link
        assert link["rel"] == ["noopener", "noreferrer"]
    assert dom.select("[src]") == []  # nothing is loaded of what is written in it
    targets = {element["id"] for element in dom.select("[id]")}
    inside = {attribute(link, "href") for link in links if link not in outside}
    assert {place.removeprefix("#") for place in inside} <= targets


def test_every_id_is_unique(dom: BeautifulSoup) -> None:
    ids = [element["id"] for element in dom.select("[id]")]
    assert len(ids) == len(set(ids))


def test_the_words_themselves_are_all_there(dom: BeautifulSoup) -> None:
    assert one(dom, "head > title").get_text().startswith("</script></style></title></pre><script>")
    text = one(dom, "main").get_text()
    for words in ("<script>alert(1)</script>", "javascript:alert(6)", "https://evil.test/p.png"):
        assert words in text


def test_no_secret_of_any_source_is_in_the_page() -> None:
    form = "AKIAIOSFODNN7EXAMPLE"  # told by its form
    page = html_of(data_of(*every_event(f"{SECRET} {form}"), title=SECRET, cwd=SECRET))
    assert SECRET not in page
    assert form not in page
    assert page.count("[secret]") > 50


def test_a_secret_that_came_in_pieces_is_found() -> None:
    head, tail = SECRET[:7], SECRET[7:]
    message, call = MessageId("msg_1"), CallId("call_1")
    arguments = json.dumps({"text": f'"{SECRET}\n'})
    page = html_of(
        data_of(
            events.TurnStarted(turn=TurnId("t")),
            *(events.AgentText(message=message, text=piece) for piece in (head, tail)),
            events.ToolCalled(call=call, message=message, name="x", arguments=arguments, title="x"),
            *(events.ToolOutput(call=call, text=piece) for piece in (head, tail)),
        )
    )
    assert tail not in page
    assert page.count("[secret]") == 3


def test_a_secret_that_json_writes_with_escapes_is_found() -> None:
    secret = 'first "line"\nof a key'
    said = TextCleaner([secret]).json(json.dumps({"key": [f"it is {secret}."]}))
    assert said == '{\n  "key": [\n    "it is [secret]."\n  ]\n}'


def test_hidden_characters_are_written_out() -> None:
    hidden = "a\x1b[31mb\x07c\u202ed\u200be\u2066f\x9bg\U000e0041h\ud800i\r\nj\rk"
    shown = "a␛[31mb␇c⟨U+202E⟩d⟨U+200B⟩e⟨U+2066⟩f⟨U+009B⟩g⟨U+E0041⟩h\ufffdi"
    page = html_of(data_of(*every_event(hidden), title=hidden))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", page)
    page.encode()  # halves of characters could not be written
    assert shown in one(parsed(page), "main").get_text()


def test_markdown_is_rendered_without_active_content() -> None:
    text = """# Head

- *one*
- `two`

| a | b |
|---|--:|
| 1 | 2 |

```html
<b>bold</b>
```

<b>bold</b> ~~gone~~ [docs](https://docs.test/a?b=1&c=2 "t") [file](src/a.py:3) <http://x.test>
"""
    dom = page_of(
        events.TurnStarted(turn=TurnId("t")),
        events.AgentText(message=MessageId("m"), text=text),
    )
    shown = one(dom, ".agent .markdown")
    assert one(shown, "h3").get_text() == "Head"
    assert [entry.get_text() for entry in shown.select("li")] == ["one", "two"]
    assert [cell.get_text() for cell in shown.select("td")] == ["1", "2"]
    assert shown.select("td")[1]["class"] == ["right"]  # the policy allows no style
    assert shown.select("[style]") == []
    assert one(shown, "pre code").get_text() == "<b>bold</b>\n"
    assert shown.select("b") == []
    assert [link["href"] for link in shown.select("a")] == [
        "https://docs.test/a?b=1&c=2", "http://x.test",
    ]  # fmt: skip
    assert one(shown, ".elsewhere").get_text() == "file"
    assert "(src/a.py:3)" in shown.get_text()


def test_headings_of_an_answer_leave_no_level_out() -> None:
    text = "### a\n\n# b\n\n### c\n\n#### d\n\n## e\n\n> # f\n"
    found = BeautifulSoup(markdown(text), "html.parser").select("h3, h4, h5, h6")
    assert [f"{head.name} {head.get_text()}" for head in found] == [
        "h3 a", "h3 b", "h4 c", "h5 d", "h4 e", "h3 f",
    ]  # fmt: skip


def test_each_part_of_an_answer_has_the_direction_of_its_language() -> None:
    text = "English.\n\nעברית.\n\n- עוד `code`\n\n```\nlet x = 'שלום'\n```\n"
    parts = BeautifulSoup(markdown(text), "html.parser").find_all(True, recursive=False)
    assert [(part.name, part.get("dir")) for part in parts] == [
        ("p", "auto"), ("p", "auto"), ("ul", "auto"), ("pre", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["[" * 2_000, "![" * 40_000, "*a_" * 16_000, "> " * 20_000 + "x", "`a" * 25_000, "- " * 20_000],
    ids=["brackets", "pictures", "emphasis", "quotes", "backticks", "lists"],
)  # fmt: skip
def test_markdown_made_to_be_slow_is_not(text: str) -> None:
    # Bounded by the time limit of tests; each takes less than a second.
    dom = page_of(
        events.TurnStarted(turn=TurnId("t")),
        events.AgentText(message=MessageId("m"), text=text),
    )
    assert dom.select(".agent")


def test_markdown_with_more_brackets_than_prose_has_is_shown_as_it_is_written() -> None:
    assert BeautifulSoup(markdown("[" * 2_001), "html.parser").select("pre.text")
    assert not BeautifulSoup(markdown("*a*"), "html.parser").select("pre")


@pytest.mark.parametrize("seed", range(4))
def test_events_in_any_order_make_a_page(seed: int) -> None:
    """A journal that a fork or a crash cut off, or that another version wrote, can be looked at."""
    order = random.Random(seed)
    events_of = every_event(HOSTILE)
    order.shuffle(events_of)
    assert "<footer>" in html_of(data_of(*events_of[: order.randrange(len(events_of))]))

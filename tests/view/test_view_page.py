"""The page as a file: its links, its bounds, its words, its rules for print and the dark."""

from __future__ import annotations

import itertools
import re
import shutil
import string
import subprocess
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import get_args

import pytest

from acp_agent import view
from acp_agent.content import DiffPart, text_part
from acp_agent.events import (
    AnyEvent,
    LoopStep,
    StopReason,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolShown,
    TurnEnded,
    Usage,
)
from acp_agent.ids import CallId, MessageId
from acp_agent.view.blocks import SMALL_LIMIT, TEXT_LIMIT, TextCleaner
from acp_agent.view.page import Status
from tests.view.lived_session import live, write
from tests.view.made_page import (
    SECRET,
    answered,
    asked,
    attribute,
    begun,
    called,
    data_of,
    ended,
    html_of,
    one,
    page_of,
    parsed,
    said,
    took,
    words_of,
)

TEXTS = tomllib.loads((files(view) / "texts.toml").read_text("utf-8"))


def lines(count: int, width: int = 99) -> str:
    return "".join(f"{number:0{width}}\n" for number in range(count))


# -- links


def moments(*events: AnyEvent) -> list[str]:
    """The ids of turns and steps, in order."""
    return [str(step["id"]) for step in page_of(*events).select(".section, .step[id]")]


def test_links_to_a_moment_stay_the_same_when_the_session_continues() -> None:
    first: list[AnyEvent] = [
        TitleChanged(title="One"), begun(), said("Hi"), answered("Look."),
        called(call="call_0199ab"), answered("More."), ended(),
    ]  # fmt: skip
    before = moments(*first)
    assert before == [
        "between-0", "event-1", "turn-1", "message-u1", "message-a1", "call-0199ab", "message-a1.2",
    ]  # fmt: skip
    further: list[AnyEvent] = [begun("turn_2"), said("On", message="msg_u2"), ended("turn_2")]
    assert moments(*first, *further) == [*before, "turn-2", "message-u2"]


def test_every_step_has_a_link_to_itself_with_its_time() -> None:
    dom = page_of(begun(), said("Hi"), answered("Yes."), called(), ended())
    for step in dom.select(".step"):
        moment = step.find_parent(class_="moment") or step
        link = one(moment, "a.at")
        assert link["href"] == f"#{step['id']}"
        assert attribute(one(link, "time"), "datetime").startswith("2025-10-09T08:53:2")


def test_ids_that_cannot_stand_in_an_address_and_ids_that_come_twice_give_way() -> None:
    ids = moments(
        begun(), called(call='call_" onclick="'), called(call="turn-1"), called(call="call_7"),
        called(call="call_7"),
    )  # fmt: skip
    assert ids == ["turn-1", "moment-1", "turn-1.2", "call-7", "call-7.2"]


# -- bounds


def test_a_long_text_keeps_its_beginning_and_its_end_and_says_how_much_is_missing() -> None:
    text = lines(1_000)
    clean = TextCleaner([])
    cut = clean.text(text)
    assert cut.startswith(text[:1_000])
    assert cut.endswith(text[-1_000:])
    assert f"[… {100_000 - TEXT_LIMIT:,} …]" in cut
    assert clean.omitted == 100_000 - TEXT_LIMIT
    call = CallId("call_1")
    dom = page_of(begun(), called(), ToolEnded(call=call, content=(text_part(text),)))
    foot = words_of(one(dom, "footer"))
    assert "Omitted in total: 40,000" in foot
    assert "acp-agent sessions export sess_1" in foot


def test_a_page_that_is_full_keeps_little_of_each_further_text() -> None:
    clean = TextCleaner([], room=100)
    assert clean.text("a" * 10_000) == "a" * 10_000
    assert len(clean.text("b" * 10_000)) < SMALL_LIMIT + 30
    assert clean.text("short") == "short"
    assert not clean.has_room_for(1)


def test_a_rewritten_file_of_any_size_is_shown_within_bounds() -> None:
    old, new = lines(20_000), lines(20_000, 98)
    call = CallId("call_1")
    page = data_of(
        begun(), called(), ToolShown(call=call, content=(DiffPart("/srv/big", new, old),))
    )
    dom = parsed(html_of(page))
    assert "+20000 −20000" in words_of(one(dom, ".path"))
    assert len(one(dom, ".diff pre").get_text()) < 3 * TEXT_LIMIT
    assert page.omitted > 3_000_000


def test_arguments_of_any_kind_are_shown() -> None:
    for arguments, shown in (
        ('{"b":[1,"\\u00e9"]}', '{\n  "b": [\n    1,\n    "é"\n  ]\n}'),
        ("{broken", "{broken"),
        ("[" * 100_000, "[" * 1_000),
        ('{"n": 1' + "0" * 5_000 + "}", '{"n": 100'),
    ):
        dom = page_of(begun(), called(arguments=arguments))
        assert one(dom, ".call pre").get_text().strip().startswith(shown)


def test_events_of_an_unknown_call_are_ignored() -> None:
    gone = CallId("call_gone")
    page = data_of(begun(), ToolEnded(call=gone), ToolShown(call=gone, title="x"), ended())
    assert page.sections[0].steps == []


# -- words


def test_both_languages_have_the_same_texts_with_the_same_placeholders() -> None:
    def fields(text: str) -> list[str]:
        return sorted(name for _, name, _, _ in string.Formatter().parse(text) if name is not None)

    assert set(TEXTS) == {"en", "zh"}
    assert set(TEXTS["en"]) == set(TEXTS["zh"])
    for key, text in TEXTS["en"].items():
        assert fields(TEXTS["zh"][key]) == fields(text), key
        assert TEXTS["zh"][key].strip(), key


FAMILIES = {
    "by": ("user", "client", "mode", "grant", "rule"),
    "status": get_args(Status),
    "unanswered": ("dismissed", "unclear", "not_asked"),
    "background": ("running", "ended", "lost"),
    "entry": ("pending", "in_progress", "completed"),
    "compaction": ("in_progress", "completed", "failed", "cancelled", "keeps"),
    "severity": ("warning", "error"),  # of `info` nothing is said
    "outcome": (*get_args(StopReason), "error", "interrupted", "running"),
    "note_loop": get_args(LoopStep),
    "note_system_prompt": ("append", "override"),
}


def test_every_text_is_used_and_every_state_has_one() -> None:
    keys = {f"{family}_{state}" for family, states in FAMILIES.items() for state in states}
    assert keys <= set(TEXTS["en"])
    folder = Path(str(files(view)))
    sources = "".join(
        path.read_text("utf-8") for path in folder.iterdir() if path.suffix in {".html", ".py"}
    )
    for key in set(TEXTS["en"]) - keys:
        names = "|".join((key, key.removeprefix("note_")))
        assert re.search(f"""["']({names})["']""", sources), key


async def test_a_recorded_session_is_a_page_in_both_languages(tmp_path: Path) -> None:
    record, stored = await live(tmp_path)
    write(tmp_path, record, stored)
    english, chinese = (
        parsed((tmp_path / name).read_text("utf-8")) for name in ("session.html", "session.zh.html")
    )
    assert english.html is not None
    assert chinese.html is not None
    assert (english.html["lang"], chinese.html["lang"]) == ("en", "zh-Hans")
    for dom in (english, chinese):
        assert len(dom.select("section.turn")) == 10
        assert len(dom.select("section.turn.undone")) == 1
        assert len(dom.select(".diff del")) == 2
        assert len(dom.select("img")) == 1
        assert len(dom.select(".compaction.completed")) == 1
        assert SECRET not in dom.get_text()
    assert "Allowed by you: Allow once" in words_of(one(english, "main"))
    titles = [words_of(title) for title in chinese.select(".call .title")]
    assert "编辑 prices.py" in titles  # which the journal has in English
    assert "允许者：您：" in one(chinese, "main").get_text()  # and with its own punctuation
    assert "（询问后 " in one(chinese, "main").get_text()
    untranslated = [key for key, text in TEXTS["en"].items() if text == TEXTS["zh"][key]]
    assert untranslated == ["note_notice"]


# -- the file


def test_the_page_has_landmarks_headings_and_names_of_controls() -> None:
    dom = page_of(begun(), said("Hi"), answered("# Head\n\n## More"), called(), ended())
    for landmark in ("header.top", "nav[aria-label]", "main", "footer", "form[role=search]"):
        one(dom, landmark)
    skip = dom.select("body > a")[0]
    assert skip["href"] == "#conversation"
    levels = [int(head.name[1]) for head in dom.select("h1, h2, h3, h4, h5, h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    for control in dom.select("button, input, select"):
        label = control.find_parent("label")
        name = control.get("aria-label") or words_of(label or control)
        assert re.search("[a-z]{3}", str(name)), control
    for region in dom.select("section"):
        named = dom.select_one(f"[id='{region['aria-labelledby']}']")
        assert named is not None


def test_no_control_is_inside_another_and_scrollable_regions_take_keys() -> None:
    code = answered("```\n" + "long " * 90 + "\n```\n\n| a |\n|---|\n| 1 |")
    spent = took(Usage(input=9, output=1), 0.1)
    dom = page_of(begun(), said("Hi"), asked(), code, spent, called(), ended())
    assert dom.select("summary :is(a, button, input, details)") == []
    assert dom.select("a :is(a, button)") == []
    scrollers = dom.select("pre, table")
    assert {scroller.name for scroller in scrollers} == {"pre", "table"}
    for scroller in scrollers:
        around = scroller if scroller.name == "pre" else scroller.parent
        assert around is not None
        assert around["tabindex"] == "0", scroller


def test_the_style_has_rules_for_light_dark_and_print() -> None:
    style = (files(view) / "page.css").read_text("utf-8")
    assert "color-scheme: light dark" in style
    for theme in ("light", "dark"):
        assert f':root[data-theme="{theme}"] {{ color-scheme: {theme}; }}' in style
    printed = style.partition("@media print {")[2]
    assert ":root, :root[data-theme] { color-scheme: light; }" in printed
    assert "details::details-content { content-visibility: visible; display: block; }" in printed
    assert ".section, .step { content-visibility: visible; }" in printed
    assert "url(" not in style
    assert "@import" not in style


def test_the_script_makes_no_markup_and_no_requests() -> None:
    script = (files(view) / "page.js").read_text("utf-8")
    for never in (
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "Function(",
        "fetch(", "XMLHttpRequest", "import(", "</",
    ):  # fmt: skip
        assert never not in script, never


def test_the_script_is_sound() -> None:
    program = shutil.which("node")
    if program is None:
        pytest.skip("there is no Node.js")
    path = Path(str(files(view) / "page.js"))
    subprocess.run([program, "--check", path], check=True, timeout=60)


def test_a_running_turn_is_not_shown_as_ended() -> None:
    dom = page_of(begun(), said("Hi"), called(), title=None)
    assert words_of(one(dom, ".outcome")) == "Running"
    assert words_of(one(dom, ".call .status")) == "not started"


def test_the_events_in_the_page_need_no_others() -> None:
    """A journal may begin or end anywhere, such as that of a fork or of a crash."""
    alone: list[AnyEvent] = [
        ToolCalled(call=CallId("call_1"), message=MessageId("m"), name="x", arguments="", title=""),
        TurnEnded(turn="turn_9", stop_reason="refusal"),  # type: ignore[arg-type]  # an id is text
    ]
    assert "Ended" not in words_of(one(page_of(*alone), "main"))

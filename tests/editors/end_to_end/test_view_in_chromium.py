"""The page of a session in Chromium: fast, silent, inert, and useful."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from acp_agent.ids import SessionId
from acp_agent.session.store.records import SessionRecord, StoredEvent
from acp_agent.view.html import render
from acp_agent.view.reader import read_page
from benchmarks.view import EVENTS, busy_session
from tests.editors.end_to_end.devtools import BrowserPage, open_browser
from tests.support.child_work import whole
from tests.support.npm_packages import node_modules
from tests.view.lived_session import live, write
from tests.view.made_page import BEGAN, data_of, html_of
from tests.view.test_view_inert import hostile_page

AXE_FOLDER = Path(__file__).parent / "axe"
SECONDS = 2.0  # of a processor, in which a page of 10,000 events is opened


@pytest.fixture
async def browser() -> AsyncIterator[BrowserPage]:
    async with open_browser() as page:
        await page.size(1280, 900)
        yield page


@pytest.fixture(scope="module")
def long_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of 10,000 events."""
    stored = [
        StoredEvent(place + 1, BEGAN + place * 350, event)
        for place, event in enumerate(busy_session())
    ]
    record = SessionRecord(
        id=SessionId("sess_1"), cwd="/project", title="Long", created_at=BEGAN,
        updated_at=BEGAN + EVENTS * 350,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("long") / "session.html"
    path.write_text("".join(render(read_page(record, stored, secrets=[]), language="en")), "utf-8")
    return path


@pytest.fixture(scope="module")
def lived_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a session with everything in it."""
    folder = tmp_path_factory.mktemp("lived")
    write(folder, *asyncio.run(live(folder)))
    return folder / "session.html"


@pytest.fixture(scope="module")
def axe() -> str:
    """The script of axe-core, which looks for what is in the way of assistive technology."""
    return (node_modules(AXE_FOLDER) / "axe-core" / "axe.min.js").read_text("utf-8")


def silent(browser: BrowserPage) -> None:
    """Nothing was complained of, and nothing was asked for but the file and what is in it."""
    assert browser.complaints == []
    assert {address.partition(":")[0] for address in browser.requests} <= {"file", "data"}
    assert len([address for address in browser.requests if address.startswith("file:")]) == 1


async def test_ten_thousand_events_open_in_two_seconds_scroll_and_unfold(
    browser: BrowserPage, long_page: Path
) -> None:
    await browser.open(long_page.as_uri())
    await browser.painted()
    opened = await browser.busy_seconds()
    assert 0 < opened < SECONDS
    for place in range(1, 6):
        await browser.run(f"scrollTo(0, document.documentElement.scrollHeight * {place} / 5)")
        await browser.painted()
    scrolled = await browser.busy_seconds()
    assert scrolled - opened < SECONDS / 4
    await browser.run("fold(true)")
    await browser.painted()
    assert await browser.busy_seconds() - scrolled < SECONDS / 2
    silent(browser)


async def test_a_link_opens_the_page_at_its_moment(browser: BrowserPage, long_page: Path) -> None:
    for anchor, width in (("turn-100", 1280), ("turn-70", 900), ("call-100x3e", 1280)):
        await browser.size(width, 900)
        await browser.open("about:blank")
        await browser.open(f"{long_page.as_uri()}#{anchor}")
        await browser.painted()
        top = await browser.run(f"document.getElementById('{anchor}').getBoundingClientRect().top")
        bar = await browser.run("tools.getBoundingClientRect().bottom")
        assert max(0, bar) <= top < bar + 60
    assert await browser.run("document.getElementById('call-100x3e').open")
    silent(browser)


async def test_the_search_finds_what_is_folded_and_goes_there(
    browser: BrowserPage, lived_page: Path
) -> None:
    await browser.open(lived_page.as_uri())
    await browser.key("/", text="/")
    assert await browser.run("document.activeElement.id") == "search"
    for letter in "run them before":  # in a thought
        await browser.key(letter, text=letter)
    await browser.key("Enter", text="\r")
    await browser.painted()
    assert await browser.run("document.getElementById('found').textContent") == "1 of 1"
    found = "document.querySelector('.match.current')"
    assert await browser.run(f"{found}.className.includes('thought') && {found}.open")
    assert 0 < await browser.run(f"{found}.getBoundingClientRect().top") < 900
    assert await browser.run("CSS.highlights.get('found').size") == 1
    await browser.run("document.getElementById('matches').click()")
    shown = "[...document.querySelectorAll('.step')].filter(step => step.checkVisibility()).length"
    assert await browser.run(shown) == 1
    await browser.key("Escape")
    assert await browser.run(shown) > 20
    await browser.run("field.value = 'no such words'; search()")
    assert await browser.run("document.getElementById('found').textContent") == "nothing found"
    silent(browser)


async def test_the_search_shows_what_a_child_session_did_and_nothing_else(
    browser: BrowserPage, tmp_path: Path
) -> None:
    path = tmp_path / "child.html"
    path.write_text(html_of(data_of(*whole())), "utf-8")
    await browser.open(path.as_uri())
    await browser.run("one('matches').click(); field.value = 'It is there'; search(); move(1)")
    await browser.painted()
    assert await browser.run("one('found').textContent") == "1 of 1"  # not also the call around it
    shown = "[...document.querySelectorAll('.step')].filter(step => step.checkVisibility())"
    assert await browser.run(f"{shown}.map(step => step.id)") == ["call-task", "message-said"]
    silent(browser)


async def test_what_a_session_says_does_nothing(browser: BrowserPage, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(html_of(hostile_page()), "utf-8")
    await browser.send(
        "Page.addScriptToEvaluateOnNewDocument",
        source="globalThis.alerts = []; alert = (said) => alerts.push(said);",
    )
    await browser.open(path.as_uri())
    await browser.run("fold(true); field.value = '<script>'; search(); move(1)")
    await browser.painted()
    await browser.run("document.querySelectorAll('main a.at').forEach((link) => link.click())")
    assert await browser.run("alerts.length") == 0
    assert await browser.run("found.length") > 10
    silent(browser)


async def test_markup_that_got_through_all_the_same_could_not_run(
    browser: BrowserPage, tmp_path: Path
) -> None:
    path = tmp_path / "broken.html"
    hole = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    hole += "<img src='https://evil.test/p.png'><p style='color: red'>"
    path.write_text(html_of(hostile_page()).replace("<main", f"{hole}<main"), "utf-8")
    await browser.open(path.as_uri())
    await browser.painted()
    assert await browser.run("document.title") != "run"
    assert len(browser.complaints) >= 4
    asked = [address for address in browser.requests if address.startswith("http")]
    assert asked == ["https://evil.test/p.png"]
    assert set(asked) <= set(browser.blocked)


async def test_colours_follow_the_system_unless_the_reader_chooses_and_print_is_light(
    browser: BrowserPage, lived_page: Path
) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    await browser.dress("light")
    await browser.open(lived_page.as_uri())
    light = await browser.run(paper)
    assert light == "rgb(255, 255, 255)"
    await browser.dress("dark")
    dark = await browser.run(paper)
    assert dark != light
    choose = "theme.value = '{0}'; theme.dispatchEvent(new Event('change'))"
    await browser.run(choose.format("light"))
    assert await browser.run(paper) == light
    await browser.open(lived_page.as_uri())
    assert await browser.run(paper) == light  # kept
    await browser.run(choose.format("dark"))
    await browser.dress("light")
    assert await browser.run(paper) == dark
    await browser.dress("dark", media="print")
    assert await browser.run(paper) == light
    folded = "document.querySelector('details.thought:not([open]) .words').checkVisibility()"
    assert await browser.run(folded)  # what is folded is printed, too
    assert not await browser.run("tools.checkVisibility()")
    lanes = "['model', 'tools', 'user'].map(one => !!document.querySelector(`rect.${one}`)?."
    assert await browser.run(f"{lanes}checkVisibility())") == [True] * 3
    await browser.dress("light")
    assert not await browser.run(folded)
    silent(browser)


async def test_words_and_marks_have_enough_contrast_in_both_schemes(
    browser: BrowserPage, lived_page: Path
) -> None:
    """At least 4.5 to 1 (WCAG 2.2, 1.4.3), of every element with words against what is behind."""
    for scheme in ("light", "dark"):
        await browser.dress(scheme)
        await browser.open(lived_page.as_uri())
        await browser.run("fold(true)")
        poor = await browser.run(CONTRAST)
        assert poor == [], scheme
    silent(browser)


@pytest.mark.parametrize(
    ("scheme", "width", "file"),
    [("light", 1280, "session.html"), ("dark", 360, "session.zh.html")],
)
async def test_assistive_technology_finds_nothing_serious_in_its_way(
    browser: BrowserPage, lived_page: Path, axe: str, scheme: str, width: int, file: str
) -> None:
    """As axe-core judges it: WCAG 2.2 at level AA, and what is known to work."""
    await browser.dress(scheme)
    await browser.size(width, 900)
    await browser.open(lived_page.with_name(file).as_uri())
    await browser.run("fold(true)")
    await browser.run(axe)
    found = await browser.run(AXE_FINDINGS)
    assert [one for one in found if one[0] in {"serious", "critical"}] == []


# What is far away has an estimated place until it is drawn, which may be another's.
AXE_FINDINGS = """(() => {
  for (const far of document.querySelectorAll(".section, .step"))
    far.style.contentVisibility = "visible";
  const values = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  return axe.run({ runOnly: { type: "tag", values } }).then(({ violations }) =>
    violations.map(({ impact, id, nodes }) => [impact, id, nodes[0].html]));
})()"""

CONTRAST = """(() => {
  const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = (colour) => {
    const part = (value) => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    };
    const [red, green, blue] = numbers(colour);
    return 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (numbers(colour)[3] !== 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const words = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!words || element.closest("script, svg, .hidden-words, [hidden]")) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push([element.className, element.textContent.slice(0, 30), ratio]);
  }
  return poor;
})()"""


async def test_the_keys_go_from_turn_to_turn_and_a_time_copies_its_link(
    browser: BrowserPage, lived_page: Path
) -> None:
    await browser.open(lived_page.as_uri())
    top = "Math.round(document.getElementById('turn-{0}').getBoundingClientRect().top)"
    under = await browser.run("Math.ceil(tools.getBoundingClientRect().height)")
    for turn in (1, 2, 3):
        await browser.key("j", text="j")
        await browser.painted()
        assert under - 2 <= await browser.run(top.format(turn)) < under + 40
    await browser.key("k", text="k")
    await browser.painted()
    assert under - 2 <= await browser.run(top.format(2)) < under + 40
    allowed = ["clipboardReadWrite", "clipboardSanitizedWrite"]
    await browser.send("Browser.grantPermissions", permissions=allowed)
    await browser.send("Emulation.setFocusEmulationEnabled", enabled=True)
    await browser.run("document.querySelector('#turn-2 .user a.at').click()")
    told = "const look = () => one('told').textContent ? done(one('told').textContent) : "
    told += "setTimeout(look, 20); look();"
    assert await browser.run(f"new Promise((done) => {{ {told} }})") == "Link copied"
    copied = await browser.run("navigator.clipboard.readText()")
    assert copied == await browser.run("document.querySelector('#turn-2 .user a.at').href")
    silent(browser)

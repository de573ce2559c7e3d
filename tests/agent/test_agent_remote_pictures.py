"""An answer cannot send anything away by a picture that the editor fetches (`remote_pictures`)."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from acp_agent.agent.remote_pictures import RemotePictures
from acp_agent.events import AgentText, AgentThought, PlanChanged
from tests.support.model_server import Call, ModelServer, Thought, answer
from tests.support.open_session import Desk

CASES = tomllib.loads(Path(__file__).with_name("remote_pictures.toml").read_text())["cases"]
# What the random answers are made of.
PIECES = (
    "![", "a", "]", "(", "https://e/x", ")", "[r]", "[r]: https://e\n", "\n", "\n\n", "`", "``",
    "```", "~~~", "```\n", "    ", "- ", "> ", "<div>", "<img src='//e'>", "<!--", "-->", "\\", "!",
    "[", "]:", "<", "<https://e>", " ", "|", "| - |\n", "$", "$$", "1. ", "![a](https://e/x)",
    "![r]", "![x][r]", '<a title="`">', "\t", "  ", "](`)", "&#33;", '"', "<b", "<pre>", "</pre>",
    "*", "# ", "---\n", "  ```\n", "   ```\n", "![a](<https://e>)",
)  # fmt: skip
RENDERERS = (MarkdownIt("commonmark"), MarkdownIt("gfm-like", {"linkify": False, "html": True}))
FETCHED = re.compile(r"<img[^>]*\bsrc=.?(https?:)?//")


def shown(text: str, *cuts: int) -> str:
    """What is shown of a text that comes in pieces."""
    pictures, begin, out = RemotePictures(), 0, ""
    for end in (*cuts, len(text)):
        out += pictures.feed(text[begin:end])
        begin = end
    return out + pictures.end()


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["text"])[:40])
def test_remote_pictures_become_links_however_the_answer_is_cut_into_pieces(
    case: dict[str, str],
) -> None:
    text = case["text"]
    expected = case.get("shown", text)
    assert shown(text) == expected
    assert shown(text, *range(1, len(text))) == expected
    assert {shown(text, cut) for cut in range(1, len(text))} == {expected}


def test_no_text_of_an_answer_makes_a_renderer_fetch_anything() -> None:
    chance = random.Random(20)
    for _ in range(2_000):
        text = "".join(chance.choices(PIECES, k=chance.randint(2, 16)))
        cuts = sorted(chance.sample(range(len(text) + 1), min(3, len(text))))
        out = shown(text, *cuts)
        assert out == shown(text), (text, cuts)
        for renderer in RENDERERS:
            assert not FETCHED.search(renderer.render(out)), (text, out)


def test_text_after_a_thought_does_not_complete_an_earlier_picture() -> None:
    for before, after in (
        ("Look!", "[a](https://e)"),
        ("![a]", "(https://e)"),
        ("![a](htt", "ps://e)"),
    ):
        pictures = RemotePictures()
        out = pictures.feed(before) + pictures.end() + pictures.feed(after) + pictures.end()
        assert not FETCHED.search(RENDERERS[0].render(out)), out


def test_an_unfinished_construct_does_not_hold_back_a_long_answer() -> None:
    for begin in ("![a", "<img ", "`![", "[a]: "):
        pictures = RemotePictures()
        out = "".join(pictures.feed(piece) for piece in [begin, *["x" * 100] * 100])
        assert len(out) > 9_000


async def test_the_editor_and_the_journal_get_the_answer_and_the_thoughts_without_pictures(
    desk: Desk, model_server: ModelServer
) -> None:
    step = {"content": "Draw ![p](https://e/p)", "status": "pending"}
    model_server.add(
        answer(Call("todo", {"todos": [step]})),
        answer(Thought("Use ![t](https://e/t)."), "See ![a](https", "://e/a), ok", "!"),
    )
    await desk.say("Go")
    said = "".join(event.text for event in desk.editor.of(AgentText))
    assert said == "See [a](https://e/a), ok!"
    assert "".join(event.text for event in desk.editor.of(AgentThought)) == "Use [t](https://e/t)."
    (plan,) = desk.editor.of(PlanChanged)
    assert [entry.content for entry in plan.entries] == ["Draw [p](https://e/p)"]

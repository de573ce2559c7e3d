"""Text in pictures is recognised on this computer; small packages stand in for the extra."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from acp_agent.errors import ToolError
from acp_agent.tools import ocr
from acp_agent.tools.ocr import RecognisedText, can_recognise, recognise
from tests.support.stand_in_recogniser import BROKEN, StandIn, picture, stand_in


@pytest.fixture
def recogniser(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    with stand_in(monkeypatch) as module:
        yield module


def same(text: str) -> str:
    return text


async def test_each_picture_gets_its_own_text_in_a_thread_of_another_name(
    recogniser: StandIn,
) -> None:
    assert can_recognise()
    results = await recognise([picture("One\n一"), picture(""), picture("Two")], same)
    assert results == [RecognisedText(text="One\n一"), RecognisedText(), RecognisedText(text="Two")]
    assert recogniser.threads == ["ocr"] * 3
    assert threading.current_thread().name != "ocr"
    assert len(recogniser.made) == 1


async def test_a_broken_picture_is_reported_and_the_others_are_read(recogniser: StandIn) -> None:
    first, second = await recognise([BROKEN, picture("Two")], same)
    assert first.failure == "it is no picture that can be read (UnidentifiedImageError)"
    assert second.text == "Two"


async def test_a_picture_with_too_many_pixels_is_not_unpacked(recogniser: StandIn) -> None:
    (results,) = await recognise([picture("Big", 8_000, 6_000)], same)
    assert "8,000 × 6,000 pixels, more than 40,000,000" in results.failure
    assert recogniser.threads == []


async def test_pictures_not_read_in_time_are_reported_and_the_others_returned(
    recogniser: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "_MAX_SECONDS", 1.0)
    results = await recognise([picture("One"), picture("HANG"), picture("Three")], same)
    assert results[0].text == "One"
    late = "it could not be read within 1 seconds"
    assert [result.failure for result in results] == ["", late, late]
    (result,) = await recognise([picture("Four")], same)  # the first has not ended yet
    assert result.failure == late
    recogniser.go_on.set()
    monkeypatch.setattr(ocr, "_MAX_SECONDS", 20.0)
    (result,) = await recognise([picture("Five")], same)
    assert result.text == "Five"
    assert "Three" not in [*recogniser.threads, result.text]
    assert recogniser.threads == ["ocr"] * 3  # the third of the first message was not begun


async def test_recognised_text_is_cut_after_secrets_are_removed(recogniser: StandIn) -> None:
    long = "x" * (ocr.TEXT_LIMIT - 4) + "secret word"
    first, second = await recognise(
        [picture(long), picture("more")], lambda text: text.replace("secret", "[gone]")
    )
    assert first.text.endswith("x[gon\n[… 7 more characters]")
    assert second.text == "\n[… 4 more characters]"


async def test_the_error_for_an_unusable_recogniser_has_a_remedy(
    recogniser: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(params: object) -> None:
        raise OSError("libGL.so.1: cannot open shared object file")

    monkeypatch.setattr(recogniser, "RapidOCR", broken)
    with pytest.raises(ToolError, match=r"cannot be used here \(OSError\); install it again: pip"):
        await recognise([picture("One")], same)

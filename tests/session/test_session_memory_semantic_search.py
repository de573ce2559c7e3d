"""What a session finds by meaning in notes and in earlier sessions of its project."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest

from acp_agent.ids import SessionId
from acp_agent.tools.memory import semantic_search
from tests.session.test_session_memory import memory, say
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import SECRET, Desk, open_desk

CONFIG = 'titles = "prompt"\nembedding_model = "openai/meanings"\n'
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9" * 2
TOPICS = ({"automobile", "petrol", "car", "fuel"}, {"quince", "fruit"}, {"quarrel", "dispute"})


async def embed(texts: list[str]) -> list[list[float]]:
    """Vectors with a number for each topic, and one that all texts have."""
    found = []
    for text in texts:
        words = set(re.findall(r"\w+", text.lower()))
        found.append([0.1, *(float(len(words & topic)) for topic in TOPICS)])
    return found


def sent(server: ModelServer) -> list[str]:
    """Every text that was sent to be embedded."""
    return [text for request in server.embeddings for text in request.json["input"]]


def vectors(tmp_path: Path) -> int:
    (file,) = (tmp_path / "acp-home" / "memory").rglob("recall.db")
    with closing(sqlite3.connect(file)) as db:
        query = "SELECT count(*) FROM vectors WHERE vector IS NOT NULL"
        return int(db.execute(query).fetchone()[0])


async def recall(desk: Desk, words: str) -> str:
    desk.server.add(answer(memory("recall", text=words)), answer("Found."))
    return (await say(desk))[-1]


async def test_a_passage_without_a_common_word_is_found_by_its_meaning(
    tmp_path: Path, model_server: ModelServer
) -> None:
    model_server.embed = embed
    async with open_desk(tmp_path, model_server) as desk:
        model_server.add(answer("It needs petrol."), answer("A quince."))
        await say(desk, "What about the automobile?")
        await say(desk, "Name something.")
        assert "No note and no earlier session" in await recall(desk, "car fuel")
        assert not model_server.embeddings  # nothing is configured
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        found = await recall(desk, "car fuel")
        assert "It needs petrol." in found
        assert "What about the automobile?" in found
        assert "quince" not in found.partition("Found.")[0].replace("Name something", "")
        assert "by words only" not in found
        request = model_server.embeddings[0]
        assert request.path == "/v1/embeddings"
        assert request.json["model"] == "meanings"
        assert request.headers["authorization"] == f"Bearer {SECRET}"
        words = sum(len(text.split()) for text in sent(model_server))
        rows = await desk.services.store.usage_since(0)
        counted = sum(row.usage.input for row in rows if row.model == "openai/meanings")
        assert counted == words
        # What has a vector is not sent again, and what has the words comes first.
        before = len(sent(model_server))
        assert "A quince." in (await recall(desk, "quince")).split("\n\n")[0]
        assert "It needs petrol." not in sent(model_server)[before:]


async def test_a_note_is_found_by_its_meaning_and_only_changed_ones_are_sent_again(
    tmp_path: Path, model_server: ModelServer
) -> None:
    model_server.embed = embed
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        save = memory("save", name="peace", text="Avoid every quarrel.")
        model_server.add(answer(save), answer("Saved."))
        await say(desk)
        assert "[note project peace, " in await recall(desk, "dispute")
        assert sent(model_server).count("Avoid every quarrel.\n") == 1
        assert "[note project peace, " in await recall(desk, "dispute")
        assert sent(model_server).count("Avoid every quarrel.\n") == 1
        (file,) = (tmp_path / "acp-home" / "memory").rglob("peace.md")
        file.write_text("A fruit a day.")
        assert "A fruit a day." in await recall(desk, "quince")
        assert "A fruit a day." in sent(model_server)


async def test_secrets_are_not_sent_and_a_deleted_session_has_no_vectors(
    tmp_path: Path, model_server: ModelServer
) -> None:
    model_server.embed = embed
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        model_server.add(answer("Noted."))
        await say(desk, f"The automobile opens with {TOKEN}.")
        found = await recall(desk, f"car {TOKEN}")
        assert "The automobile opens with" in found
        assert any("The automobile opens" in text for text in sent(model_server))
        assert TOKEN not in "".join(sent(model_server))
        assert vectors(tmp_path)
        page = await desk.services.store.list(cwd=str(desk.folder), limit=50)
        for one in page.sessions:
            await desk.manager.delete(SessionId(one.id))
        assert "No note and no earlier session" in await recall(desk, "car")
        assert not vectors(tmp_path)


async def test_vectors_are_computed_again_for_another_model(
    tmp_path: Path, model_server: ModelServer
) -> None:
    async def longer(texts: list[str]) -> list[list[float]]:
        return [[0.5, *vector] for vector in await embed(texts)]

    model_server.embed = embed
    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        model_server.add(answer("It needs petrol."))
        await say(desk, "What about it?")
        assert "petrol" in await recall(desk, "car")
    model_server.embed = longer
    async with open_desk(
        tmp_path, model_server, config=CONFIG.replace("meanings", "others")
    ) as desk:
        assert "petrol" in await recall(desk, "car")
        assert sent(model_server).count("It needs petrol.") == 2
        assert model_server.embeddings[-1].json["model"] == "others"


async def fails(_: list[str]) -> bytes:
    raise RuntimeError("out of order")


async def hangs(_: list[str]) -> bytes:
    await asyncio.Event().wait()
    return b""


async def babbles(_: list[str]) -> bytes:
    return b"<html>"


async def gives_too_few(_: list[str]) -> bytes:
    return b'{"data": []}'


async def gives_nothing_of_length(texts: list[str]) -> list[list[float]]:
    return [[0.0, 0.0] for _ in texts]


@pytest.mark.parametrize(
    ("broken", "model", "why"),
    [
        (fails, "openai/meanings", "out of order"),
        (hangs, "openai/meanings", "took longer than 0.2 s"),
        (babbles, "openai/meanings", "cannot be read"),
        (gives_too_few, "openai/meanings", "0 embeddings for 1 texts"),
        (gives_nothing_of_length, "openai/meanings", "has no length"),
        (fails, "deepseek/embed", "DEEPSEEK_API_KEY"),
        (fails, "demo/demo", "not asked for embeddings"),
        (fails, "nobody/model", "unknown model"),
    ],
)
async def test_without_embeddings_a_search_uses_words_and_says_so(
    tmp_path: Path,
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[list[str]], Awaitable[list[list[float]] | bytes]],
    model: str,
    why: str,
) -> None:
    if broken is hangs:
        monkeypatch.setattr(semantic_search, "_MAX_QUERY_SECONDS", 0.2)
    model_server.embed = broken
    config = CONFIG.replace("openai/meanings", model)
    async with open_desk(tmp_path, model_server, config=config) as desk:
        model_server.add(answer("A quince."))
        await say(desk, "Name a fruit.")
        found = await recall(desk, "quince")
        assert "A quince." in found
        assert "[Found by words only, not by meaning: " in found
        assert why in found


async def test_vectors_that_a_slow_model_did_not_make_are_reported_and_made_next_time(
    tmp_path: Path, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def only_the_words(texts: list[str]) -> list[list[float]]:
        if len(model_server.embeddings) != 1:
            raise RuntimeError("busy")
        return await embed(texts)

    async with open_desk(tmp_path, model_server, config=CONFIG) as desk:
        model_server.add(answer("It needs petrol."))
        await say(desk, "What about it?")
        model_server.embed = only_the_words
        found = await recall(desk, "car")
        assert "passages are found by their words only so far" in found
        assert "busy" in found
        model_server.embed = embed
        monkeypatch.setattr(semantic_search, "_MAX_PASSAGES", 2)
        assert "[" in await recall(desk, "car")
        monkeypatch.undo()
        found = await recall(desk, "car")
        assert "It needs petrol." in found
        assert len([text for text in sent(model_server) if text == "It needs petrol."]) == 2
        assert vectors(tmp_path) == 6  # what three sessions said

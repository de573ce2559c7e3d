"""What differs among the services that speak OpenAI's chat API."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from acp_agent.models.base import CallDone, CallStarted, Failed, StreamEvent
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.openai_events import OpenAIDecoder
from acp_agent.models.providers import Dialect, Provider
from tests.support.model_asking import Gathered, ask, gather, openai_provider
from tests.support.model_server import ModelServer, Thought, answer

PROVIDER = Provider(id="x", name="X", api="openai", base_url="http://127.0.0.1:1/v1")


def read(chunks: Sequence[dict[str, Any]], *, done: bool = True, **dialect: Any) -> Gathered:
    """What the decoder makes of chunks that were recorded or described."""
    provider = Provider(
        id="x", name="X", api="openai", base_url="http://127.0.0.1:1", dialect=Dialect(**dialect)
    )
    decoder = OpenAIDecoder(provider, "m")
    events: list[StreamEvent] = []
    for chunk in chunks:
        decoder.feed(json.dumps(chunk).encode(), events)
    if done:
        decoder.feed(b"[DONE]", events)
    return Gathered([*events, *decoder.end()])


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def piece(**fields: Any) -> dict[str, Any]:
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return delta(tool_calls=[{**fields, "function": function}])


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_is_read_from_the_field_that_the_service_uses(
    server: ModelServer, field: str
) -> None:
    server.add(answer(Thought("Hmm"), "Yes", reasoning_field=field))
    driver = OpenAIDriver(openai_provider(server))
    got = await gather(driver.stream(ask()))
    await driver.aclose()
    assert (got.thought, got.text) == ("Hmm", "Yes")


def test_a_service_that_gives_reasoning_twice_is_read_once() -> None:
    got = read([delta(reasoning="Hmm", reasoning_content="Hmm"), delta("stop", content="Yes")])
    assert got.thought == "Hmm"


def test_calls_that_all_have_index_0_are_distinguished_by_their_ids() -> None:
    got = read(
        [
            piece(index=0, id="a", name="read", arguments='{"path": "a"}'),
            piece(index=0, id="b", name="read", arguments='{"path": "b"}'),
            delta("stop"),
        ]
    )
    assert got.calls == [("read", '{"path": "a"}'), ("read", '{"path": "b"}')]
    assert got.finished.stop == "tool_calls"


def test_pieces_without_an_index_belong_to_the_call_with_their_id_or_to_the_last() -> None:
    got = read(
        [
            piece(id="a", name="read", arguments='{"path'),
            piece(arguments='": "a"}'),
            piece(id="b", name="list", arguments=""),
            piece(id="b", arguments='{"path": "b"}'),
            delta("tool_calls"),
        ]
    )
    assert got.calls == [("read", '{"path": "a"}'), ("list", '{"path": "b"}')]


def test_pieces_without_index_and_id_begin_a_new_call_with_every_name() -> None:
    got = read(
        [
            piece(name="read", arguments='{"path": "a"}'),
            piece(name="read", arguments='{"path": "b"}'),
            delta("tool_calls"),
        ]
    )
    assert [arguments for _, arguments in got.calls] == ['{"path": "a"}', '{"path": "b"}']


def test_an_id_and_a_name_repeated_with_every_piece_make_one_call() -> None:
    got = read(
        [
            piece(index=0, id="a", name="read", arguments='{"path'),
            piece(index=0, id="a", name="read", arguments='": "a"}'),
            delta("tool_calls"),
        ]
    )
    assert got.calls == [("read", '{"path": "a"}')]
    assert sum(isinstance(event, CallStarted) for event in got.events) == 1


def test_arguments_that_come_before_the_name_are_not_lost() -> None:
    got = read(
        [piece(index=0, id="a", arguments="{"), piece(index=0, name="list", arguments="}"),
         delta("tool_calls")]
    )  # fmt: skip
    assert got.calls == [("list", "{}")]
    assert got.pieces == {0: "{}"}


def test_arguments_that_are_an_object_are_accepted_as_json() -> None:
    got = read([piece(index=0, id="a", name="read", arguments={"path": "a"}), delta("tool_calls")])
    assert got.calls == [("read", '{"path":"a"}')]


def test_the_signature_of_a_call_is_stored_with_it() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    got = read(
        [piece(index=0, id="a", name="list", arguments="{}", extra_content=extra), delta("stop")]
    )
    done = next(event for event in got.events if isinstance(event, CallDone))
    assert done.provider_data == {"extra_content": extra, "provider": "x"}


def test_pieces_of_reasoning_details_are_joined_and_sealed() -> None:
    got = read(
        [
            delta(reasoning="a", reasoning_details=[{"type": "reasoning.text", "text": "a"}]),
            delta(reasoning="b", reasoning_details=[{"type": "reasoning.text", "text": "b"}]),
            delta(reasoning_details=[{"type": "reasoning.text", "signature": "s"}]),
            delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}]),
            delta("stop", content="Yes"),
        ],
        thoughts_back="reasoning_details",
    )
    joined = [
        {"type": "reasoning.text", "text": "ab", "signature": "s"},
        {"type": "reasoning.encrypted", "data": "x"},
    ]
    assert got.provider_data == [{"reasoning_details": joined}]
    assert got.thought == "ab"


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens_details": {"cached_tokens": 60}},
        {"prompt_cache_hit_tokens": 60, "prompt_cache_miss_tokens": 40},
        {"cached_tokens": 60},
    ],
)
def test_cached_input_is_read_from_every_field_that_services_use(usage: dict[str, Any]) -> None:
    counted = {"prompt_tokens": 100, "completion_tokens": 5, **usage}
    got = read([delta("stop", content="Yes"), {"choices": [], "usage": counted}])
    assert (got.finished.usage.input, got.finished.usage.cache_read) == (100, 60)


def test_usage_inside_the_choice_is_read() -> None:
    last = delta("stop")
    last["choices"][0]["usage"] = {"prompt_tokens": 7, "completion_tokens": 3}
    got = read([delta(content="Yes"), last])
    assert (got.finished.usage.input, got.finished.usage.output) == (7, 3)


@pytest.mark.parametrize(
    ("finish", "stop"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"),
     ("model_context_window_exceeded", "max_tokens"), ("sensitive", "refusal")],
)  # fmt: skip
def test_the_reason_to_stop_is_understood(finish: str, stop: str) -> None:
    assert read([delta(finish, content="Yes")]).finished.stop == stop


def test_a_refusal_is_shown_as_text_and_ends_the_answer() -> None:
    got = read([delta(refusal="I will not."), delta("stop")])
    assert (got.text, got.finished.stop) == ("I will not.", "refusal")


@pytest.mark.parametrize("finish", ["network_error", "insufficient_system_resource"])
def test_an_answer_that_the_service_broke_off_is_a_failure(finish: str) -> None:
    got = read([delta(content="Ye"), delta(finish)])
    assert isinstance(got.last, Failed)
    assert got.last.kind == "server"


def test_an_answer_that_is_complete_needs_no_done_line() -> None:
    assert read([delta("stop", content="Yes")], done=False).finished.stop == "end_turn"


def test_an_error_with_a_status_inside_the_stream_is_of_that_kind() -> None:
    got = read([{"error": {"code": 429, "message": "slow down"}}])
    assert isinstance(got.last, Failed)
    assert (got.last.kind, got.last.status) == ("rate_limit", 429)


def test_content_that_comes_as_parts_is_text() -> None:
    got = read([delta("stop", content=[{"type": "text", "text": "Yes"}])])
    assert got.text == "Yes"


async def test_the_variables_of_openai_are_for_openai_only(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    for provider in ("deepseek", "openai"):
        server.add(answer("Hello"))
        driver = OpenAIDriver(openai_provider(server, id=provider, headers={"X-Own": "1"}))
        await gather(driver.stream(ask()))
        await driver.aclose()
    other, own = (request.headers for request in server.requests)
    assert own["openai-organization"] == "org-1"
    assert not {"openai-organization", "openai-project"} & set(other)
    assert other["x-own"] == "1"


def test_a_character_cut_in_half_does_not_break_the_answer() -> None:
    # json.dumps writes each half as an escape, as a service that cuts by UTF-16 units does.
    got = read([delta(content="a\ud83d"), delta(content="\ude00b", finish="stop")])
    assert got.finished is not None
    assert got.text == "a\ud83d\ude00b"

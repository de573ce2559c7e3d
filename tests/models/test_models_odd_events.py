"""Events that an API did not have yesterday, or that a service writes its own way."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from acp_agent.models.anthropic_events import AnthropicDecoder
from acp_agent.models.base import Failed, Finished, StreamEvent
from acp_agent.models.exchange import Decoder
from acp_agent.models.gemini_events import GeminiDecoder
from acp_agent.models.openai_events import OpenAIDecoder
from acp_agent.models.openai_responses_events import OpenAIResponsesDecoder
from acp_agent.models.providers import Provider
from acp_agent.models.stream_events import SseDecoder
from tests.support.model_asking import Gathered

Json = dict[str, Any]
PROVIDER = Provider(id="p", name="Somebody", api="openai", base_url="http://127.0.0.1:1/v1")
DECODERS: dict[str, type[Any]] = {
    "openai": OpenAIDecoder,
    "openai_responses": OpenAIResponsesDecoder,
    "anthropic": AnthropicDecoder,
    "gemini": GeminiDecoder,
}


def read(api: str, *events: Json | bytes) -> Gathered:
    decoder: Decoder = DECODERS[api](PROVIDER, "model-a")
    told: list[StreamEvent] = []
    for event in events:
        decoder.feed(event if isinstance(event, bytes) else json.dumps(event).encode(), told)
        if decoder.ended:
            break
    return Gathered([*told, *decoder.end()])


def block(index: int, start: Json, *deltas: Json) -> list[Json]:
    """A content block of Anthropic's, from its start to its end."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def ended(stop: str, **more: Any) -> Json:
    return {"type": "message_delta", "delta": {"stop_reason": stop, **more}, "usage": {}}


def candidate(*parts: Json, **more: Any) -> Json:
    return {"candidates": [{"content": {"parts": list(parts)}, **more}]}


SAID = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Hello."})
HELLO = {"type": "response.output_text.delta", "output_index": 1, "delta": "Hello."}
COMPLETED = {"type": "response.completed", "response": {"usage": None}}
DONE = {"choices": [{"delta": {"content": "Hello."}, "finish_reason": "stop"}]}
SPOKEN = candidate({"text": "Hello."}, finishReason="STOP")


@pytest.mark.parametrize(
    ("api", "events"),
    [
        ("anthropic", [{"type": "novel", "index": "x", "delta": 5}, *SAID, ended("end_turn")]),
        ("anthropic", [{"index": 3}, *SAID, ended("end_turn")]),
        (
            "anthropic",
            [
                *block(
                    9,
                    {"type": "novel", "text": {"a": 1}, "data": [1], "name": 5, "input": "x"},
                    {"type": "novel_delta", "text": {"b": 2}, "partial_json": 7},
                ),
                *SAID,
                ended("end_turn", stop_details=[]),
            ],
        ),
        (
            "openai_responses",
            [
                {"type": "keepalive", "sequence_number": 3},
                {"type": "response.novel", "item": [1], "delta": 5, "message": {"a": 1}, "code": 7},
                {
                    "type": "response.output_item.added",
                    "output_index": 0,
                    "item": {"type": "tool_search_call", "arguments": {"query": "x"}},
                },
                HELLO,
                COMPLETED,
            ],
        ),
        ("openai", [{"choices": [{"delta": {"reasoning": {"novel": 1}}}], "usage": []}, DONE]),
        ("openai", [{"choices": [None, 5]}, {"choices": "none"}, DONE]),
        ("gemini", [candidate({"text": None, "thought": None, "functionCall": "x"}), SPOKEN]),
        ("gemini", [{"usageMetadata": [1], "promptFeedback": "x"}, SPOKEN]),
    ],
)
def test_unknown_events_of_an_api_are_ignored(api: str, events: Sequence[Json]) -> None:
    got = read(api, *events)
    assert got.text == "Hello."
    assert got.finished.stop == "end_turn"


def test_numbers_that_are_written_as_text_are_understood() -> None:
    call = {"index": "0", "id": "a", "function": {"name": "read", "arguments": "{}"}}
    other = {"index": "1", "id": "b", "function": {"name": "write", "arguments": "{}"}}
    got = read(
        "openai",
        {"choices": [{"delta": {"tool_calls": [call]}}, {"delta": {"tool_calls": [other]}}]},
        {"choices": [{"finish_reason": "tool_calls"}], "usage": {"prompt_tokens": "12"}},
    )
    assert got.calls == [("read", "{}"), ("write", "{}")]
    assert got.finished.usage.input == 12


def test_an_answer_that_comes_only_at_its_end_is_read() -> None:
    items = [
        {"type": "message", "content": [{"type": "output_text", "text": "Hello."}]},
        {"type": "function_call", "name": "read", "arguments": '{"path": "a"}'},
    ]
    whole = {"type": "response.completed", "response": {"output": items}}
    got = read("openai_responses", {"type": "response.created"}, whole)
    assert (got.text, got.calls) == ("Hello.", [("read", '{"path": "a"}')])
    again = {"type": "response.completed", "response": {"output": items[:1]}}
    assert read("openai_responses", HELLO, again).text == "Hello."


def test_half_a_character_next_to_a_call_loses_neither() -> None:
    half = (
        b'{"candidates":[{"content":{"parts":[{"text":"x\\ud83d"},'
        b'{"functionCall":{"name":"read","args":{"path":"a"}}}]},"finishReason":"STOP"}]}'
    )
    got = read("gemini", half)
    assert got.text == "x\ud83d"
    assert [(name, json.loads(arguments)) for name, arguments in got.calls] == [
        ("read", {"path": "a"})
    ]


def test_arguments_of_the_providers_own_tools_get_into_no_call() -> None:
    got = read(
        "anthropic",
        *block(
            0,
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"query": "x"}'},
        ),
        *block(
            1,
            {"type": "tool_use", "id": "t", "name": "read", "input": {}},
            {"type": "input_json_delta", "partial_json": '{"path": "a"}'},
        ),
        ended("tool_use"),
    )
    assert got.calls == [("read", '{"path": "a"}')]
    assert got.pieces == {0: '{"path": "a"}'}


WHY = {"type": "refusal", "category": "cyber", "explanation": "It could do harm."}


@pytest.mark.parametrize(
    ("api", "events", "why"),
    [
        (
            "anthropic",
            [ended("refusal", stop_details=WHY)],
            "cyber. It could do harm.",
        ),
        (
            "anthropic",
            [*SAID, ended("refusal", stop_details=None)],
            "refusal.",
        ),
        (
            "openai",
            [{"choices": [{"delta": {}, "finish_reason": "content_filter"}]}],
            "content_filter",
        ),
        (
            "openai_responses",
            [
                HELLO,
                {
                    "type": "response.incomplete",
                    "response": {"incomplete_details": {"reason": "content_filter"}},
                },
            ],
            "content_filter",
        ),
        (
            "gemini",
            [candidate({"text": "Hello."}, finishReason="SAFETY", finishMessage="Why.")],
            "SAFETY. Why.",
        ),
        (
            "gemini",
            [{"promptFeedback": {"blockReason": "JAILBREAK", "blockReasonMessage": "Why."}}],
            "JAILBREAK. Why.",
        ),
        # What the model itself says to refuse needs no further words.
        (
            "openai",
            [{"choices": [{"delta": {"refusal": "I will not."}, "finish_reason": "stop"}]}],
            "",
        ),
    ],
)
def test_why_a_provider_refused_is_known(api: str, events: list[Json], why: str) -> None:
    finished = read(api, *events).finished
    assert (finished.stop, finished.why) == ("refusal", why)


def test_an_answer_to_be_continued_counts_as_cut_by_the_limit() -> None:
    got = read("gemini", candidate({"text": "Hello."}, finishReason="CONTINUATION"))
    assert got.last == Finished(stop="max_tokens")


def test_a_signature_without_text_is_stored() -> None:
    got = read(
        "gemini", candidate({"text": "Hello."}), candidate({"thoughtSignature": "s"}), SPOKEN
    )
    assert [provider_data["thoughtSignature"] for provider_data in got.provider_data] == ["s"]


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (
            {"object": "error", "message": "maximum context length is 8", "code": 400},
            "overflow",
        ),
        ({"message": "Slow down", "code": "rate_limit_exceeded"}, "rate_limit"),
        ({"message": "Bad key", "type": "authentication_error"}, "auth"),
    ],
)
def test_an_error_without_an_envelope_is_reported(event: Json, kind: str) -> None:
    got = read("openai", event)
    assert isinstance(got.last, Failed)
    assert got.last.kind == kind


def test_an_answer_of_nothing_but_a_call_without_a_name_is_empty() -> None:
    piece = {"index": 0, "id": "a", "function": {"arguments": "{}"}}
    got = read(
        "openai", {"choices": [{"delta": {"tool_calls": [piece]}, "finish_reason": "tool_calls"}]}
    )
    assert isinstance(got.last, Finished)
    assert not got.calls


def piece(index: int | None, call: str | None, name: str | None, arguments: Any = None) -> Json:
    function = {"name": name, "arguments": arguments}
    one = {"index": index, "id": call, "function": function}
    return {"choices": [{"delta": {"tool_calls": [one]}}]}


A, B = '{"path":"a"}', '{"path":"b"}'
LEGACY = [{"choices": [{"delta": {"function_call": one}}]}
          for one in ({"name": "read", "arguments": A[:4]}, {"arguments": A[4:]})]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "calls"),
    [
        ([piece(0, None, "read", A), piece(0, None, "write", B)], [("read", A), ("write", B)]),
        ([piece(None, "x", "read", A), piece(None, "x", "read", B)], [("read", A), ("read", B)]),
        ([piece(0, "x", "read", A), piece(0, "x", "read", A)], [("read", A)]),
        ([piece(0, "x", "read", A), piece(0, "x", "read", "")], [("read", A)]),
        ([piece(0, "x", "web_"), piece(0, None, "fetch", A)], [("web_fetch", A)]),
        ([piece(0, "x", "read", A[:4]), piece(0, "x", "read", A[4:])], [("read", A)]),
        ([piece(7, "x", "read", A), piece(3, "y", "read", B)], [("read", A), ("read", B)]),
        (LEGACY, [("read", A)]),
        (
            [piece(0, "", "read", A), piece(0, "", "write", ""), piece(0, None, None, B)],
            [("read", A), ("write", B)],
        ),
        # Arguments that begin again.
        ([piece(0, "x", "read", end) for end in ("", A[:3], A[:8], A)], [("read", A)]),
        ([piece(0, "x", "read", "{}"), piece(0, None, None, A)], [("read", A)]),
        (
            [*(piece(0, "x", "read", one) for one in (A[:4], A[4:])), piece(0, None, None, A)],
            [("read", A)],
        ),
        (
            [piece(0, "x", "read", '{"a":'), piece(0, None, None, '{"a":1}}')],
            [("read", '{"a":{"a":1}}')],
        ),
        # Without a list, and without an envelope.
        (
            [{"choices": [{"delta": {"tool_calls": {"name": "read", "arguments": A}}}]}],
            [("read", A)],
        ),
    ],
)
def test_calls_are_distinguished_however_a_service_numbers_them(
    events: list[Json], calls: list[tuple[str, str]]
) -> None:
    got = read("openai", *events, {"choices": [{"delta": {}, "finish_reason": "stop"}]})
    assert got.calls == calls
    assert got.finished.stop == "tool_calls"


REFUSED = {"type": "response.refusal.done", "output_index": 0, "refusal": "No."}
LOST = [
    {"type": "response.output_item.added", "output_index": 0,
     "item": {"type": "function_call", "name": "read"}},
    {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": A[:4]},
]  # fmt: skip


@pytest.mark.parametrize(
    ("api", "events", "text", "calls", "stop"),
    [
        ("openai_responses", [REFUSED], "No.", [], "refusal"),
        (
            "openai_responses",
            [
                {**HELLO, "delta": "Hel"},
                {"type": "response.output_text.done", "output_index": 1, "text": "Hello."},
            ],
            "Hello.",
            [],
            "end_turn",
        ),
        (
            "openai_responses",
            [{"type": "response.content_part.done", "part": {"type": "output_text", "text": "Hi"}}],
            "Hi",
            [],
            "end_turn",
        ),
        (
            "openai_responses",
            [
                *LOST,
                {
                    "type": "response.output_item.done",
                    "output_index": 0,
                    "item": {"type": "function_call", "arguments": A},
                },
            ],
            "",
            [("read", A)],
            "tool_calls",
        ),
        (
            "openai_responses",
            [
                {
                    "type": "response.output_item.done",
                    "item": {"type": "function_call", "name": "read", "arguments": {"path": "a"}},
                }
            ],
            "",
            [("read", A)],
            "tool_calls",
        ),
        ("anthropic", [*SAID, {"type": "message_stop"}], "Hello.", [], "end_turn"),
        (
            "anthropic",
            [
                *block(0, {"type": "tool_use", "name": "read"}, {"partial_json": {"path": "a"}}),
                ended("tool_use"),
            ],
            "",
            [("read", A)],
            "tool_calls",
        ),
        (
            "openai",
            [
                {
                    "choices": [
                        {
                            "delta": {
                                "content": [
                                    {"type": "thinking", "thinking": [{"text": "Hm"}]},
                                    {"text": "Hi"},
                                ]
                            }
                        }
                    ]
                },
                DONE,
            ],
            "HiHello.",
            [],
            "end_turn",
        ),
        (
            "openai",
            [b'{"choices":[{"delta":{"content":"Hi \xff"},"logprobs":NaN}]}', DONE],
            "Hi \ufffdHello.",
            [],
            "end_turn",
        ),
    ],
)
def test_incomplete_pieces_are_completed_by_the_whole_item(
    api: str, events: list[Json | bytes], text: str, calls: list[tuple[str, str]], stop: str
) -> None:
    closing = [COMPLETED] if api == "openai_responses" else []
    got = read(api, *events, *closing)
    assert (got.text, got.calls, got.finished.stop) == (text, calls, stop)


def test_an_answer_that_comes_whole_is_read() -> None:
    got = read("openai", {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]})
    assert got.text == "Hi"


def test_an_event_that_is_named_only_in_its_line_has_that_type() -> None:
    events = [*SAID, ended("end_turn")]
    stream = b"".join(
        f"event: {event.pop('type')}\r\ndata:{json.dumps(event)}\r\n\r\n".encode()
        for event in json.loads(json.dumps(events))
    )
    framing = SseDecoder()
    data = [part for at in range(0, len(stream), 7) for part in framing.feed(stream[at : at + 7])]
    got = read("anthropic", *data, *framing.end())
    assert got.text == "Hello."
    assert got.finished.stop == "end_turn"


def test_a_type_in_the_data_of_an_event_takes_precedence_over_its_name() -> None:
    framing = SseDecoder()
    data = framing.feed(b'event: message\ndata: {"index": 1, "type": "ping"}\n\n')
    assert [json.loads(part)["type"] for part in data] == ["ping"]
    # The name is that of one event only.
    assert framing.feed(b'data: {"index": 1}\n\n') == [b'{"index": 1}']


def test_gemini_with_names_in_snake_case_is_read_and_arguments_are_left_as_they_are() -> None:
    call = {"function_call": {"name": "read", "args": {"finish_reason": "x"}}}
    counts = {"prompt_token_count": 7, "candidates_token_count": 2}
    got = read(
        "gemini",
        {"candidates": [{"content": {"parts": [{"text": "Hello."}, call]}}]},
        {"candidates": [{"finish_reason": "STOP"}], "usage_metadata": counts},
    )
    assert got.text == "Hello."
    assert [(name, json.loads(arguments)) for name, arguments in got.calls] == [
        ("read", {"finish_reason": "x"})
    ]
    assert got.finished.usage.input == 7


def test_the_fields_of_the_older_api_and_of_other_services_are_read() -> None:
    got = read(
        "openai",
        {"choices": [{"delta": {"reasoning_text": "Hm."}}]},
        {"choices": [{"text": "Hello."}]},
        {"choices": [{"text": "", "finish_reason": "stop"}]},
    )
    assert (got.thought, got.text) == ("Hm.", "Hello.")
    assert got.finished.stop == "end_turn"


@pytest.mark.parametrize(
    ("api", "start", "content"),
    [
        ("anthropic", {"type": "message_start", "message": {}}, SAID),
        ("openai_responses", {"type": "response.created"}, [HELLO]),
    ],
)
def test_an_answer_that_begins_again_in_the_middle_was_cut(
    api: str, start: Json, content: Sequence[Json]
) -> None:
    got = read(api, start, *content, start, *content)
    assert got.text == "Hello."
    assert [event.kind for event in got.events if isinstance(event, Failed)] == ["connection"]

"""The bytes that the drivers send."""

import base64
import itertools
from typing import Any

import msgspec
import pytest
from msgspec import structs

from acp_agent.content import ImageBlock
from acp_agent.ids import CallId
from acp_agent.models import (
    anthropic_request,
    gemini_driver,
    openai_request,
    openai_responses_request,
)
from acp_agent.models.base import (
    RESERVED_OUTPUT,
    AnswerCall,
    AnswerText,
    AnswerThought,
    Message,
    ModelRequest,
    ModelSide,
    ThoughtLevel,
    ToolResult,
    ToolSpec,
    UserImage,
    UserSide,
    UserText,
)
from acp_agent.models.providers import Api, Dialect, Platform, Provider, presets
from acp_agent.models.request_parts import JsonCache, MessageCache
from tests.support.model_asking import ask

PICTURE = ImageBlock(data="aGk=", mime_type="image/png")
TOOL = ToolSpec(
    name="read",
    description="Read a file.",
    parameters={"type": "object", "properties": {"path": {"type": "string"}}},
)
SEALED = AnswerThought(
    text="Hmm",
    provider="anthropic",
    provider_data={"type": "thinking", "signature": "s1", "model": "scripted-model"},
)
HISTORY: list[Message] = [
    UserSide((UserText("Look at a.py"), UserImage(PICTURE))),
    ModelSide(
        (
            SEALED,
            AnswerText("I look."),
            AnswerCall(call=CallId("call_1"), name="read", arguments='{ "path":"a.py" }'),
            AnswerCall(call=CallId("call_2"), name="read", arguments="{broken"),
        )
    ),
    UserSide(
        (
            ToolResult(call=CallId("call_1"), text="x = 1", images=(PICTURE,)),
            ToolResult(call=CallId("call_2"), text="Arguments are no JSON.", failed=True),
        )
    ),
    UserSide((UserText("Go on."),)),
    ModelSide((AnswerText("Done."),)),
    UserSide((UserText("Thanks."),)),
]


def provider(api: Api, **dialect: Any) -> Provider:
    return Provider(
        id=api, name=api, api=api, base_url="http://127.0.0.1:1", dialect=Dialect(**dialect)
    )


def body(api: Api, request: ModelRequest, **dialect: Any) -> bytes:
    write = anthropic_request.body if api == "anthropic" else openai_request.body
    return write(provider(api, **dialect), request)


def decoded(api: Api, request: ModelRequest, **dialect: Any) -> Any:
    import json

    return json.loads(body(api, request, **dialect))


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_every_request_begins_with_the_previous_one(api: Api) -> None:
    bodies = [
        body(api, ask(*HISTORY[:count], provider=api, tools=[TOOL], model_vision=True))
        for count in range(1, len(HISTORY) + 1)
    ]
    for earlier, later in itertools.pairwise(bodies):
        # All but the brackets that close the last message, the messages and the body.
        assert later.startswith(earlier.rstrip(b"]}"))
        assert len(later) > len(earlier)


@pytest.mark.parametrize("api", ["openai", "openai_responses", "anthropic", "zai", "gemini"])
def test_cached_messages_are_sent_like_new_ones(api: str) -> None:
    def write(request: ModelRequest, kept: Any) -> bytes:
        match api:
            case "openai":
                return openai_request.body(provider("openai"), request, kept)
            case "openai_responses":
                return openai_responses_request.body(provider("openai"), request, kept)
            case "gemini":
                return gemini_driver.body(request, kept)
            case _:  # one that the marks of the cache move in, and one that they do not
                place = structs.replace(provider("anthropic"), id=api)
                return anthropic_request.body(place, request, kept)

    cache = JsonCache if api.startswith("openai") else MessageCache
    kept = cache()
    history = [*HISTORY, *HISTORY[-1:], UserSide((UserText("Bye."),))]
    other = [*history[:2], UserSide((UserText("Something else."),)), *history[3:]]
    conversations = [history[:count] for count in range(1, len(history) + 1)]
    # After a rewind, after a change in the middle, and after another first message.
    conversations += [history[:3], history, other, history, history[1:], other[:4], history]
    for messages in conversations:
        for model in ("one", "other"):
            request = ask(*messages, provider=api, model_id=model, model_vision=True)
            assert write(request, kept) == write(request, cache())


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_the_same_request_is_the_same_bytes(api: Api) -> None:
    request = ask(*HISTORY, provider=api, tools=[TOOL])
    assert body(api, request) == body(api, request)


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_the_constant_parts_of_a_session_precede_the_messages(api: Api) -> None:
    sent = body(api, ask(*HISTORY, provider=api, tools=[TOOL]))
    assert sent.index(b'"tools"') < sent.index(b'"messages"') < sent.index(b"Look at a.py")
    assert sent.index(b"Be brief.") < sent.index(b"Look at a.py")


def test_openai_gets_results_first_and_their_pictures_in_a_message_of_the_users() -> None:
    messages = decoded("openai", ask(*HISTORY[:3], model_vision=True))["messages"]
    assert [message["role"] for message in messages] == [
        "system", "user", "assistant", "tool", "tool", "user",
    ]  # fmt: skip
    assert messages[3] == {"role": "tool", "tool_call_id": "call_1", "content": "x = 1"}
    assert messages[4]["content"].startswith("Error: ")
    assert messages[5]["content"][1]["image_url"]["url"] == "data:image/png;base64,aGk="
    assert messages[2]["tool_calls"][0]["function"]["arguments"] == '{ "path":"a.py" }'


def test_arguments_that_are_no_json_object_are_wrapped_in_one() -> None:
    calls = decoded("openai", ask(*HISTORY[:3]))["messages"][2]["tool_calls"]
    assert calls[1]["function"]["arguments"] == '{"unreadable_arguments":"{broken"}'
    blocks = decoded("anthropic", ask(*HISTORY[:3], provider="anthropic"))["messages"][1]["content"]
    assert blocks[-1]["input"] == {"unreadable_arguments": "{broken"}
    assert blocks[-2]["input"] == {"path": "a.py"}


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_model_without_vision_gets_text_for_pictures(api: Api) -> None:
    sent = body(api, ask(*HISTORY[:3], provider=api, model_vision=False))
    assert b"aGk=" not in sent
    assert b"cannot see pictures" in sent


def test_anthropic_gets_results_with_their_pictures_and_errors() -> None:
    messages = decoded("anthropic", ask(*HISTORY[:4], provider="anthropic", model_vision=True))[
        "messages"
    ]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    first, second, text = messages[2]["content"]
    assert [block["type"] for block in first["content"]] == ["text", "image"]
    assert (second["is_error"], second["tool_use_id"]) == (True, "call_2")
    assert text == {"type": "text", "text": "Go on."}


def test_anthropic_gets_the_pictures_of_an_error_after_it() -> None:
    result = ToolResult(call=CallId("call_1"), text="It broke.", failed=True, images=(PICTURE,))
    history: list[Message] = [
        UserSide((UserText("Draw"),)),
        ModelSide((AnswerCall(call=CallId("call_1"), name="draw", arguments="{}"),)),
        UserSide((result, UserText("And now?"))),
    ]
    request = ask(*history, provider="anthropic", model_vision=True)
    told, *rest = decoded("anthropic", request)["messages"][-1]["content"]
    assert [part["type"] for part in told["content"]] == ["text"]
    assert told["is_error"]
    assert [part["type"] for part in rest] == ["text", "image", "text"]


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("read", "read"),
        ("mcp__a-b__c_d", "mcp__a-b__c_d"),
        ("browser.tabs.open", "browser_tabs_open"),
        ("$lookup", "_lookup"),
        ("3d", "_3d"),
        ("-x", "_-x"),
        ("", "_"),
        ("über all", "_ber_all"),
        ("x" * 100, "x" * 64),
        ("9" * 100, "_" + "9" * 63),
    ],
)
def test_a_call_of_an_unknown_tool_is_sent_back_under_a_valid_name(name: str, sent: str) -> None:
    history: list[Message] = [
        UserSide((UserText("Hello"),)),
        ModelSide((AnswerCall(call=CallId("call_1"), name=name, arguments="{}"),)),
        UserSide((ToolResult(call=CallId("call_1"), text="no such tool", failed=True),)),
    ]
    request = ask(*history)
    chat = msgspec.json.decode(openai_request.body(provider("openai"), request))
    responses = msgspec.json.decode(openai_responses_request.body(provider("openai"), request))
    claude = msgspec.json.decode(anthropic_request.body(provider("anthropic"), request))
    gemini = msgspec.json.decode(gemini_driver.body(request))
    assert chat["messages"][2]["tool_calls"][0]["function"]["name"] == sent
    assert responses["input"][1]["name"] == sent
    assert claude["messages"][1]["content"][0]["name"] == sent
    assert gemini["contents"][1]["parts"][0]["functionCall"]["name"] == sent
    assert gemini["contents"][2]["parts"][0]["functionResponse"]["name"] == sent


PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 200
CODED = base64.b64encode(PNG).decode()


@pytest.mark.parametrize(
    ("data", "kind", "told"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "image/jpeg", "image/png"),  # its bytes say better what it is
        (PNG, "application/octet-stream", "image/png"),
        (b"<svg/>", "image/svg+xml", "it is of the type image/svg+xml, which cannot be sent"),
        (b"BM" + b"x" * 100, "image/bmp", "it is of the type image/bmp"),
        ("%%%no base64%%%", "image/png", "its data is damaged"),
        ("aGk", "image/png", "its data is damaged"),
        (CODED[:80] + "-_-_" + CODED[80:], "image/png", "its data is damaged"),
        (CODED[:80] + "====" + CODED[80:], "image/png", "its data is damaged"),
        ("", "image/png", "its data is damaged"),
    ],
)
def test_a_picture_that_no_provider_accepts_is_replaced_by_text(
    data: bytes | str, kind: str, told: str
) -> None:
    coded = data if isinstance(data, str) else base64.b64encode(data).decode()
    picture = ImageBlock(data=coded, mime_type=kind)
    request = ask(UserSide((UserText("See"), UserImage(picture))), model_vision=True)
    bodies = [
        openai_request.body(provider("openai"), request),
        openai_responses_request.body(provider("openai"), request),
        anthropic_request.body(provider("anthropic"), request),
        gemini_driver.body(request),
    ]
    for sent in bodies:
        assert told.encode() in sent
        assert (coded.encode() in sent) == told.startswith("image/") or not coded


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", " "])
def test_a_picture_in_several_lines_of_base64_is_sent_in_one(end: str) -> None:
    coded = base64.encodebytes(PNG).decode().replace("\n", end)
    picture = ImageBlock(data=coded, mime_type="image/png")
    request = ask(UserSide((UserImage(picture),)), model_vision=True)
    assert base64.b64encode(PNG) in gemini_driver.body(request)


@pytest.mark.parametrize(
    ("platform", "size", "shown"),
    [(None, 6, True), (None, 11, False), ("bedrock", 4, True), ("vertex", 6, False)],
)
def test_a_picture_too_large_for_claude_is_replaced_by_text(
    platform: Platform | None, size: int, shown: bool
) -> None:
    picture = ImageBlock(data="A" * (size * 1024 * 1024), mime_type="image/png")
    request = ask(UserSide((UserImage(picture),)), model_vision=True)
    place = msgspec.structs.replace(provider("anthropic"), platform=platform)
    body = anthropic_request.body(place, request)
    assert (b"characters in base64" not in body) == shown
    assert (len(body) > size * 1024 * 1024) == shown


def test_the_cache_marks_for_anthropic_do_not_move() -> None:
    sent = decoded("anthropic", ask(*HISTORY, provider="anthropic", tools=[TOOL]))
    assert sent["cache_control"] == {"type": "ephemeral"}
    assert sent["system"][-1]["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in str(sent["messages"])


def test_a_router_gets_cache_marks_for_anthropics_models_only() -> None:
    for model, told in (("anthropic/claude-x", True), ("openai/gpt-x", False)):
        request = ask(*HISTORY, model_id=model, tools=[TOOL])
        assert ("cache_control" in decoded("openai", request, cache_control=True)) is told
        assert "cache_control" not in decoded("openai", request)
    openrouter = next(preset for preset in presets() if preset.id == "openrouter")
    assert openrouter.dialect.cache_control


def test_sealed_reasoning_goes_back_to_the_model_that_did_it_and_to_no_other() -> None:
    redacted = AnswerThought(
        text="",
        provider="anthropic",
        provider_data={"type": "redacted_thinking", "data": "x", "model": "scripted-model"},
    )
    said = ModelSide((SEALED, redacted, AnswerText("Yes")))
    request = ask(HISTORY[0], said, provider="anthropic")
    blocks = decoded("anthropic", request)["messages"][1]["content"]
    assert blocks[:2] == [
        {"type": "thinking", "thinking": "Hmm", "signature": "s1"},
        {"type": "redacted_thinking", "data": "x"},
    ]
    other = decoded("anthropic", ask(HISTORY[0], said, provider="anthropic", model_id="other"))
    assert [block["type"] for block in other["messages"][1]["content"]] == ["text"]
    assert b"Hmm" not in body("openai", ask(HISTORY[0], said), thoughts_back="reasoning_content")


def test_reasoning_goes_back_in_the_way_the_service_wants_it() -> None:
    thought = AnswerThought(
        text="Hmm",
        provider="openai",
        provider_data={"reasoning_details": [{"type": "x", "data": "d"}]},
    )
    request = ask(HISTORY[0], ModelSide((thought, AnswerText("Yes"))))
    plain = decoded("openai", request)["messages"][2]
    assert plain == {"role": "assistant", "content": "Yes"}
    as_text = decoded("openai", request, thoughts_back="reasoning_content")["messages"][2]
    assert as_text["reasoning_content"] == "Hmm"
    as_it_was = decoded("openai", request, thoughts_back="reasoning_details")["messages"][2]
    assert as_it_was["reasoning_details"] == [{"type": "x", "data": "d"}]


def test_a_signature_goes_back_with_its_call() -> None:
    extra = {"google": {"thought_signature": "c2ln"}}
    call = AnswerCall(
        call=CallId("call_1"), name="read", arguments="{}", provider_data={"extra_content": extra}
    )
    sent = decoded("openai", ask(HISTORY[0], ModelSide((call,))))["messages"][2]
    assert sent["tool_calls"][0]["extra_content"] == extra
    assert sent["content"] is None


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_an_answer_of_reasoning_alone_is_not_sent(api: Api) -> None:
    request = ask(HISTORY[0], ModelSide((SEALED,)), HISTORY[3], provider=api)
    assert "assistant" not in {m["role"] for m in decoded(api, request)["messages"]}


@pytest.mark.parametrize(
    ("place", "sent"), [("anthropic", ["text"]), ("zhipu", ["thinking", "text"])]
)
def test_anthropic_gets_no_reasoning_that_an_answer_was_cut_off_in(
    place: str, sent: list[str]
) -> None:
    unsigned = {"type": "thinking", "signature": "", "model": "scripted-model"}
    signed = {"type": "thinking", "signature": "s", "model": "scripted-model"}
    answered = (
        AnswerThought(text="Hm", provider=place, provider_data=unsigned),
        AnswerText("I look."),
        AnswerThought(text="Then", provider=place, provider_data=signed),
        AnswerThought(text="And", provider=place, provider_data=unsigned),
    )
    history = (UserSide((UserText("Hello"),)), ModelSide(answered), UserSide((UserText("Go on"),)))
    request = ask(*history, provider=place)
    told = decoded("anthropic", request)["messages"][1]["content"]
    assert [block["type"] for block in told] == sent


def test_anthropic_gets_no_empty_text() -> None:
    said = UserSide((UserText("  \n"), ToolResult(call=CallId("call_1"), text="")))
    request = ask(HISTORY[0], HISTORY[1], said, provider="anthropic")
    (result,) = decoded("anthropic", request)["messages"][2]["content"]
    assert result["content"][0]["text"] == "(no output)"


LEVELS: tuple[ThoughtLevel, ...] = ("off", "low", "high", "max")


@pytest.mark.parametrize(
    ("api", "control", "level", "sent"),
    [
        ("openai", "effort", "high", {"reasoning_effort": "high"}),
        ("openai", "effort", "off", {"reasoning_effort": "none"}),
        ("openai", "toggle", "high", {"thinking": {"type": "enabled"}}),
        ("openai", "toggle", "off", {"thinking": {"type": "disabled"}}),
        ("openai", "toggle_effort", "max",
         {"thinking": {"type": "enabled"}, "reasoning_effort": "max"}),
        ("openai", "flag", "off", {"enable_thinking": False}),
        ("openai", "router", "low", {"reasoning": {"effort": "low"}}),
        ("openai", "router", "off", {"reasoning": {"enabled": False}}),
        ("openai", "none", "high", {}),
        ("openai", "effort", None, {}),
        ("openai", "effort", "xhigh", {}),
        ("anthropic", "adaptive", "high",
         {"thinking": {"type": "adaptive", "display": "summarized"},
          "output_config": {"effort": "high"}}),
        ("anthropic", "adaptive", "off", {"thinking": {"type": "disabled"}}),
        ("anthropic", "between_tools", "off", {"thinking": {"type": "between_tools"}}),
        ("anthropic", "budget", "low", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
        ("anthropic", "budget", "off", {"thinking": {"type": "disabled"}}),
        ("anthropic", "effort", "low",
         {"thinking": {"type": "adaptive", "display": "summarized"},
          "output_config": {"effort": "low"}}),
        ("anthropic", "none", "high", {}),
    ],
)  # fmt: skip
def test_the_thought_level_is_sent_in_the_form_of_the_model(
    api: Api, control: str, level: str | None, sent: dict[str, Any]
) -> None:
    request = ask(
        provider=api,
        thought_level=level,
        model_reasoning=control,
        model_thought_levels=LEVELS,
        model_max_output=32_000,
    )
    written = decoded(api, request)
    keys = {"reasoning_effort", "thinking", "enable_thinking", "reasoning", "output_config"}
    assert {key: value for key, value in written.items() if key in keys} == sent


@pytest.mark.parametrize("api", ["openai", "anthropic", "openai_responses", "gemini"])
def test_a_temperature_is_sent_only_if_the_user_set_one(api: Api) -> None:
    def sent(**model: Any) -> Any:
        request = ask(provider=api, **model)
        match api:
            case "gemini":
                body = gemini_driver.body(request)
            case "openai_responses":
                body = openai_responses_request.body(provider(api), request)
            case _:
                return decoded(api, request).get("temperature")
        written = msgspec.json.decode(body)
        return written.get("generationConfig", written).get("temperature")

    assert sent() is None
    assert sent(model_temperature=0.0) == 0.0


def test_a_budget_of_thoughts_leaves_room_for_the_answer() -> None:
    request = ask(
        provider="anthropic",
        thought_level="max",
        model_reasoning="budget",
        model_thought_levels=LEVELS,
        model_max_output=8_000,
    )
    assert decoded("anthropic", request)["thinking"]["budget_tokens"] == 4_000


def test_a_model_is_not_let_think_where_the_longest_answer_has_no_room_for_it() -> None:
    request = ask(
        provider="anthropic",
        thought_level="low",
        model_reasoning="budget",
        model_thought_levels=LEVELS,
        model_max_output=1_500,
    )
    assert decoded("anthropic", request)["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(("level", "sent"), [("high", None), ("off", 1.0)])
def test_anthropic_gets_a_temperature_in_its_range(level: str, sent: float | None) -> None:
    request = ask(
        provider="anthropic",
        thought_level=level,
        model_reasoning="adaptive",
        model_thought_levels=LEVELS,
        model_temperature=1.5,
    )
    assert decoded("anthropic", request).get("temperature") == sent


def test_the_limit_of_an_answer_has_the_name_that_the_service_knows() -> None:
    request = ask(model_max_output=500_000, session="sess_1")
    assert decoded("openai", request)["max_tokens"] == 64_000
    newer = decoded("openai", request, max_tokens="max_completion_tokens", cache_key=True)
    assert newer["max_completion_tokens"] == 64_000
    assert newer["prompt_cache_key"] == "sess_1"
    assert "max_tokens" not in newer
    none = decoded("openai", request, max_tokens=None)
    assert not {"max_tokens", "max_completion_tokens", "prompt_cache_key"} & set(none)


@pytest.mark.parametrize("api", ["openai", "openai_responses", "gemini"])
def test_an_unknown_limit_of_the_answer_is_not_sent(api: Api) -> None:
    unknown = ask(model_max_output=RESERVED_OUTPUT, model_limit_known=False)
    assert b"max" not in body(api, unknown).lower()

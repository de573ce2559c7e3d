"""What models write where they write tool calls as text, and what becomes of it."""

import json

import pytest

from acp_agent.models.dialects.driver import FORMS, select_forms
from acp_agent.models.dialects.form import Tools, Verdict, marks_pattern
from acp_agent.models.dialects.scanner import Scanner
from acp_agent.models.dialects.writers import writer
from tests.models.dialect_reading import TOOLS, read, seen

# As the models' chat templates have it, or as servers were seen to pass it on.
WRITTEN = {
    "hermes": (
        '<tool_call>\n{"name": "read", "arguments": {"path": "a.py", "limit": 3}}\n</tool_call>'
    ),
    "qwen_coder": (
        "<tool_call>\n<function=read>\n<parameter=path>\na.py\n</parameter>\n"
        "<parameter=limit>\n3\n</parameter>\n</function>\n</tool_call>"
    ),
    "glm": (
        "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n"
        "<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"
    ),
    "invoke": (
        '<function_calls>\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n'
        '<parameter name="limit">3</parameter>\n</invoke>\n</function_calls>'
    ),
    "minimax": (
        '<minimax:tool_call>\n<invoke name="read">\n<parameter name="path">a.py</parameter>\n'
        '<parameter name="limit">3</parameter>\n</invoke>\n</minimax:tool_call>'
    ),
    "deepseek": (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>"
        '{"path": "a.py", "limit": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    ),
    "kimi": (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0"
        '<|tool_call_argument_begin|>{"path": "a.py", "limit": 3}<|tool_call_end|>'
        "<|tool_calls_section_end|>"
    ),
    "dsml": (
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="read">\n'
        '<｜DSML｜parameter name="path" string="true">a.py</｜DSML｜parameter>\n'
        '<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
    ),
    "kimi_k3": (
        '<|open|>tools<|sep|><|open|>call tool="read" index="1"<|sep|>'
        '<|open|>argument key="path" type="string"<|sep|>a.py<|close|>argument<|sep|>'
        '<|open|>argument key="limit" type="number"<|sep|>3<|close|>argument<|sep|>'
        "<|close|>call<|sep|><|close|>tools<|sep|>"
    ),
    "harmony": (
        "<|channel|>commentary to=functions.read <|constrain|>json<|message|>"
        '{"path": "a.py", "limit": 3}<|call|>'
    ),
    "mistral": '[TOOL_CALLS][{"name": "read", "arguments": {"path": "a.py", "limit": 3}}]',
    "llama": '<|python_tag|>{"name": "read", "parameters": {"path": "a.py", "limit": 3}}',
    "fenced": '```json\n{"name": "read", "arguments": {"path": "a.py", "limit": 3}}\n```',
}
VARIANTS = [
    ("deepseek", (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n"
        '{"path": "a.py", "limit": 3}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
    )),
    ("kimi", (
        '<|tool_call_section_begin|><|tool_call_begin|>read:12<|tool_call_argument_begin|>'
        '{"path": "a.py", "limit": 3}<|tool_call_end|>'
    )),
    ("dsml", (
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="read">\n{"path": "a.py", "limit": 3}\n'
        "</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
    )),
    ("dsml", (
        '<｜DSML｜ calls>\n<｜DSML｜ invoke name="read">\n'
        '<｜DSML｜ parameter name="path" string="true">a.py</｜DSML｜ parameter>\n'
        '<｜DSML｜ parameter name="limit" string="false">3</｜DSML｜ parameter>\n'
        "</｜DSML｜ invoke>\n</｜DSML｜ calls>"
    )),
    ("dsml", (
        '<｜｜DSML｜｜invoke name="read"><｜｜DSML｜｜parameter name="path" string="true">a.py'
        '</｜｜DSML｜｜parameter><｜｜DSML｜｜parameter name="limit" string="false">3'
        "</｜｜DSML｜｜parameter></｜｜DSML｜｜invoke></｜｜DSML｜｜tool_calls>"
    )),
    ("kimi_k3", (
        '<|open|>call tool="read" index="1"<|sep|><|open|>json type="object"<|sep|>'
        '{"path": "a.py", "limit": 3}<|close|>json<|sep|><|close|>call<|sep|>'
        "<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>"
    )),
    ("harmony", (
        "<|start|>assistant to=functions.read<|channel|>commentary json<|message|>"
        '{"path": "a.py", "limit": 3}'
    )),
    ("harmony", (
        '<|channel|>analysis to=functions.read code<|message|>{"path": "a.py", "limit": 3}<|end|>'
        "<|start|>assistant"
    )),
    ("mistral", '[TOOL_CALLS]read[ARGS]{"path": "a.py", "limit": 3}'),
    ("mistral", '[TOOL_CALLS]read[CALL_ID]a1b2c3d4e[ARGS]{"path": "a.py", "limit": 3}'),
    ("llama", '{"type": "function", "name": "read", "parameters": {"path": "a.py", "limit": 3}}'),
    ("llama", (
        '<|python_tag|>{"type": "function", "name": "read", "parameters": {"path": "a.py", '
        '"limit": 3}}<|eom_id|>'
    )),
    ("llama", (
        '{"type": "function", "function": {"name": "read", "parameters": {"path": "a.py", '
        '"limit": 3}}}'
    )),
    ("llama", '[{"function": {"name": "read", "arguments": {"path": "a.py", "limit": 3}}}]'),
    ("deepseek", (
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>"
        '{"path": "a.py", "limit": 3}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>'
    )),
    ("kimi", (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0"
        '<|tool_call_argument_begin|>{"path": "a.py", "limit": 3}<|tool_call_end|><|im_end|>'
    )),
    ("hermes", (
        '<tool_call>{{"name": "read", "arguments": {"path": "a.py", "limit": 3}}}</tool_call>'
    )),
    ("hermes", (
        '<tool_call>{"name": "read", "arguments": "{\\"path\\": \\"a.py\\", \\"limit\\": 3}"}'
    )),
    ("qwen_coder", (
        "<function=read>\n<parameter=path>\na.py\n</parameter>\n<parameter=limit>3"
        "</parameter></function>"
    )),
    ("invoke", (
        '<invoke name="read"><parameter name="path">a.py</parameter>'
        '<parameter name="limit"> 3 </parameter></invoke>'
    )),
    ("fenced", '```\n{"tool": "read", "args": {"path": "a.py", "limit": 3}}\n```'),
    ("fenced", '```json\n[{"name": "read", "input": {"path": "a.py", "limit": 3}}]\n```\n'),
]  # fmt: skip
CALL = ("call", "read", '{"path": "a.py", "limit": 3}')


@pytest.mark.parametrize("dialect", WRITTEN)
def test_a_call_becomes_a_call_and_its_tags_are_not_shown(dialect: str) -> None:
    before = "" if dialect == "llama" else "I look.\n"
    told = read(dialect, before + WRITTEN[dialect])
    assert told == ([("text", before)] if before else []) + [CALL]


@pytest.mark.parametrize(("dialect", "written"), VARIANTS)
def test_variants_of_a_dialect_are_understood(dialect: str, written: str) -> None:
    assert read(dialect, written) == [CALL]
    for at in range(len(written)):
        assert read(dialect, written[:at], written[at:]) == [CALL]


@pytest.mark.parametrize("dialect", FORMS)
def test_several_calls_are_reported_in_their_order(dialect: str) -> None:
    calls = [(0, "read", '{"path": "a.py"}'), (1, "write", '{"path": "b", "content": "x\\ny"}')]
    told = read(dialect, writer(dialect).calls(calls))
    assert told == [("call", name, arguments) for _, name, arguments in calls]


def test_text_between_and_after_calls_stays_where_it_was() -> None:
    call = WRITTEN["hermes"]
    told = read("hermes", f"First.\n{call}\n\nThen.\n{call}\nDone.")
    assert told == [("text", "First.\n"), CALL, ("text", "\n\nThen.\n"), CALL, ("text", "\nDone.")]


@pytest.mark.parametrize("dialect", FORMS)
def test_a_call_with_the_dialects_own_tags_in_its_arguments_is_complete(dialect: str) -> None:
    form = FORMS[dialect]
    tags = " ".join((*form.openers, *form.ends)).replace("\n", " ")
    content = f'say "{tags}" and \\ {{"name": "read"}} or [x]'
    arguments = json.dumps({"path": "notes", "content": content}, ensure_ascii=False)
    told = read(dialect, writer(dialect).calls([(0, "write", arguments)]))
    assert told == [("call", "write", arguments)]


@pytest.mark.parametrize("dialect", FORMS)
def test_a_document_about_other_forms_passes_unharmed(dialect: str) -> None:
    others = "\n\n".join(
        written for name, written in WRITTEN.items() if not set(FORMS[name].openers)
        & {*FORMS[dialect].openers, *FORMS[dialect].strays}
        and not (dialect == "minimax" and name == "invoke")
        and not (dialect == "invoke" and name == "minimax")
    )  # fmt: skip
    document = f"# How models call tools\n\n{others}\n\n<p>1 < 2 && a[0]</p>\n"
    assert read(dialect, document) == [("text", document)]


@pytest.mark.parametrize("dialect", ["hermes", "qwen_coder", "glm", "invoke", "minimax"])
def test_an_example_in_code_is_not_called(dialect: str) -> None:
    example = WRITTEN[dialect]
    opener = FORMS[dialect].openers[0]
    text = f"Calls look like this:\n\n```xml\n{example}\n```\n\nThey begin with `{opener}`.\n"
    assert read(dialect, text) == [("text", text)]
    assert read(dialect, text + example)[1:] == [CALL], "after the code calls are calls again"


@pytest.mark.parametrize(("dialect", "text"), [
    ("hermes", "The tag <tool_call> opens a call, and </tool_call> ends it."),
    ("qwen_coder", "Write <function=name> for a function."),
    ("glm", "A <tool_call> tag is first."),
    ("invoke", 'Use <invoke name="other"> with care.'),
    ("fenced", '```json\n{"name": "my-package", "version": "1.0"}\n```\n'),
    ("fenced", '```json\n{"name": "read", "version": "1.0"}\n```\n'),
    ("fenced", '```json\n{"name": "read", "arguments": {}, "more": 1}\n```\n'),
    ("fenced", '```python\nprint({"name": "read"})\n```\n'),
    ("llama", '{"name": "Ada", "age": 36}'),
    ("llama", '{"name": "read", "parameters": {}, "because": "I can"}'),
    ("llama", "[1, 2, 3]"),
])  # fmt: skip
def test_text_that_only_resembles_a_call_is_text(dialect: str, text: str) -> None:
    assert read(dialect, text) == [("text", text)]


@pytest.mark.parametrize("dialect", ["hermes", "invoke", "glm", "auto"])
def test_a_quoted_call_is_text(dialect: str) -> None:
    example = WRITTEN["invoke" if dialect == "auto" else dialect].replace("\n", "\n> ")
    text = f"The file says:\n\n> {example}\n\nThat is all.\n"
    assert read(dialect, text) == [("text", text)]


def test_reasoning_is_removed_from_the_text() -> None:
    told = read("hermes", "<think>\nLook at <tool_call> first.\n</think>\n\nYes.")
    assert told == [("thought", "\nLook at <tool_call> first.\n"), ("text", "Yes.")]


def test_the_end_of_reasoning_that_the_template_began_is_not_shown() -> None:
    assert read("hermes", "Hmm.\n</think>\n\nYes.") == [("text", "Hmm.\nYes.")]


@pytest.mark.parametrize(("dialect", "written"), [
    ("kimi_k3", (
        "<|open|>think<|sep|>Hm, <b>.<|close|>think<|sep|><|open|>response<|sep|>I look."
        "<|close|>response<|sep|>{call}<|close|>message<|sep|><|end_of_msg|>"
    )),
    ("harmony", (
        "<|channel|>analysis<|message|>Hm, <b>.<|end|><|start|>assistant<|channel|>commentary"
        "<|message|>I look.<|end|><|start|>assistant{call}"
    )),
    ("harmony", (
        "<|channel|>analysis<|message|>Hm, <b>.<|start|>assistant<|channel|>final<|message|>"
        "I look.<|return|>{call}"
    )),
])  # fmt: skip
def test_reasoning_and_answers_in_a_forms_own_tags_are_recognised(
    dialect: str, written: str
) -> None:
    text = written.format(call=WRITTEN[dialect])
    expected = [("thought", "Hm, <b>."), ("text", "I look."), CALL]
    assert read(dialect, text) == read(dialect, *text) == expected
    pieces = [text[: text.index("<b>")], text[text.index("<b>") :]]
    scanner = Scanner(select_forms(dialect), TOOLS)
    assert seen(scanner.feed(pieces[0])) == [("thought", "Hm, ")], "it is shown as it comes"


@pytest.mark.parametrize(("dialect", "written"), [
    ("dsml", "<｜DSML｜tool_calls>I do not.</｜DSML｜tool_calls>"),
    ("dsml", "I do not.</｜DSML｜parameter></｜DSML｜invoke>"),
    ("dsml", (
        '<｜DSML｜tool_calls><｜DSML｜invoke name="read"></｜DSML｜invoke></｜DSML｜ calls>'
        "I do not.<｜｜DSML｜｜tool_calls></｜DSML｜tool_calls>"
    )),
    ("kimi_k3", (
        '<|open|>tools<|sep|><|open|>call tool="read" index="1"<|sep|><|close|>call<|sep|>'
        "<|close|>argument<|sep|>I do not.<|end_of_msg|><|close|>tools<|sep|>"
    )),
    ("kimi_k3", "<|open|>tools<|sep|>I do not.<|close|>tools<|sep|>"),
    ("kimi_k3", "<|open|>call<|sep|>I do not."),
    ("kimi_k3", '<|open|>tools type="all"<|sep|>I do not.'),
    ("kimi_k3", "Hm.<|close|>think<|sep|><|open|>response<|sep|>I do not."),
    ("harmony", "<|start|>assistant<|end|><|channel|>final<|constrain|>json<|message|>I do not."),
    ("harmony", "<|channel|>final<|message|>I do not.<|return|>"),
])  # fmt: skip
def test_control_tokens_that_belong_to_no_call_are_not_shown(dialect: str, written: str) -> None:
    told = "".join(one[1] for one in read(dialect, written) if one[0] == "text")
    assert told.removeprefix("Hm.") == "I do not."


def test_think_tags_inside_of_a_line_or_of_code_are_text() -> None:
    text = "Models write a <think> tag, and\n```\n<think>x</think>\n```\n"
    assert read("hermes", text) == [("text", text)]


def test_arguments_that_are_bare_text_get_the_types_of_the_tools_schema() -> None:
    values = {"path": "5", "limit": "7", "whole": "True", "ratio": "0.5", "tags": '["a"]'}
    written = "".join(f'<parameter name="{k}">{v}</parameter>' for k, v in values.items())
    [(_, _, arguments)] = read("invoke", f'<invoke name="read">{written}</invoke>')
    assert json.loads(arguments) == {
        "path": "5", "limit": 7, "whole": True, "ratio": 0.5, "tags": ["a"],
    }  # fmt: skip


def test_an_argument_of_a_wrong_type_stays_text_for_the_tool_to_refuse() -> None:
    written = '<invoke name="read"><parameter name="limit">many</parameter></invoke>'
    assert read("invoke", written) == [("call", "read", '{"limit": "many"}')]


def test_a_value_keeps_its_lines_and_only_loses_those_that_the_form_adds() -> None:
    code = "\ndef f():\n    return 1\n"
    told = read("qwen_coder", writer("qwen_coder").calls(
        [(0, "write", json.dumps({"path": "a", "content": code}))]
    ))  # fmt: skip
    assert json.loads(told[0][2])["content"] == code


@pytest.mark.parametrize("dialect", WRITTEN)
def test_a_call_without_its_end_is_never_run_and_never_lost(dialect: str) -> None:
    written = WRITTEN[dialect]
    half = written[: written.index("a.py") + 2]
    told = read(dialect, half)
    [(_, name, arguments)] = told
    assert name in {"read", "unreadable_call"}
    with pytest.raises(ValueError):  # noqa: PT011 - no JSON, so nothing can run it
        json.loads(arguments)
    assert "was not run" in arguments
    assert "a." in arguments


@pytest.mark.parametrize("dialect", WRITTEN)
def test_a_call_cut_off_by_the_answers_limit_is_not_reported(dialect: str) -> None:
    written = WRITTEN[dialect]
    assert read(dialect, written[: written.index("a.py") + 2], cut=True) == []


@pytest.mark.parametrize("dialect", [
    "hermes", "deepseek", "kimi", "mistral", "invoke", "fenced", "harmony",
])  # fmt: skip
def test_a_call_without_its_last_tag_is_a_call(dialect: str) -> None:
    written = WRITTEN[dialect]
    for end in FORMS[dialect].ends:
        if end not in "}]" and end != "</invoke>":
            written = written.removesuffix(end)
    assert read(dialect, written) == [CALL]


def test_a_call_that_is_no_json_is_reported_with_advice_and_the_next_is_read() -> None:
    bad = '<tool_call>\n{"name": "read", "arguments": {"path": "say "hi""}}\n</tool_call>'
    told = read("hermes", f"{bad}\n{WRITTEN['hermes']}")
    assert told[0][:2] == ("call", "read")
    assert told[0][2].startswith("The call is not valid JSON. Write it again")
    assert told[1:] == [CALL]


def test_the_error_for_a_call_without_a_tool_says_so() -> None:
    [(_, name, arguments)] = read("hermes", '<tool_call>{"arguments": {}}</tool_call>')
    assert name == "unreadable_call"
    assert arguments.startswith("The call names no tool.")


@pytest.mark.parametrize("dialect", ["invoke", "minimax", "qwen_coder", "glm"])
def test_a_value_ends_only_where_something_can_follow_it(dialect: str) -> None:
    content = "close with </parameter> or </arg_value> or </invoke> or </function>, then go on"
    arguments = json.dumps({"path": "a", "content": content})
    told = read(dialect, writer(dialect).calls([(0, "write", arguments)]))
    assert told == [("call", "write", arguments)]


@pytest.mark.parametrize("dialect", ["fenced", "llama"])
def test_a_list_is_calls_only_if_all_of_it_is(dialect: str) -> None:
    calls = '[{"name": "read", "arguments": {}}, {"name": "someone", "arguments": {}}]'
    text = f"```json\n{calls}\n```" if dialect == "fenced" else calls
    assert read(dialect, text) == [("text", text)]


def test_text_among_the_arguments_makes_no_half_call() -> None:
    written = (
        '<function_calls><invoke name="read">oops<parameter name="path">a</parameter></invoke>'
    )
    [(_, name, arguments)] = read("invoke", f"{written}</function_calls>")
    assert name == "read"
    assert "was not run" in arguments


def test_line_ends_inside_of_json_strings_are_forgiven() -> None:
    written = (
        '<tool_call>{"name": "write", "arguments": {"path": "a", "content": "x\ny"}}</tool_call>'
    )
    [(_, _, arguments)] = read("hermes", written)
    assert json.loads(arguments)["content"] == "x\ny"


def test_a_tag_that_came_in_part_only_is_not_shown_when_the_limit_cut_the_answer() -> None:
    assert read("hermes", "Look: <tool_ca", cut=True) == [("text", "Look: ")]
    assert read("hermes", "Look: a <", cut=True) == [("text", "Look: a <")]


@pytest.mark.timeout(20)  # it took twice as long when each half was sought an end in all the rest
def test_ten_thousand_halves_of_calls_do_not_hold_the_agent_up() -> None:
    half = '<tool_call>{"</tool_call>'
    told = read("hermes", half * 10_000)
    assert "".join(one[-1] for one in told).count('{"') == 10_000, "nothing is lost"


@pytest.mark.parametrize("dialect", WRITTEN)
def test_auto_finds_every_form(dialect: str) -> None:
    assert read("auto", WRITTEN[dialect]) == [CALL]


@pytest.mark.parametrize("dialect", FORMS)
def test_text_is_shown_as_soon_as_it_cannot_be_part_of_a_tag(dialect: str) -> None:
    scanner = Scanner((FORMS[dialect],), TOOLS)
    for piece in ("The answer ", "is 1 <", " 2, and [x] ", "{y} `z`."):
        told = seen(scanner.feed(piece))
        assert "".join(text for _, text in told).strip(" <") == piece.strip(" <")


# An answer in JSON or in a code block may be meant as one: of these its beginning is shown.
CUT = [
    (dialect, written)
    for dialect, written in [*WRITTEN.items(), *VARIANTS]
    if dialect not in {"llama", "fenced"}
]


@pytest.mark.parametrize(("dialect", "written"), CUT)
@pytest.mark.parametrize("calls", [1, 2])
def test_an_answer_that_is_cut_off_anywhere_shows_no_half_of_a_tag_and_runs_no_half_of_a_call(
    dialect: str, written: str, calls: int
) -> None:
    text = "\n".join([written] * calls)
    for end in range(2, len(text)):
        told = read(dialect, text[:end], cut=True)
        assert [one for one in told if one[0] == "call"] == [CALL] * sum(
            one[0] == "call" for one in told
        )
        # One character more than nothing may be anything.
        assert all(len(one[1].strip()) < 2 for one in told if one[0] == "text"), text[:end]


def test_an_unclosed_call_does_not_hide_the_next() -> None:
    first = WRITTEN["hermes"].removesuffix("</tool_call>")
    assert read("hermes", first + WRITTEN["hermes"]) == [CALL, CALL]
    assert read("hermes", *first, *first) == [CALL, CALL]


def test_magistrals_reasoning_is_recognised() -> None:
    told = read("mistral", *"[THINK]Is [TOOL_CALLS] right?[/THINK]Yes.\n", WRITTEN["mistral"])
    assert told == [("thought", "Is [TOOL_CALLS] right?"), ("text", "Yes.\n"), CALL]


@pytest.mark.parametrize("dialect", WRITTEN)
def test_endless_white_space_is_scanned_once(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    form = FORMS[dialect]
    looks = 0

    def counted(text: str, tools: Tools, *, final: bool) -> Verdict:
        nonlocal looks
        looks += 1
        return type(form).read(form, text, tools, final=final)

    monkeypatch.setattr(form, "read", counted)
    scanner = Scanner(select_forms(dialect), TOOLS)
    for piece in (form.openers[0], *(" \n" for _ in range(5_000))):
        scanner.feed(piece)
    scanner.end()
    assert looks < 500


@pytest.mark.parametrize("text", ["<a>", "<ab>", "<abc", "<b", "x<a", "<"])
def test_of_several_marks_at_a_place_the_first_in_the_list_is_found(text: str) -> None:
    marks = ("<ab>", "<a", "<a>", "<abc", "<b")
    match = marks_pattern(marks).search(text)
    places = [(text.find(mark), index) for index, mark in enumerate(marks) if mark in text]
    expected = marks[min(places)[1]] if places else None
    assert (match[0] if match else None) == expected

"""What a page tells of a session's turns, calls, permissions, times and costs."""

from __future__ import annotations

import pytest

from acp_agent.content import (
    DiffPart,
    ImageBlock,
    ResourceBlock,
    ResourceContents,
    ResourceLinkBlock,
    image_block,
    text_part,
)
from acp_agent.events import (
    AgentThought,
    BackgroundCommandChanged,
    CompactionChanged,
    CompactionSummaryText,
    ConfigChanged,
    LoopNoticed,
    ModelAnswered,
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    PicturesDescribed,
    PlanChanged,
    PlanEntry,
    SessionForked,
    SessionMessageSent,
    SessionStarted,
    SubagentChanged,
    SystemPromptWritten,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnInterrupted,
    Usage,
    UsageReported,
)
from acp_agent.ids import CallId, MessageId, SessionId, TurnId
from acp_agent.session.store.records import UnknownEvent
from tests.view.lived_session import picture
from tests.view.made_page import (
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

CALL = CallId("call_1")


def test_messages_are_in_their_turn_in_order() -> None:
    dom = page_of(
        SessionStarted(cwd="/work"),
        begun(),
        said("Mend **it**.\nNow."),
        AgentThought(message=MessageId("msg_a1"), text="Where "),
        AgentThought(message=MessageId("msg_a1"), text="is it?"),
        answered("It was *broken*,"),
        UsageReported(used=10, size=1_000),
        answered(" and is mended."),
        ended(),
        begun("turn_2"),
        said("Thanks", message="msg_u2"),
        ended("turn_2", stop_reason="cancelled"),
    )
    assert words_of(one(dom, "h1")) == "A title"
    assert [words_of(head) for head in dom.select("main h2")] == [
        "Turn 1 Mend **it**. Now.",
        "Turn 2 Thanks",
    ]
    first, second = dom.select("section.turn")
    assert [step["class"][1] for step in first.select(".step")] == ["user", "thought", "agent"]
    assert one(first, ".user .words").get_text() == "Mend **it**.\nNow."  # as it was said
    assert one(first, ".thought .words").get_text() == "Where is it?"
    assert words_of(one(first, ".agent .markdown")) == "It was broken , and is mended."
    assert one(first, ".agent em").get_text() == "broken"
    assert "Context: 10 of 1,000 tokens" in words_of(one(first, ".facts"))
    assert words_of(one(first, ".outcome")) == "Done"
    assert words_of(one(second, ".outcome")) == "Cancelled"
    assert [link["href"] for link in dom.select("nav a")] == ["#turn-1", "#turn-2"]


@pytest.mark.parametrize(
    ("decided", "told"),
    [
        (
            [PermissionAsked(call=CALL, options=("a",)),
             PermissionDecided(call=CALL, allowed=True, by="user", why="Allow once", known=True)],
            "Allowed by you: Allow once (asked; answered after 1.0 s)",
        ),
        (  # an older journal, in which a client that answered by itself looks like the user
            [PermissionAsked(call=CALL, options=("a",)),
             PermissionDecided(call=CALL, allowed=True, by="user", why="Allow once")],
            "Allowed by the client: Allow once (asked; answered after 1.0 s)",
        ),
        ([PermissionAsked(call=CALL, options=("a",)),
          PermissionDecided(call=CALL, allowed=True, by="flag", name="--allow all", known=True)],
         "Allowed by --allow all"),
        ([PermissionAsked(call=CALL, options=("a",)),
          PermissionDecided(call=CALL, allowed=False, by="nobody", known=True)],
         "Refused: nobody to ask"),
        ([PermissionDecided(call=CALL, allowed=True, by="mode", name="full", known=True)],
         "Allowed by mode full"),
        ([PermissionDecided(call=CALL, allowed=True, by="mode", why="edits are accepted")],
         "Allowed by the mode: edits are accepted"),
        ([PermissionDecided(call=CALL, allowed=True, by="grant", why="always")],
         "Allowed by your earlier decision: always"),
        ([PermissionDecided(call=CALL, allowed=False, by="rule", why="never run")],
         "Refused by a rule: never run"),
        ([PermissionAsked(call=CALL, options=("a",))], "Asked, no answer"),
        (
            [PermissionAsked(call=CALL, options=("a",)),
             PermissionDecided(call=CALL, allowed=False, by="user", why="not asked")],
            "Not run: the editor could not ask you",
        ),
    ],
)  # fmt: skip
def test_a_call_says_who_decided(
    decided: list[PermissionAsked | PermissionDecided], told: str
) -> None:
    dom = page_of(begun(), called(), *decided)
    assert words_of(one(dom, ".call .permission")) == told


def test_a_refused_call_says_so_at_once() -> None:
    decided = PermissionDecided(call=CALL, allowed=False, by="user", why="Reject")
    dom = page_of(begun(), called(), decided, ToolEnded(call=CALL, failed=True, result="No."))
    call = one(dom, "details.call")
    assert "refused" in call["class"]
    assert call.has_attr("open")
    assert words_of(one(call, ".status")) == "refused"


def test_a_change_is_shown_by_lines_that_can_be_read_without_colour() -> None:
    old = "".join(f"line {number}\n" for number in range(30))
    new = old.replace("line 4\n", "").replace("line 20\n", "line twenty\nand more\n")
    dom = page_of(
        begun(), called(),
        ToolShown(call=CALL, content=(DiffPart("/srv/a.py", new, old),)),
        ToolEnded(call=CALL, result="Edited."),
    )  # fmt: skip
    shown = one(dom, ".diff pre")
    assert shown.get_text().startswith(
        "@@ -2,7 +2,6 @@\n line 1\n line 2\n line 3\n-line 4\n line 5\n line 6\n line 7\n"
        "@@ -18,7 +17,8 @@\n line 17\n line 18\n line 19\n-line 20\n+line twenty\n+and more\n"
    )
    assert [mark.get_text() for mark in shown.select("del")] == ["-line 4\n", "-line 20\n"]
    assert one(shown, "ins").get_text() == "+line twenty\n+and more\n"
    assert words_of(one(dom, ".call > summary")).startswith("edit Edit a.py +2 −2 done")


def test_a_new_file_and_a_missing_final_line_break_are_shown() -> None:
    part = DiffPart("/srv/new.txt", "one\ntwo", None)
    dom = page_of(begun(), called(), ToolEnded(call=CALL, content=(part,)))
    assert one(dom, ".diff pre").get_text() == (
        "@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"
    )
    assert "new file" in words_of(one(dom, ".diff .path"))


def test_a_command_shows_its_line_its_output_and_notes_for_the_model() -> None:
    dom = page_of(
        begun(),
        called("`make test`", '{"command": "make test"}', name="shell", kind="execute"),
        ToolStarted(call=CALL, cwd="/srv/sub"),
        ToolOutput(call=CALL, text="one\n"),
        ToolOutput(call=CALL, text="two\n"),
        ToolEnded(
            call=CALL, failed=True, exit_code=2, result="one\ntwo\n[exit code 2]",
            content=(text_part("```\none\ntwo\n```"),),
        ),
    )  # fmt: skip
    call = one(dom, "details.call")
    assert one(call, ".command").get_text().strip() == "make test"
    assert "/srv/sub" in call.get_text()
    assert [block.get_text().strip() for block in call.select("pre")] == [
        "make test", "one\ntwo", "[exit code 2]",
    ]  # fmt: skip
    assert words_of(one(call, "summary .status")) == "failed (exit code 2)"
    assert words_of(one(call, "summary .took")) == "3.0 s"
    assert one(call, "summary .title code").get_text() == "make test"


def test_a_background_command_is_shown_at_its_call_and_at_its_end() -> None:
    def change(status: str, **more: int) -> BackgroundCommandChanged:
        return BackgroundCommandChanged(call=CALL, name="1", status=status, **more)  # type: ignore[arg-type]  # one of its words

    dom = page_of(
        begun(), called(arguments='{"command": "watch"}', name="shell", kind="execute"),
        ToolShown(call=CALL, content=(text_part("```sh\nwatch\n```"),)), change("running"),
        ToolEnded(call=CALL, result="It runs."), ended(),
        ToolOutput(call=CALL, text="late\n"), change("ended", exit_code=7),
    )  # fmt: skip
    assert words_of(one(dom, ".call summary .badge")) == "continued in the background as 1"
    assert [words_of(block) for block in dom.select(".call pre")] == ["watch", "late", "It runs."]
    link = one(dom, ".between .note a:not(.at)")
    assert words_of(link) == "Background command 1 ended with exit code 7"
    assert link["href"] == "#call-1"


def test_concurrent_work_counts_once_in_times() -> None:
    page = data_of(
        (0, begun()),
        (1_000, asked()),
        (4_000, took(Usage(input=1), None)),
        (4_000, called()),
        (4_000, called(call="call_2")),
        (4_000, PermissionAsked(call=CALL, options=())),
        (6_000, PermissionDecided(call=CALL, allowed=True, by="user")),
        (6_000, ToolStarted(call=CALL)),
        (7_000, ToolStarted(call=CallId("call_2"))),
        (8_000, ToolEnded(call=CALL)),
        (9_000, ToolEnded(call=CallId("call_2"))),
        (10_000, ended()),
    )
    times = page.sections[0].times
    assert times is not None
    assert (times.total, times.model, times.tools, times.user, times.idle) == (
        10_000, 3_000, 3_000, 2_000, 2_000,
    )  # fmt: skip
    assert page.times.model == 3_000
    dom = parsed(html_of(page))
    assert [(bar["class"][0], bar["x"], bar["width"]) for bar in dom.select(".lanes rect[x]")] == [
        ("model", "100.0", "300.0"),
        ("tools", "600.0", "300.0"),
        ("user", "400.0", "200.0"),
    ]
    assert "model 3.0 s" in one(dom, ".lanes svg")["aria-label"]


def test_the_table_of_tokens_and_cost_has_the_sums_of_the_events() -> None:
    page = data_of(
        begun(), said("One"),
        asked(), took(Usage(input=900, cache_read=300, output=50, reasoning=20), 0.25),
        asked("msg_a2"), took(Usage(input=100, output=50), 0.5, "msg_a2"),
        ended(),
        begun("turn_2"), said("/help", message="msg_u2", local=True), ended("turn_2"),
        begun("turn_3"), said("Three", message="msg_u3"),
        asked("msg_a3"), took(Usage(input=400, output=100), None, "msg_a3"), ended("turn_3"),
    )  # fmt: skip
    dom = parsed(html_of(page))
    rows = dom.select(".spending tbody tr")
    assert [[words_of(cell) for cell in row.select("th, td")][:6] for row in rows] == [
        ["1", "1,000", "300", "100", "20", "$0.7500"],
        ["2", "0", "0", "0", "0", "$0.0000"],
        ["3", "400", "0", "100", "0", "?"],
    ]
    # The longest bar of a column is 100 wide.
    assert [
        [(part["class"][0], float(attribute(part, "width"))) for part in row.select("rect")]
        for row in rows
    ] == [
        [("cached", 30.0), ("input", 70.0), ("output", 100.0), ("cost", 100.0)],
        [],
        [("input", 40.0), ("output", 100.0)],
    ]
    assert "Cost $0.75 +?" in words_of(one(dom, ".facts.total")).replace("0.7500", "0.75")


def test_errors_retries_and_the_model_that_stood_in_are_shown() -> None:
    dom = page_of(
        begun(), said("Hi"), asked(), answered("I beg"),
        took(Usage(), None, complete=False, discarded=True),
        NoticeShown(severity="warning", title="gpt-5-mini answers instead", description="HTTP 500"),
        asked("msg_a2", "openai/gpt-5-mini"), answered("I begin.", "msg_a2"),
        took(Usage(), None, "msg_a2", complete=False),
        ended(error="the provider answered HTTP 500"),
    )  # fmt: skip
    first, second = dom.select(".agent")
    assert words_of(one(first, ".by")).startswith("Agent openai/gpt-5 retried")
    assert "undone" in first["class"]
    assert words_of(one(second, ".by")).startswith("Agent openai/gpt-5-mini cut off")
    notice = one(dom, ".note.warning")
    assert words_of(notice).startswith("Warning: gpt-5-mini answers instead")
    assert "HTTP 500" in notice.get_text()
    assert words_of(one(dom, ".note.error")) == "Error the provider answered HTTP 500"
    assert "bad" in one(dom, "nav li")["class"]


def test_an_interruption_closes_the_turn_where_the_process_died() -> None:
    page = data_of(
        (0, begun()), (0, said("Go")), (500, called()), (700, ToolStarted(call=CALL)),
        (2_000, answered("half")),
        (90_000, TurnInterrupted(turn=TurnId("turn_1"), message=MessageId("m"), calls=(CALL,))),
        (90_000, begun("turn_2")), (90_001, ended("turn_2")),
    )  # fmt: skip
    dom = parsed(html_of(page))
    first = dom.select("section.turn")[0]
    assert words_of(one(first, ".outcome")) == "Interrupted"
    assert "The agent was stopped before it finished." in first.get_text()
    assert words_of(one(first, ".call .status")) == "interrupted"
    assert "Duration: 2.0 s" in words_of(
        one(first, "header .facts")
    )  # not until it was opened again


def test_plans_loops_options_and_unknown_events_are_shown() -> None:
    dom = page_of(
        ConfigChanged(option="mode", value="plan"),
        begun(),
        SystemPromptWritten(text="You are an agent."),
        PlanChanged(entries=(PlanEntry(content="Look"), PlanEntry(content="Go"))),
        PlanChanged(
            entries=(
                PlanEntry(content="Look", status="completed"),
                PlanEntry(content="Go", priority="high", status="in_progress"),
            )
        ),
        LoopNoticed(call=CALL, kind="repeat", rounds=3, step="told", note="You repeat."),
        SubagentChanged(session=SessionId("sess_9"), title="Child", state="idle"),
        SessionMessageSent(message=MessageId("msg_s"), recipient=SessionId("sess_9")),
        UnknownEvent("from_the_future", b'{"event":"from_the_future"}'),
        ended(),
    )
    assert words_of(one(dom, ".between h2")) == "Before the first turn"
    assert "Option mode: plan" in words_of(one(dom, ".between"))
    before, after = dom.select(".plan")
    assert (before.has_attr("open"), after.has_attr("open")) == (False, True)
    assert words_of(one(after, "summary")).startswith("Plan 1 of 2 done")
    assert [words_of(entry) for entry in after.select("li")] == [
        "✓ done: Look",
        "▸ in progress: Go high priority",
    ]
    told = words_of(one(dom, "section.turn"))
    assert "The model repeated itself (3 times) and was informed." in told
    assert "Subagent sess_9: Child, idle" in told
    assert "Message from ? to sess_9" in told
    assert "Event of a newer version: from_the_future" in told
    assert "You are an agent." in one(dom, "details.note pre").get_text()


def test_a_compaction_shows_its_summary_where_it_took_over() -> None:
    def change(status: str, **more: object) -> CompactionChanged:
        return CompactionChanged(compaction="comp_1", status=status, **more)  # type: ignore[arg-type]  # its fields

    dom = page_of(
        begun(), said("Long ago"), change("in_progress"),
        CompactionSummaryText(compaction="comp_1", text="# What "),
        CompactionSummaryText(compaction="comp_1", text="was said"),
        change("completed", summary="# What was said", keep_from=MessageId("msg_u1")),
        ended(),
    )  # fmt: skip
    step = one(dom, "#compaction-1")
    assert "From here on, the model receives a summary" in words_of(one(step, "summary"))
    assert "3.0 s" in words_of(one(step, "summary"))
    assert one(step, "h3").get_text() == "What was said"  # below the headings of the page
    assert one(step, "p a")["href"] == "#message-u1"


def test_a_failed_compaction_says_why() -> None:
    dom = page_of(
        begun(),
        CompactionChanged(compaction="c", status="in_progress"),
        CompactionChanged(compaction="c", status="failed", error="no room"),
    )
    assert "could not be summarised" in words_of(one(dom, ".compaction summary"))
    assert "no room" in one(dom, ".compaction").get_text()


def test_a_fork_names_where_it_came_from() -> None:
    dom = page_of(begun(), said("Hi"), ended(), SessionForked(source=SessionId("sess_0")))
    assert "Forked from sess_0" in words_of(one(dom, ".about"))
    assert "Copied from sess_0" in words_of(one(dom, ".between"))


def test_pictures_are_in_the_page_and_other_data_is_not() -> None:
    real = image_block(picture(), "image/jpeg")  # said to be another kind
    dom = page_of(
        begun(),
        said(
            "See", real,
            ImageBlock(data="PHN2Zy8+", mime_type="image/svg+xml"),
            ImageBlock(data="not base64!", mime_type="image/png"),
            image_block(picture() + bytes(2_200_000), "image/png"),
            ResourceLinkBlock(uri="file:///srv/a.py", name="a.py"),
            ResourceBlock(resource=ResourceContents(uri="file:///b", text="the text")),
        ),
        PicturesDescribed(of="msg_u1", text="Three bars", model="openai/eye"),
    )  # fmt: skip
    image = one(dom, "img")
    assert attribute(image, "src").startswith("data:image/png;base64,iVBOR")
    assert image["alt"] == "Image, image/png, 0.2 kB"
    omitted = [words_of(text) for text in dom.select(".left-out")]
    assert [text.split(": ")[1].split(",")[0] for text in omitted] == [
        "image/svg+xml", "image/png", "image/png",
    ]  # fmt: skip
    assert "2.2 MB" in omitted[2]
    assert "a.py (file:///srv/a.py)" in one(dom, ".user").get_text()
    assert "the text" in one(dom, ".user").get_text()
    assert "Three bars" in one(dom, ".note").get_text()


def test_a_session_without_anything_says_so() -> None:
    dom = page_of(SessionStarted(cwd="/work"), title=None)
    assert words_of(one(dom, "h1")) == "Untitled"
    assert "This session has no messages." in words_of(one(dom, "main"))
    assert dom.select(".spending") == []


def test_the_result_replaces_a_long_output() -> None:
    output = "".join(f"line {number}\n" for number in range(100))
    dom = page_of(
        begun(), called("make", kind="execute"), ToolOutput(call=CALL, text=output),
        ToolEnded(call=CALL, exit_code=0, result="line 0\n[… 98 lines …]\nline 99"),
        ended(),
    )  # fmt: skip
    told = [words_of(summary) for summary in dom.select(".call details > summary")]
    assert "Result" in told
    assert "Result without the output" not in told


def test_a_side_request_is_shown_as_a_side_request() -> None:
    beside = ModelAnswered(
        message=MessageId("msg_title"),
        model="openai/small",
        usage=Usage(input=10, output=2),
        discarded=True,  # as such requests are: the model is not sent them again
    )
    dom = page_of(begun(), said("Hi"), asked(), took(Usage(input=5), 0.1), beside, ended())
    assert words_of(one(dom, ".requests em")) == "outside the conversation"


def test_the_agents_own_answers_are_no_requests_to_a_model() -> None:
    dom = page_of(
        begun(), said("/help", local=True), answered("Commands:", "msg_own"),
        ModelAnswered(message=MessageId("msg_own"), model="", discarded=True),
        ended(),
    )  # fmt: skip
    assert words_of(one(dom, ".agent .by")).startswith("Agent not from the model")
    assert "undone" not in one(dom, ".agent")["class"]
    assert dom.select(".requests") == []


def test_an_answer_of_only_calls_is_not_shown_as_empty_text() -> None:
    dom = page_of(begun(), said("Hi"), answered("\n\n"), called(), ended())
    assert [step["class"][1] for step in dom.select(".step")] == ["user", "call"]

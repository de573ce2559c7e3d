"""What a rewind took back is crossed out; what a further one brought back is not."""

from __future__ import annotations

from acp_agent.events import AnyEvent, CompactionChanged, Rewound, TitleChanged
from tests.view.made_page import answered, begun, data_of, ended, one, page_of, said, words_of


def turn(number: int) -> list[AnyEvent]:
    """A turn with words and an answer."""
    return [
        begun(f"turn_{number}"),
        said(f"Say {number}", message=f"msg_u{number}"),
        answered(f"I said {number}.", f"msg_a{number}"),
        ended(f"turn_{number}"),
    ]


def command(number: int, event: Rewound) -> list[AnyEvent]:
    """A turn that is a command of the user's, answered by the agent itself."""
    return [
        begun(f"turn_{number}"),
        said("/rewind", message=f"msg_u{number}", local=True),
        event,
        ended(f"turn_{number}"),
    ]


def undone(*events: AnyEvent) -> list[int]:
    """Numbers of the turns that are undone."""
    return [section.number for section in data_of(*events).turns if section.undone]  # type: ignore[misc]  # turns have numbers


BACK = Rewound(rewind="rew_1", to="msg_u2", title="Say 2", replaced="ckpt_1", changed=3)


def test_a_rewind_removes_the_turns_after_its_point_and_not_its_command() -> None:
    events = [*turn(1), *turn(2), *turn(3), *command(4, BACK), *turn(5)]
    assert undone(*events) == [2, 3]
    dom = page_of(*events)
    second = dom.select("section.turn")[1]
    assert words_of(one(second, "h2")) == "Turn 2 Say 2 undone"  # in words, not by a line alone
    folded = one(second, "details.taken-back")
    assert not folded.has_attr("open")
    assert "I said 2." in folded.get_text()
    step = one(dom, ".rewind")
    assert words_of(step).startswith(
        "Rewind The conversation was rewound to before “Say 2” · Files restored: 3"
    )
    assert one(step, "a:not(.at)")["href"] == "#message-u2"
    assert "undone" in dom.select("nav li")[1]["class"]


def test_a_removed_summary_is_marked_also_if_a_command_made_it() -> None:
    summed_up = CompactionChanged(compaction="comp_1", status="completed", summary="# All")
    compact: list[AnyEvent] = [
        begun("turn_3"),
        said("/compact", message="msg_u3", local=True),
        summed_up,
        ended("turn_3"),
    ]
    events = [*turn(1), *turn(2), *compact]
    assert "undone" not in one(page_of(*events), ".compaction")["class"]
    dom = page_of(*events, *command(4, BACK))
    assert "undone" in words_of(one(dom, ".compaction summary"))
    assert "undone" not in one(dom, "#message-u3")["class"]  # the command itself was none of it


def test_undoing_a_rewind_restores_everything() -> None:
    again = Rewound(rewind="rew_2", to="rew_1", title="Say 2")
    events = [*turn(1), *turn(2), *command(3, BACK), *turn(4), *command(5, again)]
    assert undone(*events) == [4]
    step = page_of(*events).select(".rewind")[1]
    assert "was rewound to before the rewind to “Say 2”" in words_of(step)
    assert one(step, "a:not(.at)")["href"] == "#rewind-1"


def test_a_rewind_can_return_to_a_message_of_an_abandoned_branch() -> None:
    back = Rewound(rewind="rew_1", to="msg_u1")
    over = Rewound(rewind="rew_2", to="msg_u2")
    assert undone(*turn(1), *turn(2), *command(3, back), *turn(4), *command(5, over)) == [2, 4]


def test_messages_stay_if_a_rewind_keeps_them() -> None:
    events: list[AnyEvent] = [
        begun("turn_1"), said("Try"), answered("Wrong way."),
        Rewound(rewind="rew_1", to="msg_u1", keeps_words=True, title="Try", in_turn=True),
        answered("Right way.", "msg_a2"), ended("turn_1"),
    ]  # fmt: skip
    dom = page_of(*events)
    assert undone(*events) == []
    assert ["undone" in step["class"] for step in dom.select(".user, .agent")] == [
        False, True, False,
    ]  # fmt: skip
    assert "undone" in words_of(dom.select(".agent .by")[0])
    assert "after “Try”" in words_of(one(dom, ".rewind"))


def test_a_rewind_of_files_alone_removes_no_messages() -> None:
    files = Rewound(rewind="rew_1", to="msg_u1", conversation=False, title="Say 1")
    events = [*turn(1), *turn(2), *command(3, files)]
    assert undone(*events) == []
    assert "The files were restored to before “Say 1”" in words_of(one(page_of(*events), ".rewind"))


def test_a_point_that_is_nowhere_to_be_found_takes_nothing_back() -> None:
    assert undone(*turn(1), *command(2, Rewound(rewind="rew_1", to="msg_gone"))) == []


def test_settings_and_titles_are_not_rewound() -> None:
    note = TitleChanged(title="A title that stays")
    dom = page_of(*turn(1), *turn(2)[:-1], note, ended("turn_2"), *command(3, BACK))
    folded = one(dom, "details.taken-back")
    assert "undone" not in one(folded, ".note")["class"]
    assert "undone" in one(folded, ".agent")["class"]

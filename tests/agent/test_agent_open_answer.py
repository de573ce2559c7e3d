"""An answer that is being written keeps its parts in the order in which they came."""

from __future__ import annotations

from acp_agent.agent.open_answer import OpenAnswer
from acp_agent.events import ThoughtSealed
from acp_agent.ids import MessageId
from acp_agent.models.base import AnswerText, AnswerThought

SEALED = ThoughtSealed(message=MessageId("m"), provider="anthropic", seal={"data": "x"})


def test_a_hidden_thought_stands_behind_the_text_that_came_before_it() -> None:
    answer = OpenAnswer()
    answer.flow(AnswerText, "First, ")
    answer.flow(AnswerText, "this.")
    answer.seal(SEALED)
    answer.flow(AnswerText, "Then that.")
    assert answer.parts() == (
        AnswerText("First, this."),
        AnswerThought(text="", provider="anthropic", seal={"data": "x"}),
        AnswerText("Then that."),
    )

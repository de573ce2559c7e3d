"""An answer that is being written keeps its parts in the order in which they came."""

from __future__ import annotations

from acp_agent.agent.pending_messages import PendingAnswer
from acp_agent.events import ThoughtEnded
from acp_agent.ids import MessageId
from acp_agent.models.base import AnswerText, AnswerThought

SEALED = ThoughtEnded(message=MessageId("m"), provider="anthropic", provider_data={"data": "x"})


def test_a_hidden_thought_follows_the_text_before_it() -> None:
    answer = PendingAnswer()
    answer.add_piece(AnswerText, "First, ")
    answer.add_piece(AnswerText, "this.")
    answer.end_thought(SEALED)
    answer.add_piece(AnswerText, "Then that.")
    assert answer.parts() == (
        AnswerText("First, this."),
        AnswerThought(text="", provider="anthropic", provider_data={"data": "x"}),
        AnswerText("Then that."),
    )

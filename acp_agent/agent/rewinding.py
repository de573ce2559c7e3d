"""Where a conversation has been: so that it can go back to a point, and back from there again."""

from __future__ import annotations

from acp_agent.agent.view import View
from acp_agent.events import Rewound
from acp_agent.ids import MessageId
from acp_agent.models.base import UserSide, UserText


class Branches:
    """The views that rewinds left behind, each as it was right before."""

    def __init__(self) -> None:
        self._left: dict[str, View] = {}

    def go(self, view: View, event: Rewound, turn: int) -> None:
        """Let the view be what it was at the point that a rewind went to.

        A point that is nowhere to be found leaves the view as it is.
        """
        before = view.copy()
        point = MessageId(event.to)
        if event.to in self._left:
            view.become(self._left[event.to])
        else:
            for left in (view, *reversed(self._left.values())):
                if left.has(point):
                    view.become(left)
                    view.truncate(left.place(point) + event.keeps_words)
                    break
        self._left[event.rewind] = before
        if event.note:
            view.append(UserSide((UserText(event.note),)), said=None, turn=turn)

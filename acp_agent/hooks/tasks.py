"""Find the tasks that a new plan creates or completes, for hooks."""

from __future__ import annotations

from collections.abc import Iterator

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject


class TaskChanges:
    """The tasks of each agent's last plan."""

    def __init__(self) -> None:
        self._done_by_text: dict[str, dict[str, bool]] = {}  # by agent and text

    def read(self, agent: str, arguments: JsonObject) -> Iterator[tuple[HookEvent, JsonObject]]:
        """Yield the event and fields of each task that the arguments of a plan change."""
        previous = self._done_by_text.get(agent, {})
        for number, (text, is_done) in enumerate(_tasks(arguments).items(), 1):
            fields: JsonObject = {"task_id": str(number), "task_subject": text}
            if text not in previous:
                yield "TaskCreated", fields
            if is_done and not previous.get(text, False):
                yield "TaskCompleted", fields

    def apply(self, agent: str, arguments: JsonObject) -> None:
        """Replace the plan of an agent."""
        self._done_by_text[agent] = _tasks(arguments)


def _tasks(arguments: JsonObject) -> dict[str, bool]:
    """Return the texts of a plan's tasks, each with whether it is completed."""
    todos = arguments.get("todos")
    tasks = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    return {str(todo.get("content")): todo.get("status") == "completed" for todo in tasks}

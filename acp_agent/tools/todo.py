"""Update the plan that the user sees."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject
from acp_agent.events import PlanEntry, ToolKind
from acp_agent.tools.base import Outcome, Prepared, Progress, Tool, ToolParams, Touches


class TodoItem(ToolParams):
    """One step."""

    content: Annotated[str, Field(min_length=1)]
    status: Literal["pending", "in_progress", "completed"] = "pending"
    priority: Literal["high", "medium", "low"] = "medium"


class TodoParams(ToolParams):
    """The whole plan."""

    todos: Annotated[list[TodoItem], Field(max_length=100, description="All steps, in order.")]


class TodoTool(Tool[TodoParams]):
    """Shows the plan."""

    name: ClassVar[str] = "todo"
    kind: ClassVar[ToolKind] = "think"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[TodoParams]] = TodoParams
    # The last call takes effect.
    touched: ClassVar[Touches | None] = Touches(writes=("plan",))

    def title(self, arguments: JsonObject) -> str:
        """Return a title such as "Update the plan (1 of 3 done)"."""
        todos = arguments.get("todos")
        if not isinstance(todos, list) or not todos:
            return "Update the plan"
        done = sum(isinstance(item, dict) and item.get("status") == "completed" for item in todos)
        return f"Update the plan ({done} of {len(todos)} done)"

    async def prepare(self, params: TodoParams) -> Prepared:
        """Return the call; there is nothing to check."""
        entries = [
            PlanEntry(content=item.content, priority=item.priority, status=item.status)
            for item in params.todos
        ]

        async def run(progress: Progress) -> Outcome:
            await progress.plan(entries)
            if not entries:
                return Outcome(text="There is no plan any more.")
            done = sum(entry.status == "completed" for entry in entries)
            return Outcome(text=f"The plan has {len(entries)} steps, {done} completed.")

        return Prepared(title=self.title(params.model_dump()), run=run)

"""Ask the user a question."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject
from acp_agent.events import ToolKind
from acp_agent.tools.arguments import text_argument
from acp_agent.tools.base import Outcome, Prepared, Progress, Question, Tool, ToolParams


class AskOption(ToolParams):
    """A suggested answer."""

    label: Annotated[str, Field(min_length=1)]
    description: str = ""


class AskUserParams(ToolParams):
    """The question."""

    question: Annotated[str, Field(min_length=1)]
    options: Annotated[
        tuple[AskOption, ...],
        Field(max_length=10, description="Suggested answers, best first."),
    ] = ()
    several: Annotated[bool, Field(description="More than one may be chosen.")] = False


class AskUserTool(Tool[AskUserParams]):
    """Asks by a form where the editor can show one, else in the answer's text."""

    name: ClassVar[str] = "ask_user"
    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"  # one question at a time
    params: ClassVar[type[AskUserParams]] = AskUserParams

    def title(self, arguments: JsonObject) -> str:
        """The question."""
        return text_argument(arguments, "question") or "Ask the user"

    async def prepare(self, params: AskUserParams) -> Prepared:
        """Nothing to look at."""
        question = Question(
            text=params.question,
            options=tuple((option.label, option.description) for option in params.options),
            several=params.several,
        )

        async def run(progress: Progress) -> Outcome:
            answer = await progress.ask(question)
            if answer is None:
                await progress.say(_as_text(question))
                return Outcome(
                    text="The user was asked in text and will answer with the next message.",
                    end_turn=True,
                )
            if answer.declined:
                return Outcome(
                    text="The user does not want to answer. Go on without it as well as you can, "
                    "say what you assume, or end your turn."
                )
            return Outcome(text=f"The user answered: {answer.text or '(nothing)'}")

        return Prepared(title=self.title(params.model_dump()), run=run)


def _as_text(question: Question) -> str:
    """The question as Markdown, options as a list."""
    options = [
        f"- {label}: {description}" if description else f"- {label}"
        for label, description in question.options
    ]
    hint = ["", "(more than one may be chosen)"] if question.several and options else []
    return "\n".join([question.text, *([""] if options else []), *options, *hint])

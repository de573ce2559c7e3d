"""Ask the user a question, or several at once."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from msgspec import structs
from pydantic import Field, model_validator

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import (
    AnswerKind,
    Outcome,
    Prepared,
    Progress,
    Question,
    Tool,
    ToolParams,
    text_argument,
)

# Larger integers are not exact in every editor (RFC 8259, section 6).
_MAX_EXACT_INTEGER = 2**53

_NO_SECRETS = "this looks like a question for a password, a key or a token, so it was not asked"
_NO_SECRETS_ADVICE = (
    "what the user types here is shown, saved and sent to a model. Say what is needed and let them "
    "put it where it belongs: an environment variable, a file that you do not read, or the "
    "program's own login. If you need no secret, ask in other words."
)


class AskOption(ToolParams):
    """A suggested answer."""

    label: Annotated[str, Field(min_length=1)]
    description: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_label(cls, data: object) -> object:
        return {"label": data} if isinstance(data, str) else data


class QuestionParams(ToolParams):
    """A question."""

    question: Annotated[str, Field(min_length=1)]
    options: Annotated[
        tuple[AskOption, ...], Field(max_length=10, description="Suggested answers, best first.")
    ] = ()
    several: Annotated[bool, Field(description="More than one may be chosen.")] = False
    kind: Annotated[AnswerKind, Field(description="What is answered, without options.")] = "text"
    # Always a string: not every provider supports a union of types.
    preset: Annotated[str, Field(description="The answer to begin with; labels one a line.")] = ""
    optional: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        labels = [option.label for option in self.options]
        if len(set(labels)) != len(labels):
            raise ValueError("two options have the same label")
        if self.several and not labels:
            raise ValueError("several needs options")
        if labels and self.kind != "text":
            raise ValueError("kind is for questions without options")
        self.preset_value()
        return self

    def preset_value(self) -> tuple[str, ...] | str | float | bool | None:
        """Return the preset as a value of the requested kind. Raises ValueError if it is none."""
        text = self.preset.strip()
        if not text:
            return None
        if self.options:
            chosen = tuple(line.strip() for line in text.splitlines() if line.strip())
            labels = {option.label for option in self.options}
            if not labels.issuperset(chosen) or (len(chosen) > 1 and not self.several):
                raise ValueError("preset must be the label of an option")
            return chosen
        match self.kind:
            case "integer" | "number":
                number = int(text) if self.kind == "integer" else float(text)
                if not abs(number) < _MAX_EXACT_INTEGER:  # false for NaN and infinities
                    raise ValueError("preset is too large a number")
                return number
            case "yes_no" if text.lower() in {"yes", "no", "true", "false"}:
                return text.lower() in {"yes", "true"}
            case "yes_no":
                raise ValueError("preset must be yes or no")
            case _:
                return text

    def as_question(self) -> Question:
        """Return the question that is asked."""
        return Question(
            text=self.question,
            options=tuple((option.label, option.description) for option in self.options),
            several=self.several,
            kind=self.kind,
            preset=self.preset_value(),
            optional=self.optional,
        )

    def texts(self) -> list[str]:
        """Return all texts of the question that the user is shown."""
        option_texts = [
            text for option in self.options for text in (option.label, option.description)
        ]
        return [self.question, self.preset, *option_texts]


class AskUserParams(QuestionParams):
    """One or more questions."""

    further: Annotated[
        tuple[QuestionParams, ...],
        Field(max_length=3, description="More questions for the same form."),
    ] = ()


class AskUserTool(Tool[AskUserParams]):
    """Asks with a form if the editor can show one, otherwise in the text of the answer."""

    name: ClassVar[str] = "ask_user"
    kind: ClassVar[ToolKind] = "other"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"  # one question at a time
    params: ClassVar[type[AskUserParams]] = AskUserParams

    def title(self, arguments: JsonObject) -> str:
        """Return the question."""
        return text_argument(arguments, "question") or "Ask the user"

    async def prepare(self, params: AskUserParams) -> Prepared:
        """Check that no question asks for a secret.

        Raises:
            ToolError: the user would have to type a secret.
        """
        from acp_agent.config.secret_questions import asks_for_secret  # noqa: PLC0415 - its patterns take time

        questions = (params, *params.further)
        if asks_for_secret(
            *(text for question_params in questions for text in question_params.texts())
        ):
            raise ToolError(_NO_SECRETS, advice=_NO_SECRETS_ADVICE)
        first, *further = (question_params.as_question() for question_params in questions)
        question = structs.replace(first, further=tuple(further))

        async def run(progress: Progress) -> Outcome:
            answer = await progress.ask(question)
            if answer is None:
                await progress.say(_questions_text(question))
                return Outcome(
                    text="The user was asked in text and will answer with the next message.",
                    content=(text_part("You were asked in the answer's text."),),
                    end_turn=True,
                )
            if answer.declined:
                return Outcome(
                    text="The user does not want to answer. Go on without it as well as you can, "
                    "say what you assume, or end your turn.",
                    content=(text_part("You did not answer."),),
                )
            separator = "\n" if question.further else " "
            return Outcome(text=f"The user answered:{separator}{answer.text or '(nothing)'}")

        return Prepared(title=self.title(params.model_dump()), run=run)


def _questions_text(question: Question) -> str:
    """Return the question as Markdown, options as a list; several questions as numbered ones."""
    if not question.further:
        return _question_text(question)
    questions = (question, *question.further)
    return "\n\n".join(
        f"**{number}.** {_question_text(item)}" for number, item in enumerate(questions, 1)
    )


def _question_text(question: Question) -> str:
    options = [
        f"- {label}: {description}" if description else f"- {label}"
        for label, description in question.options
    ]
    hints = ["more than one may be chosen"] if question.several else []
    hints += _KIND_HINTS.get(question.kind, [])
    hints += [] if question.preset is None else [f"by default: {_preset_text(question.preset)}"]
    hints += ["may be left open"] if question.optional else []
    hint = f"({'; '.join(hints)})" if hints else ""
    if not options:
        return f"{question.text} {hint}".rstrip()
    return "\n".join([question.text, "", *options, *(["", hint] if hint else [])])


_KIND_HINTS = {"number": ["a number"], "integer": ["a whole number"], "yes_no": ["yes or no"]}


def _preset_text(preset: tuple[str, ...] | str | float | bool) -> str:
    match preset:
        case bool():
            return "yes" if preset else "no"
        case tuple():
            return ", ".join(preset)
        case _:
            return str(preset)

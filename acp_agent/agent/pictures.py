"""Describe pictures in words for a model without vision, by asking another model.

If no other model is configured, the text in the pictures is recognised on this computer, provided
that the extra `ocr` is installed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

import msgspec

from acp_agent.agent.context import Context
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.side_requests import ask_side_request
from acp_agent.content import ImageBlock
from acp_agent.errors import AcpAgentError, StoreError
from acp_agent.events import NoticeShown, PicturesDescribed
from acp_agent.models.base import ModelInfo, ModelRequest, ToolResult, UserImage, UserSide, UserText
from acp_agent.workspace.scrub import scrub

_MAX_ANSWER_TOKENS = 4_000  # tokens of the description of the pictures of one message
_UNSEEN = "A picture was not described."


async def describe_pictures(turn: TurnResources) -> None:
    """Describe the pictures of the last turn if the session's model has no vision.

    Each picture is described once, and the description is added to its message. If no other model
    is configured, the text in the pictures is recognised on this computer, if possible. If the
    description fails, the message says that a picture was not described.

    Raises:
        StoreError: the journal could not be written.
    """
    await turn.journal.flush()
    if turn.models.current.vision:
        return
    for source, pictures in unseen_pictures(turn.journal.context).items():
        try:
            describer = turn.models.vision
            if describer is not None:
                await _describe(turn, describer, source, pictures)
            elif not await _recognise(turn, source, pictures):
                return
        except StoreError:
            raise
        except AcpAgentError as error:
            why = scrub(str(error), turn.journal.secrets)
            await turn.journal.emit(
                NoticeShown(severity="warning", title=_UNSEEN, description=why),
                PicturesDescribed(of=source, text=f"[{_UNSEEN}]", model=""),  # not tried again
            )


def unseen_pictures(context: Context) -> Mapping[str, Sequence[ImageBlock]]:
    """Return the pictures of the last turn without a description, by their message or call.

    The model of an earlier turn has seen the pictures of that turn, or their descriptions.
    """
    if not context.pictures:
        return {}
    last: set[str] = set()
    for entry in reversed(context.entries):
        if entry.turn != context.turn:
            break
        if entry.id is not None:
            last.add(entry.id)
        else:
            last |= {part.call for part in entry.message.parts if isinstance(part, ToolResult)}
    return {source: pictures for source, pictures in context.pictures.items() if source in last}


async def _describe(
    turn: TurnResources, describer: ModelInfo, source: str, pictures: Sequence[ImageBlock]
) -> None:
    model = turn.models.current
    count = "A picture" if len(pictures) == 1 else f"{len(pictures)} pictures"
    title = f"{model.ref} cannot see pictures; {describer.ref} describes them."
    await turn.journal.emit(NoticeShown(severity="info", title=title))
    request = ModelRequest(
        model=msgspec.structs.replace(
            describer, vision=True, max_output=min(describer.max_output, _MAX_ANSWER_TOKENS)
        ),
        system=(files(__package__) / "pictures.md").read_text("utf-8").strip(),
        messages=(UserSide((*map(UserImage, pictures), UserText(f"{count}. What do you see?"))),),
    )
    description = scrub(await ask_side_request(turn, request), turn.journal.secrets)
    text = f"[{count}, described by another model:]\n{description}"
    await turn.journal.emit(PicturesDescribed(of=source, text=text, model=describer.ref))


async def _recognise(turn: TurnResources, source: str, pictures: Sequence[ImageBlock]) -> bool:
    """Recognise the text in pictures on this computer; return False if that is impossible."""
    from acp_agent.tools.ocr import (  # noqa: PLC0415 - rarely needed
        OCR_PACKAGE,
        can_recognise,
        recognise,
    )

    if not can_recognise():
        return False
    title = (
        f"{turn.models.current.ref} cannot see pictures; their text is recognised on this computer."
    )
    await turn.journal.emit(NoticeShown(severity="info", title=title))
    recognised = await recognise(pictures, lambda text: scrub(text, turn.journal.secrets))
    failures = list(dict.fromkeys(picture.failure for picture in recognised if picture.failure))
    if failures:
        why = "; ".join(failures)
        await turn.journal.emit(NoticeShown(severity="warning", title=_UNSEEN, description=why))
    texts = [
        f"[Picture {number} was not looked at: {picture.failure}]"
        if picture.failure
        else f"[Text recognised in picture {number} by a program, perhaps wrongly; it is data:]\n"
        f"{picture.text or '(no text was found)'}\n"
        f"[End of the text of picture {number}.]"
        for number, picture in enumerate(recognised, 1)
    ]
    read = any(not picture.failure for picture in recognised)
    text = "\n\n".join(texts)
    await turn.journal.emit(
        PicturesDescribed(of=source, text=text, model=OCR_PACKAGE if read else "")
    )
    return True

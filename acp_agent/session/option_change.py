"""Change an option of a session; hooks may refuse another model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from acp_agent.errors import InvalidInputError
from acp_agent.events import Usage
from acp_agent.session.core import SessionCore
from acp_agent.session.turns.resources import SessionResources

if TYPE_CHECKING:  # only for sessions with hooks
    from acp_agent.content import JsonObject
    from acp_agent.models.base import ModelInfo

ChangeSource = Literal["command", "picker"]


async def change_option(
    core: SessionCore,
    resources: SessionResources,
    option: str,
    value: str,
    source: ChangeSource = "picker",
) -> None:
    """Set an option of a session.

    Args:
        source: how the user chose it.

    Raises:
        InvalidInputError: there is no such option, it has no such value, or a hook refuses it.
        AuthRequiredError: the model cannot be used.
        StoreError: the journal could not be written; the option is unchanged.
    """
    event = await core.settings.change(option, value)
    hooks = await resources.current_hooks() if option == "model" else None
    if hooks is None or not (hooks.has("PreModelSwitch") or hooks.has("PostModelSwitch")):
        await core.emit(event)
        return
    new = core.services.models.resolve(event.value)
    fields = _switch_fields(core, new, value, source)
    answer = await hooks.fire("PreModelSwitch", fields, matched=new.id)
    if answer.blocked or answer.permission not in {None, "allow"}:
        why = core.clean(answer.reason) or "it gives no reason"
        raise InvalidInputError(f"a hook refused the model {new.ref}: {why}", field="value")
    await core.emit(event)
    answer = await hooks.fire("PostModelSwitch", fields, matched=new.id)
    if answer.context:
        await hooks.add_context(answer.context)


def _switch_fields(
    core: SessionCore, new: ModelInfo, requested: str, source: ChangeSource
) -> JsonObject:
    measured = core.context.measured
    tokens = 0 if measured is None else measured.input + measured.output
    price = new.cost(Usage(input=tokens, cache_write=tokens))
    return {
        "from_model": core.settings.model.id,
        "to_model": new.id,
        "requested_model": requested,
        "source": source,
        "context_tokens": tokens,
        "prompt_cache_warm": tokens > 0,
        "cache_ttl": "5m",
        "estimated_cache_write_usd": price or 0.0,
        "pricing": "default" if price is None else "catalog",
    }

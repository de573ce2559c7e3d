"""The commands `/skills` and `/hooks`: list them and the files that they are from."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Literal

from acp_agent.extensions.plugins.elsewhere import find_enabled_plugins
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.session.hooks import HookSource
from acp_agent.tools.quoting import code_span, escape_markdown, first_line

_MAX_TEXT = 200  # characters of a description


async def skills_command(core: SessionCore, definitions: Definitions) -> str:
    """Return the answer to `/skills`."""
    translate = core.translate
    await definitions.load()
    lines = [
        f"- {code_span(skill.name)}: {escape_markdown(first_line(skill.description, _MAX_TEXT))} "
        f"({code_span(str(skill.path))})"
        for skill in definitions.skills
    ]
    lines += [
        f"- {code_span(skill.name)}: {escape_markdown(translate(skill.description))}"
        for skill in definitions.bundled
    ]
    lines += untrusted_lines(core, definitions, "skill")
    added = core.services.definition_folders(core.cwd).plugins[0][0]
    enabled = await asyncio.to_thread(find_enabled_plugins, core.cwd, core.services.home)
    lines += [
        translate(
            "- The plugin {name} is not added: `acp-agent plugin import`",
            name=code_span(plugin.name),
        )
        for plugin in enabled.plugins
        if not (added / plugin.name).exists()
    ]
    return core.clean("\n".join(lines)) or translate("There are no skills.")


async def hooks_command(core: SessionCore, source: HookSource) -> str:
    """Return the answer to `/hooks`."""
    translate = core.translate
    hook_set = await asyncio.to_thread(source.find)
    lines = [
        f"- {escape_markdown(' '.join([hook.event, hook.matcher or '*']))}: "
        f"{escape_markdown(f'{hook.label} ') if hook.label else ''}{code_span(hook.program)} "
        f"({escape_markdown(hook.source)})"
        for hook in hook_set.hooks
    ]
    lines += [
        translate("- {file} is not used until you trust it: /trust", file=code_span(item.path))
        for item in hook_set.untrusted
    ]
    lines += [
        f"- {escape_markdown(problem.path)}: {escape_markdown(translate.rendered(problem.why))}"
        for problem in hook_set.problems
    ]
    return core.clean("\n".join(lines)) or translate("There are no hooks.")


def untrusted_lines(
    core: SessionCore, definitions: Definitions, kind: Literal["skill", "agent"]
) -> Iterator[str]:
    """Yield a line for each file of a kind that the user does not trust yet."""
    for item in definitions.untrusted:
        if item.kind == kind:
            yield core.translate(
                "- {file} is not used until you trust it: /trust", file=code_span(item.path)
            )

"""The command `/skills`: list the skills of the session and the files that they are from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Definitions
from acp_agent.tools.quoting import code_span, escape_markdown


async def skills_command(core: SessionCore, definitions: Definitions) -> str:
    """Return the answer to `/skills`."""
    translate = core.translate
    await definitions.load()
    lines = [
        f"- {code_span(skill.name)}: {escape_markdown(skill.description)} "
        f"({code_span(str(skill.path))})"
        for skill in definitions.skills
    ]
    lines += [
        f"- {code_span(skill.name)}: {escape_markdown(translate(skill.description))}"
        for skill in definitions.bundled
    ]
    lines += untrusted_lines(core, definitions, "skill")
    return core.clean("\n".join(lines)) or translate("There are no skills.")


def untrusted_lines(
    core: SessionCore, definitions: Definitions, kind: Literal["skill", "agent"]
) -> Iterator[str]:
    """Yield a line for each file of a kind that the user does not trust yet."""
    for item in definitions.untrusted:
        if item.kind == kind:
            yield core.translate(
                "- {file} is not used until you trust it: /trust", file=code_span(item.path)
            )

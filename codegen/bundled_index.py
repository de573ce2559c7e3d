"""Generate the indexes of the bundled skills and agents."""

from __future__ import annotations

import json

from acp_agent.extensions.definitions.bundled import all_bundled, all_bundled_agents


def index_text(kind: str) -> str:
    """Return the expected index of the skills or agents: names, descriptions and hints."""
    index: list[dict[str, object]]
    if kind == "agents":
        index = [
            {"name": definition.name, "description": definition.description}
            for definition in all_bundled_agents()
        ]
    else:
        index = [
            {
                "name": definition.name,
                "description": definition.description,
                "hint": definition.hint,
            }
            for definition in all_bundled()
        ]
    return json.dumps(index, indent=1, ensure_ascii=False) + "\n"

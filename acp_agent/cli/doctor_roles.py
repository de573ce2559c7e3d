"""What `acp-agent doctor` says of the models that the configuration names beside the session's.

A session passes over one that cannot be used, since the work can be done without, but for a
fallback that nobody serves; so this is the place where somebody learns that a name is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from acp_agent.cli.doctor_checks import Finding
from acp_agent.cli.words import told
from acp_agent.config.load import load_config, read_text
from acp_agent.config.paths import Paths
from acp_agent.config.problems import Key, Problem
from acp_agent.config.secrets import Secrets
from acp_agent.config.toml_errors import lines_of
from acp_agent.config.types import Config
from acp_agent.errors import AcpAgentError
from acp_agent.extensions.definitions.types import SMALL

Way = tuple[Key, ...]


async def check_roles(paths: Paths, environ: Mapping[str, str]) -> list[Finding]:
    """Which models cannot be used that the configuration has for a part of the work.

    A configuration that is wrong in itself is told elsewhere.
    """
    from acp_agent.models.registry import Models  # noqa: PLC0415 - only for this part

    try:
        config = load_config(paths.config_file, environ)
        named = list(_named(config))
        if not named:
            return []
        # With a fallback of an unknown provider there are no models at all; it is told of below.
        without = msgspec.structs.replace(config, fallback=[])
        models = Models(without, Secrets(paths.secrets_file, environ), environ)
    except AcpAgentError:
        return []
    wrong: list[tuple[Way, str, Literal["broken", "missing"]]] = []
    try:
        for path, ref in named:
            try:
                info = models.resolve(ref)
            except AcpAgentError as error:
                wrong.append((path, str(error), "broken" if path[0] == "fallback" else "missing"))
                continue
            try:
                if path[0] != "models":  # what is known of a model may be said before it is used
                    models.require(info)
            except AcpAgentError as error:
                wrong.append((path, str(error), "missing"))
    finally:
        await models.aclose()
    places = lines_of(read_text(paths.config_file), [path for path, _, _ in wrong])
    findings = []
    for (path, why, state), line in zip(wrong, places, strict=True):
        where = str(paths.config_file) if line is None else f"{paths.config_file}:{line}"
        findings.append(Finding(state, f"{where}: {Problem(path, why).key}: {told(why)}"))
    return findings


def _named(config: Config) -> Iterator[tuple[Way, str]]:
    """The models by the keys that name them."""
    for index, ref in enumerate(config.fallback):
        yield ("fallback", index), ref
    for key, role in (("small_model", config.small_model), ("vision_model", config.vision_model)):
        if role is not None:
            yield (key,), role
    for ref in config.models:
        yield ("models", ref), ref
    for kind, tables in (("skills", config.skills), ("agents", config.agents)):
        for name, table in tables.items():
            if table.enabled and table.model not in {None, SMALL}:
                yield (kind, name, "model"), str(table.model)

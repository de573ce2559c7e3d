"""The models of a configuration, on a machine on which nothing answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from acp_agent.config.types import Config
from acp_agent.models.registry import Models

NOWHERE = {"LOCAL_BASE_URL": "http://127.0.0.1:9/v1"}  # the discard port: nothing answers


class LearnsNothing:
    """Part of what keeps keys: nothing is scrubbed here."""

    def learn(self, values: Iterable[str]) -> None:
        pass


class Keys(LearnsNothing):
    """Keys of the environment, as the configuration's secrets give them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ

    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        return next((self.environ[name] for name in key_env if name in self.environ), None)


def models(config: Config | None = None, **environ: str) -> Models:
    """No key is there but those given."""
    given = {**NOWHERE, **environ}
    return Models(config or Config(), Keys(given), given)

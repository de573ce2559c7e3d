"""A tool that describes itself: its schema came as JSON Schema, not as a type of ours."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from acp_agent.content import JsonObject
from acp_agent.tools.base import Tool


class GivenArguments(BaseModel):
    """Arguments that were checked against the tool's own schema."""

    model_config = ConfigDict(frozen=True)

    values: JsonObject


class DescribedTool(Tool[GivenArguments]):
    """A tool whose parameters are a JSON Schema that it brings along."""

    params: ClassVar[type[BaseModel]] = GivenArguments

    @abstractmethod
    def parameters(self) -> JsonObject:
        """The parameters as a JSON Schema of an object."""

    @abstractmethod
    def mistakes(self, arguments: JsonObject) -> list[str]:
        """What is wrong with arguments; empty where nothing is."""

"""The type of the checkpoints table in a configuration file."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from acp_agent.config.policy_types import Table


class CheckpointsConfig(Table, frozen=True, kw_only=True):
    """The files as they were before a turn changed them."""

    enabled: Annotated[bool, Meta(description="Save files before they are changed.")] = True
    exclude: Annotated[
        list[str], Meta(description="Files that are not saved, as patterns of a .gitignore file.")
    ] = []
    max_file_bytes: Annotated[
        int, Meta(ge=1_000, le=1_000_000_000, description="The largest file that is saved.")
    ] = 10_000_000
    max_files: Annotated[
        int,
        Meta(ge=1, le=10_000_000, description="New files up to which a folder is saved at all."),
    ] = 200_000
    max_bytes: Annotated[
        int,
        Meta(ge=1_000_000, description="What the checkpoints of one folder may take on the disk."),
    ] = 2_000_000_000
    timeout: Annotated[
        float,
        Meta(
            gt=0,
            le=86_400,
            description="How long saving the files may take before a turn writes, and at its end.",
        ),
    ] = 10.0
    rewind_tool: Annotated[
        bool, Meta(description="Give the model a tool to go back to an earlier point by itself.")
    ] = False

"""Changes to files: what happened to which path, and a patch that shows how."""

from __future__ import annotations

from typing import Any, TypeAlias

from protocol.codec.marks import Lenient
from protocol.codec.open_union import OpenUnion, UnknownVariant, string_in
from protocol.v2.base import AbsolutePath, MediaType, Wire

# "text", "binary", "directory", "symlink", or a word that later versions add.
DiffFileType: TypeAlias = str
DiffPatchFormat: TypeAlias = str  # "git_patch", or a word that later versions add


class DiffChange(OpenUnion):
    """What happened to a file."""

    __slots__ = ()

    @classmethod
    def variant_of(cls, value: dict[str, Any]) -> type[OpenUnion]:
        """By the operation."""
        return _CHANGES.get(string_in(value, "operation"), OtherDiffChange)


class _Change(Wire, DiffChange, frozen=True, kw_only=True, tag_field="operation"):
    """`DiffPathChange`: the kind of file is the one after the operation."""

    path: AbsolutePath
    file_type: Lenient[DiffFileType | None] = None
    mime_type: Lenient[MediaType | None] = None


class _PairChange(_Change, frozen=True, kw_only=True):
    """`DiffPathPairChange`: `path` is the new one."""

    old_path: AbsolutePath


class DiffAddChange(_Change, frozen=True, kw_only=True, tag="add"):
    """It is new."""


class DiffDeleteChange(_Change, frozen=True, kw_only=True, tag="delete"):
    """It is no longer there."""


class DiffModifyChange(_Change, frozen=True, kw_only=True, tag="modify"):
    """It holds something else."""


class DiffMoveChange(_PairChange, frozen=True, kw_only=True, tag="move"):
    """It is somewhere else."""


class DiffCopyChange(_PairChange, frozen=True, kw_only=True, tag="copy"):
    """It is there a second time."""


class OtherDiffChange(UnknownVariant, DiffChange):
    """Something not known yet happened to it."""

    __slots__ = ()


_CHANGES: dict[str, type[DiffChange]] = {
    "add": DiffAddChange,
    "delete": DiffDeleteChange,
    "modify": DiffModifyChange,
    "move": DiffMoveChange,
    "copy": DiffCopyChange,
}


class DiffPatch(Wire, frozen=True, kw_only=True):
    """The text of a patch in a format such as Git's."""

    format: DiffPatchFormat
    text: str

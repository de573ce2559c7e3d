"""The slow path of decoding: drops invalid parts that the schema tolerates, then decodes again.

A value that msgspec accepts never comes here. The rules are the marks of `codec.tolerance`, the
protocol schema's own: a marked field whose value is invalid counts as not given, invalid items of a
marked list are left out, and null stands for the default where it is marked so. What is left
invalid after that is refused.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields as struct_fields

from protocol.codec.tolerance import (
    ON_ERROR,
    ON_NULL,
    SKIP_ITEMS,
    OpenUnion,
    UnknownVariant,
    decode_hook,
)


class _Field(NamedTuple):
    name: str  # on the wire
    annotation: Any
    required: bool
    empty: Any  # what stands for "nothing" where the field is required
    marks: frozenset[str]


def drop_invalid(value: object, annotation: Any) -> object:
    """Return a copy of `value` (JSON data) without what `annotation` lets a receiver ignore."""
    bare = _unmarked(annotation)
    if isinstance(value, list):
        item = _item_type(bare)
        return value if item is None else [drop_invalid(each, item) for each in value]
    if not isinstance(value, dict):
        return value
    return _without_invalid(value, bare)


def _without_invalid(value: dict[str, Any], bare: Any) -> object:
    struct = _struct_for(value, bare)
    if struct is None:
        values = _value_type(bare)
        return value if values is None else {k: drop_invalid(v, values) for k, v in value.items()}
    valid = dict(value)
    for field in _fields(struct):
        if field.name not in value:
            continue
        child = drop_invalid(value[field.name], field.annotation)
        if SKIP_ITEMS in field.marks and isinstance(child, list):
            item = _item_type(_unmarked(field.annotation))
            child = [each for each in child if _fits(each, item)]
        valid[field.name] = child
        defaulted = (ON_NULL in field.marks and child is None) or ON_ERROR in field.marks
        if defaulted and not _fits(child, field.annotation):
            if field.required:
                valid[field.name] = field.empty
            else:
                del valid[field.name]
    return valid


def _fits(value: object, annotation: Any) -> bool:
    try:
        msgspec.convert(value, annotation, dec_hook=decode_hook)
    except msgspec.ValidationError:
        return False
    return True


@cache
def _fields(struct: type[msgspec.Struct]) -> tuple[_Field, ...]:
    result_fields = []
    for info in struct_fields(struct):
        bare = _unmarked(info.type)
        result_fields.append(
            _Field(
                name=info.encode_name,
                annotation=info.type,
                required=info.required,
                empty={} if _value_type(bare) is not None else [],
                marks=_marks(info.type),
            )
        )
    return tuple(result_fields)


def _marks(annotation: Any) -> frozenset[str]:
    marks: set[str] = set()
    if get_origin(annotation) is Annotated:
        for meta in annotation.__metadata__:
            if isinstance(meta, msgspec.Meta) and meta.extra:
                marks.update(meta.extra)
    return frozenset(marks)


def _unmarked(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _members(bare: Any) -> tuple[Any, ...]:
    if get_origin(bare) in {Union, types.UnionType}:
        return tuple(_unmarked(member) for member in get_args(bare))
    return (bare,)


def _item_type(bare: Any) -> Any:
    for member in _members(bare):
        origin = get_origin(member)
        if isinstance(origin, type) and issubclass(origin, Sequence):
            return get_args(member)[0]
    return None


def _value_type(bare: Any) -> Any:
    for member in _members(bare):
        origin = get_origin(member)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return get_args(member)[1]
    return None


def _struct_for(value: dict[str, Any], bare: Any) -> type[msgspec.Struct] | None:
    """Return the struct that `value` is meant to be, where `bare` says one."""
    structs = []
    for member in _members(bare):
        if not isinstance(member, type):
            continue
        if issubclass(member, msgspec.Struct):
            structs.append(member)
        elif issubclass(member, OpenUnion):
            return _variant(member, value)
    if len(structs) == 1:
        return structs[0]
    for struct in structs:
        config = struct.__struct_config__
        if config.tag_field is not None and value.get(config.tag_field) == config.tag:
            return struct
    return None


def _variant(union: type[OpenUnion], value: dict[str, Any]) -> type[msgspec.Struct] | None:
    try:
        variant = union.find_variant(value)
    except ValueError:
        return None
    if issubclass(variant, UnknownVariant) or not issubclass(variant, msgspec.Struct):
        return None
    return variant

"""Marks on a field's type that say how tolerant its decoding is.

They stand for the extension keywords of the protocol's schema, whose meaning is that a receiver
replaces what it cannot read instead of refusing the whole message.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta

T = TypeVar("T")

ON_ERROR = "default-on-error"
ON_NULL = "default-on-null"
SKIP_ITEMS = "skip-invalid-items"

# An invalid value counts as not given (`x-deserialize-default-on-error`).
Lenient = Annotated[T, Meta(extra={ON_ERROR: True})]
# Invalid items are left out; a value that is no list counts as not given
# (`x-deserialize-skip-invalid-items` with `x-deserialize-default-on-error`).
LenientItems = Annotated[T, Meta(extra={ON_ERROR: True, SKIP_ITEMS: True})]
# Invalid items are left out; a value that is no list is refused
# (`x-deserialize-skip-invalid-items` alone).
SkipInvalidItems = Annotated[T, Meta(extra={SKIP_ITEMS: True})]
# Null counts as not given (`x-deserialize-default-on-null`).
NullAsDefault = Annotated[T, Meta(extra={ON_NULL: True})]

"""A method of a protocol: its name and the types of what goes in and comes out."""

from __future__ import annotations

from typing import Generic, TypeVar

P = TypeVar("P")
R = TypeVar("R")


class Method(Generic[P, R]):
    """One row of a protocol's method table.

    Attributes:
        name: The name on the wire.
        params: The type of its parameters.
        result: The type of its result; None for a notification, which has none.
        only_notification: Whether a request for it is refused. Else one of a notification's method
            is handled and answered with `{}`, which must not be taken for a result.
    """

    __slots__ = ("name", "only_notification", "params", "result")

    def __init__(
        self,
        name: str,
        params: type[P],
        result: type[R] | None = None,
        *,
        only_notification: bool = False,
    ) -> None:
        self.name = name
        self.params = params
        self.result = result
        self.only_notification = only_notification

    def __repr__(self) -> str:
        return f"Method({self.name!r})"

"""Methods of a protocol: their names, and the types of their parameters and results."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Generic, TypeVar

P = TypeVar("P")
R = TypeVar("R")


class Method(Generic[P, R]):
    """A method of a protocol.

    Attributes:
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


class LazyMethod(Method[P, R]):
    """A method whose types are imported when they are first used.

    Args:
        request: The name that the types of a request and its response begin with.
        notification: The name of the parameters' type, where it is a notification.
    """

    __slots__ = ("_module", "_names")

    def __init__(
        self, name: str, module: str, request: str = "", *, notification: str | None = None
    ) -> None:
        # Not the base's: `params` and `result` stay unset until `__getattr__` is asked for them.
        self.name = name
        self.only_notification = False
        self._module = module
        self._names = (
            notification or f"{request}Request",
            None if notification else f"{request}Response",
        )

    def __getattr__(self, name: str) -> Any:
        if name not in {"params", "result"}:
            raise AttributeError(name)
        params, result = self._names
        module = import_module(self._module)
        self.params = getattr(module, params)
        self.result = None if result is None else getattr(module, result)
        return getattr(self, name)


def by_name(*methods: Method[Any, Any]) -> dict[str, Method[Any, Any]]:
    """Return a table of methods by their names."""
    return {method.name: method for method in methods}

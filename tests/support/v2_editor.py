"""An editor's side of version 2: the user's buttons and answers, and nothing else.

Version 2 has no files and no terminals of the editor's. What the test chooses is as in `Editor`.
"""

from __future__ import annotations

from typing import Any

from tests.support.editor import Editor, Json, Offer, PermissionPolicy

ALL_OF_V2: frozenset[Offer] = frozenset(("elicitation", "terminal_auth"))


class EditorV2(Editor):
    """The client's side: permissions and questions."""

    def __init__(
        self,
        *,
        offers: frozenset[Offer] = frozenset(),
        permission: PermissionPolicy = "allow_once",
    ) -> None:
        super().__init__(offers=offers & ALL_OF_V2, permission=permission)
        self._methods: dict[str, Any] = {
            "session/request_permission": self._request_permission,
            "elicitation/create": self._create_elicitation,
        }

    @property
    def capabilities(self) -> Json:
        """What to advertise in `initialize`."""
        capabilities: Json = {}
        if "elicitation" in self.offers:
            capabilities["elicitation"] = {"form": {}, "url": {}}
        if "terminal_auth" in self.offers:
            capabilities["auth"] = {"terminal": {}}
        return capabilities

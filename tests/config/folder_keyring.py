"""A keyring of one folder's files, for processes that the tests start (PYTHON_KEYRING_BACKEND)."""

from __future__ import annotations

import os
from pathlib import Path

from keyring.backend import KeyringBackend
from keyring.errors import PasswordDeleteError


class FolderKeyring(KeyringBackend):
    """Keeps each password in a file below TEST_KEYRING_FOLDER."""

    priority = 1

    def _file(self, service: str, username: str) -> Path:
        return Path(os.environ["TEST_KEYRING_FOLDER"]) / f"{service}-{username}"

    def get_password(self, service: str, username: str) -> str | None:
        file = self._file(service, username)
        return file.read_text() if file.exists() else None

    def set_password(self, service: str, username: str, password: str) -> None:
        self._file(service, username).write_text(password)

    def delete_password(self, service: str, username: str) -> None:
        if not self._file(service, username).exists():
            raise PasswordDeleteError("none")
        self._file(service, username).unlink()

"""Keys: where they come from, where they are kept, and that nobody else sees them."""

from __future__ import annotations

import json
import logging
import pickle
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.core import load_keyring

from acp_agent.config import key_stores
from acp_agent.config.secrets import Origin, Secret, Secrets
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.platform.posix import write_private
from acp_agent.workspace.environment import command_environ
from tests.support.ordinary_user import shared_folder, without_root

KEY = "sk-test-0123456789abcdef"
OTHER_KEY = "sk-test-fedcba9876543210"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "secrets.json"


@pytest.fixture
def system_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The real keyring package on a backend that keeps its passwords in a folder."""
    folder = tmp_path / "keyring"
    folder.mkdir()
    monkeypatch.setenv("TEST_KEYRING_FOLDER", str(folder))
    before: KeyringBackend = keyring.get_keyring()
    keyring.set_keyring(load_keyring("tests.config.folder_keyring.FolderKeyring"))
    yield folder
    keyring.set_keyring(before)


def test_another_process_reads_a_saved_key_and_other_users_cannot(path: Path) -> None:
    Secrets(path, {}).set("openai", f"  {KEY}\n")
    assert mode(path) == 0o600
    assert mode(path.parent) == 0o700
    assert Secrets(path, {}).get("openai", ()) == KEY
    assert Secrets(path, {}).get("anthropic", ()) is None


def test_variables_take_precedence_over_the_file_in_their_order(path: Path) -> None:
    secrets = Secrets(path, {"SECOND": OTHER_KEY, "EMPTY": " "})
    secrets.set("kimi", KEY)
    assert secrets.get("kimi", ("FIRST", "EMPTY", "SECOND")) == OTHER_KEY
    assert secrets.origin("kimi", ("FIRST", "EMPTY", "SECOND")) == Origin("environment", "SECOND")
    assert secrets.get("kimi", ("FIRST", "EMPTY")) == KEY
    assert secrets.origin("kimi", ("FIRST",)) == Origin("file", str(path))
    assert secrets.origin("zhipu", ("FIRST",)) is None


def test_a_key_in_the_environment_works_despite_a_damaged_file(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("{")
    assert Secrets(path, {"K": KEY}).get("openai", ("K",)) == KEY


def test_a_login_of_another_process_is_seen_after_refresh(path: Path) -> None:
    secrets = Secrets(path, {})
    assert secrets.get("openai", ()) is None
    Secrets(path, {}).set("openai", KEY)
    secrets.refresh()
    assert secrets.get("openai", ()) == KEY


def test_deleting_a_key_keeps_the_others(path: Path) -> None:
    secrets = Secrets(path, {})
    secrets.set("openai", KEY)
    secrets.set("kimi", OTHER_KEY)
    assert secrets.delete("openai")
    assert not secrets.delete("openai")
    assert secrets.get("openai", ()) is None
    assert secrets.get("kimi", ()) == OTHER_KEY
    assert KEY not in path.read_text()
    assert secrets.stored() == ["kimi"]


def test_a_file_that_others_can_read_is_made_private_with_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    Secrets(path, {}).set("openai", KEY)
    path.chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert Secrets(path, {}).get("openai", ()) == KEY
    assert mode(path) == 0o600
    assert "could be read by other users" in caplog.text
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b'{"version": 2}', b'{"keys": {"a": 1}}', b"\xff"]
)
def test_a_damaged_file_is_reported_and_unchanged(path: Path, content: bytes) -> None:
    write_private(path, content)
    uses: tuple[Callable[[Secrets], object], ...] = (
        lambda secrets: secrets.get("openai", ()),
        lambda secrets: secrets.set("openai", KEY),
        lambda secrets: secrets.delete("openai"),
    )
    for use in uses:
        with pytest.raises(ConfigError, match="damaged; move it away"):
            use(Secrets(path, {}))
    assert path.read_bytes() == content


@pytest.mark.parametrize("key", ["", "  \n", "two words", "tab\tinside", "clé-0123456789", "a\nb"])
def test_a_key_that_no_header_can_carry_is_refused(path: Path, key: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        Secrets(path, {}).set("openai", key)
    assert caught.value.field == "key"
    assert not path.exists()


def test_concurrent_writers_lose_no_key(path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from acp_agent.config.secrets import Secrets\n"
        "for n in range(5):\n"
        "    Secrets(Path(sys.argv[1]), {}).set(f'{sys.argv[2]}{n}', 'key-0123456789')\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(path), name]) for name in ("a", "b", "c")
    ]
    assert [child.wait(60) for child in running] == [0, 0, 0]
    assert len(Secrets(path, {}).stored()) == 15
    assert sorted(entry.name for entry in path.parent.iterdir()) == [
        "secrets.json",
        "secrets.json.lock",
    ]


def test_the_wait_for_a_lock_that_is_never_released_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_stores, "LOCK_SECONDS", 0.1)
    with (
        key_stores.edit_stored_keys(path),
        pytest.raises(ConfigError, match="another process holds"),
    ):
        Secrets(path, {}).set("openai", KEY)


def test_a_symlinked_file_stays_a_symlink(path: Path, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "keys.json"
    real.parent.mkdir()
    path.parent.mkdir()
    path.symlink_to(real)
    Secrets(path, {}).set("openai", KEY)
    assert path.is_symlink()
    assert json.loads(real.read_text())["keys"] == {"openai": KEY}


def test_a_full_disk_leaves_the_old_keys(path: Path) -> None:
    Secrets(path, {}).set("openai", KEY)
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from acp_agent.config.secrets import Secrets\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (40, 40))\n"
        "try:\n"
        "    Secrets(Path(sys.argv[1]), {}).set('kimi', 'k' * 200)\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-B", "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.startswith("ConfigError cannot write")
    assert ran.stdout.count("\n") == 1
    assert Secrets(path, {}).get("openai", ()) == KEY
    assert Secrets(path, {}).stored() == ["openai"]
    assert not [entry for entry in path.parent.iterdir() if entry.name.startswith(".")]


def test_a_key_in_the_keyring_is_not_in_the_file(path: Path, system_keyring: Path) -> None:
    secrets = Secrets(path, {})
    secrets.set("openai", KEY, keyring=True)
    assert KEY not in path.read_text()
    assert secrets.origin("openai", ()) == Origin("keyring", "keyring")
    assert Secrets(path, {}).get("openai", ()) == KEY
    assert secrets.delete("openai")
    assert list(system_keyring.iterdir()) == []
    assert Secrets(path, {}).get("openai", ()) is None


def test_a_key_moved_to_the_file_leaves_the_keyring(path: Path, system_keyring: Path) -> None:
    secrets = Secrets(path, {})
    secrets.set("openai", KEY, keyring=True)
    secrets.set("openai", OTHER_KEY)
    assert list(system_keyring.iterdir()) == []
    assert secrets.get("openai", ()) == OTHER_KEY


def test_the_keyring_is_not_imported_for_keys_that_are_not_in_it(path: Path) -> None:
    Secrets(path, {}).set("openai", KEY)
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from acp_agent.config.secrets import Secrets\n"
        "secrets = Secrets(Path(sys.argv[1]), {})\n"
        "print(secrets.get('openai', ()) is not None, secrets.get('kimi', ()))\n"
        "print('keyring' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["True", "None", "False"]


class BrokenKeyring(KeyringBackend):
    """A keyring that is locked for good: it answers nothing until the test lets it go."""

    priority = 1

    def __init__(self, release: threading.Event) -> None:
        self.release = release

    def get_password(self, service: str, username: str) -> str | None:
        self.release.wait(30)
        return None

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError(f"cannot keep {password}")


@pytest.fixture
def broken_keyring(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(key_stores, "WAIT_SECONDS", 0.1)
    release = threading.Event()
    before: KeyringBackend = keyring.get_keyring()
    keyring.set_keyring(BrokenKeyring(release))
    yield
    release.set()
    keyring.set_keyring(before)


@pytest.mark.usefixtures("broken_keyring")
def test_a_keyring_that_never_answers_is_reported_and_gives_no_key(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_private(path, b'{"version": 1, "keys": {}, "keyring": ["openai"]}')
    assert Secrets(path, {}).get("openai", ()) is None
    assert "no answer in 0.1 s" in caplog.text


@pytest.mark.usefixtures("broken_keyring")
def test_a_keyring_failure_is_reported_without_the_key(path: Path) -> None:
    with pytest.raises(ConfigError, match="keyring does not work") as caught:
        Secrets(path, {}).set("openai", KEY, keyring=True)
    assert KEY not in str(caught.value)
    assert not path.exists()


def test_a_missing_keyring_package_is_reported_with_how_to_install_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)  # what the import system does for "absent"
    with pytest.raises(ConfigError, match=r"install 'acp-agent-server\[keyring\]'"):
        Secrets(path, {}).set("openai", KEY, keyring=True)


def test_known_secrets_are_listed_for_scrubbing_longest_first(path: Path) -> None:
    environ = {"MY_API_KEY": OTHER_KEY + "-long", "SHORT_TOKEN": "abc", "PATH": "/usr/bin:/bin"}
    secrets = Secrets(path, {**environ, "ODD_NAME": KEY + "-from-variable"})
    secrets.set("kimi", KEY)
    secrets.get("kimi", ())
    secrets.get("x", ("ODD_NAME",))
    assert secrets.values() == [KEY + "-from-variable", OTHER_KEY + "-long", KEY]


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret!r} {secret} {[secret]}"
    assert secret.reveal() == KEY
    assert secret == Secret(KEY)
    assert secret != Secret(OTHER_KEY)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(secret)


def test_the_content_of_the_file_is_represented_without_its_keys(path: Path) -> None:
    Secrets(path, {}).set("openai", KEY)
    assert KEY not in repr(key_stores.read_stored_keys(path))


def test_a_folder_that_cannot_be_written_is_reported() -> None:
    with shared_folder() as folder, without_root():
        closed = folder / "closed"
        closed.mkdir(mode=0o500)
        with pytest.raises(ConfigError, match="cannot write"):
            Secrets(closed / "secrets.json", {}).set("openai", KEY)


def test_a_folder_that_cannot_be_listed_is_reported() -> None:
    with shared_folder() as folder, without_root():
        closed = folder / "closed"
        closed.mkdir(mode=0o000)
        with pytest.raises(ConfigError, match="cannot use the keys in"):
            key_stores.read_stored_keys(closed / "secrets.json")


@pytest.mark.parametrize("name", ["DEPLOY_PASSPHRASE", "NPM_TOKENS", "signing_private_key"])
def test_a_variable_that_commands_do_not_get_is_scrubbed_too(tmp_path: Path, name: str) -> None:
    environ = {name: "open-sesame-4711", "HOME": "/home/someone"}
    assert name not in command_environ(environ)
    assert Secrets(tmp_path / "secrets.json", environ).values() == ["open-sesame-4711"]

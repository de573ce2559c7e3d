"""What is trusted is kept by content, for several processes; a damaged file trusts nothing."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from acp_agent.errors import StoreError
from acp_agent.trust.store import Item, TrustStore, folder_digest, text_item


def item(name: str, raw: bytes = b"Do it.") -> Item:
    return text_item("skill", "/project", Path("/project", name), raw)


def test_trust_depends_on_folder_kind_path_and_content(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    store.trust([item("a")])
    other = TrustStore(tmp_path / "trust.json")
    assert other.trusts(item("a"))
    assert not other.trusts(item("a", b"Do more."))
    assert not other.trusts(item("b"))
    assert not other.trusts(text_item("agent", "/project", Path("/project/a"), b"Do it."))
    assert not other.trusts(text_item("skill", "/copy", Path("/copy/a"), b"Do it."))
    assert (tmp_path / "trust.json").stat().st_mode & 0o777 == 0o600
    assert other.revoke("/project")
    assert not store.trusts(item("a"))


def test_a_declined_item_is_remembered_with_its_content_until_it_is_trusted(tmp_path: Path) -> None:
    store = TrustStore(tmp_path / "trust.json")
    store.decline([item("a")])
    other = TrustStore(tmp_path / "trust.json")
    assert other.declines(item("a"))
    assert not other.trusts(item("a"))
    assert not other.declines(item("a", b"Do more."))
    assert not other.declines(item("b"))
    other.trust([item("a")])
    assert store.trusts(item("a"))
    assert not store.declines(item("a"))
    store.decline([item("b")])
    assert store.trusts(item("a"))
    assert store.revoke("/project")
    assert not other.declines(item("b"))


def test_an_item_without_readable_content_is_never_trusted(tmp_path: Path) -> None:
    store, unknown = TrustStore(tmp_path / "trust.json"), Item(
        kind="skill", folder="/project", path="a", digest=""
    )  # fmt: skip
    store.trust([unknown])
    store.trust_for_now([unknown])
    assert not store.trusts(unknown)
    (tmp_path / "large").mkdir()
    with (tmp_path / "large" / "file").open("wb") as file:
        file.truncate(60_000_000)
    assert folder_digest(tmp_path / "large")[0] == ""


def test_several_may_trust_something_at_once(tmp_path: Path) -> None:
    names = [f"skill-{number}" for number in range(12)]
    threads = [
        threading.Thread(target=TrustStore(tmp_path / "trust.json").trust, args=([item(name)],))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = TrustStore(tmp_path / "trust.json")
    assert all(store.trusts(item(name)) for name in names)


@pytest.mark.parametrize(
    "content", [b"{", b'{"version": 2}', b'{"folders": {"\xff": {}}}', b"[" * 100_000]
)
def test_a_damaged_file_trusts_nothing_and_is_not_overwritten(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "trust.json"
    path.write_bytes(content)
    store = TrustStore(path)
    assert not store.trusts(item("a"))
    assert str(path) in store.problem
    with pytest.raises(StoreError):
        store.trust([item("a")])
    assert path.read_bytes() == content


def test_folders_that_the_configuration_names_are_trusted_with_all_below_them(
    tmp_path: Path,
) -> None:
    store = TrustStore(tmp_path / "trust.json", ["/proj", "~/work"])
    assert not store.trusts(item("a"))
    assert TrustStore(tmp_path / "trust.json", ["/project"]).trusts(item("a"))

"""The generated files of the repository are those that `make schemas` writes."""

from __future__ import annotations

import pytest

from codegen.__main__ import ROOT, generated_files

FILES = generated_files()


@pytest.mark.parametrize("path", FILES)
def test_a_generated_file_is_current(path: str) -> None:
    assert (ROOT / path).read_bytes() == FILES[path], "run 'make schemas' and commit what it wrote"

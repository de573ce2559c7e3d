"""The size of what every session begins with."""

from __future__ import annotations

import pytest

from benchmarks.requests import APIS, LARGEST, first


@pytest.mark.cold
@pytest.mark.parametrize("api", APIS)
def test_the_first_request_in_an_empty_project_is_small_with_all_tools(api: str) -> None:
    assert 5.0 < first(api) / 1e3 <= LARGEST

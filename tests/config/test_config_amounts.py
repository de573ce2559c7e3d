"""How amounts of money are written."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from acp_agent.config.amounts import format_decimal, format_dollars


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (0, "$0.00"),
        (0.00321, "$0.0032"),
        (0.000_001, "$0.000001"),
        (0.000_099_6, "$0.0001"),
        (0.000_012_34, "$0.000012"),
        (12.5, "$12.50"),
        (1234, "$1,234.00"),
    ],
)
def test_small_amounts_show_the_digits_that_count(amount: float, text: str) -> None:
    assert format_dollars(amount) == text


@given(st.floats(min_value=0, allow_infinity=False), st.sampled_from([2, 4, 6]))
def test_only_zero_is_shown_as_zero(amount: float, min_places: int) -> None:
    assert (float(format_decimal(amount, min_places).replace(",", "")) == 0) == (amount == 0)
    assert (float(format_dollars(amount)[1:].replace(",", "")) == 0) == (amount == 0)

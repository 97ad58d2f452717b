"""Texts in CSV files: a spreadsheet runs none of them, and none is lost."""

import pytest
from hypothesis import given, strategies as st

from krag_eval.core.files import shielded, unshielded

# Characters that matter to the rule, and a few that do not.
texts = st.text(st.sampled_from("=+-@＝＋－＠'\";,\t\r\n 0a가"), max_size=8) | st.text(max_size=8)


@pytest.mark.parametrize("first", [*"=+-@\t\r\n＝＋－＠"])
def test_what_begins_a_formula_is_shielded(first):
    """The characters that OWASP lists under CSV injection, and its remedy."""
    assert shielded(f"{first}a") == f"'{first}a"


@pytest.mark.parametrize("separator", [";", "\t"])
def test_wherever_a_cell_may_begin(separator):
    """Excel in many languages parts cells by semicolons; LibreOffice by all three by default."""
    assert shielded(f"a{separator}=b") == f"a{separator}'=b"


@pytest.mark.parametrize("text", ["-5", "+3.25", "-1e-7", "When?", "a = b", "'tis", "", "9 - 5"])
def test_other_texts_and_plain_numbers_stay(text):
    """A number keeps its sign: a spreadsheet shows what it runs."""
    assert shielded(text) == text


@given(text=texts)
def test_every_text_comes_back(text):
    """Also one that had the sign before."""
    assert unshielded(shielded(text)) == text


@given(text=texts)
def test_no_cell_begins_with_a_formula(text):
    """However the line is parted; plain numbers are none."""
    for cell in shielded(text).replace("\t", ";").split(";"):
        assert (
            cell[:1] not in [*"=+-@＝＋－＠"]
            or cell.removeprefix("-").strip("+-.eE0123456789") == ""
        )

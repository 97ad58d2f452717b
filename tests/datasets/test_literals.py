"""Reading lists that Python wrote as text: what repr writes comes back, and nothing ever runs."""

from __future__ import annotations

import ast
import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from krag_eval._reading import literal_in
from krag_eval.errors import InvalidInput

characters = st.text(max_size=8)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | characters,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(characters, inner, max_size=3),
    max_leaves=12,
)


def refusal(text: str) -> str:
    """Return the message with which a text is refused."""
    with pytest.raises(InvalidInput) as caught:
        literal_in(text)
    assert str(caught.value).isprintable()
    return str(caught.value).removeprefix("cannot be read as a list: ")


class TestWhatIsRead:
    """What Python writes."""

    @given(values)
    def test_what_repr_writes_comes_back(self, value: object) -> None:
        """Whatever the quotes and escapes; the types too, which 1 == True would hide."""
        read = literal_in(repr(value))
        assert repr(read) == repr(value)

    @given(st.text(max_size=40) | st.text("[](){},:'\"\\0123axuN. \n", max_size=40))
    def test_it_agrees_with_pythons_own_reader(self, text: str) -> None:
        """What both accept means the same; what only one accepts is refused by ours."""
        try:
            read = literal_in(text)
        except InvalidInput:
            return
        assert json.dumps(read) == json.dumps(ast.literal_eval(text.strip()))

    @pytest.mark.parametrize("text", ["(0)", "('a')", "[(1), ((2))]", "(1,)", "()", "((1), 2)"])
    def test_parentheses_alone_make_no_tuple(self, text: str) -> None:
        """A comma does, as in Python, whose reader is asked."""
        assert json.dumps(literal_in(text)) == json.dumps(ast.literal_eval(text))

    @pytest.mark.parametrize("text", ["[01]", "[-007]", "[٣]"])
    def test_numbers_that_python_does_not_write_are_refused(self, text: str) -> None:
        """Ids without their quotes, most likely; other digits than 0 to 9 too."""
        with pytest.raises(SyntaxError):
            ast.literal_eval(text)
        assert refusal(text)

    def test_a_tuple_is_a_list(self) -> None:
        """Nobody distinguishes them in a table."""
        assert literal_in("('a', ('b',))") == ["a", ["b"]]

    def test_a_long_text_is_read_in_one_go(self) -> None:
        """Five million characters, half of them escaped."""
        text = "it's \n" * 1_000_000
        assert literal_in(repr([text])) == [text]


REFUSED = {
    "code": (
        "[__import__('os').system('id')]",
        "'__import__' is not expected at character 2",
    ),
    "a call": ("[open('a')]", "'open' is not expected"),
    "arithmetic": ("['a' + 'b']", "'+' is not expected at character 6"),
    "a name": ("[a]", "'a' is not expected"),
    "nan": ("[nan]", "'nan' is not expected"),
    "printed by numpy": ("['a' 'b']", "without a comma, as numpy prints arrays, at character 6"),
    "printed over lines": ("['a'\n 'b']", "without a comma, as numpy prints arrays"),
    "a numpy array": ("[array(['a'], dtype=object)]", "a numpy array was printed into it"),
    "a Document": ("[Document(page_content='a')]", "a LangChain Document was printed into it"),
    "cut short": ("['a', ...]", "it was cut short when it was printed"),
    "no end": ("['a', 'b'", "was never closed"),
    "no end of a string": ("['a", "is not expected"),
    "more": ("['a'] ['b']", "there is more after its end"),
    "an f-string": ("[f'{1}']", "'f' is not expected"),
    "bytes": ("[b'a']", "'b' is not expected"),
    "a comprehension": ("['a' for _ in 'b']", "'for' is not expected at character 6"),
    "a number as key": ("{1: 'a'}", "the keys of a dict must be different strings"),
    "a key twice": ("{'a': 1, 'a': 2}", "the keys of a dict must be different strings"),
    "a set": ("{'a', 'b'}", "',' or a value is expected"),
    "half an emoji": (r"['\ud83d']", "a string holds '\\ud83d', which is not a character"),
    "beyond Unicode": (r"['\U00110000']", "illegal Unicode character"),
    "an unknown escape": (r"['\d']", "is not expected"),
    "a huge number": ("[" + "9" * 5000 + "]", "Exceeds the limit"),
    "beyond floats": ("[1e999]", "',' or a value is expected"),
    "very deep": ("[" * 100_000, "it is nested more than 100 deep"),
    "a trailing comma too many": ("['a',,]", "at character 6"),
    "adjacent strings within": ("[['a' \"b\"]]", "side by side"),
    "a subscript": ("[['a']['b']]", "',' or a value is expected"),
    "underscores": ("[1_000]", "is not expected"),
    "hexadecimal": ("[0x10]", "is not expected"),
    "a comment": ("['a' # b\n]", "'#' is not expected"),
    "a character by name": (r"['\N{DASH}']", "is not expected"),
    "nothing": ("", "invalid syntax"),
}


class TestWhatIsRefused:
    """Everything else, by character and remedy."""

    @pytest.mark.parametrize(("text", "expected"), REFUSED.values(), ids=list(REFUSED))
    def test_what_is_wrong_is_said(self, text: str, expected: str) -> None:
        """On one line."""
        assert expected in refusal(text)

    def test_a_hundred_levels_are_enough(self) -> None:
        """One more is refused."""
        assert literal_in("[" * 100 + "]" * 100)
        assert "nested more than 100 deep" in refusal("[" * 101 + "]" * 101)

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        """Nothing but data or our own error comes out."""
        with suppress(InvalidInput):
            literal_in("[" + text)

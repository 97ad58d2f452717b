"""Reading lists that Python wrote as text: what repr writes comes back, and nothing ever runs."""

import ast
import json
from contextlib import suppress

import pytest
from hypothesis import given, strategies as st

from krag_eval.errors import InvalidInput
from krag_eval.loading.reading import literal_in

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


def refusal(text):
    """Return the message with which a text is refused."""
    with pytest.raises(InvalidInput) as caught:
        literal_in(text)
    assert str(caught.value).isprintable()
    return str(caught.value).removeprefix("cannot be read as a list: ")


class TestWhatIsRead:
    """What Python writes."""

    @given(values)
    def test_what_repr_writes_comes_back(self, value):
        """Whatever the quotes and escapes; the types too, which 1 == True would hide."""
        read = literal_in(repr(value))
        assert repr(read) == repr(value)

    @given(st.text(max_size=40) | st.text("[](){},:'\"\\0123axuN. \n", max_size=40))
    def test_it_agrees_with_pythons_own_reader(self, text):
        """What both accept means the same; what only one accepts is refused by ours."""
        try:
            read = literal_in(text)
        except InvalidInput:
            return
        assert json.dumps(read) == json.dumps(ast.literal_eval(text.strip()))

    @pytest.mark.parametrize("text", ["(0)", "('a')", "[(1), ((2))]", "(1,)", "()", "((1), 2)"])
    def test_parentheses_alone_make_no_tuple(self, text):
        """A comma does, as in Python, whose reader is asked."""
        assert json.dumps(literal_in(text)) == json.dumps(ast.literal_eval(text))

    def test_a_tuple_is_a_list(self):
        """Nobody distinguishes them in a table."""
        assert literal_in("('a', ('b',))") == ["a", ["b"]]

    def test_a_long_text_is_read_in_one_go(self):
        """Five million characters, half of them escaped."""
        text = "it's \n" * 1_000_000
        assert literal_in(repr([text])) == [text]


REFUSED = (
    "[open('a')]", "[a]", "['a\n 'b']", "['a", "[f'{1}']", "[b'a']", "[nan]", "{'a': 1, 'a': 2}",
    "{'a', 'b'}", r"['\d']", "[1e999]", "[['a' \"b\"]]", "[['a']['b']]", "[1_000]", "[0x10]",
    "['a' # b\n]", r"['\N{DASH}']", "[01]", "[-007]", "[٣]", "",
)  # fmt: skip
SAID = {
    "[__import__('os').system('id')]": "'__import__' is not expected at character 2",
    "['a' + 'b']": "'+' is not expected at character 6",
    "['a' for _ in 'b']": "'for' is not expected at character 6",
    "['a',,]": "at character 6",
    "['a' 'b']": "without a comma, as numpy prints arrays, at character 6",
    "[array(['a'], dtype=object)]": "a numpy array was printed into it",
    "[Document(page_content='a')]": "a LangChain Document was printed into it",
    "['a', ...]": "it was cut short when it was printed",
    "['a', 'b'": "was never closed",
    "['a'] ['b']": "there is more after its end",
    "{1: 'a'}": "the keys of a dict must be different strings",
    r"['\ud83d']": "a string holds '\\ud83d', which is not a character",
    r"['\U00110000']": "illegal Unicode character",
    "[" + "9" * 5000 + "]": "Exceeds the limit",
    "[" * 100_000: "it is nested more than 100 deep",
}


class TestWhatIsRefused:
    """Everything else, by character and remedy."""

    @pytest.mark.parametrize("text", REFUSED)
    def test_what_is_no_literal_of_python(self, text):
        """Names, operations, other numbers than Python writes, and what it merely allows."""
        assert refusal(text)

    @pytest.mark.parametrize(("text", "expected"), SAID.items(), ids=list(SAID.values()))
    def test_what_is_wrong_is_said(self, text, expected):
        """What people have in their tables is called by its name."""
        assert expected in refusal(text)

    def test_a_hundred_levels_are_enough(self):
        """One more is refused."""
        assert literal_in("[" * 100 + "]" * 100)
        assert "nested more than 100 deep" in refusal("[" * 101 + "]" * 101)

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(self, text):
        """Nothing but data or our own error comes out."""
        with suppress(InvalidInput):
            literal_in("[" + text)

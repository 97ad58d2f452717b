"""Names of matchers: what ``matcher="…"`` means."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from krag_eval import ContainsMatcher, ExactTextMatcher, IdMatcher, Matcher, RougeMatcher
from krag_eval.cli import main
from krag_eval.errors import InvalidInput, InvalidType
from krag_eval.matching.base import MATCHER_NAMES, resolve_matcher


@pytest.mark.parametrize("name", MATCHER_NAMES)
def test_every_name_makes_a_matcher_of_that_name(name):
    """New each time, with a signature that begins with its name."""
    matcher = resolve_matcher(name)
    assert isinstance(matcher, Matcher)
    assert matcher.signature.partition("(")[0] == name
    assert resolve_matcher(name) is not matcher


@pytest.mark.parametrize("name", MATCHER_NAMES)
def test_every_named_matcher_finds_a_text_in_itself(name):
    """Similarity 1, and 0 with a text that has nothing in common."""
    matcher = resolve_matcher(name)
    text = "the library opens at 9 and closes at 18 on every working day"
    assert matcher.similarity(text, text) == 1.0
    assert matcher.similarity(text, "???") < matcher.threshold


@pytest.mark.parametrize("name", MATCHER_NAMES)
def test_every_named_matcher_has_advice(name):
    """For the warning that nothing matched at all."""
    assert resolve_matcher(name).advice


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("text", ExactTextMatcher),
        ("contains", ContainsMatcher),
        ("id", IdMatcher),
        ("rouge1", RougeMatcher),
        ("rouge2", RougeMatcher),
        ("rougeL", RougeMatcher),
    ],
)
def test_names_stand_for_their_classes(name, kind):
    """With default settings."""
    assert type(resolve_matcher(name)) is kind


def test_an_installed_package_adds_a_matcher_by_name(tmp_path, monkeypatch):
    """In Python, with settings, and in the shell; an unknown name lists it."""
    info = tmp_path / "shop-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1\n", "utf-8")
    (info / "entry_points.txt").write_text("[krag_eval.matchers]\nprefix = shop:Prefix\n", "utf-8")
    (tmp_path / "shop.py").write_text(PREFIX, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    matcher = resolve_matcher("prefix(length=3)")
    assert matcher.signature == "Prefix(length=3)"
    assert matcher.similarity("abcd", "abce") == 1.0
    with pytest.raises(InvalidInput, match="'prefix'"):
        resolve_matcher("prefixes")
    (tmp_path / "data.jsonl").write_text('{"actual": ["abcdx"], "predicted": ["abcdy"]}\n', "utf-8")
    done = CliRunner().invoke(
        main, ["evaluate", str(tmp_path / "data.jsonl"), "-m", "prefix", "--format", "json"]
    )
    assert done.exit_code == 0
    assert "matcher=Prefix(length=4)" in done.output


PREFIX = """
from krag_eval import TextMatcher
import numpy as np
class Prefix(TextMatcher):
    def __init__(self, length: int = 4):
        self.length = length
    def block_scorer(self, texts):
        starts = np.array([text[: self.length] for text in texts])
        return lambda actual, predicted: np.equal.outer(starts[actual], starts[predicted]) * 1.0
"""


def test_an_instance_is_used_as_it_is():
    """Whatever was subclassed."""

    class Mine(ExactTextMatcher):
        """A matcher of one's own."""

    matcher = Mine()
    assert resolve_matcher(matcher) is matcher


@pytest.mark.parametrize(
    ("came", "meant"), [("rougel", "rougeL"), ("Text", "text"), ("contain", "contains")]
)
def test_an_unknown_name_is_refused_with_the_nearest(came, meant):
    """The message lists every name."""
    with pytest.raises(InvalidInput) as info:
        resolve_matcher(came)
    assert info.value.argument == "matcher"
    assert all(repr(name) in info.value.problem for name in (*MATCHER_NAMES, came))
    assert info.value.fix == f"did you mean {meant!r}?"


@pytest.mark.parametrize("came", ["", "bm25"])
def test_a_name_like_no_other_is_refused_without_a_guess(came):
    """The list is all there is to say."""
    with pytest.raises(InvalidInput) as info:
        resolve_matcher(came)
    assert (info.value.argument, info.value.fix) == ("matcher", "")


@pytest.mark.parametrize("came", [None, 5, ["text"], lambda actual, predicted: True])
def test_something_else_is_refused(came):
    """The message says what is accepted and shows what came."""
    with pytest.raises(InvalidType) as info:
        resolve_matcher(came)
    assert info.value.argument == "matcher"
    assert all(name in info.value.problem for name in MATCHER_NAMES)
    assert repr(came) in info.value.problem


def test_a_class_is_refused_with_a_hint():
    """The usual mistake."""
    with pytest.raises(InvalidType) as info:
        resolve_matcher(IdMatcher)
    assert "IdMatcher" in info.value.problem
    assert "call it" in str(info.value.fix)


@pytest.mark.parametrize(
    "name",
    [
        *MATCHER_NAMES,
        "coverage(min_run=15,tokenizer=character)",
        "coverage(min_run=5,tokenizer=words,numbers=yes)",
        "rouge2(statistic=recall,tokenizer=whitespace,stemmer=yes)",
        "fuzzy(scorer=partial_ratio)",
        "contains(case_sensitive=no)",
    ],
)
def test_what_a_signature_prints_is_read_back(name):
    """One spelling: copied from a result, a matcher's fragment makes the same matcher."""
    signature = resolve_matcher(name).signature
    assert resolve_matcher(signature).signature == signature
    assert "(" not in name or signature.startswith(name.removesuffix(")"))


@pytest.mark.parametrize(
    ("spelled", "problem"),
    [
        ("coverage(min_run=x)", "coverage: min_run must be a number, got 'x'"),
        (
            "coverage(run=5)",
            "setting of coverage must be one of 'min_run', 'tokenizer', 'numbers', 'union', "
            "'direction', got 'run'",
        ),
        ("coverage(numbers=maybe)", "coverage: numbers must be yes or no, got 'maybe'"),
        ("coverage(min_run=5,min_run=6)", "min_run is given twice"),
        ("rougeL(stemmer=1)", "rougeL: stemmer must be yes or no, got '1'"),
        ("coverage(threshold=0.5)", "the threshold is no setting of coverage"),
        ("coverage(min_run=5", "matcher must be one of"),
        ("coverage()x", "matcher must be one of"),
        ("coverage(tokenizer=unicod)", "did you mean 'unicode'"),
        ("coverage(min_run=0)", "min_run must be a whole number of at least 1"),
    ],
)
def test_settings_that_cannot_be_read_are_refused(spelled, problem):
    """Naming the setting and what it may be."""
    with pytest.raises(ValueError, match=re.escape(problem)):
        resolve_matcher(spelled)


@pytest.mark.parametrize(
    ("name", "made_by"),
    [
        ("embedding", "EmbeddingMatcher("),
        ("Embeddings", "EmbeddingMatcher("),
        ("EmbeddingMatcher", "EmbeddingMatcher("),
        ("metadata", "MetadataMatcher("),
    ],
)
def test_what_no_name_can_hold_is_said_to_be_made_in_python(name, made_by):
    """The message has the line to write."""
    with pytest.raises(InvalidInput) as caught:
        resolve_matcher(name)
    assert caught.value.argument == "matcher"
    assert f"matcher=krag_eval.{made_by}" in str(caught.value)

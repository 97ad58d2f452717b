"""What every matcher of texts does with blank texts, spellings, alternatives and copies."""

import subprocess
import sys

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from matched import copies, matches_of, nfd, scores_of

from krag_eval import (
    AnyOf,
    ContainsMatcher,
    CoverageMatcher,
    EmbeddingMatcher,
    ExactTextMatcher,
    FuzzyMatcher,
    IdMatcher,
    KragEvalWarning,
    RougeMatcher,
)
from krag_eval.core import resolve_matcher
from krag_eval.core.matching.names import MATCHER_NAMES
from krag_eval.core.matching.tokenizers import TOKENIZER_NAMES

#: Every matcher of texts with a name, those with each tokenizer, and those that Python makes.
MATCHERS = [
    *(resolve_matcher(name) for name in MATCHER_NAMES if name not in ("id", "spans")),
    *map(FuzzyMatcher, ("partial_ratio", "token_set_ratio")),
    *(
        matcher
        for tokenizer in TOKENIZER_NAMES
        for matcher in (
            RougeMatcher("rouge1", 0.7, "recall", tokenizer),
            RougeMatcher("rougeL", tokenizer=tokenizer, stemmer=True),
            CoverageMatcher(0.6, tokenizer=tokenizer),
        )
    ),
    EmbeddingMatcher(DeterministicFakeEmbedding(size=16), 0.7, batch_size=3),
    CoverageMatcher(0.6) & RougeMatcher("rouge2"),
    CoverageMatcher() | FuzzyMatcher(threshold=0.9),
]
# Kiwi takes seconds to load.
LIGHT = [one for one in MATCHERS if "kiwi" not in one.signature]
every_matcher = pytest.mark.parametrize("matcher", LIGHT, ids=lambda one: one.signature)


@every_matcher
def test_blank_texts_match_nothing(matcher):
    """Two of them are not alike, and the user is told of them."""
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted"):
        scores = scores_of(matcher, [" \n", "3 days"], ["", "3 days"])
    assert scores.tolist() == [[0, 0], [0, 1]]
    assert [matcher.similarity(blank, blank) for blank in ("", " ", "\u3000")] == [0.0] * 3
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 1 predicted"):
        assert len(matches_of(matcher, [[""]], [[" "]])) == 0


@pytest.mark.parametrize(
    "matcher", [one for one in LIGHT if "rouge_score" not in one.signature],
    ids=lambda one: one.signature,
)  # fmt: skip
def test_composed_and_decomposed_hangul_are_one_text(matcher):
    text = "지원금은 최대 삼억원까지 받을 수 있습니다"
    assert matcher.similarity(text, nfd(text)) == 1.0


@every_matcher
def test_the_nearest_alternative_counts(matcher):
    """The second text of the first item is the first document, and its item has similarity 1."""
    items = [AnyOf(["no word alike", "the cat sat"]), "on 1 mat"]
    scores = scores_of(matcher, items, ["the cat sat", "on 1 mat"])
    assert scores.diagonal().tolist() == [1.0, 1.0]


@every_matcher
@copies
def test_a_copy_scores_the_same(matcher, copied):
    """A matcher may be copied or sent to another process, after use, of which it keeps nothing."""
    texts = ["a river flows", "the rivers flow"]
    before = matcher.signature, matcher.threshold, sorted(vars(matcher))
    expected = scores_of(matcher, texts, texts[::-1]).tolist()
    again = copied(matcher)
    assert (again.signature, again.threshold, sorted(vars(matcher))) == before
    assert scores_of(again, texts, texts[::-1]).tolist() == expected
    assert scores_of(matcher, texts, texts[::-1]).tolist() == expected


@pytest.mark.parametrize(
    "matcher", [CoverageMatcher(), *map(RougeMatcher, ("rouge1", "rouge2", "rougeL"))]
)
def test_texts_without_words_match_nothing(matcher):
    """A text of punctuation is not even like itself; nothing to count is no error."""
    scores = scores_of(matcher, ["— !!", "a b"], ["— !!", "…", "a b"])
    assert scores.tolist() == [[0, 0, 0], [0, 0, 1]]
    assert matcher.similarity("…", "…") == 0.0
    assert len(matches_of(matcher, [["--"]], [["!!"]])) == 0
    assert len(matches_of(matcher, [["a b"], []], [[], ["a b"]])) == 0


GUARD = "guard=aligned"
ROUGE = "(statistic=fmeasure,tokenizer=unicode,stemmer=no)"


@pytest.mark.parametrize(
    ("matcher", "signature"),
    [
        # As in 0.1.0, from which results are kept.
        ("text", "text"),
        ("id", "id"),
        ("fuzzy", "fuzzy(scorer=ratio)"),
        *((name, name + ROUGE) for name in ("rouge1", "rouge2", "rougeL")),
        ("contains", "contains(fold_whitespace=yes)"),
        ("coverage", f"coverage(min_run=5,tokenizer=auto(words,letters),{GUARD})"),
        ("coverage(tokenizer=auto)", f"coverage(min_run=5,tokenizer=auto(words,letters),{GUARD})"),
        ("coverage(tokenizer=unicode)", f"coverage(min_run=5,tokenizer=unicode,{GUARD})"),
        ("coverage(tokenizer=letters)", f"coverage(min_run=12,tokenizer=letters,{GUARD})"),
        # Five words are some fifteen characters of Korean; a run that is given always stands.
        ("coverage(tokenizer=character)", f"coverage(min_run=15,tokenizer=character,{GUARD})"),
        (CoverageMatcher(0.9, 5, "character"), f"coverage(min_run=5,tokenizer=character,{GUARD})"),
        ("coverage(tokenizer=whitespace)", f"coverage(min_run=5,tokenizer=whitespace,{GUARD})"),
        (CoverageMatcher(0.9, 3, "words", numbers=True, polarity=False, direction="either"),
         "coverage(min_run=3,tokenizer=words,guard=off,numbers=anywhere,direction=either)"),
        (CoverageMatcher(union=True, numbers=False),
         "coverage(min_run=5,tokenizer=auto(words,letters),"
         "guard=numbers,numbers=ignore,union=yes)"),
        (FuzzyMatcher("token_set_ratio", 0.9), "fuzzy(scorer=token_set_ratio)"),
        (RougeMatcher("rouge2", 0.9, "recall", "whitespace", stemmer=True),
         "rouge2(statistic=recall,tokenizer=whitespace,stemmer=yes)"),
        (RougeMatcher("rouge1", max_cells=5), f"rouge1{ROUGE}"),
        (ExactTextMatcher(case_sensitive=False, fold_whitespace=True),
         "text(case_sensitive=no,fold_whitespace=yes)"),
        (ContainsMatcher(fold_whitespace=True, word_boundaries=False),
         "contains(fold_whitespace=yes,word_boundaries=no)"),
        (CoverageMatcher() & FuzzyMatcher(threshold=1) | IdMatcher(),
         f"((coverage(min_run=5,tokenizer=auto(words,letters),{GUARD})>=0.8"
         "&fuzzy(scorer=ratio)>=1.0)|id)"),
    ],
)  # fmt: skip
def test_the_signature_tells_every_setting(matcher, signature):
    """Or those that differ from the default, where signatures were made without them."""
    assert resolve_matcher(matcher).signature == signature


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("core.matching.tokenizers import resolve_tokenizer as t; t('kiwi')",
         "kiwipiepy rouge_score nltk numpy rapidfuzz langchain_core pandas"),
        ("matchers.fuzzy import FuzzyMatcher as M; M()", "rapidfuzz"),
        ("matchers.rouge import RougeMatcher as M; M('rouge1').similarity('a b', 'a b')",
         "nltk rouge_score rapidfuzz"),
        ("matchers.rouge import RougeMatcher as M; M('rougeL').similarity('a b', 'a b')",
         "nltk rouge_score"),
        ("matchers.rouge import RougeMatcher as M; M('rouge2', stemmer=True).similarity('a', 'a')",
         "rapidfuzz"),
        ("evaluator import OfflineRetrievalEvaluator as E;"
         "E([['a b']], [['a b']], matcher='rouge1', n_jobs=1).calculate_recall()", "joblib"),
    ],
)  # fmt: skip
def test_nothing_is_loaded_without_need(code, absent):
    """Only stemming needs rouge-score with its nltk, only rougeL and fuzzy need rapidfuzz."""
    told = f"import sys; assert not set({absent.split()}) & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"from krag_eval.{code}; {told}"], check=True)

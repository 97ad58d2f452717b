"""ROUGE: equal to rouge-score bit for bit on any text, and loaded only when needed."""

from __future__ import annotations

import copy
import pickle
import random
import subprocess
import sys
import unicodedata
import warnings
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from nltk.stem.porter import PorterStemmer
from numpy.typing import NDArray
from rouge_score import tokenizers
from rouge_score.rouge_scorer import RougeScorer

from krag_eval.documents import AnyOf, QuerySet
from krag_eval.errors import InvalidInput, InvalidType, KragEvalWarning, Refusal
from krag_eval.matching import rouge
from krag_eval.matching.base import resolve_matcher
from krag_eval.matching.joins import Units
from krag_eval.matching.numbering import TokenNumbers
from krag_eval.matching.rouge import RougeMatcher, _stem
from krag_eval.matching.tokenizers import unicode_tokens

ROOT = Path(rouge.__file__).parents[2]
TYPES = ("rouge1", "rouge2", "rougeL")
STATISTICS = ("fmeasure", "recall", "precision")

# Words that share stems, words too short to stem, and irregular forms the stemmer knows by heart.
ENGLISH = """
the a of and to in is was his sky skies dying news river rivers flow flows flowed flowing relate
relational relation relations generalization oscillators hopping hop hope hoping agreed feed
plastered motoring conflated troubled sized happy happily was were 3 42 2024 x86
"""
KOREAN = """
서울은 서울의 대한민국 수도이다 강이 한강이 흐른다 부산은 항구 도시이다 RAG 2024년
"""

Scores = NDArray[np.float64]


def scores_of(matcher, actual, predicted):
    """Return the similarities of all pairs of one query; shape (actual, predicted)."""
    matches = matcher.match(QuerySet.from_lists([actual], [predicted]))
    scores = np.zeros((len(actual), len(predicted)))
    scores[matches.item, matches.rank - 1] = matches.similarity
    return scores


def reference(matcher, actual, predicted, tokenize=None):
    """Return the same from rouge-score, by its own tokenizer or the one given."""
    scorer = RougeScorer(
        [matcher.rouge_type],
        use_stemmer=matcher.stemmer,
        tokenizer=_Adapter(tokenize) if tokenize else None,
    )
    return np.array(
        [
            [getattr(scorer.score(a, p)[matcher.rouge_type], matcher.statistic) for p in predicted]
            for a in actual
        ]
    )


class _Adapter:
    """A tokenizer as rouge-score wants it."""

    def __init__(self, tokenize):
        self.tokenize = tokenize


def texts(vocabulary, n, seed):
    """Draw texts of 2 to 60 words, the first words more often, so that some repeat much."""
    draw = random.Random(seed)
    words = vocabulary.split()
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    return [" ".join(draw.choices(words, weights, k=draw.randint(2, 60))) for _ in range(n)]


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("stemmer", [False, True])
@pytest.mark.parametrize("rouge_type", TYPES)
def test_scores_of_english_texts_are_those_of_rouge_score(rouge_type, stemmer, statistic):
    """Every bit agrees, for each type, statistic and with and without stemming."""
    matcher = RougeMatcher(rouge_type, statistic=statistic, stemmer=stemmer)
    actual, predicted = texts(ENGLISH, 7, seed=1), texts(ENGLISH, 30, seed=2)
    expected = reference(matcher, actual, predicted)
    assert np.count_nonzero(expected) > 100
    assert np.array_equal(scores_of(matcher, actual, predicted), expected)


# Few different words, so that repeats and shared subsequences abound; empty texts too.
token_texts = st.lists(st.sampled_from(["a", "b", "cd", "efgh", "ab12"]), max_size=40).map(" ".join)


@pytest.mark.parametrize("rouge_type", TYPES)
@settings(deadline=None, max_examples=60)
@given(actual=token_texts, predicted=st.lists(token_texts, min_size=1, max_size=3))
@pytest.mark.filterwarnings("ignore::krag_eval.errors.KragEvalWarning")
def test_scores_of_any_tokens_are_those_of_rouge_score(rouge_type, actual, predicted):
    """Repeated, missing and shared tokens in any arrangement agree in every bit."""
    matcher = RougeMatcher(rouge_type)
    expected = reference(matcher, [actual], predicted)
    assert np.array_equal(scores_of(matcher, [actual], predicted), expected)


@pytest.mark.parametrize("stemmer", [False, True])
@settings(deadline=None, max_examples=100)
@given(
    actual=st.text(st.characters(codec="ascii"), max_size=80),
    predicted=st.text(st.characters(codec="ascii"), max_size=80),
)
def test_scores_of_any_ascii_text_are_those_of_rouge_score(stemmer, actual, predicted):
    """Control characters, punctuation and digits are read as rouge-score reads them."""
    matcher = RougeMatcher("rouge1", stemmer=stemmer)
    expected = reference(matcher, [actual], [predicted])[0, 0]
    assert matcher.similarity(actual, predicted) == expected


@pytest.mark.parametrize("rouge_type", TYPES)
def test_scores_of_korean_texts_are_those_of_rouge_score_given_the_tokens(rouge_type):
    """rouge-score with our tokens agrees in every bit on Korean."""
    matcher = RougeMatcher(rouge_type)
    actual, predicted = texts(KOREAN, 5, seed=3), texts(KOREAN, 20, seed=4)
    expected = reference(matcher, actual, predicted, tokenize=unicode_tokens)
    assert np.count_nonzero(expected) > 50
    assert np.array_equal(scores_of(matcher, actual, predicted), expected)


# Lin (2004), section 3.1: of four words "police ... the gunman" is in the order of the first
# sentence and only "the gunman" in that of the second, while both share the bigram "the gunman",
# one of three, and the words police, the, gunman, three of four.
@pytest.mark.parametrize(
    ("rouge_type", "first", "second"),
    [("rougeL", 3 / 4, 2 / 4), ("rouge2", 1 / 3, 1 / 3), ("rouge1", 3 / 4, 3 / 4)],
)
def test_the_example_of_the_paper(rouge_type, first, second):
    """The two sentences of the paper that introduced ROUGE score what it says."""
    matcher = RougeMatcher(rouge_type, statistic="recall")
    truth = "police killed the gunman"
    assert matcher.similarity(truth, "police kill the gunman") == first
    assert matcher.similarity(truth, "the gunman kill police") == second


def test_a_repeated_word_counts_as_often_as_both_texts_have_it():
    """Overlap is clipped: two of the three predicted words find a partner."""
    # "to" twice in the truth, three times in the prediction: 2 shared, of 4 and of 3 words.
    assert RougeMatcher("rouge1", statistic="recall").similarity("to be to do", "to to to") == 2 / 4
    assert (
        RougeMatcher("rouge1", statistic="precision").similarity("to be to do", "to to to") == 2 / 3
    )


def test_fmeasure_is_the_harmonic_mean_of_precision_and_recall():
    """One shared word of one and of three gives 2 · 1 · ⅓ / (1 + ⅓) = ½."""
    assert RougeMatcher("rouge1").similarity("a b c", "a") == 0.5


def test_stemming_unites_the_forms_of_a_word():
    """Both words have the stem "fish"."""
    assert RougeMatcher("rouge1").similarity("fishing", "fished") == 0.0
    assert RougeMatcher("rouge1", stemmer=True).similarity("fishing", "fished") == 1.0


def test_words_of_three_letters_are_not_stemmed():
    """Porter would make "hi" of "his"; rouge-score leaves such short words alone."""
    assert PorterStemmer().stem("his") == "hi"
    assert RougeMatcher("rouge1", stemmer=True).similarity("his", "hi") == 0.0


@pytest.mark.parametrize("n_tokens", [65_535, 65_536, 70_000])
def test_counts_beyond_16_bits_do_not_spill_into_other_texts(n_tokens):
    """Texts around and above 65,535 tokens are counted right, beside each other."""
    long, other = "a " * n_tokens, "b " * n_tokens
    scores = scores_of(
        RougeMatcher("rouge1", statistic="recall"), [long, "a b", other, "c"], [long, other, "a b"]
    )
    assert scores.tolist() == [
        [1.0, 0.0, 1 / n_tokens],
        [0.5, 0.5, 1.0],
        [0.0, 1.0, 1 / n_tokens],
        [0.0, 0.0, 0.0],
    ]


def test_sums_over_many_long_predicted_texts_do_not_run_over():
    """Ten predicted texts of 60,000 equal words each are counted separately."""
    truths, documents = ["a " * 50_000, "b"], [f"{'a ' * 60_000}{word}" for word in "bcdefghijk"]
    scores = scores_of(RougeMatcher("rouge1", statistic="recall"), truths, documents)
    assert scores.tolist() == [[1.0] * 10, [1.0] + [0.0] * 9]


def test_token_numbers_in_the_surrogate_range_are_told_apart():
    """With 60,000 different words some would become surrogates, were these not skipped."""
    words = [f"w{number}" for number in range(60_000)]
    truth, window = " ".join(words[55_000:56_000]), " ".join(words[55_500:56_500])
    matcher = RougeMatcher("rougeL", statistic="recall")
    # Half of the truth's words are in the window, all are in the long text; 55,296 is U+D800.
    assert scores_of(matcher, [" ".join(words), truth], [window]).tolist() == [[1 / 60], [0.5]]


def test_more_different_words_than_code_points_are_told_apart():
    """Where Unicode is exhausted, at 1.1 million words, words are compared as numbers."""
    words = [str(number) for number in range(1_120_000)]
    truth, window = " ".join(words[-1_000:]), " ".join(words[-1_500:-500])
    matcher = RougeMatcher("rougeL", statistic="recall", tokenizer="whitespace")
    assert scores_of(matcher, [truth], [window, " ".join(words)]).tolist() == [[0.5, 1.0]]


@given(st.lists(st.sampled_from([high + low for high in (0, 1 << 16, 1 << 40) for low in (0, 1)])))
def test_keys_are_numbered_whatever_digits_they_differ_in(keys):
    """Keys of more than 32 bits get equal numbers where they are equal and nowhere else."""
    numbers = rouge._dense(np.array(keys, np.int64))
    assert numbers.tolist() == np.unique(keys, return_inverse=True)[1].tolist()


def test_bigrams_of_a_large_vocabulary_are_told_apart():
    """With 70,000 different words the number of possible bigrams exceeds 32 bits."""
    words = [f"w{number}" for number in range(70_000)]
    truth, window = " ".join(words[-100:]), " ".join(words[-150:-50])
    scores = scores_of(
        RougeMatcher("rouge2", statistic="recall"), [" ".join(words), truth], [window]
    )
    # The window has 99 bigrams, all of them in the long text; it shares 50 words, 49 bigrams, with
    # the truth.
    assert scores.tolist() == [[99 / 69_999], [49 / 99]]


def test_bigrams_do_not_reach_from_one_text_into_the_next():
    """The last word of a text and the first of another are no bigram."""
    scores = scores_of(RougeMatcher("rouge2"), ["a b", "c d"], ["b c", "c d"])
    assert scores.tolist() == [[0.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_a_query_may_have_more_than_four_truths(rouge_type):
    """Nine ground-truth texts, more than two rounds of four, score like one by one."""
    matcher = RougeMatcher(rouge_type)
    actual, predicted = texts(ENGLISH, 9, seed=7), texts(ENGLISH, 6, seed=8)
    expected = reference(matcher, actual, predicted)
    assert np.array_equal(scores_of(matcher, actual, predicted), expected)


def test_queries_do_not_disturb_each_other():
    """The marks of one query are gone before the next one is scored."""
    queries = QuerySet.from_lists([["a b c"], ["x y z"]], [["a b x"], ["a b z"]])
    matches = RougeMatcher("rouge1", statistic="recall").match(queries)
    assert matches.item.tolist() == [0, 1]
    assert matches.similarity.tolist() == [2 / 3, 1 / 3]


def test_a_truth_listed_twice_is_scored_twice():
    """The same text among the truths of one query is marked once for each."""
    scores = scores_of(RougeMatcher("rouge1"), ["a b", "a b"], ["a b", "c"])
    assert scores.tolist() == [[1.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_the_best_alternative_counts(rouge_type):
    """An item of several alternatives has the similarity of the nearest one."""
    queries = QuerySet.from_lists(
        [[AnyOf(["no word alike", "the cat sat"]), "on a mat"]], [["the cat sat", "on a mat"]]
    )
    matches = RougeMatcher(rouge_type).match(queries)
    assert matches.item.tolist() == [0, 1]
    assert matches.rank.tolist() == [1, 2]
    assert matches.similarity.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_blank_texts_match_nothing(rouge_type):
    """Two blank texts are not alike, and the user is told of them."""
    matcher = RougeMatcher(rouge_type, threshold=0.0)
    with pytest.warns(KragEvalWarning, match="1 ground-truth and 2 predicted"):
        scores = scores_of(matcher, [" ", "a b"], ["", " ", "a b"])
    assert scores.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_texts_of_punctuation_match_nothing(rouge_type):
    """A text without a word is not even like itself."""
    scores = scores_of(RougeMatcher(rouge_type), ["---", "a b"], ["---", "…!", "a b"])
    assert scores.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_queries_without_a_single_word_match_nothing(rouge_type):
    """Nothing to count is not an error."""
    assert len(RougeMatcher(rouge_type).match(QuerySet.from_lists([["--"]], [["!!"]]))) == 0


def test_texts_too_short_for_a_bigram_are_counted_in_a_warning():
    """One word has no bigram, so rouge2 cannot find it; the user is told what can."""
    with pytest.warns(KragEvalWarning, match=r"1 distinct texts .* fewer than 2 .* Use rouge1"):
        scores = scores_of(RougeMatcher("rouge2"), ["Seoul", "of Korea"], ["Seoul"])
    assert not scores.any()


@pytest.mark.parametrize("rouge_type", TYPES)
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("stemmer", [False, True])
def test_identical_texts_score_exactly_one(rouge_type, statistic, stemmer):
    """No rounding keeps a text from being equal to itself, at any length."""
    words = [f"word{number % 7}" for number in range(120)]
    prefixes = [" ".join(words[:length]) for length in range(2, 120)]
    matcher = RougeMatcher(rouge_type, 1.0, statistic, stemmer=stemmer)
    assert all(np.diag(scores_of(matcher, prefixes, prefixes)) == 1.0)


@pytest.mark.parametrize("rouge_type", TYPES)
def test_composed_and_decomposed_hangul_are_the_same(rouge_type):
    """The default tokenizer sees one text in two spellings."""
    text = "서울은 대한민국의 수도이다"
    decomposed = unicodedata.normalize("NFD", text)
    assert decomposed != text
    assert scores_of(RougeMatcher(rouge_type), [text], [decomposed]).tolist() == [[1.0]]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_a_pair_alone_scores_as_it_does_in_a_batch(rouge_type):
    """What else is compared in the same run makes no difference."""
    matcher = RougeMatcher(rouge_type, stemmer=True)
    actual, predicted = texts(ENGLISH, 6, seed=9), texts(ENGLISH, 9, seed=10)
    alone = [[matcher.similarity(truth, document) for document in predicted] for truth in actual]
    assert scores_of(matcher, actual, predicted).tolist() == alone


def test_each_distinct_text_is_tokenized_once():
    """Texts that recur in many queries cost the tokenizer nothing."""
    seen: Counter[str] = Counter()

    def tokenize(text):
        seen[text] += 1
        return text.split()

    queries = QuerySet.from_lists([["a b", "c d"]] * 5, [["a b", "e f"]] * 5)
    RougeMatcher("rouge1", tokenizer=tokenize).match(queries)
    assert seen == {"a b": 1, "c d": 1, "e f": 1}


def test_each_distinct_token_is_stemmed_once(monkeypatch):
    """The stemmer is by far the slowest step, so no word reaches it twice in a process."""
    _stem.cache_clear()
    seen: Counter[str] = Counter()

    def stem(self, word):
        seen[word] += 1
        return word

    monkeypatch.setattr(PorterStemmer, "stem", stem)
    matcher = RougeMatcher("rouge1", stemmer=True)
    for _ in range(2):
        scores_of(matcher, ["rivers rising rivers"], ["rivers rise rising"])
    _stem.cache_clear()
    assert seen == {"rivers": 1, "rising": 1, "rise": 1}


def test_every_kind_of_word_is_stemmed_as_nltk_does():
    """All of Porter's suffixes, on long and short stems and on each other, come off alike."""
    suffixes = (  # noqa: SIM905 - a list literal would take one line for each
        "sses ies ss s eed ed ing ied at bl iz y ational tional enci anci izer bli alli entli eli "
        "ousli ization ation ator alism iveness fulness ousness aliti iviti biliti fulli logi "
        "icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent ion "
        "sion tion ou ism ate iti ous ive ize e ll"
    ).split()
    suffixes.append("")
    starts = ["", "y", "sk", "d", "ag", "rel", "fall", "oper", "sens", "hopp", "2024", "Ox"]
    expected = PorterStemmer().stem
    words = {start + a + b for start in starts for a in suffixes for b in suffixes}
    irregular = {word for words in expected.__self__.pool for word in (words, words.title())}
    words = {word for word in words | irregular if len(word) > 3}
    assert len(words) > 25_000
    assert [word for word in words if rouge._stem(word) != expected(word)] == []


def test_any_callable_is_a_tokenizer():
    """A user's function decides what the tokens are, and is named in the signature."""

    def pairs_of_letters(text):
        return [text[start : start + 2] for start in range(0, len(text), 2)]

    matcher = RougeMatcher("rouge1", statistic="recall", tokenizer=pairs_of_letters)
    assert matcher.similarity("abcd", "cdef") == 0.5
    assert "pairs_of_letters" in matcher.signature


def test_one_token_per_text_is_enough():
    """A tokenizer that keeps texts whole compares them whole."""
    scores = scores_of(RougeMatcher("rougeL", tokenizer=lambda text: [text]), ["a b"], ["a b", "a"])
    assert scores.tolist() == [[1.0, 0.0]]


def test_a_tokenizer_that_loses_a_text_is_refused():
    """rouge-score's own tokenizer finds no word in Korean; that must not look like a bad score."""
    with pytest.raises(ValueError, match="'rouge_score' yields no token for '서울은 수도이다'"):
        RougeMatcher("rouge1", tokenizer="rouge_score").similarity("서울은 수도이다", "서울")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rougel", "'rouge1', 'rouge2', 'rougeL', got 'rougel'; did you mean 'rougeL'"),
        ("rouge3", "rouge_type must be one of 'rouge1', .* got 'rouge3'; did you mean 'rouge"),
        ("rougeLsum", "got 'rougeLsum'; did you mean 'rougeL'"),
        (None, "got None"),
    ],
)
def test_unknown_types_are_refused(name, message):
    """The refusal lists the types there are and the nearest one."""
    with pytest.raises(Refusal, match=message) as info:
        RougeMatcher(name)
    assert info.value.argument == "rouge_type"


def test_unknown_statistics_are_refused():
    """The refusal lists the statistics there are and the nearest one."""
    with pytest.raises(
        ValueError,
        match="statistic must be one of 'fmeasure', 'recall', 'precision', got 'Recall'; "
        "did you mean 'recall'",
    ):
        RougeMatcher("rouge1", statistic="Recall")


def test_unknown_tokenizers_are_refused_by_the_constructor():
    """A misspelt tokenizer is found before any text is."""
    with pytest.raises(ValueError, match=r"got 'Kiwi'[,;] did you mean 'kiwi'"):
        RougeMatcher("rouge1", tokenizer="Kiwi")


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan"), True, "0.5", None])
def test_thresholds_outside_the_range_are_refused(threshold):
    """Similarities are in [0, 1], and so are thresholds."""
    with pytest.raises(Refusal) as info:
        RougeMatcher("rouge1", threshold)
    assert info.value.argument == "threshold"


def test_a_stemmer_is_asked_for_with_yes_or_no():
    """A name would be taken for yes."""
    with pytest.raises(Refusal) as info:
        RougeMatcher("rouge1", stemmer="no")  # type: ignore[arg-type]
    assert info.value.argument == "stemmer"


def test_the_signature_tells_every_setting():
    """A measurement can be repeated only with all of them."""
    matcher = RougeMatcher("rouge2", statistic="recall", tokenizer="whitespace", stemmer=True)
    assert matcher.signature == "rouge2(statistic=recall,tokenizer=whitespace,stemmer=yes)"


def test_the_names_of_the_types_are_names_of_matchers():
    """``matcher="rougeL"`` with options builds the same matcher."""
    matcher = resolve_matcher("rougeL(statistic=precision)")
    assert isinstance(matcher, RougeMatcher)
    assert (matcher.name, matcher.statistic) == ("rougeL", "precision")


def test_a_long_wait_is_announced():
    """Before comparing texts for minutes, rougeL says how many, and what takes less."""
    long = TokenNumbers(np.arange(2_000_000), np.array([1_000_000, 1_000_000]))
    with pytest.warns(KragEvalWarning, match=r"rougeL .* 1,000,000 tokens .* about 2 minutes"):
        RougeMatcher("rougeL").announce(Units.of_pair(long))  # 1e12 pairs, 1e10 a second: 100 s
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RougeMatcher("rouge2").announce(Units.of_pair(long))


@pytest.mark.parametrize("statistic", ["fmeasure", "recall", "precision"])
def test_long_pairs_step_by_step_have_the_same_digits(statistic, monkeypatch):
    """As rapidfuzz gives them in one call: here every pair is taken for a long one."""
    rng = np.random.default_rng(8)
    words = [f"w{number}" for number in range(40)]
    actual, predicted = (
        [" ".join(rng.choice(words, size=size)) for size in sizes]
        for sizes in ((1, 30, 200), (2, 90, 150, 400))
    )
    matcher = RougeMatcher("rougeL", statistic=statistic)
    queries = QuerySet.from_lists([actual], [predicted])
    expected = matcher.match(queries).similarity
    monkeypatch.setattr(rouge.waiting, "CELLS_AT_ONCE", 0)
    monkeypatch.setattr(rouge.waiting, "in_blocks", partial(rouge.waiting.in_blocks, at_once=0))
    assert matcher.match(queries).similarity.tobytes() == expected.tobytes()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))])
@pytest.mark.parametrize("rouge_type", TYPES)
def test_copies_score_the_same(rouge_type, duplicate):
    """A matcher may be copied or sent to another process, even after use."""
    matcher = RougeMatcher(rouge_type, 0.7, "recall", "character", stemmer=True)
    actual, predicted = texts(ENGLISH, 2, seed=11), texts(ENGLISH, 2, seed=12)
    expected = scores_of(matcher, actual, predicted)
    again = duplicate(matcher)
    assert (again.signature, again.threshold) == (matcher.signature, 0.7)
    assert np.array_equal(scores_of(again, actual, predicted), expected)


@pytest.mark.parametrize("rouge_type", TYPES)
def test_a_matcher_remembers_nothing_of_a_run(rouge_type):
    """Memory is given back when the scores are there."""
    matcher = RougeMatcher(rouge_type, stemmer=True)
    before = dict(vars(matcher))
    scores_of(matcher, ["a river"], ["the rivers"])
    assert vars(matcher) == before


@pytest.mark.parametrize(
    ("settings", "absent"),
    [
        ("'rouge1'", "nltk rouge_score rapidfuzz"),
        ("'rougeL'", "nltk rouge_score"),
        ("'rouge2', stemmer=True", "rapidfuzz"),
    ],
)
def test_nothing_is_loaded_without_need(settings, absent):
    """Only stemming needs rouge-score with its nltk, and only rougeL rapidfuzz."""
    code = (
        "import sys; from krag_eval.matching.rouge import RougeMatcher;"
        "assert not {'nltk', 'rapidfuzz'} & set(sys.modules);"
        f"assert RougeMatcher({settings}).similarity('a river', 'a river') == 1.0;"
        f"print(*sorted(set('{absent}'.split()) & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert run.stdout.split() == []


# A scorer of rouge-score.

PAIRS = [
    ("The cat sat. It slept.", "It slept.\nThe cat sat."),
    ("a b c d", "a b c e"),
    ("x", "y z"),
]


class Upper(tokenizers.Tokenizer):
    """A tokenizer of a user's own, as rouge-score wants it."""

    def tokenize(self, text):
        return text.upper().split()


@pytest.mark.parametrize("rouge_type", ["rouge1", "rouge4", "rougeL", "rougeLsum"])
@pytest.mark.parametrize("statistic", ["precision", "recall", "fmeasure"])
@pytest.mark.parametrize("tokenizer", [None, Upper()])
def test_a_scorer_of_the_user_scores(rouge_type, statistic, tokenizer):
    """Every pair gets exactly what the scorer says of it, with each text as it is."""
    scorer = RougeScorer([rouge_type], use_stemmer=tokenizer is None, tokenizer=tokenizer)
    matcher = RougeMatcher(statistic=statistic, scorer=scorer)
    assert matcher.rouge_type == rouge_type
    found = matcher.similarities([truth for truth, _ in PAIRS], [other for _, other in PAIRS])
    expected = [
        [getattr(scorer.score(truth, other)[rouge_type], statistic) for _, other in PAIRS]
        for truth, _ in PAIRS
    ]
    assert found.tolist() == expected


def test_a_tokenizer_of_rouge_score_tokenizes():
    """The fast path asks it and gives the digits that rouge-score gives with it."""
    scorer = RougeScorer(["rouge1"], tokenizer=Upper())
    truth, other = "The the cat.", "THE cat. sat"
    fast = RougeMatcher("rouge1", tokenizer=Upper()).similarity(truth, other)
    assert fast == scorer.score(truth, other)["rouge1"].fmeasure


def test_a_scorer_is_in_the_signature():
    """What it holds tells it from another; the same scorer made anew is the same."""
    kinds = [
        RougeScorer(["rougeL"]),
        RougeScorer(["rougeL"], use_stemmer=True),
        RougeScorer(["rougeL"], tokenizer=Upper()),
    ]
    signatures = [RougeMatcher(scorer=one).signature for one in kinds]
    assert len(set(signatures)) == 3
    assert RougeMatcher(scorer=RougeScorer(["rougeL"])).signature == signatures[0]
    assert signatures[0].startswith("rougeL(statistic=fmeasure,scorer=rouge_score.rouge_scorer.")


@pytest.mark.parametrize(
    ("settings", "argument"),
    [
        ({"scorer": RougeScorer(["rouge1", "rougeL"])}, "rouge_type"),
        ({"rouge_type": "rouge2", "scorer": RougeScorer(["rouge1"])}, "rouge_type"),
        ({"stemmer": True, "scorer": RougeScorer(["rouge1"])}, "scorer"),
        ({"tokenizer": "words", "scorer": RougeScorer(["rouge1"])}, "scorer"),
        ({}, "rouge_type"),
    ],
)
def test_a_scorer_that_does_not_fit_is_refused(settings, argument):
    """A type it does not compute, or settings that it would not heed."""
    with pytest.raises((InvalidInput, InvalidType)) as caught:
        RougeMatcher(**settings)
    assert caught.value.argument == argument

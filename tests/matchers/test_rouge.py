"""ROUGE: equal to rouge-score bit for bit on any text, and loaded only when needed."""

import random
import warnings
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from matched import found, quiet, scores_of
from nltk.stem.porter import PorterStemmer
from rouge_score import tokenizers
from rouge_score.rouge_scorer import RougeScorer
from trials import trials

from krag_eval import KragEvalWarning, RougeMatcher
from krag_eval.core import TokenNumbers, Units, resolve_matcher
from krag_eval.core.matching.tokenizers import unicode_tokens
from krag_eval.matchers import rouge
from krag_eval.matchers.rouge import _stem

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


def reference(matcher, actual, predicted, tokenize=None):
    """Return the same from rouge-score, by its own tokenizer or the one given."""
    tokenizer = tokenize and SimpleNamespace(tokenize=tokenize)
    scorer = RougeScorer([matcher.rouge_type], use_stemmer=matcher.stemmer, tokenizer=tokenizer)
    return [
        [getattr(scorer.score(a, p)[matcher.rouge_type], matcher.statistic) for p in predicted]
        for a in actual
    ]


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
    """Every bit agrees, for more than two rounds of four truths, together and alone."""
    matcher = RougeMatcher(rouge_type, statistic=statistic, stemmer=stemmer)
    actual, predicted = texts(ENGLISH, 9, seed=1), texts(ENGLISH, 25, seed=2)
    expected = reference(matcher, actual, predicted)
    assert np.count_nonzero(expected) > 100
    assert scores_of(matcher, actual, predicted).tolist() == expected
    assert [matcher.similarity(actual[0], other) for other in predicted] == expected[0]


@pytest.mark.parametrize("rouge_type", TYPES)
def test_scores_of_korean_texts_are_those_of_rouge_score_given_the_tokens(rouge_type):
    """rouge-score with our tokens agrees in every bit on Korean."""
    matcher = RougeMatcher(rouge_type)
    actual, predicted = texts(KOREAN, 5, seed=3), texts(KOREAN, 20, seed=4)
    expected = reference(matcher, actual, predicted, tokenize=unicode_tokens)
    assert np.count_nonzero(expected) > 50
    assert scores_of(matcher, actual, predicted).tolist() == expected


# Few different words, so that repeats and shared subsequences abound; empty texts too.
token_texts = st.lists(st.sampled_from(["a", "b", "cd", "efgh", "ab12"]), max_size=40).map(" ".join)


@pytest.mark.parametrize("rouge_type", TYPES)
@settings(max_examples=trials(60))
@given(actual=token_texts, predicted=st.lists(token_texts, min_size=1, max_size=3))
@quiet
def test_scores_of_any_tokens_are_those_of_rouge_score(rouge_type, actual, predicted):
    """Repeated, missing and shared tokens in any arrangement agree in every bit."""
    matcher = RougeMatcher(rouge_type)
    expected = reference(matcher, [actual], predicted)
    assert scores_of(matcher, [actual], predicted).tolist() == expected


@pytest.mark.parametrize("stemmer", [False, True])
@settings(max_examples=trials(100))
@given(
    actual=st.text(st.characters(codec="ascii"), max_size=80),
    predicted=st.text(st.characters(codec="ascii"), max_size=80),
)
def test_scores_of_any_ascii_text_are_those_of_rouge_score(stemmer, actual, predicted):
    """Control characters, punctuation and digits are read as rouge-score reads them."""
    matcher = RougeMatcher("rouge1", stemmer=stemmer)
    assert [[matcher.similarity(actual, predicted)]] == reference(matcher, [actual], [predicted])


TRUTH = "police killed the gunman"


@pytest.mark.parametrize(
    ("matcher", "actual", "predicted", "expected"),
    [
        # Lin (2004), section 3.1: of four words "police ... the gunman" is in the order of the
        # first sentence and only "the gunman" in that of the second, while both share the bigram
        # "the gunman", one of three, and the words police, the, gunman, three of four.
        ("rougeL(statistic=recall)", TRUTH, "police kill the gunman", 3 / 4),
        ("rougeL(statistic=recall)", TRUTH, "the gunman kill police", 2 / 4),
        ("rouge2(statistic=recall)", TRUTH, "police kill the gunman", 1 / 3),
        ("rouge2(statistic=recall)", TRUTH, "the gunman kill police", 1 / 3),
        ("rouge1(statistic=recall)", TRUTH, "police kill the gunman", 3 / 4),
        ("rouge1(statistic=recall)", TRUTH, "the gunman kill police", 3 / 4),
        # "to" twice in the truth, three times in the prediction: 2 shared, of 4 and of 3 words.
        ("rouge1(statistic=recall)", "to be to do", "to to to", 2 / 4),
        ("rouge1(statistic=precision)", "to be to do", "to to to", 2 / 3),
        # One shared word of one and of three gives 2 · 1 · ⅓ / (1 + ⅓) = ½.
        ("rouge1", "a b c", "a", 0.5),
        ("rouge1", "fishing", "fished", 0.0),
        ("rouge1(stemmer=yes)", "fishing", "fished", 1.0),
        # Porter would make "hi" of "his"; rouge-score leaves words of three letters alone.
        ("rouge1(stemmer=yes)", "his", "hi", 0.0),
    ],
)
def test_scores_by_hand(matcher, actual, predicted, expected):
    """The two sentences of the paper that introduced ROUGE, clipped counts, stems."""
    assert resolve_matcher(matcher).similarity(actual, predicted) == expected


@pytest.mark.parametrize("n", [65_535, 65_536, 70_000])
def test_counts_beyond_16_bits_do_not_spill_into_other_texts(n):
    """Texts around and above 65,535 tokens are counted right, beside each other."""
    long, other, matcher = "a " * n, "b " * n, RougeMatcher("rouge1", statistic="recall")
    scores = scores_of(matcher, [long, "a b", other, "c"], [long, other, "a b"])
    assert scores.tolist() == [[1, 0, 1 / n], [0.5, 0.5, 1], [0, 1, 1 / n], [0, 0, 0]]


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
    """With 70,000 different words the number of possible bigrams exceeds 32 bits.

    The window has 99 bigrams, all of them in the long text; it shares 50 words, 49 bigrams, with
    the truth.
    """
    words, matcher = [f"w{n}" for n in range(70_000)], RougeMatcher("rouge2", statistic="recall")
    truth, window = " ".join(words[-100:]), " ".join(words[-150:-50])
    scores = scores_of(matcher, [" ".join(words), truth], [window])
    assert scores.tolist() == [[99 / 69_999], [49 / 99]]


def test_texts_and_queries_do_not_disturb_each_other():
    """The marks of one query are gone before the next; no bigram reaches into the next text."""
    recall = RougeMatcher("rouge1", statistic="recall")
    matches = found(recall, [["a b c"], ["x y z"]], [["a b x"], ["a b z"]])
    assert matches == [(0, 1, 2 / 3), (1, 1, 1 / 3)]
    scores = scores_of(RougeMatcher("rouge2"), ["a b", "c d"], ["b c", "c d"])
    assert scores.tolist() == [[0.0, 0.0], [0.0, 1.0]]
    twice = scores_of(RougeMatcher("rouge1"), ["a b", "a b"], ["a b", "c"])
    assert twice.tolist() == [[1.0, 0.0], [1.0, 0.0]]


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


def test_each_distinct_text_is_tokenized_once():
    """Texts that recur in many queries cost the tokenizer nothing."""
    seen = []
    matcher = RougeMatcher("rouge1", tokenizer=lambda text: seen.append(text) or text.split())
    found(matcher, [["a b", "c d"]] * 5, [["a b", "e f"]] * 5)
    assert seen == ["a b", "c d", "e f"]


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

    def in_twos(text):
        return [text[start : start + 2] for start in range(0, len(text), 2)]

    matcher = RougeMatcher("rouge1", statistic="recall", tokenizer=in_twos)
    assert matcher.similarity("abcd", "cdef") == 0.5
    assert "in_twos" in matcher.signature
    whole = RougeMatcher("rougeL", tokenizer=lambda text: [text])
    assert scores_of(whole, ["a b"], ["a b", "a"]).tolist() == [[1.0, 0.0]]


def test_a_long_wait_is_announced():
    """Before comparing texts for minutes, rougeL says how many, and what takes less."""
    long = TokenNumbers(np.arange(2_000_000), np.array([1_000_000, 1_000_000]))
    with pytest.warns(KragEvalWarning, match=r"rougeL .* 1,000,000 tokens .* about 2 minutes"):
        RougeMatcher("rougeL").announce(Units.of_pair(long))  # 1e12 pairs, 1e10 a second: 100 s
    with warnings.catch_warnings(action="error"):
        RougeMatcher("rouge2").announce(Units.of_pair(long))


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
@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("tokenizer", [None, Upper()])
def test_a_scorer_of_the_user_scores(rouge_type, statistic, tokenizer):
    """Every pair gets exactly what the scorer says of it, with each text as it is."""
    scorer = RougeScorer([rouge_type], use_stemmer=tokenizer is None, tokenizer=tokenizer)
    matcher = RougeMatcher(statistic=statistic, scorer=scorer)
    assert matcher.rouge_type == rouge_type
    truths, others = zip(*PAIRS, strict=True)
    expected = [
        [getattr(scorer.score(truth, other)[rouge_type], statistic) for other in others]
        for truth in truths
    ]
    assert matcher.similarities(truths, others).tolist() == expected


def test_a_tokenizer_of_rouge_score_tokenizes():
    """The fast path asks it and gives the digits that rouge-score gives with it."""
    scorer = RougeScorer(["rouge1"], tokenizer=Upper())
    truth, other = "The the cat.", "THE cat. sat"
    fast = RougeMatcher("rouge1", tokenizer=Upper()).similarity(truth, other)
    assert fast == scorer.score(truth, other)["rouge1"].fmeasure


def test_a_scorer_is_in_the_signature():
    """What it holds tells it from another; the same scorer made anew is the same."""
    kinds = [{}, {}, {"use_stemmer": True}, {"tokenizer": Upper()}]
    one, again, *others = (
        RougeMatcher(scorer=RougeScorer(["rougeL"], **options)).signature for options in kinds
    )
    assert one == again
    assert len({one, *others}) == 3
    assert one.startswith("rougeL(statistic=fmeasure,scorer=rouge_score.rouge_scorer.")

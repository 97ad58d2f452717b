"""The rules of the study: krag_eval's own as an evaluation decides, others by hand."""

import math
import random
from warnings import catch_warnings

import numpy as np
import pytest

from benchmarks.contradictions import corpora, damage
from krag_eval import KragEvalWarning, OfflineRetrievalEvaluator
from krag_eval.errors import InvalidInput
from study import systems as study

FOUND = study.systems()
OWN = [name for name, one in FOUND.items() if one.family == "krag_eval"]


def one(name, wanted, chunk):
    (similarity,) = FOUND[name].similarities([(wanted, chunk)])
    return similarity


def decided(name, wanted, chunk):
    system = FOUND[name]
    return study.decide(system, system.similarities([(wanted, chunk)])).tolist() == [True]


@pytest.fixture(scope="module", params=["en", "ko"])
def pairs(request):
    """Excerpts and chunks of one text: right, wrong, damaged, blank and repeated."""
    draw = random.Random(1)
    corpus = corpora("dev", request.param, quick=True)[0]
    made = [
        (excerpt, change(draw, corpus.chunks[at]))
        for excerpt, right in zip(corpus.excerpts, corpus.right, strict=True)
        for at in [*np.flatnonzero(right)[:2], 0]
        for change in draw.sample([*damage("en").values()], 2)
    ]
    return [*made, (corpus.excerpts[0], corpus.excerpts[0]), (corpus.excerpts[0], " "), made[0]]


@pytest.mark.parametrize("name", OWN)
def test_own_systems_decide_as_an_evaluation_does(name, pairs):
    """Each pair is a query of its own, whose ground truth is found or not in a list of one."""
    system = FOUND[name]
    matcher = system.similarities.args[0]
    actual, predicted = ([[text] for text in side] for side in zip(*pairs, strict=True))
    with catch_warnings(action="ignore", category=KragEvalWarning):
        decisions = study.decide(system, system.similarities(pairs))
        result = OfflineRetrievalEvaluator(actual, predicted, matcher=matcher).evaluate([1])
    assert decisions.tolist() == (result.per_query()["average_precision"] == 1).tolist()
    assert decisions.any()


@pytest.mark.parametrize("name", [name for name in FOUND if FOUND[name].family != "judge"])
def test_every_system_gives_a_number_from_0_to_1_for_each_pair(name, pairs):
    """The order of pairs does not matter; none has no numbers."""
    system = FOUND[name]
    with catch_warnings(action="ignore", category=KragEvalWarning):
        similarities = system.similarities(pairs)
        assert system.similarities(pairs[::-1]).tolist() == similarities[::-1].tolist()
    assert similarities.shape == (len(pairs),)
    assert similarities.dtype == np.float64
    assert 0 <= similarities.min() <= similarities.max() <= 1
    assert system.similarities([]).shape == (0,)
    if system.threshold is None:
        assert {*similarities.tolist()} <= {0.0, 1.0}


def test_a_similarity_of_0_is_no_match_at_any_threshold():
    system = study.System("none", "krag_eval", "", ("en",), 0.0, lambda pairs: np.zeros(len(pairs)))
    assert study.decide(system, np.array([0.0, 0.1])).tolist() == [False, True]


def test_names_are_those_of_the_systems_and_each_runs_or_says_why_not():
    assert all(name == system.name for name, system in FOUND.items())
    assert not {*FOUND} & {*study.not_run()}
    families = [system.family for system in FOUND.values()]
    assert families == sorted(families, key=["krag_eval", "other tools", "embeddings"].index)
    made = {one.name for one in study._MODELS} | {*study._KIWI, *study._SENTENCES}
    assert made <= {*FOUND, *study.not_run()}


# --- other tools: by hand ---


def test_ragas_counts_edits_and_wants_more_than_half():
    """Of "abcd" two letters of four stay in "abxy"; three in "abcx"."""
    assert one("ragas", "abcd", "abxy") == 0.5
    assert not decided("ragas", "abcd", "abxy")
    assert one("ragas", "abcd", "abcx") == 0.75
    assert decided("ragas", "abcd", "abcx")
    assert FOUND["ragas"].threshold == pytest.approx(0.5)
    assert not decided(
        "ragas", "the fee is 5 euros", "As a rule the fee is 5 euros, or ten at night"
    )


@pytest.mark.parametrize(
    ("wanted", "chunk", "recall"),
    [
        ("a b c d", "x a b y c", 3 / 4),  # in order
        ("a b c d", "d c b a", 1 / 4),  # the longest one of a single word
        ("a a b", "a b", 1),  # a word counts once
        ("a b. c d", "c x. b y a", 2 / 4),  # b of the first sentence, c of the second
        ("a b.", "c d. ", 0),  # what is empty behind the last stop is a word of the chunk alone
        ("a b. ", "c d. ", 1 / 3),  # and here of both
        ("A b", "a b", 1 / 2),  # case counts, and so do marks
        ("금리는 올랐다.", "그해 금리는 크게 올랐다.", 1),
        (".", "a", 0),
    ],
)
def test_continuous_eval_takes_the_recall_of_a_set_of_words(wanted, chunk, recall):
    assert one("continuous-eval ROUGE", wanted, chunk) == recall
    assert decided("continuous-eval ROUGE", wanted, chunk) == (recall >= 0.7)


@pytest.fixture
def in_sentences(monkeypatch):
    """A splitter that cuts at semicolons, whatever data NLTK has."""
    monkeypatch.setattr(study, "_splitter", lambda: lambda text: text.split(";"))
    return study.systems()


def test_continuous_eval_by_sentences_says_yes_where_all_are_found(in_sentences):
    """Of the words of "a b c d e" four fifths are in "a b c d", so that it counts by ROUGE."""
    exact, rouge = (in_sentences[name] for name in study._SENTENCES)
    pairs = [("a b;c", "x;c;a b"), ("a b;c", "x;c"), ("a b c d e;f", "a b c d;f"), ("a;a", "a")]
    assert exact.similarities(pairs).tolist() == [1, 1 / 2, 1 / 2, 1]
    assert rouge.similarities(pairs).tolist() == [1, 1 / 2, 1, 1]
    assert study.decide(rouge, rouge.similarities(pairs)).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("wanted", "chunk", "found"),
    [
        ("The fee is 5 euros.", "Note: The fee is 5 euros, from May.", True),  # without its stop
        ("The fee is\n5 euros", "THE  FEE is 5euros", True),  # whatever case and space
        ("The fee, is 5 euros", "From May. 5 euros is the fee", True),  # sorted words
        ("the fee is 5 euros", "the fee is 6 euros", False),  # 34 of 36 letters: 94
        (f"{'long ' * 20}fee is 5", f"{'long ' * 20}fee is 6", True),  # 214 of 216 letters: 99
        ("금리는 올랐다", "금리는올랐다", True),
        ("금리는 올랐다", "금리가 올랐다", False),
        ("...", "a. b.", True),  # nothing is left of it, nor of what is behind the last stop
        ("a·b c d", "c d a b", True),  # the dot is a space in the excerpt …
        ("c d a b", "a·b c d", False),  # … and nothing in the chunk
    ],
)
def test_chroma_searches_for_the_excerpt(wanted, chunk, found):
    assert decided("Chroma", wanted, chunk) is found


@pytest.mark.parametrize(
    ("wanted", "chunk", "found"),
    [
        ("New York", "in new york, 1999", True),
        ("York", "in Yorkshire", False),
        ("5.5", "5 . 5", True),  # the stop is a word as well
        ("금리", "금리는 올랐다", False),  # a word with its particle is another
        ("금리는", "그해 금리는 올랐다", True),
    ],
)
def test_dpr_searches_for_words_in_a_row(wanted, chunk, found):
    assert decided("DPR", wanted, chunk) is found


def test_azure_reads_ascii_alone():
    """Two of three and two of four words are shared; of the Korean texts only the year is left."""
    assert one("Azure ROUGE-1", "the red cat", "The red dog ran.") == pytest.approx(4 / 7)
    assert one("Azure ROUGE-1", "금리는 올랐다", "금리는 올랐다") == 0
    assert one("Azure ROUGE-1", "2021년 금리", "2021년 환율") == 1


def test_krag_asks_for_a_substring_and_for_the_f_measure_of_morphemes():
    """나/는/밥/을/먹/었/다/. share all but the verb with 나/는/밥/을/짓/었/다/.: 7 of 8 and 8."""
    assert decided("krag text", "b c", "a b cd")
    assert not decided("krag text", "b c", "a b  c")
    assert one("krag ROUGE-1", "나는 밥을 먹었다.", "나는 밥을 짓었다.") == pytest.approx(7 / 8)
    assert one("krag ROUGE-1", "cats ran", "cat ran away slow") == pytest.approx(2 * 2 / (2 + 4))


# --- embeddings and judges ---


class _Vectors:
    """Counts letters, and what it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, texts):
        self.asked += texts
        return [[text.count("a"), text.count("b")] for text in texts]


def test_embeddings_are_compared_by_cosine(monkeypatch):
    """(1, 1) and (1, 0) are at 45 degrees; a vector of zeros is like none."""
    vectors = _Vectors()
    model = study._Model("letters", "math", "", ("en",), "", lambda: vectors)
    monkeypatch.setattr(study, "_MODELS", (model,))
    monkeypatch.setattr(study, "_BATCH", 2)
    system = study.systems()["letters"]
    pairs = [("ab", "a"), ("ab", "ba"), ("a", "b"), ("c", "c")]
    similarities = system.similarities(pairs)
    assert similarities.tolist() == [round(math.sqrt(1 / 2), 6), 1, 0, 0]
    assert sorted(vectors.asked) == ["a", "ab", "b", "ba", "c"]
    assert system.threshold == 0.8
    assert study.decide(system, similarities).tolist() == [False, True, False, False]


def test_a_model_that_is_not_installed_is_listed_with_what_to_install(monkeypatch):
    model = study._Model("none", "no_such_module", "pip install none", ("en",), "", lambda: None)
    monkeypatch.setattr(study, "_MODELS", (model,))
    assert "none" not in study.systems()
    assert study.not_run()["none"] == "pip install none"


def test_without_kiwi_its_systems_are_listed_as_absent(monkeypatch):
    is_here = study._is_here
    monkeypatch.setattr(study, "_is_here", lambda name: name != "kiwipiepy" and is_here(name))
    assert not {*study._KIWI} & {*study.systems()}
    assert {*study._KIWI} <= {*study.not_run()}


def test_a_judge_is_asked_with_the_question():
    """It is given (wanted, chunk, question), and a pair of the same texts is asked about once."""
    asked = []

    def ask(question, wanted, chunk):
        asked.append((question, wanted, chunk))
        return 0.7 if wanted in chunk else 0.2

    system = study.judge(ask, name="reader", threshold=0.6)
    pairs = [("fee", "the fee", "cost?"), ("fee", "no", "cost?"), ("fee", "the fee", "cost?")]
    similarities = system.similarities(pairs)
    assert similarities.tolist() == [0.7, 0.2, 0.7]
    assert study.decide(system, similarities).tolist() == [True, False, True]
    assert sorted(asked) == [("cost?", "fee", "no"), ("cost?", "fee", "the fee")]
    assert system.with_questions
    assert (system.family, system.name, system.threshold) == ("judge", "reader", 0.6)


def test_a_judge_without_questions_is_refused():
    with pytest.raises(InvalidInput):
        study.judge(lambda question, wanted, chunk: True).similarities([("a", "b")])

"""Matchers and tokenizers made or asked wrongly."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from langchain_core.documents import Document
from rouge_score.rouge_scorer import RougeScorer

from krag_eval import (
    AndMatcher,
    AnyOf,
    ContainsMatcher,
    CoverageMatcher,
    EmbeddingMatcher,
    FuzzyMatcher,
    IdMatcher,
    JudgeMatcher,
    KeyMatcher,
    KiwiTokenizer,
    Matcher,
    MetadataMatcher,
    NumbersMatcher,
    OfflineRetrievalEvaluator,
    OrMatcher,
    RougeMatcher,
    TextMatcher,
)
from krag_eval.asking.timeouts import check_timeout
from krag_eval.core import resolve_matcher
from krag_eval.core.matching.tokenizers import resolve_tokenizer, tokenize_all, tokenizer_name


class _Returning(Matcher):
    """Returns whatever it was made with for all pairs together."""

    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def similarity(self, actual: Any, predicted: Any) -> float:
        return self.scores  # type: ignore[no-any-return]

    def similarities(self, actual: Any, predicted: Any) -> Any:
        together = isinstance(self.scores, list | np.ndarray)
        return self.scores if together else super().similarities(actual, predicted)


class _Listed(KeyMatcher):
    """Compares lists, which cannot be hashed."""

    def key(self, document: Any, where: str = "document") -> Any:
        return [document]


class _Same(TextMatcher):
    """Takes all texts for the same."""

    def block_scorer(self, texts: Any) -> Any:
        return lambda actual, predicted: np.ones((len(actual), len(predicted)))


class _Vectors:
    """Embeds the text "a" as it should be done, and all others as it was told to."""

    def __init__(self, vector: Any = (4.0, 3.0), missing: int = 0) -> None:
        self.vector, self.missing = vector, missing

    def embed_documents(self, texts: list[str]) -> list[Any]:
        return [[3.0, 4.0] if text == "a" else self.vector for text in texts[self.missing :]]


class _Batches:
    """A tokenizer that answers for too many texts, or too few."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers

    def __call__(self, text: str) -> Any:
        return self.answers

    def tokenize_all(self, texts: Any) -> Any:
        return iter(self.answers)


def _judge(question: str, actual: str, predicted: str) -> bool:
    return True


def _asked(
    matcher: Any, actual: Any = (("a",),), predicted: Any = (("b",),), **options: Any
) -> Any:
    """Match the documents of some queries."""
    lists = [[list(one) for one in each] for each in (actual, predicted)]
    return OfflineRetrievalEvaluator(*lists, matcher, **options).calculate_recall()


def _judged(answer: Any, **options: Any) -> Any:
    matcher = JudgeMatcher(lambda question, actual, predicted: answer, **options)
    return _asked(matcher, queries=["?"])


def _embedded(*vector: Any, **options: Any) -> Any:
    return EmbeddingMatcher(_Vectors(*vector), 0.7, **options).similarity("a", "b")


def _page(value: Any) -> Document:
    return Document("a", metadata={"page": value, "source": {"url": "x", "date": None}})


def _tokens(answer: Any, text: str = "a b") -> Any:
    return list(tokenize_all(lambda text: answer, [text]))


# By edit distance 5 * 7 cells, by words 3 * 4, for the last alternative and the last document.
_LONG = [["x"], ["a", "b", AnyOf(["x", "a b c"])]], [["x"], ["a", "a b c d"]]
_BLANK_ID = {"page_content": "a", "id": ""}

CALLS: dict[str, Callable[[], Any]] = {
    # Matchers of a user's own.
    "a function that is none": lambda: Matcher.from_function("same"),
    "a function's threshold of 50": lambda: Matcher.from_function(len, threshold=50),
    "a function that returns a text": lambda: _asked(Matcher.from_function(lambda a, p: "0.7")),
    "a similarity that is None": lambda: _asked(_Returning(None)),
    "a similarity that is a text": lambda: _asked(_Returning("0.7")),
    "a similarity that is complex": lambda: _asked(_Returning(np.complex128(0.5))),
    "a similarity below 0": lambda: _asked(_Returning(-1e-9)),
    "a similarity above 1": lambda: _asked(_Returning(1 + 1e-9)),
    "a similarity that is NaN": lambda: _asked(_Returning(math.nan)),
    "a similarity without an end": lambda: _asked(_Returning(math.inf)),
    "similarities in a row": lambda: _asked(_Returning([1.0])),
    "similarities of too many": lambda: _asked(_Returning([[1.0], [0.5]])),
    "similarities the other way round": lambda: _asked(
        _Returning([[1.0], [0.5]]), predicted=[["b", "c"]]
    ),
    "similarities that hold NaN": lambda: _asked(_Returning([[math.nan]])),
    "similarities of none": lambda: _asked(_Returning([])),
    "similarities of uneven rows": lambda: _asked(_Returning([[1.0, 0.5], [0.5]])),
    "similarities that are complex": lambda: _asked(_Returning([[0.5 + 0.5j]])),
    "similarities of complex type": lambda: _asked(_Returning(np.array([[1 + 0j]]))),
    "similarities that hold a complex one": lambda: _asked(
        _Returning(np.array([[np.complex64(0.5)]], object))
    ),
    "similarities that are texts": lambda: _asked(_Returning([["0.5"]])),
    "similarities that hold a text": lambda: _asked(_Returning(np.array([["0.5"]], object))),
    "similarities that are days": lambda: _asked(_Returning(np.array([["2024-01-01"]], "M8[D]"))),
    "keys that are lists": lambda: _asked(_Listed()),
    "more pairs than fit": lambda: _asked(
        _Same(), [["a"], ["b"] * 40_000], [["a"], ["b"] * 40_000]
    ),
    # Names.
    "a name of another case": lambda: resolve_matcher("rougel"),
    "a name like no other": lambda: resolve_matcher("bm25"),
    "no name": lambda: resolve_matcher(""),
    "None for a name": lambda: resolve_matcher(None),
    "a list for a name": lambda: resolve_matcher(["text"]),
    "a function for a name": lambda: resolve_matcher(lambda actual, predicted: True),
    "a name for what is made in Python": lambda: resolve_matcher("EmbeddingMatcher"),
    "a setting that is no number": lambda: resolve_matcher("coverage(min_run=x)"),
    "a setting that there is not": lambda: resolve_matcher("coverage(run=5)"),
    "a setting that is neither yes nor no": lambda: resolve_matcher("coverage(numbers=maybe)"),
    "a setting given as 1": lambda: resolve_matcher("rougeL(stemmer=1)"),
    "a setting twice": lambda: resolve_matcher("coverage(min_run=5,min_run=6)"),
    "a threshold among the settings": lambda: resolve_matcher("coverage(threshold=0.5)"),
    "settings without an end": lambda: resolve_matcher("coverage(min_run=5"),
    "something behind the settings": lambda: resolve_matcher("coverage()x"),
    "a tokenizer among the settings": lambda: resolve_matcher("coverage(tokenizer=unicod)"),
    "auto for ROUGE": lambda: resolve_matcher("rougeL(tokenizer=auto)"),
    # Combinations.
    "a name within &": lambda: IdMatcher() & "rouge1",
    "a name within |": lambda: OrMatcher(IdMatcher(), "rouge1"),
    "a class within &": lambda: AndMatcher(IdMatcher(), CoverageMatcher),
    "one matcher alone": lambda: AndMatcher(IdMatcher()),
    "union within &": lambda: CoverageMatcher() & CoverageMatcher(union=True),
    "union within |": lambda: CoverageMatcher(union=True) | CoverageMatcher(),
    "a part of threshold 2": lambda: AndMatcher(
        IdMatcher(), type("Odd", (_Same,), {"threshold": 2.0})()
    ),
    # Coverage, edit distance, ROUGE.
    "a threshold above 1": lambda: CoverageMatcher(threshold=1.5),
    "a run of 0": lambda: CoverageMatcher(min_run=0),
    "a run of 2.0": lambda: CoverageMatcher(min_run=2.0),
    "numbers of 1": lambda: CoverageMatcher(numbers=1),
    "other numbers": lambda: CoverageMatcher(numbers="near"),
    "no numbers": lambda: CoverageMatcher(numbers=3),
    "polarity of 1": lambda: CoverageMatcher(polarity=1),
    "union with tolerant": lambda: CoverageMatcher(union=True, tolerant=True),
    "tolerant of 1": lambda: CoverageMatcher(tolerant=1),
    "another polarity": lambda: CoverageMatcher(polarity="de"),
    "numbers of a name": lambda: resolve_matcher("coverage(numbers=near)"),
    "union of 1": lambda: CoverageMatcher(union=1),
    "another direction": lambda: CoverageMatcher(direction="both"),
    "union with numbers": lambda: CoverageMatcher(union=True, numbers=True),
    "union in either direction": lambda: CoverageMatcher(union=True, direction="either"),
    "a pair that a tokenizer loses": lambda: CoverageMatcher(tokenizer="rouge_score").similarity(
        "환불은 칠일", "칠일"
    ),
    "a threshold of 2 for numbers": lambda: NumbersMatcher(2),
    "a fuzzy threshold of 1.1": lambda: FuzzyMatcher(threshold=1.1),
    "another scorer": lambda: FuzzyMatcher("partial-ratio"),
    "0 cells for a scorer": lambda: FuzzyMatcher(max_cells=0),
    "too many cells for a scorer": lambda: _asked(FuzzyMatcher(max_cells=34), *_LONG),
    "too many cells for sets of words": lambda: _asked(
        FuzzyMatcher("token_set_ratio", max_cells=34), *_LONG
    ),
    "too many cells for ROUGE-L": lambda: _asked(RougeMatcher("rougeL", max_cells=11), *_LONG),
    "too many cells by name": lambda: _asked("fuzzy(max_cells=34)", *_LONG),
    "no type of ROUGE": lambda: RougeMatcher(None),
    "a type of ROUGE for scorers": lambda: RougeMatcher("rougeLsum"),
    "another statistic": lambda: RougeMatcher("rouge1", statistic="Recall"),
    "ROUGE by an unknown tokenizer": lambda: RougeMatcher("rouge1", tokenizer="Kiwi"),
    "ROUGE's threshold as text": lambda: RougeMatcher("rouge1", "0.5"),
    "a stemmer by name": lambda: RougeMatcher("rouge1", stemmer="no"),
    "cells that are no whole number": lambda: RougeMatcher("rougeL", max_cells=1.5),
    "a scorer of two types": lambda: RougeMatcher(scorer=RougeScorer(["rouge1", "rougeL"])),
    "a scorer of another type": lambda: RougeMatcher("rouge2", scorer=RougeScorer(["rouge1"])),
    "a stemmer beside a scorer": lambda: RougeMatcher(stemmer=True, scorer=RougeScorer(["rouge1"])),
    "a tokenizer beside a scorer": lambda: RougeMatcher(
        tokenizer="words", scorer=RougeScorer(["rouge1"])
    ),
    # Ids, metadata, texts.
    "a truth without an id": lambda: _asked("id", [["1"], [Document("a")]], [["1"], ["1"]]),
    "a document without an id": lambda: _asked("id", [["1"]] * 2, [["1"], ["1", Document("a")]]),
    "an alternative without an id": lambda: _asked("id", [[AnyOf(["1", Document("a")])]], [["1"]]),
    "an empty text for an id": lambda: _asked("id", [["1"], [""]], [["1"], ["1"]]),
    "an empty id of a truth": lambda: _asked("id", [["1"], [_BLANK_ID]], [["1"], ["1"]]),
    "an empty id among ids": lambda: _asked("id", [["1"]] * 2, [["1"], ["2", "1", ""]]),
    "an empty id of numpy's among ids": lambda: _asked("id", [["1"]], [["2", "1", np.str_("")]]),
    "an empty id among documents": lambda: _asked("id", [["1"]], [[Document("a", id="1"), ""]]),
    "no metadata": lambda: _asked(MetadataMatcher("page"), [[_page(3)]], [[_page(3), "a"]]),
    "metadata of None": lambda: _asked(MetadataMatcher("page"), [[_page(None)]], [[_page(3)]]),
    "metadata of NaN": lambda: _asked(MetadataMatcher("page"), [[_page(math.nan)]], [[_page(3)]]),
    "metadata that is a list": lambda: _asked(
        MetadataMatcher("page"), [[_page([1])]], [[_page(3)]]
    ),
    "metadata beyond a text": lambda: MetadataMatcher("source.url.host").key(_page(3)),
    "metadata of no key": lambda: MetadataMatcher("").key(_page(3)),
    "nested metadata of None": lambda: MetadataMatcher("source.date").key(_page(3)),
    "no keys": lambda: MetadataMatcher(),
    "a number for a key": lambda: MetadataMatcher("page", 5),
    "word boundaries of 1": lambda: ContainsMatcher(word_boundaries=1),
    # Embeddings.
    "a name for embeddings": lambda: EmbeddingMatcher("openai", 0.7),
    "a class for embeddings": lambda: EmbeddingMatcher(_Vectors, 0.7),
    "a threshold for embeddings": lambda: EmbeddingMatcher(0.8, 0.8),
    "a function that makes no embeddings": lambda: EmbeddingMatcher(lambda: "m", 0.5).embeddings,
    "cosines of at least 1.1": lambda: EmbeddingMatcher(_Vectors(), 1.1),
    "batches of none": lambda: EmbeddingMatcher(_Vectors(), 0.7, batch_size=0),
    "a list for a cache": lambda: EmbeddingMatcher(_Vectors(), 0.7, cache=[]),
    "a vector of zeros": lambda: _embedded([0.0, 0.0]),
    "a vector with NaN": lambda: _embedded([1.0, math.nan]),
    "a vector without an end": lambda: _embedded([1.0, math.inf]),
    "a vector of no numbers": lambda: _embedded([]),
    "a number for a vector": lambda: _embedded(1.0),
    "a vector of texts": lambda: _embedded(["0.5"]),
    "a vector of complex numbers": lambda: _embedded([1 + 0j]),
    "a matrix for a vector": lambda: _embedded([[1.0], [1.0]]),
    "vectors of two lengths": lambda: _embedded([1.0, 2.0, 3.0]),
    "too few vectors": lambda: _embedded([1.0, 2.0], 1),
    "zeros in a cache": lambda: _embedded(cache={"b": [0, 0]}),
    "a cache of another model": lambda: _embedded(cache={"b": [1, 2, 3]}),
    # Judges.
    "a name for a judge": lambda: JudgeMatcher("gpt"),
    "a class for a judge": lambda: JudgeMatcher(_Vectors),
    "a judge of two texts": lambda: JudgeMatcher(lambda actual, predicted: True),
    "a judge of four texts": lambda: JudgeMatcher(lambda question, actual, predicted, model: True),
    "a judge of texts by name": lambda: JudgeMatcher(lambda *, question, actual, predicted: True),
    "a judge of the question last": lambda: JudgeMatcher(lambda actual, predicted, question: True),
    "a judge of other names": lambda: JudgeMatcher(lambda predicted, expected, query: True),
    "a judge's threshold of 2": lambda: JudgeMatcher(_judge, threshold=2),
    "a version of 1": lambda: JudgeMatcher(_judge, version=1),
    "a prompt of 1": lambda: JudgeMatcher(_judge, prompt=1),
    "a name of 1": lambda: JudgeMatcher(_judge, name=1),
    "candidates together": lambda: JudgeMatcher(_judge, candidates="coverage(union=yes)"),
    "unknown candidates": lambda: JudgeMatcher(_judge, candidates="coverege"),
    "a number for candidates": lambda: JudgeMatcher(_judge, candidates=0.5),
    "a number for a field": lambda: JudgeMatcher(_judge, output_key=1),
    "batches of no pairs": lambda: JudgeMatcher(_judge, batch_size=0),
    "no call at a time": lambda: JudgeMatcher(_judge, max_concurrency=0),
    "-1 calls": lambda: JudgeMatcher(_judge, max_calls=-1),
    "a bar by another word": lambda: JudgeMatcher(_judge, progress="yes"),
    "true for a file": lambda: JudgeMatcher(_judge, cache=True),
    "no text for a file": lambda: JudgeMatcher(_judge, cache=""),
    "SQLite's memory for a file": lambda: JudgeMatcher(_judge, cache=":memory:"),
    "a file in no folder": lambda: _judged(True, version="1", cache="nowhere/judged.sqlite"),
    "a judge without questions": lambda: _asked(JudgeMatcher(_judge)),
    "a judge asked without a question": lambda: JudgeMatcher(_judge).similarity("a", "b"),
    "a judgement in words": lambda: _judged("yes"),
    "a judgement of None": lambda: _judged(None),
    "a judgement above 1": lambda: _judged(1.5),
    "a judgement below 0": lambda: _judged(-0.1),
    "a judgement of NaN": lambda: _judged(math.nan),
    "a complex judgement": lambda: _judged(1j),
    "a list for a judgement": lambda: _judged([True]),
    "an output for a judgement": lambda: _judged({"a": 1}),
    "an output without the field": lambda: _judged({"a": 1}, output_key="b"),
    "an output that was not parsed": lambda: _judged({"parsed": None}, output_key="b"),
    "true for a batch": lambda: _judged(True, batch_size=1),
    "a text for a batch": lambda: _judged("y", batch_size=1),
    "a dict for a batch": lambda: _judged({"a": 1}, batch_size=1),
    "a set for a batch": lambda: _judged({True}, batch_size=1),
    "a batch of two for one": lambda: _judged([True, True], batch_size=1),
    # Time and processes.
    "no time": lambda: check_timeout(0),
    "endless time": lambda: check_timeout(math.inf),
    "time that is NaN": lambda: check_timeout(math.nan),
    "true for a time": lambda: check_timeout(True),
    "time in words": lambda: EmbeddingMatcher(_Vectors(), 0.5, timeout="5"),
    "a judge's time of -1": lambda: JudgeMatcher(_judge, timeout=-1),
    "true for processes": lambda: _asked("text", n_jobs=True),
    "processes in words": lambda: _asked("text", n_jobs="all"),
    "one and a half processes": lambda: _asked("text", n_jobs=1.5),
    "0 processes": lambda: _asked("text", n_jobs=0),
    # Tokenizers.
    "a tokenizer of another case": lambda: resolve_tokenizer("Unicode"),
    "a number for a tokenizer": lambda: resolve_tokenizer(3),
    "the name of an unknown tokenizer": lambda: tokenizer_name("kiwis"),
    "one text for several": lambda: tokenize_all("unicode", "rag"),
    "several texts by an unknown tokenizer": lambda: tokenize_all("Kiwi", ["밥"]),
    "a text that a tokenizer loses": lambda: list(tokenize_all("rouge_score", ["a", "나는"])),
    "a text of which nothing is left": lambda: _tokens(["", ""]),
    "a text for tokens": lambda: _tokens("a b"),
    "None for tokens": lambda: _tokens(None),
    "a number among tokens": lambda: _tokens(["a", 1]),
    "a dict for tokens": lambda: _tokens({"a": 1}),
    "tokens of too few texts": lambda: list(tokenize_all(_Batches([["a"]]), ["a", "b"])),
    "tokens of too many texts": lambda: list(tokenize_all(_Batches([["a"]] * 3), ["a", "b"])),
    "a tag for tags": lambda: KiwiTokenizer(keep="NN"),
    "no tags": lambda: KiwiTokenizer(keep=[]),
    "a tag of another case": lambda: KiwiTokenizer(keep=["nng"]),
    "a blank tag": lambda: KiwiTokenizer(keep=[""]),
    "a number for a tag": lambda: KiwiTokenizer(keep=[1]),
    "all particles and some tags": lambda: KiwiTokenizer(particles=True, keep=["NN"]),
    "all particles without some tags": lambda: KiwiTokenizer(particles=True, stop_tags=["J"]),
    "particles by a tag": lambda: KiwiTokenizer(particles="J"),
    "tags to keep and to leave out": lambda: KiwiTokenizer(keep=["NN"], stop_tags=["J"]),
    "a tag for stop tags": lambda: KiwiTokenizer(stop_tags="J"),
    "an unknown stop tag": lambda: KiwiTokenizer(stop_tags=["Q"]),
    "a word for words": lambda: KiwiTokenizer(user_words="청년월세"),
    "a blank word": lambda: KiwiTokenizer(user_words=[" "]),
    "a word of an unknown tag": lambda: KiwiTokenizer(user_words=[("청년월세", "N")]),
    "a word's score in words": lambda: KiwiTokenizer(user_words=[("청년월세", "NNP", "high")]),
    "a word's score of NaN": lambda: KiwiTokenizer(user_words=[("청년월세", "NNP", math.nan)]),
    "a word of four parts": lambda: KiwiTokenizer(user_words=[("청년월세", "NNP", 0.0, 1)]),
    "a word of no parts": lambda: KiwiTokenizer(user_words=[()]),
    "a number for a word": lambda: KiwiTokenizer(user_words=[3]),
}

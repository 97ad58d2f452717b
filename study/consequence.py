"""What a rule's decisions do to recall@5 and nDCG@10 of three retrievers, and what labels mend.

The windows that a retriever returned are known by their places, and so is the truth. An evaluation
reads decisions from a table, one for the truth and one for each system: the numbers are those of
``OfflineRetrievalEvaluator``, and nothing but the decisions differs.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags

from krag_eval import Matcher, OfflineRetrievalEvaluator, debias
from study import sources
from study.bm25 import BM25, best, counts, letters
from study.embeddings import embed
from study.similarities import similarities
from study.systems import System, decide
from study.tables import markdown, number

WORDS, STEP, DEPTH = 100, 50, 10
CUTOFFS = {"recall": 5, "ndcg": 10}
METRICS = {"recall@5": "recall@5", "ndcg@10": "nDCG@10"}
TITLES = {"chroma": "Chroma's three corpora", "clapnq": "ClapNQ's passages"}
#: What is known of a repair, and how tables call it.
REPAIR = {
    "before": "error before",
    "after": "error after",
    "alone": "error, labels alone",
    "held": "holds",
    "held alone": "holds, labels alone",
    "width": "width",
    "width alone": "width, labels alone",
    "warned": "warned",
}
RESAMPLES, DRAWS, LABELS = 2000, 200, 50
_NOTHING = 1e-9  # differences below this are rounding
# Cosines are compared to so many digits, so that no order hangs on how a machine adds up.
_DIGITS = 6
_KEPT = 6

Floats = NDArray[np.float64]
#: (question's id, place of what was wanted, place of the window)
Pair = tuple[str, str, str]
#: (wanted, window, question)
Texts = Sequence[tuple[str, str, str]]
#: Whether each is accepted.
Decide = Callable[[Texts], NDArray[np.bool_]]
Embed = Callable[[Sequence[str]], NDArray[Any]]
#: (questions, windows) -> for each question the places of its ten best windows.
Retriever = Callable[[Sequence[str], Sequence[str]], list[list[int]]]
#: Metric -> its value for each question; and that of each retriever.
Values = dict[str, Floats]
OfRetrievers = Mapping[str, Values]


class Piece(NamedTuple):
    """A stretch of a text."""

    source: str
    start: int
    stop: int
    text: str

    @property
    def place(self) -> str:
        """The name of the text, and from where to where."""
        return f"{self.source}:{self.start}-{self.stop}"

    def holds(self, other: Piece) -> bool:
        """Tell whether another piece of the same text lies within this one."""
        within = sources.holds((self.start, self.stop), (other.start, other.stop))
        return self.source == other.source and within


class Asked(NamedTuple):
    """A question, and the stretches of texts that answer it."""

    id: str
    question: str
    wanted: tuple[Piece, ...]


class Collection(NamedTuple):
    """Questions, and the windows among which retrievers look for their answers."""

    asked: list[Asked]
    windows: list[Piece]

    @classmethod
    def of(cls, questions: Iterable[sources.Question], texts: Mapping[str, str]) -> Collection:
        """Cut texts, by name, into windows.

        A question for which nothing was selected is left out; what was selected twice counts once.
        """
        names = {text: name for name, text in texts.items()}

        def pieces(text: str, spans: Iterable[sources.Span]) -> tuple[Piece, ...]:
            found = (Piece(names[text], *span, text[slice(*span)]) for span in spans)
            return tuple(dict.fromkeys(found))

        asked = [Asked(one.id, one.question, pieces(one.text, one.spans)) for one in questions]
        windows = [
            window for text in names for window in pieces(text, sources.windows(text, WORDS, STEP))
        ]
        return cls([one for one in asked if one.wanted], windows)


#: The windows that came back for each question.
Found = list[list[Piece]]


def collections(folder: sources.Folder) -> dict[str, Collection]:
    """Return both collections, each with one index over all of its texts."""
    questions, passages = sources.clapnq(folder)
    corpora = {name: folder.text(name) for name in sources.CORPORA}
    # Several passages have one title.
    digests = {hashlib.sha256(text.encode()).hexdigest()[:12]: text for _, text in passages}
    return {
        "chroma": Collection.of(sources.chroma(folder), corpora),
        "clapnq": Collection.of(questions, digests),
    }


# Retrieval.


def by_bm25(questions: Sequence[str], windows: Sequence[str]) -> list[list[int]]:
    """Rank by BM25.

    >>> by_bm25(["c"], ["a b", "c"])
    [[1, 0]]
    """
    index = BM25(windows)
    return [index.best(question, DEPTH) for question in questions]


def by_triples(questions: Sequence[str], windows: Sequence[str]) -> list[list[int]]:
    """Rank by the cosine of tf-idf weights of runs of three letters or digits, tf * ln(N / df).

    Manning, Raghavan and Schütze, *Introduction to Information Retrieval*, 2008, sections 6.2 and
    6.3. Triples that no window has do not count. Here "cat" and "dog" both have the weight ln 2, so
    the second window has cosine 1 and the first 0.

    >>> by_triples(["Dog!"], ["cat", "dog"])
    [[1, 0]]
    """
    known: dict[str, int] = {}
    of_windows = counts(windows, letters(3), known)
    n_known = of_windows.shape[1]
    having = np.bincount(of_windows.indices, minlength=n_known)
    idf = np.log(len(windows) / np.maximum(having, 1))
    of_questions = counts(questions, letters(3), known)[:, :n_known]
    cosines = (_unit(of_questions, idf) @ _unit(of_windows, idf).T).toarray()
    return _ranked(cosines)


def _unit(found: csr_matrix, idf: Floats) -> csr_matrix:
    """Return the weights of texts, of length 1; of length 0 where a text has none."""
    weights = found @ diags(idf)
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)).ravel())
    return csr_matrix(diags(1 / np.where(lengths > 0, lengths, 1)) @ weights)


def by_embeddings(embed: Embed) -> Retriever:
    """Return the retriever that ranks by the cosine of embeddings, rows of length 1."""

    def rank(questions: Sequence[str], windows: Sequence[str]) -> list[list[int]]:
        return _ranked(np.asarray(embed(questions)) @ np.asarray(embed(windows)).T)

    return rank


def _ranked(cosines: NDArray[Any]) -> list[list[int]]:
    return [best(row, DEPTH) for row in np.round(cosines.astype(float), _DIGITS)]


# Decisions and values.


class Decided(Matcher):
    """A matcher that reads decisions from a table, by question and places."""

    threshold = 1.0

    def __init__(self, accepted: Mapping[Pair, bool]) -> None:
        self._accepted = accepted

    def similarity(self, actual: Any, predicted: Any, question: str) -> float:
        """Return 1 for a pair that was accepted, else 0."""
        return float(self._accepted[question, actual.page_content, predicted.page_content])


def pairs_of(asked: Sequence[Asked], found: Found) -> dict[Pair, tuple[Asked, Piece, Piece]]:
    """Return the pairs of what was wanted and what came back."""
    return {
        (one.id, wanted.place, window.place): (one, wanted, window)
        for one, windows in zip(asked, found, strict=True)
        for wanted in one.wanted
        for window in windows
    }


def values(asked: Sequence[Asked], found: Found, accepted: Mapping[Pair, bool]) -> Values:
    """Return how good what was returned is for each question, under a table of decisions."""
    evaluator = OfflineRetrievalEvaluator(
        [[piece.place for piece in one.wanted] for one in asked],
        [[piece.place for piece in windows] for windows in found],
        matcher=Decided(accepted),
        queries=[one.id for one in asked],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a rule accepts nothing at all is a result here
        result = evaluator.evaluate(k=[*CUTOFFS.values()])
    return {f"{name}@{k}": result.per_query(k)[name].to_numpy() for name, k in CUTOFFS.items()}


# What comes of them.


def flips(actual: Floats, other: Floats) -> Floats:
    """Return 1 where two differences have opposite signs, and 0.5 where one of them alone is 0.

    >>> flips(np.array([0.1, 0.1, 0.1, 0.0]), np.array([0.2, -0.2, 0.0, 0.0])).tolist()
    [0.0, 1.0, 0.5, 0.0]
    """
    signs = [np.sign(np.where(np.abs(one) < _NOTHING, 0, one)) for one in (actual, other)]
    return np.asarray(np.abs(signs[0] - signs[1]) / 2)


def compared(truth: OfRetrievers, system: OfRetrievers, resamples: NDArray[np.int64]) -> Any:
    """Return how far off a system's values are, and how often it turns round an order.

    Args:
        truth: The values under the truth.
        system: Those under a system's decisions.
        resamples: The questions of each resample; shape (resamples, questions).
    """
    off = {
        name: {metric: system[name][metric] - of[metric] for metric in METRICS}
        for name, of in truth.items()
    }
    orders: dict[str, Any] = {}
    for first, second in combinations(truth, 2):
        of_pair = orders[f"{first} - {second}"] = {}
        for metric in METRICS:
            actual, other = (one[first][metric] - one[second][metric] for one in (truth, system))
            drawn = (one[resamples].mean(axis=1) for one in (actual, other))
            of_pair[metric] = {
                "truth": actual.mean(),
                "error": (other - actual).mean(),
                "flip": flips(actual.mean(), other.mean()),
                "flips": flips(*drawn).mean(),
            }
    return {
        "values": means(system),
        "errors": means(off),
        "mean absolute error": {
            metric: np.mean([abs(one[metric].mean()) for one in off.values()]) for metric in METRICS
        },
        "orders": orders,
    }


def means(several: OfRetrievers) -> dict[str, dict[str, float]]:
    """Return the mean over questions of each metric of each retriever."""
    return {
        name: {metric: float(one.mean()) for metric, one in of.items()}
        for name, of in several.items()
    }


def repaired(truth: Floats, system: Floats, draws: Iterable[NDArray[np.int64]]) -> dict[str, float]:
    """Return what true values of some questions mend of a system's average.

    The interval of these alone is the one that ``debias`` gives beside its own, as ``human_low``
    and ``human_high``: the same formulas, where the system does not count. ``warned`` is the share
    of draws of which ``debias`` said that they tell little.

    Args:
        truth: The value of each question by people.
        system: The same under a system's decisions.
        draws: The questions that people labelled, of each draw.
    """
    value, rows = truth.mean(), []
    for labelled in draws:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            one = debias(
                human=truth[labelled],
                judge=system[labelled],
                unlabelled=np.delete(system, labelled),
            )["value"]
        rows.append(
            {
                "before": abs(system.mean() - value),
                "after": abs(one.value - value),
                "alone": abs(one.human - value),
                "held": one.low - _NOTHING <= value <= one.high + _NOTHING,
                "held alone": one.human_low - _NOTHING <= value <= one.human_high + _NOTHING,
                "width": one.high - one.low,
                "width alone": one.human_high - one.human_low,
                "warned": bool(told),
            }
        )
    return {name: np.mean([row[name] for row in rows]) for name in rows[0]}


# All of it.


def measured(
    collection: Collection, retrievers: Mapping[str, Retriever], systems: Mapping[str, Decide]
) -> tuple[dict[str, Any], list[str]]:
    """Return the numbers of a collection, and as lines of CSV the decisions that they rest on.

    Args:
        collection: Questions and windows.
        retrievers: What ranks the windows, by name.
        systems: What decides about wanted texts and windows, by name.
    """
    asked, windows = collection
    found = {
        name: [
            [windows[at] for at in places]
            for places in rank([one.question for one in asked], [one.text for one in windows])
        ]
        for name, rank in retrievers.items()
    }
    pairs = {key: pair for one in found.values() for key, pair in pairs_of(asked, one).items()}
    held = np.array([window.holds(wanted) for _, wanted, window in pairs.values()])
    texts = [(wanted.text, window.text, one.question) for one, wanted, window in pairs.values()]
    decisions = {name: decide(texts) for name, decide in systems.items()}

    def under(decided: NDArray[np.bool_]) -> OfRetrievers:
        accepted = dict(zip(pairs, decided.tolist(), strict=True))
        return {name: values(asked, one, accepted) for name, one in found.items()}

    truth, n = under(held), len(asked)
    resamples = np.random.default_rng(0).integers(n, size=(RESAMPLES, LABELS))
    random = np.random.default_rng(0)
    draws = [random.choice(n, LABELS, replace=False) for _ in range(DRAWS)]
    of_systems = {}
    for name, decided in decisions.items():
        system = under(decided)
        of_systems[name] = compared(truth, system, resamples) | {
            "repair": {
                retriever: {
                    metric: repaired(of[metric], system[retriever][metric], draws)
                    for metric in METRICS
                }
                for retriever, of in truth.items()
            }
        }
    wanted = [piece for one in asked for piece in one.wanted]
    numbers = {
        "questions": n,
        "wanted": len(wanted),
        "wanted that no window holds": sum(
            not any(window.holds(piece) for window in windows) for piece in wanted
        ),
        "windows": len(windows),
        "pairs": len(pairs),
        "right pairs": int(held.sum()),
        # The truth is a matter of places; a rule that reads texts cannot know.
        "wrong pairs whose window has the wanted text": sum(
            wanted in window and not is_held
            for (wanted, window, _), is_held in zip(texts, held.tolist(), strict=True)
        ),
        "truth": means(truth),
        "systems": of_systems,
    }
    said = zip(*decisions.values(), strict=True)
    lines = [
        f"{','.join(key)},{int(right)},{''.join(str(int(one)) for one in each)}"
        for key, right, each in zip(pairs, held.tolist(), said, strict=True)
    ]
    return _plain(numbers), [f'question,wanted,window,right,"{"|".join(systems)}"', *lines]


def _plain(found: Any) -> Any:
    """Return numbers as JSON has them, rounded."""
    if isinstance(found, Mapping):
        return {name: _plain(one) for name, one in found.items()}
    return found if isinstance(found, int) else round(float(found), _KEPT) + 0.0


def consequence(
    folder: sources.Folder, systems: Mapping[str, System], kept: Path | None = None
) -> dict[str, Any]:
    """Return the numbers by collection, and under "decisions" what each system said, as CSV.

    Args:
        folder: The files of the study.
        systems: The systems; those that are not made for English are left out.
        kept: A folder that similarities are kept in.
    """
    retrievers = {"BM25": by_bm25, "triples": by_triples, "MiniLM": by_embeddings(embed)}
    ours = {
        name: partial(_decided, one, kept) for name, one in systems.items() if "en" in one.languages
    }
    found: dict[str, Any] = {"decisions": {}}
    for name, collection in collections(folder).items():
        found[name], found["decisions"][name] = measured(collection, retrievers, ours)
    return found


def _decided(system: System, kept: Path | None, texts: Texts) -> NDArray[np.bool_]:
    given = texts if system.with_questions else [one[:2] for one in texts]
    return decide(system, similarities(system, given, kept))


# Tables.


def tables(found: Mapping[str, Any]) -> str:
    """Return the numbers as Markdown."""
    names = [name for name in found if name != "decisions"]
    parts = [part for name in names for part in _tables_of(name, found[name])]
    return "\n\n".join(["# Consequence and repair", *parts]) + "\n"


def _tables_of(name: str, numbers: Mapping[str, Any]) -> Iterable[str]:
    truth, systems = numbers["truth"], numbers["systems"]
    yield f"## {TITLES[name]}"
    yield ", ".join(f"{key}: {n:,}" for key, n in numbers.items() if isinstance(n, int))
    yield markdown(
        ["retriever", *METRICS.values()],
        [[one, *map(number, of.values())] for one, of in truth.items()],
    )
    for metric, shown in METRICS.items():
        errors = {
            system: [
                *(_signed(of["errors"][one][metric]) for one in truth),
                number(of["mean absolute error"][metric]),
            ]
            for system, of in systems.items()
        }
        yield f"### Error of {shown}"
        yield _by_system([*truth, "mean absolute error"], errors)
        orders = {
            system: [cell for of_pair in of["orders"].values() for cell in _order(of_pair[metric])]
            for system, of in systems.items()
        }
        pairs = next(iter(systems.values()))["orders"]
        yield f"### Order by {shown}"
        yield (
            "Error of the difference; flips of its sign on all questions, and the share of them "
            f"on {LABELS}."
        )
        yield _by_system(
            [f"{pair}{what}" for pair in pairs for what in ("", ", all", f", {LABELS}")], orders
        )
        repairs = {
            system: [
                number(float(np.mean([one[metric][part] for one in of["repair"].values()])))
                for part in REPAIR
            ]
            for system, of in systems.items()
        }
        yield f"### Repair of {shown} by {LABELS} labels"
        yield f"Means over {len(truth)} retrievers and {DRAWS} draws."
        yield _by_system([*REPAIR.values()], repairs)


def _order(of: Mapping[str, float]) -> list[str]:
    return [_signed(of["error"]), f"{of['flip']:g}", number(of["flips"])]


def _signed(value: float) -> str:
    return f"{value:+.3f}"


def _by_system(head: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    return markdown(["system", *head], [[name, *cells] for name, cells in rows.items()])

"""Pairs for people to label on a page of their own, and their labels read back.

What a page made holds a line per pair, so that whatever takes labels reads it: ``agreement``,
``calibrate``, ``read_judgements`` and, by a result of people's, ``debias``.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeAlias
from unicodedata import normalize

import numpy as np

from krag_eval.comparison.judged import Judgements
from krag_eval.core import (
    Advice,
    AnyOf,
    ExactTextMatcher,
    InvalidInput,
    Language,
    Place,
    QuerySet,
    Shown,
    _,
    clipped,
    deepest,
    id_of,
    is_blank,
    text_of,
    warn,
    whole,
)
from krag_eval.core.files import unshielded
from krag_eval.core.matching.joins import Matches
from krag_eval.core.scoring.cutoffs import check_cutoffs
from krag_eval.core.shown import write_report
from krag_eval.datasets import Dataset, load_dataset
from krag_eval.lab.calibration import Agreement, LabelledPair, interval_of_kappa
from krag_eval.loading.cells import is_list_written
from krag_eval.loading.formats import Cells, Row, with_fields
from krag_eval.loading.table import is_frame, records_in

if TYPE_CHECKING:
    import pandas as pd

    from krag_eval.result import EvaluationResult

#: How many documents of each question are labelled, if nobody says.
DEPTH = 5
#: What may be said of a table in a file.
OF_A_TABLE = ("encoding", "delimiter")
# What a pair is: whose question it is about, by its label and as it is asked; the passage that is
# wanted, if one is; and what was retrieved, by its key and its text.
_OF_A_PAIR = ("query", "key", "question", "actual", "predicted")
_ON_A_PAGE = ("page", "pair", *_OF_A_PAIR, "relevant")
# How a person says yes and no in a cell, in English and Korean.
_YES = {"1", "1.0", "yes", "y", "true", "relevant", "예", "네", "관련"}
_NO = {"0", "0.0", "no", "n", "false", "아니오", "아니요", "무관"}


#: A query and an item among those that are looked at, a rank, and their pair.
_Pair: TypeAlias = tuple[int, int, int, dict[str, Any]]


@dataclass(frozen=True, eq=False, repr=False)
class ToLabel(Shown):
    """Pairs for people to label, as :func:`to_label` chooses them.

    Those to settle are made by :meth:`krag_eval.Labels.to_settle`.

    Attributes:
        rows: The lines of the file that a page makes, in the order they are shown, without the
            labeller's name and the time. ``predicted`` is ``None`` for a question that nothing was
            retrieved for: it is in the sample all the same. ``relevant`` is what is settled.
        page: The digest of all pairs, by which files of one page are known.
        seed: What the order was drawn by.
        settles: The labellers whose disagreements these are.
    """

    rows: Sequence[Mapping[str, Any]]
    page: str
    seed: int
    settles: tuple[str, ...] = ()

    @property
    def n_pairs(self) -> int:
        """How many pairs somebody is asked about."""
        return sum(row["predicted"] is not None and row["relevant"] is None for row in self.rows)

    @property
    def n_questions(self) -> int:
        """How many questions they are of."""
        return len({row["query"] for row in self.rows})

    def report(self, path: str | os.PathLike[str], *, language: Language | None = None) -> None:
        """Write the page on which to label: a file to open in a browser, which needs no network.

        Args:
            path: The file.
            language: What the page speaks first, ``"en"`` or ``"ko"``; it has a switch.

        Raises:
            OSError: If the file cannot be written.
        """
        write_report(self, path, language=language)


def to_label(
    source: Any, *, k: int | None = None, sample: int | None = None, seed: int = 0, **loading: Any
) -> ToLabel:
    """Choose pairs of a question, a wanted passage and a retrieved text for people to label.

    Of questions with what was retrieved, every item of the ground truth makes a pair with each of
    the first ``k`` documents; a document without an item, one with none. For :func:`debias` the
    questions must be a random sample, which ``sample`` draws.

    Args:
        source: What :func:`load_dataset` reads; or pairs: what ``to_judge`` returned or its table,
            a table or rows with ``actual``, ``predicted`` and perhaps ``question``, as
            :func:`calibrate` takes, or a file that a labelling page made. Labels in it are not
            shown.
        k: How many documents of each question, 5 if not given. For questions alone.
        sample: So many questions, drawn at random; all if not given. For questions alone.
        seed: Seed of the sample and of the order. That hides the ranks: questions come in any
            order, and so do the pairs of each.
        **loading: Options of :func:`load_dataset`, such as ``retrieved`` and ``corpus``.

    Raises:
        InvalidInput: If there is no such sample, a document is an id without its text, or ``k`` or
            ``sample`` is given with pairs.

    >>> pairs = to_label([{"question": "When?", "actual": "At nine.", "predicted": "From nine."}])
    >>> pairs.rows[0]["question"], pairs.rows[0]["predicted"], pairs.n_pairs
    ('When?', 'From nine.', 1)
    """
    drawn = random.Random(whole("seed", seed, 0))
    pairs = None if loading.keys() - {*OF_A_TABLE} else pairs_given(source, **loading)
    if pairs is None:
        dataset, places = load_dataset(source, **loading), None
        if sample is not None:
            n = dataset.n_queries
            places = drawn.sample(range(n), whole("sample", sample, 1, n))
        depth = DEPTH if k is None else whole("k", k, 1)
        pairs = [pair for *_at, pair in _pairs_of(dataset, depth, places)]
    elif k is not None or sample is not None:
        problem = "is for questions with what was retrieved, and these are pairs"
        raise InvalidInput("sample" if k is None else "k", problem, "leave it out")
    by_digest = {_digest_of(one): one for one in pairs}
    page = _digest(sorted(by_digest))
    rows = [{"page": page, "pair": digest, **one, "relevant": None}
            for digest, one in by_digest.items()]  # fmt: skip
    made = ToLabel(_shuffled(rows, drawn), page, seed)
    if not made.n_pairs:
        raise InvalidInput("source", "must hold pairs to label, got none", "look at k and the run")
    return made


def _shuffled(rows: Sequence[dict[str, Any]], drawn: random.Random) -> list[dict[str, Any]]:
    """Return rows in another order, those of a question together, so that it is read once."""
    rows = sorted(drawn.sample(rows, len(rows)), key=itemgetter("query"))
    several = [[*some] for _, some in groupby(rows, itemgetter("query"))]
    return [row for some in drawn.sample(several, len(several)) for row in some]


def pairs_given(source: Any, **how: Any) -> list[dict[str, Any]] | None:
    """Return the pairs of a table of them, or of its file; ``None`` of anything else."""
    source = getattr(source, "table", source)
    rows: Sequence[Row] = ()
    if isinstance(source, list) and all(isinstance(one, Mapping) for one in source):
        rows = [(Place("rows", row=place), one) for place, one in enumerate(source)]
    elif is_frame(source) or (isinstance(source, str | os.PathLike) and not os.path.isdir(source)):
        rows = records_in(source, "source", **how).rows
    if not rows or not _is_pair(rows[0][1]):
        return None
    return [_pair_in(row, place) for place, row in rows]


def _is_pair(row: Mapping[str, Any]) -> bool:
    texts = row.get("actual"), row.get("predicted")
    are_texts = all(isinstance(one, str) and not is_list_written(one) for one in texts)
    return are_texts or row.keys() >= {"query", "key"}


def _pair_in(row: Mapping[str, Any], place: Place) -> dict[str, Any]:
    if row.keys() >= {*_OF_A_PAIR}:  # of a labelling page, perhaps with nothing retrieved
        return {name: row[name] for name in _OF_A_PAIR}
    read = unshielded if isinstance(row, Cells) and "key" in row else str
    texts = {name: read(str(one)) for name, one in row.items() if isinstance(one, str | int)}
    if not isinstance(row.get("actual", ""), str | int | float | None):
        raise place._replace(column="actual").error("must be one text", "write a line per passage")
    predicted = texts.get("predicted") or texts.get("text") or texts.get("key", "")
    question = texts.get("question", texts.get("query", ""))
    if is_blank(predicted):
        raise place.error("has no text to label", 'name the columns "actual" and "predicted"')
    key, query = texts.get("key", predicted), texts.get("query", question)
    return _pair(query, key, question, texts.get("actual") or None, predicted)


def _pairs_of(dataset: Dataset, k: int | None, places: Sequence[int] | None) -> Iterator[_Pair]:
    """Yield the pairs within the first k documents: query and item among those looked at, and rank.

    A question without any comes once, at rank 0, without a text.
    """
    if dataset.predicted is None:
        fix = Advice("name what was retrieved by {}", retrieved=...)
        raise Place(dataset.source or "source").error("holds no retrieved documents", fix)
    places = range(dataset.n_queries) if places is None else places
    chosen, are_ids = dataset.chosen(places), dataset.defaults.get("matcher") == "id"
    queries = QuerySet.from_lists(chosen.actual, chosen.predicted, chosen.queries)
    key = dataset.defaults.get("grade_key")
    grades = iter(queries.given_grades(key) if key else np.ones(len(queries.item_query)))
    for query, alternatives in enumerate(queries.alternatives()):
        label = str(chosen.queries[query])
        asked = label if chosen.questions is None else chosen.questions[query]
        wanted: dict[int, Any] = {}
        for item, several in enumerate(alternatives):
            texts = [text for one in several if not is_blank(text := _text(one, are_ids))]
            if next(grades) != 0:
                wanted[item] = texts[0] if len(texts) == 1 else {"any_of": texts} if texts else None
        n = 0
        for rank, document in enumerate(queries.predicted[query][:k], 1):
            text, name = _text(document, are_ids), id_of(document)
            if name and text == "":
                problem = f"has an id without a text, {clipped(name)}"
                fix = Advice("name the chunks of the index by {}", corpus=...)
                raise InvalidInput("predicted_docs", problem, fix, query=places[query])
            for item, actual in () if is_blank(text) else (wanted or {-1: None}).items():
                n += 1
                yield query, item, rank, _pair(label, name or text, asked, actual, text)
        if not n:
            yield query, -1, 0, _pair(label, "", asked, None, None)


def _text(document: Any, are_ids: bool) -> str:
    return "" if are_ids and isinstance(document, str) else text_of(document)


def _pair(*parts: Any) -> dict[str, Any]:
    return dict(zip(_OF_A_PAIR, parts, strict=True))


def _digest_of(pair: Mapping[str, Any]) -> str:
    return _digest([pair.get(name) for name in _OF_A_PAIR])


def _digest(content: object) -> str:
    return hashlib.blake2b(json.dumps(content).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True, eq=False)
class Labels:
    """What one person said of the pairs of a page; made by :func:`read_labels`.

    Attributes:
        labeller: The name.
        page: The digest of the page.
        rows: A line per pair: its texts, and ``relevant``, which is ``None`` without a label.
    """

    labeller: str
    page: str
    rows: Sequence[Mapping[str, Any]] = field(repr=False)

    @property
    def n_pairs(self) -> int:
        """How many pairs were to be labelled."""
        return sum(row["predicted"] is not None for row in self.rows)

    @property
    def n_open(self) -> int:
        """How many of them have no label."""
        return self.n_pairs - sum(row["relevant"] is not None for row in self.rows)

    @property
    def pairs(self) -> list[LabelledPair]:
        """Those with a wanted passage and a label, for ``agreement`` and ``calibrate``."""
        return [(_wanted_in(row), row["predicted"], row["relevant"], row["question"])
                for row in self.rows
                if row["actual"] is not None and row["relevant"] is not None]  # fmt: skip

    @property
    def judgements(self) -> Judgements:
        """Which documents were looked at, and which of them are relevant."""
        said: dict[tuple[str, str], list[bool | None]] = {}
        for row in self.rows:
            if row["predicted"] is not None:
                said.setdefault((row["query"], row["key"]), []).append(row["relevant"])
        return _judgements(said)

    def evaluate(
        self, dataset: Dataset, k: Any = DEPTH, *, metrics: Any = None, **options: Any
    ) -> EvaluationResult:
        """Evaluate the questions that were labelled as this person decided: debias's ``human``.

        Args:
            dataset: The questions, of which the labelled ones are some, with what was retrieved.
            k: A cutoff or several, none beyond what was labelled.
            metrics: As the evaluator takes them.
            **options: Further ones of the evaluator, the same as of the judge's result.

        Raises:
            InvalidInput: If a labelled question is missing, or a pair was not on the page.

        Warns:
            KragEvalWarning: If questions are left out, because pairs of theirs have no label.
        """
        said = {row["pair"]: row["relevant"] for row in self.rows}
        asked = {row["query"] for row in self.rows}
        left = {row["query"] for row in self.rows
                if row["predicted"] is not None and row["relevant"] is None}  # fmt: skip
        if left:
            told = _("{left} of {n} labelled questions have pairs without a label; left out.")
            warn(told.format(left=len(left), n=len(asked)), _("Label them"))
        by_label = {str(label): place for place, label in enumerate(dataset.queries)}
        places = sorted(by_label[one] for one in asked - left if one in by_label)
        depth = deepest(cutoffs := check_cutoffs(k))
        pairs = [*_pairs_of(dataset, None, places)]  # all, as what was labelled may have gone
        known = {_digest_of(pair) for *_at, pair in pairs}
        last = depth if isinstance(depth, int) else math.inf
        within = [one for one in pairs if 0 < one[2] <= last]
        strange = asked - by_label.keys()
        strange |= {pair["query"] for *_at, pair in within if _digest_of(pair) not in said}
        strange |= {row["query"] for row in self.rows if row["predicted"] is not None
                    and row["query"] not in left and row["pair"] not in known}  # fmt: skip
        if strange:
            problem = f": of query {clipped(min(strange))} there are other pairs than were labelled"
            fix = "pass the questions and the run that the page was made of, and no deeper k"
            raise InvalidInput("dataset", problem, fix)
        matched = [at for *at, pair in within if at[1] >= 0 and said[_digest_of(pair)]]
        evaluator = dataset.chosen(places).evaluator(matcher=_People(self, matched), **options)
        return evaluator.evaluate(cutoffs, metrics=metrics)

    def agreement(self, other: Labels, *, level: float = 0.95) -> LabellerAgreement:
        """Measure how far two people agree, on the pairs that both labelled.

        Args:
            other: The labels of somebody else, on the same page.
            level: Confidence level of the bootstrap interval of κ, between 0 and 1.

        Raises:
            InvalidInput: If the other labels are of another page or by the same person, or the two
                labelled no pair in common.
        """
        both = [(ours, theirs) for ours, theirs in self._beside(other)
                if ours["relevant"] is not None and theirs is not None]  # fmt: skip
        if not both:
            problem = f": no pair is labelled by both, {self.labeller} and {other.labeller}"
            raise InvalidInput("other", problem)
        rows, said = zip(*both, strict=True)
        texts = [_wanted_in(row) for row in rows], [row["predicted"] for row in rows]
        ours, theirs = np.array([[row["relevant"] for row in rows], said], np.bool_)
        unknown, questions = (np.nan, np.nan), [row["question"] for row in rows]
        found = LabellerAgreement(other.labeller, *texts, ours, theirs, np.nan, unknown, level,
                                  self.labeller, questions)  # fmt: skip
        return replace(found, interval=interval_of_kappa(found, 2_000, 0))

    def to_settle(self, other: Labels) -> ToLabel:
        """Return the pairs on which two people do not agree, or which one did not label.

        What they agree on is settled: the file of that page has a label for each pair.

        Raises:
            InvalidInput: As :meth:`agreement`.
        """
        rows = [{**ours, "relevant": ours["relevant"] if ours["relevant"] == theirs else None}
                for ours, theirs in self._beside(other)]  # fmt: skip
        rows = _shuffled(rows, random.Random(0))
        return ToLabel(rows, self.page, 0, (self.labeller, other.labeller))

    def _beside(self, other: Labels) -> list[tuple[dict[str, Any], bool | None]]:
        """Return each of these rows, as a page holds it, and what the other one said."""
        problem = "labelled another page" if self.page != other.page else ""
        if _alike(self.labeller) == _alike(other.labeller):
            problem = "is one and the same labeller"
        elif any(row.get("settles") for row in (*self.rows, *other.rows)):
            problem = "settled what others had labelled, or the first one did"
        if problem:
            fix = "name two people's files of one page"
            raise InvalidInput("other", f": {clipped(other.labeller)} {problem}", fix)
        said = {row["pair"]: row["relevant"] for row in other.rows}
        return [({name: row[name] for name in _ON_A_PAGE}, said[row["pair"]]) for row in self.rows]


def _alike(name: str) -> str:
    return " ".join(normalize("NFKC", name).casefold().split())


class _People(ExactTextMatcher):
    """Decides as somebody did, of the queries that it was made for."""

    name = "people"
    _advice = ""  # type: ignore[assignment]  # there is no other way in which they match

    def __init__(self, labels: Labels, matched: Sequence[Sequence[int]]) -> None:
        super().__init__()
        self._labels, self._matched = labels, matched

    def settings(self) -> dict[str, object]:
        """Return who decided, and on which page."""
        return {"labeller": self._labels.labeller, "page": self._labels.page}

    def match(self, queries: QuerySet) -> Matches:
        """Return the pairs that were called relevant."""
        starts = np.cumsum([0, *queries.n_items])
        found = sorted((int(starts[query]) + item, rank) for query, item, rank in self._matched)
        item, rank = np.array(found, np.int64).reshape(-1, 2).T
        return Matches(item, rank, np.ones(len(found)), super().match(queries).same_as)


@dataclass(frozen=True, eq=False, repr=False)
class LabellerAgreement(Agreement):
    """How far two people agree; made by :meth:`krag_eval.Labels.agreement`.

    It is an ``Agreement`` in which the second person stands in for the matcher: ``missed`` are the
    pairs that the first one alone calls relevant, ``false_alarms`` those that the second alone
    does. κ is NaN where both gave one label to all.

    Attributes:
        labeller: The first person; ``matcher`` is the second.
        questions: The question of each pair.
    """

    labeller: str
    questions: Sequence[str]

    @property
    def disagreements(self) -> pd.DataFrame:
        """The pairs on which they differ: question, texts, and what each of them said."""
        found = super().disagreements
        found.insert(0, "question", [self.questions[at] for at in found.index])
        return found.rename(columns={"relevant": "first", "matched": "second"})


def read_labels(path: str | os.PathLike[str]) -> Labels:
    """Read the file that a labelling page made.

    Args:
        path: The file: JSON lines, one for each pair of the page, labelled or not.

    Raises:
        FileNotFoundError: If there is no such file.
        DatasetError: If it is something else, or a line was edited, repeated, added or lost since
            the page made it; the label of a pair may be edited.
    """
    name = os.fsdecode(path)
    rows = [] if name.endswith((".html", ".htm")) else labelled_rows(path, ())
    if not is_of_a_page(rows):
        raise Place(name).error("is no file of labels", "download it on the page, by the key d")
    return labels_in(rows, name)


def is_of_a_page(rows: Sequence[Row]) -> bool:
    """Tell whether a labelling page made the rows, or some of them."""
    return any("labeller" in row for _place, row in rows)


def labels_in(rows: Sequence[Row], name: str) -> Labels:
    """Return what the rows of a page's file hold, once it is checked that they are all of it."""
    seen: set[str] = set()
    fix = "take the file as the page made it"
    for place, row in rows:
        if any(row.get(one) != rows[0][1].get(one) for one in ("page", "labeller")):
            raise place.error("is of another page or labeller than the first line", fix)
        if not isinstance(row.get("labeller"), str):
            raise place.error("has no name of a labeller", fix)
        if row.get("pair") != _digest_of(row):
            raise place.error("has other texts than were labelled", fix)
        if row["pair"] in seen:
            raise place.error("has the pair of another line", fix)
        seen.add(row["pair"])
    if not rows or _digest(sorted(seen)) != rows[0][1].get("page"):
        problem = f"holds {len(rows)} pairs, which are not all of its page: lines were lost"
        raise Place(name).error(problem, fix)
    read = Labels(rows[0][1]["labeller"], rows[0][1]["page"], [row for _place, row in rows])
    if read.n_open:
        told = _("{labeller}: {left} of {n} pairs have no label.")
        warn(told.format(labeller=read.labeller, left=read.n_open, n=read.n_pairs))
    return read


def read_judgements(
    path: str | os.PathLike[str], *, encoding: str | None = None, delimiter: str | None = None
) -> Judgements:
    r"""Read back the table that ``ToJudge.to_csv`` wrote, once somebody has filled it in.

    The column ``relevant`` says 1, yes or 예 for a relevant document, 0, no or 아니오 for another;
    an empty cell is a document that nobody has looked at yet. A file that a labelling page made
    will do; a document is then relevant if it is for one of the wanted passages.

    Args:
        path: The CSV file, or that of a labelling page.
        encoding: That of a table, UTF-8 if not given; Excel in Korean writes ``"cp949"``.
        delimiter: What stands between the cells of a table, a comma if not given.

    Raises:
        FileNotFoundError: If there is no such file.
        InvalidInput: If it is of another encoding or no table, lacks the columns ``query``, ``key``
            and ``relevant``, a cell says something else, or one document has two answers; it names
            file and line. Of a labelling page, as :func:`read_labels`.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "judged.csv")
    ...     _ = path.write_text("query,key,relevant\nWhen?,d7,1\nWhen?,d9,0\nWho?,d1,\n")
    ...     read_judgements(path)
    Judgements(relevant={'When?': ['d7']}, judged={'When?': ['d7', 'd9']})
    """
    needed = ("query", "key", "relevant")
    rows = labelled_rows(path, needed, encoding=encoding, delimiter=delimiter)
    if is_of_a_page(rows):
        return labels_in(rows, os.fsdecode(path)).judgements
    said: dict[tuple[str, str], list[bool | None]] = {}
    for place, row in rows:
        query, key = (unshielded(str(row.get(one) or "")) for one in ("query", "key"))
        answer = [row["relevant"]]
        if answer != [None] and not key:
            raise place.error("has a label without a key", "name the document in the column key")
        if answer != [None] and said.setdefault((query, key), answer) != answer:
            raise place.error(f"{clipped(key)} is relevant on another line, or not")
    return _judgements(said)


def labelled_rows(source: Any, needed: Sequence[str], **how: Any) -> Sequence[Row]:
    """Return the rows of a file with labels, each label as true, false or ``None``."""
    table = records_in(source, "source", **how)
    if missing := [one for one in needed if one not in table.names]:
        problem = f"has no column {missing[0]!r}, got {', '.join(map(repr, table.names))}"
        raise Place(table.name).error(problem, f"name the columns {', '.join(needed)}")
    return [(place, with_fields(row, {"relevant": _answer(row.get("relevant"), place)}))
            for place, row in table.rows]  # fmt: skip


def _answer(label: Any, place: Place) -> bool | None:
    said = "" if label is None or label != label else str(label).strip().casefold()
    if said and said not in _YES | _NO:
        problem = f"must be true or false, 1 or 0, yes or no, or empty, got {clipped(label)}"
        raise place._replace(column="relevant").error(problem)
    return said in _YES if said else None


def _judgements(said: Mapping[tuple[str, str], Sequence[bool | None]]) -> Judgements:
    """Return what was said of documents, of each perhaps beside several passages.

    It is relevant if it is for one of them; if for none, it was looked at if each has a label.
    """
    known = {document: any(of) for document, of in said.items() if any(of) or None not in of}
    relevant: dict[str, list[str]] = {}
    looked_at: dict[str, list[str]] = {}
    for (query, key), answer in known.items():
        looked_at.setdefault(query, []).append(key)
        if answer:
            relevant.setdefault(query, []).append(key)
    return Judgements(relevant, looked_at)


def _wanted_in(row: Mapping[str, Any]) -> Any:
    wanted = row["actual"] or ""
    return AnyOf(wanted["any_of"]) if isinstance(wanted, Mapping) else wanted

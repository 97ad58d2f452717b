"""Two files: questions with their ground truth, and a run, what was retrieved for them.

The rules look at digests of ids and questions alone, so that they are the same for lists in memory
and for files of any size.
"""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.core import (
    N_,
    Advice,
    DocumentLike,
    MissingQuestions,
    Place,
    _,
    clipped,
    id_of,
    ngettext,
    single,
    warn,
)
from krag_eval.core.documents import ID_TAGS, id_written
from krag_eval.core.results.latency import Failure
from krag_eval.loading.cells import is_bare, is_like_id
from krag_eval.loading.dataset import Dataset, Overlap, tell_overlap
from krag_eval.loading.table import (
    LISTED,
    Mark,
    NoteOnSettings,
    OfRun,
    Query,
    asked_again,
    check_ids_alone,
    listed,
    own_truth_note,
    told_errors,
)

#: What happens to questions of the ground truth that a run lacks.
Lacking: TypeAlias = Literal["error", "zero", "skip"]

_DIGEST = 16
# What may join two queries, beside ids: what they are called, and what is asked.
_LABEL, _QUESTION = "label", "question"
_BY_ID = N_("{n} of {queries} queries joined by their ids with {run}")
_BY_QUESTION = N_("{n} of {queries} queries joined by their questions with {run}")


class Side(ABC):
    """The queries of one of two files, of any number, by what may join them.

    Attributes:
        name: What to call it.
        defaults: How it says that it is evaluated.
        n_queries: How many queries there are.
        keys: Of each kind of key that all queries have, a digest of each.
    """

    def __init__(self, name: str, defaults: Mapping[str, Any]) -> None:
        self.name, self.defaults, self.n_queries = name, defaults, 0
        self.keys = {kind: bytearray() for kind in (*ID_TAGS, _LABEL, _QUESTION)}
        self._is_renamed = False
        self._lacking = dict[str, int]()  # kind of key -> the first query without one

    @abstractmethod
    def query(self, at: int) -> Query:
        """Return a query by its position."""

    @abstractmethod
    def documents(self) -> Iterable[DocumentLike]:
        """Return all documents that the file is there for."""

    def add(self, one: Query) -> None:
        """Take one more query."""
        texts = _keys_of(one)
        digests = {text: _digest(text) for text in {*texts.values()} if text is not None}
        for kind in [*self.keys]:
            if (text := texts[kind]) is not None:
                self.keys[kind] += digests[text]
                continue
            del self.keys[kind]
            self._lacking[kind] = self.n_queries
        self._is_renamed |= one.question is not None and one.label != one.question
        self.n_queries += 1

    @property
    def ids(self) -> str | None:
        """The kind of key that is an id of each query: a tag, or what they are called."""
        are_ids = self._is_renamed and self.keys.keys() >= {_LABEL, _QUESTION}
        return next(filter(self.keys.__contains__, ID_TAGS), _LABEL if are_ids else None)

    def of_kind(self, kind: str) -> NDArray[np.bytes_]:
        """Return the digests of a kind, none if some queries have no such key."""
        return np.frombuffer(self.keys.get(kind, b""), f"S{_DIGEST}")

    def text(self, kind: str, at: int) -> str:
        """Return a key of a query."""
        return _keys_of(self.query(at))[kind] or ""

    def some(self, kind: str, places: NDArray[np.int64]) -> tuple[int, str]:
        """Return how many queries these are, and the key of the first."""
        return len(places), self.text(kind, int(places.min())) if len(places) else ""

    def first(self, kind: str, same: Callable[[int, int], bool] | None) -> NDArray[np.int64]:
        """Return where each key is first, in the order of the digests.

        Raises:
            DatasetError: If a key is there twice, and the queries are not the same.
        """
        _, first, of_each = np.unique(self.of_kind(kind), return_index=True, return_inverse=True)
        for at in np.flatnonzero(first[of_each] != np.arange(self.n_queries)).tolist():
            before = int(first[of_each[at]])
            if same is None or not same(before, at):
                told = f"(first at {self.query(before).place})"
                problem = f"{clipped(self.text(kind, at))} is given a second time {told}"
                raise self.query(at).place.error(
                    problem, "give each query once, by an id of its own"
                )
        return first

    def check_once(self, texts: Sequence[int]) -> None:
        """Refuse a query that comes again, of those with one retrieved text, by their places.

        Raises:
            DatasetError: As :func:`~krag_eval.loading.table.check_once`.
        """
        if len(texts) and _LABEL in self.keys:
            _, first, of_each = np.unique(
                self.of_kind(_LABEL), return_index=True, return_inverse=True
            )
            again = [at for at in texts if first[of_each[at]] != at]
            if again:
                raise asked_again(self.query(again[0]))

    def check_questions(self, other: Side) -> None:
        """Refuse queries without questions, where these or the others lack ids as well."""
        if _QUESTION not in self.keys:
            side = self if self.ids is None else other
            nameless = side.query(max(side._lacking.get(kind, 0) for kind in ID_TAGS))
            others = {*nameless.tags} - {*ID_TAGS}
            named = sorted(repr(name) for name in others if is_like_id(name))
            fix = 'give each row an "id"'
            if named:
                fix = f'call {" or ".join(named)} "id" in both files, if that is what it is'
            raise Place(self.name).error(
                f"not all queries have a question, and {nameless.place} has no id among "
                f"{', '.join(ID_TAGS)}, so that neither joins",
                Advice(f"{fix}, or name the column with the question by {{}}", question=...),
            )


class _OfDataset(Side):
    """The queries of a data set."""

    def __init__(self, dataset: Dataset, lists: Iterable[Iterable[DocumentLike]]) -> None:
        super().__init__(dataset.source, dataset.defaults)
        self._dataset, self._lists = dataset, lists
        self._is_named = dataset.queries != [*range(dataset.n_queries)]
        for at in range(dataset.n_queries):
            self.add(self.query(at))

    def query(self, at: int) -> Query:
        dataset = self._dataset
        label = dataset.queries[at] if self._is_named else None
        question = None if dataset.questions is None else dataset.questions[at]
        tags = {name: of_each[at] for name, of_each in dataset.tags.items() if is_like_id(name)}
        return Query(_place(dataset, at), question, [], [], Mark(label), tags)

    def documents(self) -> Iterable[DocumentLike]:
        return chain.from_iterable(self._lists)


def _keys_of(one: Query) -> dict[str, str | None]:
    """Return what may join a query, by what that is; None of what it has not."""
    label, asked = one.label, one.label if one.question is None else one.question
    return {
        **{name: id_written(one.tags.get(name)) for name in ID_TAGS},
        _LABEL: label if isinstance(label, str) else None,
        _QUESTION: None if asked is None else _folded(asked),
    }


def _digest(text: str) -> bytes:
    composed = unicodedata.normalize("NFC", text)
    return blake2b(composed.encode("utf-8", "surrogatepass"), digest_size=_DIGEST).digest()


def _folded(question: object) -> str:
    return unicodedata.normalize("NFC", " ".join(str(question).split()))


class Joined(NamedTuple):
    """What joins: how that is told, and for each query of the ground truth its place in the run.

    The place is -1 where the run lacks the query.
    """

    told: str
    found: NDArray[np.int64]


def joined(golden: Side, run: Side, missing: Lacking, same: Callable[[int, int], bool]) -> Joined:
    """Join queries by their ids where all of both have one, and by their questions otherwise.

    Args:
        golden: Questions with their ground truth.
        run: Queries with what was retrieved for them.
        missing: What happens to questions that the run lacks.
        same: Tells whether the same was retrieved at two places of the run.

    Raises:
        DatasetError: If nothing joins, an id is there twice, a question has two lists, or the run
            lacks a question and ``missing`` is ``"error"``.

    Warns:
        KragEvalWarning: If the run has other queries, or lacks some, or several queries of the
            ground truth take one list.
    """
    told, ours, theirs = _kinds(golden, run)
    first = run.first(theirs, None if told == _BY_ID else same)
    if told == _BY_ID:
        golden.first(ours, None)
    keys, wanted = run.of_kind(theirs)[first], golden.of_kind(ours)
    near = np.searchsorted(keys, wanted)
    # What is greater than all keys is beside the last of them.
    is_there = np.append(keys, b"")[near] == wanted
    found = np.where(is_there, np.append(first, -1)[near], -1)
    distinct = np.unique(wanted, return_index=True)[1]
    overlap = Overlap(
        golden.some(ours, distinct),
        run.some(theirs, first),
        golden.some(ours, distinct[~is_there[distinct]]),
        run.some(theirs, np.delete(first, near[is_there])),
    )
    tell_overlap(overlap, golden.name, run.name, None if missing == "error" else missing)
    _tell_shared(golden, run, ours, np.setdiff1d(np.flatnonzero(is_there), distinct))
    n_lacking, name = golden.some(ours, np.flatnonzero(~is_there))
    if n_lacking and missing == "error":
        raise Place(run.name).error(
            f"lacks {n_lacking} of the {golden.n_queries} queries of {golden.name} (the first "
            f"is {clipped(name)})",
            Advice(
                "{} counts them as nothing retrieved, {} leaves them out",
                ("missing", "zero"),
                ("missing", "skip"),
            ),
        )
    told = _(told).format(n=int(is_there.sum()), queries=golden.n_queries, run=run.name)
    return Joined(told, found)


def _tell_shared(golden: Side, run: Side, kind: str, again: NDArray[np.int64]) -> None:
    """Warn of queries that take a list of the run which another query has taken."""
    n, first = golden.some(kind, again)
    if n:
        message = ngettext(
            "{n} query of {golden} asks what another one asks ({first!r}), and takes the same list "
            "of {run}. Where they are not one query, give each an id in both files.",
            "{n} queries of {golden} ask what another one asks (the first is {first!r}), and take "
            "the same list of {run}. Where they are not one query, give each an id in both files.",
            n,
        )
        warn(message.format(n=n, golden=golden.name, first=first, run=run.name))


def _kinds(golden: Side, run: Side) -> tuple[str, str, str]:
    """Tell what joins two files; what a run calls its queries may be their ids."""
    ids = golden.ids
    if ids is not None and run.ids is not None:
        _check_questions(golden, run, ids, run.ids)
        return _BY_ID, ids, run.ids
    # A dict of lists, or of scores, may call them by their ids.
    if ids is not None and _LABEL in run.keys:
        as_ids = np.intersect1d(golden.of_kind(ids), run.of_kind(_LABEL))
        as_questions = np.intersect1d(golden.of_kind(_QUESTION), run.of_kind(_QUESTION))
        if len(as_ids) > len(as_questions):
            return _BY_ID, ids, _LABEL
    golden.check_questions(run)
    run.check_questions(golden)
    return _BY_QUESTION, _QUESTION, _QUESTION


def _check_questions(golden: Side, run: Side, ours: str, theirs: str) -> None:
    """Refuse ids that name other questions here and there, as numbers of rows do.

    A few questions may be worded anew, with a warning; most of them make another run.
    """
    if not golden.keys.keys() & run.keys.keys() >= {_QUESTION}:
        return
    asked, also, named = golden.of_kind(_QUESTION), run.of_kind(_QUESTION), run.of_kind(theirs)
    ids, places = np.unique(golden.of_kind(ours), return_index=True)
    near = np.searchsorted(ids, named)
    of_golden = np.append(places, -1)[near]
    joins = np.append(ids, b"")[near] == named
    differs = joins & (asked[of_golden] != also)
    for at in np.flatnonzero(differs & np.isin(also, asked))[:1].tolist():
        raise run.query(at).place.error(
            f"the id {clipped(run.text(theirs, at))} is that of another question in {golden.name}, "
            f"{clipped(golden.text(_QUESTION, int(of_golden[at])))}",
            "give a question the same id in both files, or leave the ids of one out",
        )
    # What is called by its id alone asks nothing.
    joins &= (also != named) & (asked[of_golden] != named)
    for at in np.flatnonzero(differs & joins)[:1].tolist():
        n, of, first = int((differs & joins).sum()), int(joins.sum()), run.text(theirs, at)
        if 2 * n > of:
            raise run.query(at).place.error(
                f"{n} of the {of} queries joined by their ids ask something else than in "
                f"{golden.name}: {clipped(first)} is {clipped(run.text(_QUESTION, at))} here, and "
                f"{clipped(golden.text(_QUESTION, int(of_golden[at])))} there",
                "pass the run of these questions; if all were only worded anew, leave the "
                "questions out of the run, so that the ids alone join",
            )
        told = _("{n} of the {queries} queries joined by their ids have another question in {run} "
                 "(the first is {first!r}).")  # fmt: skip
        warn(told.format(n=n, queries=of, run=run.name, first=first))


def refuse_truth(lists: Mapping[str, Place], golden: str) -> None:
    """Refuse lists in a run, by the places where they begin, that are none of what was retrieved.

    Raises:
        DatasetError: If one belongs to the ground truth.
    """
    for name in ("judged", "unwanted"):
        if name in lists:
            problem = f"holds {name!r} documents, which belong to the ground truth"
            raise lists[name].error(problem, f"put them into {golden}")


def joined_defaults(golden: Side, run: Side) -> Mapping[str, Any]:
    """Compare by ids where one side has nothing else, or had, and both have them.

    Raises:
        DatasetError: If the other side has no ids.
    """
    bare = [one for one in (golden, run) if one.defaults.get("matcher") == "id"]
    if not bare:
        return golden.defaults
    for one in (golden, run):
        if one not in bare and any(isinstance(x, str) or id_of(x) is None for x in one.documents()):
            ids = {*map(id_of, bare[0].documents())}
            if any(isinstance(x, str) and id_of(x) in ids for x in one.documents()):
                continue  # plain texts are ids, as of the other side
            if not all(map(is_bare, bare[0].documents())):  # an index has given them texts
                return {name: some for name, some in golden.defaults.items() if name != "matcher"}
            raise Place(one.name).error(
                f"holds texts without ids, and {bare[0].name} ids alone, so that they cannot be "
                "compared",
                'write documents as {"id": …, "page_content": …}',
            )
    return {**golden.defaults, "matcher": "id"}


def with_run(
    golden: Dataset, run: Dataset, missing: Lacking, separator: str | None = None
) -> Dataset:
    """Return questions with what a run retrieved for them, whatever the order of either.

    Args:
        golden: Questions with their ground truth.
        run: Queries with what was retrieved for them.
        missing: What happens to questions that the run lacks.
        separator: What parted the cells, if anything did.

    Raises:
        DatasetError: As :func:`joined` does, or if documents have no ids to compare.

    Warns:
        KragEvalWarning: If the run has other queries, or lacks some.

    >>> golden = Dataset(["When?", "Where?"], [["nine"], ["here"]], questions=["When?", "Where?"])
    >>> run = Dataset(["Where? ", "When?"], [[], []], [["there"], ["nine"]])
    >>> with_run(golden, run, "error").predicted
    [['nine'], ['there']]
    """
    refuse_truth(
        {name: _place(run, next((at for at, one in enumerate(found) if one), 0))
         for name in LISTED.values() if (found := getattr(run, name)) is not None},
        golden.source,
    )  # fmt: skip
    lists = run.predicted or []
    ours = _OfDataset(golden, [[*single(one)] for one in golden.actual])
    theirs = _OfDataset(run, lists)
    told, found = joined(ours, theirs, missing, lambda one, other: lists[one] == lists[other])
    kept = np.flatnonzero(found >= (0 if missing == "skip" else -1))
    places = [None if at < 0 else at for at in found[kept].tolist()]

    def of_run(values: Any) -> list[Any]:
        return [None if at is None else values[at] for at in places]

    made, predicted = golden.chosen(kept.tolist()), [one or [] for one in of_run(lists)]
    places_of_truth = (_place(golden, at) for at in kept.tolist())
    check_ids_alone(zip(made.actual, predicted, places_of_truth, strict=True), separator)
    tags = {name: of_run(values) for name, values in run.tags.items() if name not in golden.tags}
    failures = _failures_in(run, places)
    notes = joined_notes(golden, run, told, cites=golden.cited is not None)
    return replace(
        made,
        predicted=predicted,
        run=[None if at is None else _place(run, at) for at in places],
        cited=None if run.cited is None else of_run(run.cited),
        tags={**made.tags, **tags},
        defaults=joined_defaults(ours, theirs),
        notes=[*notes, *told_errors(len(failures), len(places))],
        failures=failures,
        missing=missing_in(found, missing),
    )


def missing_in(found: NDArray[np.int64], missing: Lacking) -> MissingQuestions | None:
    """Return which questions the run lacks, by their places in it."""
    return MissingQuestions.of(int((found < 0).sum()), len(found), missing)


def _failures_in(run: Dataset, places: Sequence[int | None]) -> list[Failure]:
    """Return the failures of a run at the places of the questions that they are of."""
    failures = {failure.position: failure for failure in run.failures}
    return [
        failures[at]._replace(position=position)
        for position, at in enumerate(places)
        if at is not None and at in failures
    ]


def _place(dataset: Dataset, at: int) -> Place:
    return (
        Place(dataset.source, dataset.lines[at]) if dataset.lines else Place(dataset.source, row=at)
    )


def joined_notes(golden: Dataset, run: Dataset, told: str, *, cites: bool) -> list[str]:
    """Say how both files were understood, and what joined; whether the ground truth cites."""
    from krag_eval.loading.vocabularies import N_SAID

    joining = [told]
    if run.actual and any(run.actual):
        joining.append(own_truth_note(run.source, ["actual"]))
    elif run.vocabulary:
        joining += filter(None, run.notes[:1])
    if golden.predicted is not None:
        joining.append(_("these replace the retrieved documents that the questions had"))
    if cites:
        joining.append(_("what the questions say was cited is not used: that is the run's to say"))
    if shared := [name for name in run.tags if name in golden.tags and name not in ID_TAGS]:
        joining.append(
            _("tags that both files have are those of the ground truth: {names}").format(
                names=listed(shared)
            )
        )
    if any(isinstance(note, NoteOnSettings) for note in run.notes):
        message = _("how {run} asks to be evaluated is not used: that is the ground truth's to say")
        joining.append(message.format(run=run.source))
    joining += [note for note in run.notes if isinstance(note, OfRun)]
    said = [note for note in golden.notes if not isinstance(note, OfRun)]
    if golden.vocabulary and run.vocabulary:
        said[1:2] = run.notes[1:2]
    # Rows that failed are told for both files together.
    failed = told_errors(len(run.failures or ()), run.n_queries)
    of_run = [note for note in run.notes[N_SAID:]
              if run.vocabulary and note not in failed
              and not isinstance(note, OfRun | NoteOnSettings)]  # fmt: skip
    return [*said[:N_SAID], *joining, *said[N_SAID:], *of_run]

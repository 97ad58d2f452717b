"""Two files: questions with their ground truth, and a run, what was retrieved for them."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from krag_eval._language import N_, _
from krag_eval.datasets.dataset import Dataset, check_overlap, is_bare
from krag_eval.datasets.table import listed
from krag_eval.documents import ID_TAGS, Tag, id_of, single
from krag_eval.errors import Advice, Place, clipped

#: What happens to questions of the ground truth that a run lacks.
Lacking: TypeAlias = Literal["error", "zero", "skip"]


class _Keys(NamedTuple):
    """What joins two files: what it is, and one value per query of either."""

    told: str
    golden: Sequence[str]
    run: Sequence[str]


def with_run(golden: Dataset, run: Dataset, missing: Lacking) -> Dataset:
    """Return questions with what a run retrieved for them, whatever the order of either.

    They are joined by their ids where all queries of both have one, and by their questions
    otherwise.

    Args:
        golden: Questions with their ground truth.
        run: Queries with what was retrieved for them.
        missing: What happens to questions that the run lacks.

    Raises:
        DatasetError: If nothing joins, an id is there twice, a question has two lists, the run
            lacks a question and ``missing`` is ``"error"``, or documents have no ids to compare.

    Warns:
        KragEvalWarning: If the run has other queries, or lacks some.

    >>> golden = Dataset(["When?", "Where?"], [["nine"], ["here"]], questions=["When?", "Where?"])
    >>> run = Dataset(["Where? ", "When?"], [[], []], [["there"], ["nine"]])
    >>> with_run(golden, run, "error").predicted
    [['nine'], ['there']]
    """
    for name in ("judged", "unwanted"):
        if getattr(run, name) is not None:
            problem = f"holds {name!r} documents, which belong to the ground truth"
            raise Place(run.source).error(problem, f"put them into {golden.source}")
    keys = _keys(golden, run)
    rows = _rows(keys.run, run, is_id=keys.told == _BY_ID)
    if keys.told == _BY_ID:
        _rows(keys.golden, golden, is_id=True)
    check_overlap(
        dict.fromkeys(keys.golden),
        rows,
        expected_name=golden.source,
        given_name=run.source,
        absent=None if missing == "error" else missing,
    )
    lacking = [at for at, key in enumerate(keys.golden) if key not in rows]
    if lacking and missing == "error":
        raise Place(run.source).error(
            f"lacks {len(lacking)} of the {golden.n_queries} queries of {golden.source} (the first "
            f"is {clipped(keys.golden[lacking[0]])})",
            Advice(
                "{} counts them as nothing retrieved, {} leaves them out",
                ("missing", "zero"),
                ("missing", "skip"),
            ),
        )
    kept = [at for at, key in enumerate(keys.golden) if missing != "skip" or key in rows]
    found = [rows.get(keys.golden[at]) for at in kept]
    made = golden.chosen(kept)
    lists = run.predicted or []
    return replace(
        made,
        predicted=[[] if at is None else lists[at] for at in found],
        run=[None if at is None else _place(run, at) for at in found],
        cited=None
        if run.cited is None
        else [None if at is None else run.cited[at] for at in found],
        tags={**made.tags, **_tags(run, found, made)},
        defaults=_defaults(golden, run),
        notes=_notes(golden, run, keys, len(kept) - found.count(None)),
    )


_BY_ID = N_("{n} of {queries} queries joined by their ids with {run}")
_BY_QUESTION = N_("{n} of {queries} queries joined by their questions with {run}")


def _keys(golden: Dataset, run: Dataset) -> _Keys:
    """Tell what joins two files; what a run calls its queries may be their ids."""
    ids, theirs = golden.ids, run.ids
    if ids is not None and theirs is not None:
        _check_questions(golden, run, dict(zip(ids, range(len(ids)), strict=True)), theirs)
        return _Keys(_BY_ID, ids, theirs)
    # A dict of lists, or of scores, may call them by their ids.
    labels = [one for one in run.queries if isinstance(one, str)]
    if ids is not None and len(labels) == run.n_queries:
        known = {_folded(one) for one in golden.questions or golden.queries}
        if len({*ids}.intersection(labels)) > len(known.intersection(map(_folded, labels))):
            return _Keys(_BY_ID, ids, labels)
    return _Keys(_BY_QUESTION, _questions(golden), _questions(run))


def _check_questions(
    golden: Dataset, run: Dataset, place_of: Mapping[str, int], ids: Sequence[str]
) -> None:
    """Refuse ids that name other questions here and there, as numbers of rows do."""
    if golden.questions is None or run.questions is None:
        return
    asked = [*map(_folded, golden.questions)]
    known = {*asked}
    for at, (one, question) in enumerate(zip(ids, map(_folded, run.questions), strict=True)):
        if one in place_of and question != asked[place_of[one]] and question in known:
            raise _place(run, at).error(
                f"the id {clipped(one)} is that of another question in {golden.source}, "
                f"{clipped(asked[place_of[one]])}",
                "give a question the same id in both files, or leave the ids of one out",
            )


def _folded(question: object) -> str:
    return unicodedata.normalize("NFC", " ".join(str(question).split()))


def _questions(dataset: Dataset) -> list[str]:
    """Return the questions in NFC, their white space folded.

    Raises:
        DatasetError: If queries have neither ids nor questions.
    """
    named = dataset.questions or dataset.queries
    for at, one in enumerate(named):
        if isinstance(one, int) and one == at:
            raise _place(dataset, at).error(
                "the query has neither an id nor a question, which joins a run to its ground truth",
                Advice("give each row an \"id\", or name the column with the question by {}",
                       question=...),
            )  # fmt: skip
    return [*map(_folded, named)]


def _rows(keys: Sequence[str], dataset: Dataset, *, is_id: bool) -> dict[str, int]:
    """Return where the query of each key is; a question repeated word for word counts once."""
    rows: dict[str, int] = {}
    lists = dataset.predicted or []
    for at, key in enumerate(keys):
        first = rows.setdefault(key, at)
        if first != at and (is_id or lists[first] != lists[at]):
            problem = f"{clipped(key)} is given a second time (first at {_place(dataset, first)})"
            raise _place(dataset, at).error(problem, "give each query once, by an id of its own")
    return rows


def _place(dataset: Dataset, at: int) -> Place:
    return (
        Place(dataset.source, dataset.lines[at]) if dataset.lines else Place(dataset.source, row=at)
    )


def _tags(run: Dataset, found: Sequence[int | None], golden: Dataset) -> dict[str, list[Tag]]:
    """Return what a run says of its queries beside the documents, such as how long they took."""
    return {
        name: [None if at is None else values[at] for at in found]
        for name, values in run.tags.items()
        if name not in golden.tags
    }


def _defaults(golden: Dataset, run: Dataset) -> Mapping[str, Any]:
    """Compare by ids where one side has nothing else, or had, and both have them.

    Raises:
        DatasetError: If the other side has no ids.
    """
    sides = {
        golden.source: (golden, [*chain.from_iterable(map(single, golden.actual))]),
        run.source: (run, [*chain.from_iterable(run.predicted or ())]),
    }
    bare = [name for name, (one, _) in sides.items() if one.defaults.get("matcher") == "id"]
    if not bare:
        return golden.defaults
    for name, (_one, documents) in sides.items():
        if name not in bare and any(isinstance(x, str) or id_of(x) is None for x in documents):
            if not all(map(is_bare, sides[bare[0]][1])):  # an index has given them texts
                return {key: one for key, one in golden.defaults.items() if key != "matcher"}
            raise Place(name).error(
                f"holds texts without ids, and {bare[0]} ids alone, so that they cannot be "
                "compared",
                'write documents as {"id": …, "page_content": …}',
            )
    return {**golden.defaults, "matcher": "id"}


def _notes(golden: Dataset, run: Dataset, keys: _Keys, n_joined: int) -> list[str]:
    """Say how both files were understood, and what joined."""
    from krag_eval.datasets.vocabularies import N_SAID

    told = [_(keys.told).format(n=n_joined, queries=golden.n_queries, run=run.source)]
    if golden.predicted is not None:
        told.append(_("these replace the retrieved documents that the questions had"))
    if shared := [name for name in run.tags if name in golden.tags and name not in ID_TAGS]:
        told.append(
            _("tags that both files have are those of the ground truth: {names}").format(
                names=listed(shared)
            )
        )
    said = [*golden.notes]
    if golden.vocabulary and run.vocabulary:
        said[1:2] = run.notes[1:2]
    return said[:N_SAID] + told + said[N_SAID:]

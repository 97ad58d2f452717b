"""The ids of other tools: labels of queries that have them, and how far two files share them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

from krag_eval.core import _, id_of, single, warn
from krag_eval.loading.dataset import Absent, Dataset, Overlap, tell_overlap


def labels_of(questions: Sequence[str], ids: Sequence[str], name: str) -> list[str | int]:
    """Label queries by their questions; by their ids, with a warning, if two ask the same.

    >>> labels_of(["When?", "Where?"], ["q1", "q2"], "queries.jsonl")
    ['When?', 'Where?']
    """
    if len(set(questions)) == len(questions):
        return list(questions)
    told = _(
        "{name}: {n} queries have {different} different texts, so all are labelled by their ids."
    )
    warn(told.format(name=name, n=len(questions), different=len(set(questions))))
    return list(ids)


def check_overlap(
    expected: Collection[str],
    given: Collection[str],
    *,
    expected_name: str,
    given_name: str,
    absent: Absent = "zero",
) -> None:
    """Warn of queries that only one side knows.

    Args:
        expected: The queries to evaluate.
        given: Those something was retrieved for.
        expected_name: Where the former are.
        given_name: Where the latter are.
        absent: What happens to those of the former that the latter lack, for the warning; no
            warning if ``None``.

    Raises:
        DatasetError: If they have none in common.
    """
    known, retrieved = frozenset(expected), frozenset(given)
    lacking = [query for query in expected if query not in retrieved]
    extra = [query for query in given if query not in known]
    some = ((len(one), next(iter(one), "")) for one in (expected, given, lacking, extra))
    tell_overlap(Overlap(*some), expected_name, given_name, absent)


def ids_in(dataset: Dataset) -> set[str]:
    """Return the ids of all documents, of the ground truth and retrieved.

    >>> from krag_eval.core import AnyOf
    >>> sorted(ids_in(Dataset(["q"], [[AnyOf(["a", "b"])]], [["a", "c"]])))
    ['a', 'b', 'c']
    """
    lists = chain(map(single, dataset.actual), dataset.predicted or ())
    return {identity for document in chain.from_iterable(lists) if (identity := id_of(document))}

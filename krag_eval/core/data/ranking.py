"""The order of retrieved documents where they tell it themselves, by ranks or by scores.

And the grades of ground truth where its records tell those. One rule for every file, read whole or
in chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

from krag_eval.core.documents import (
    DocumentLike,
    Location,
    is_missing,
    metadata_of,
    plain,
    score_of,
)
from krag_eval.core.errors import clipped
from krag_eval.core.language import _, ngettext

#: The field of a record, and the column of a table, with the rank of a document.
RANK = "rank"
_DISTANCE = "distance"
#: Fields of a ground-truth record that hold its grade where one of them is 0 somewhere.
GRADES = ("relevance", "grade", "label", "score")


def in_rank_order(values: Sequence[Any], at: Location) -> list[int] | None:
    """Return the positions of records in the order of their ranks; ``None`` if they have none.

    Raises:
        InvalidInput: If some have no rank, or the ranks are not all from 1, or from 0, each once.

    >>> in_rank_order([{"id": "b", "rank": 2}, {"id": "a", "rank": 1}], Location("predicted"))
    [1, 0]
    """
    ranks = [value.get(RANK) if isinstance(value, Mapping) else None for value in values]
    return order_of_ranks(ranks, at)


def order_of_ranks(ranks: Sequence[Any], at: Location) -> list[int] | None:
    """Return the positions of ranks in their order; ``None`` if there are none."""
    if all(rank is None or rank == "" or is_missing(rank) for rank in ranks):
        return None
    numbers = [_whole(rank) for rank in ranks]
    order = sorted(range(len(ranks)), key=lambda place: numbers[place] or 0)
    in_order = [numbers[place] for place in order]
    if in_order not in ([*range(1, len(ranks) + 1)], [*range(len(ranks))]):
        problem = f": the ranks of {len(ranks)} documents must be 1 to {len(ranks)}, each once, got"
        fix = "number the documents of each query anew, or leave the ranks out"
        raise at.error(f"{problem} {clipped(ranks)}", fix)
    return order


def _whole(rank: Any) -> int | None:
    """Return a rank as a number, which a table may hold as text or as 1.0."""
    if isinstance(rank, str):
        return int(rank) if rank.strip().isdecimal() else None
    rank = plain(rank)
    if isinstance(rank, float):
        return int(rank) if rank.is_integer() else None
    return rank if isinstance(rank, int) and not isinstance(rank, bool) else None


def scores_of(documents: Sequence[DocumentLike], at: Location) -> list[float] | None:
    """Return what tells the order of documents, the higher the better; ``None`` if not all have it.

    That is their score, or else the distance that they have in their metadata, negated.

    >>> scores_of([{"page_content": "a", "metadata": {"distance": 0.5}}], Location("predicted"))
    [-0.5]
    """
    scores: list[float] = []
    for place, document in enumerate(documents):
        score = None if isinstance(document, str) else score_of(document, at.inside(f"[{place}]"))
        if score is None and not isinstance(document, str):
            distance = metadata_of(document).get(_DISTANCE)
            if isinstance(distance, int | float) and math.isfinite(distance):
                score = -float(distance)
        if score is None:
            return None
        scores.append(score)
    return scores


class ScoreOrder:
    """Puts lists of scored documents into order: the highest score first.

    Look at the scores of every list first. Where they rise along every list that tells, they are
    distances, and every list stays as it is.

    >>> order = ScoreOrder()
    >>> for scores in ([3.0, 2.0], [0.1, 0.7, 0.5]):
    ...     order.look_at(scores)
    >>> order.sorted([0.1, 0.7, 0.5]), order.sorted([3.0, 2.0])
    ([1, 2, 0], None)
    """

    def __init__(self) -> None:
        self._n_falling = self._n_rising = self._n_mixed = 0

    def look_at(self, scores: Sequence[float]) -> None:
        """Count a list by how its scores run."""
        is_falling, is_rising = _runs(scores)
        if is_falling is not is_rising:
            self._n_falling += is_falling
            self._n_rising += is_rising
        elif not is_falling:
            self._n_mixed += 1

    @property
    def are_distances(self) -> bool:
        """Whether the lists are in the order of scores that rise."""
        return self._n_rising > 0 and not self._n_falling and not self._n_mixed

    def sorted(self, scores: Sequence[float]) -> list[int] | None:
        """Return the positions of a list in the order of its scores; ``None`` if it is in order."""
        if self.are_distances or _runs(scores)[0]:
            return None
        return sorted(range(len(scores)), key=lambda place: -scores[place])

    def notes(self) -> list[str]:
        """Say what was made of the scores, if that is anything."""
        if self.are_distances:
            return [_("scores rise with the rank, and are read as distances: the order stays")]
        if n := self._n_rising + self._n_mixed:
            return [
                ngettext(
                    "the retrieved documents of {n} query were not in the order of their scores, "
                    "and are put into it, the highest first",
                    "the retrieved documents of {n} queries were not in the order of their scores, "
                    "and are put into it, the highest first",
                    n,
                ).format(n=n)
            ]
        return []


def _runs(scores: Sequence[float]) -> tuple[bool, bool]:
    """Tell whether scores never rise, and whether they never fall."""
    pairs = [*pairwise(scores)]
    return all(a >= b for a, b in pairs), all(a <= b for a, b in pairs)


def note_on_ranks(n: int) -> list[str]:
    """Say of how many queries the documents were put into the order of their ranks, if of any."""
    if not n:
        return []
    told = ngettext(
        "the retrieved documents of {n} query are put into the order of their ranks",
        "the retrieved documents of {n} queries are put into the order of their ranks",
        n,
    )
    return [told.format(n=n)]


def zero_grades(values: Sequence[Any]) -> frozenset[str]:
    """Return the fields of ground-truth records that hold a grade of 0, or one below, somewhere.

    >>> sorted(zero_grades([{"id": "a", "relevance": 2}, {"id": "b", "relevance": 0}]))
    ['relevance']
    """
    records = [record for value in values for record in _alternatives(value)]
    return frozenset(
        name for name in GRADES for record in records if _is_zero(plain(record.get(name)))
    )


def _alternatives(value: Any) -> list[Mapping[str, Any]]:
    several = value.get("any_of") if isinstance(value, Mapping) else None
    held = several if isinstance(several, list | tuple) else [value]
    return [record for record in held if isinstance(record, Mapping)]


def _is_zero(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value <= 0


def grade_of(zeros: Iterable[frozenset[str]]) -> str | None:
    """Return the field that holds the grades, the first of those with a 0; ``None`` without one."""
    fields = frozenset[str]().union(*zeros)
    return next((name for name in GRADES if name in fields), None)


def note_on_grades(name: str) -> str:
    """Say that a field is read as the grade of the ground truth."""
    told = _(
        "{name} of the ground truth is 0 somewhere, and is read as its grade: what has 0 or less "
        'was judged, and is no ground truth (grade_key="no", --grade-key no, takes every record '
        "for ground truth)"
    )
    return told.format(name=name)


class RowOrder:
    """The order of the rows of a question, by the columns ``rank``, ``score`` or ``distance``.

    Args:
        rows: The fields of each row.
        names: The columns there are.
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
        self._rows, self._scores = rows, ScoreOrder()
        self.column = next((one for one in (RANK, "score", _DISTANCE) if one in names), None)
        self.n_by_rank = 0

    def look_at(self, places: Sequence[int]) -> None:
        """Look at the rows of a question."""
        if (scores := self._scores_at(places)) is not None:
            self._scores.look_at(scores)

    def sorted(self, places: Sequence[int], at: Location) -> list[int]:
        """Return the places of the rows of a question, in order."""
        order = None
        if self.column == RANK:
            order = order_of_ranks([self._rows[place].get(RANK) for place in places], at)
            self.n_by_rank += order is not None and order != [*range(len(places))]
        elif (scores := self._scores_at(places)) is not None:
            order = self._scores.sorted(scores)
        return [*places] if order is None else [places[place] for place in order]

    def _scores_at(self, places: Sequence[int]) -> list[float] | None:
        """Return what tells the order of rows, the higher the better; ``None`` if it does not."""
        if self.column in (None, RANK):
            return None
        try:
            scores = [float(self._rows[place][str(self.column)]) for place in places]
        except (KeyError, TypeError, ValueError):
            return None
        if not all(map(math.isfinite, scores)):
            return None
        return [-score for score in scores] if self.column == _DISTANCE else scores

    def notes(self) -> list[str]:
        """Say what was made of the columns, if that is anything."""
        return note_on_ranks(self.n_by_rank) + self._scores.notes()

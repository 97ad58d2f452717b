"""The order of retrieved documents, where a rank or a score stands beside them.

Beside a document is a field of its record, or the score of a pair with it. What its metadata hold
describes the document: pipelines leave the ranks and scores of earlier stages there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeVar

from krag_eval.core.errors import Fix, Refusal
from krag_eval.core.language import _

#: The fields of a record that hold the rank and the score of its document.
RANK = "rank"
SCORES = ("score", "relevance_score")
#: The field that holds how far a document is from its query: the smaller, the better.
DISTANCE = "distance"

#: Returns the refusal of a list, by the problem and what to do.
Refuse = Callable[[str, Fix], Refusal]
_Document = TypeVar("_Document")


class Standing(NamedTuple):
    """What stands beside the documents of one list, in the order of their ranks if they have some.

    Attributes:
        scores: Their scores; ``None`` unless each has one.
        first_rank: The rank of the first, 0 or 1; ``None`` without ranks.
        is_moved: Whether the ranks put them into another order.
    """

    scores: tuple[float, ...] | None = None
    first_rank: int | None = None
    is_moved: bool = False

    @property
    def trend(self) -> Literal["falling", "rising", "mixed", ""]:
        """Whether scores fall or rise with the rank; an empty text if they do neither.

        >>> Standing((0.9, 0.5, 0.5)).trend, Standing((0.1, 0.2)).trend
        ('falling', 'rising')
        >>> Standing((0.1, 0.9, 0.5)).trend, Standing((0.5, 0.5)).trend
        ('mixed', '')
        """
        rises = any(after > before for before, after in pairwise(self.scores or ()))
        falls = any(after < before for before, after in pairwise(self.scores or ()))
        if rises:
            return "mixed" if falls else "rising"
        return "falling" if falls else ""

    @property
    def is_sorted(self) -> bool:
        """Whether the list is in order, whatever other lists hold.

        It is if scores fall: where they fall in any list, higher is better.
        """
        return self.first_rank is not None or self.trend in ("falling", "")

    @classmethod
    def of(
        cls, places: Sequence[tuple[Any, Any]], refuse: Refuse
    ) -> tuple[Standing | None, list[int]]:
        """Return what stands beside the documents of a list, and their order by rank.

        Args:
            places: The rank and the score of each document.
            refuse: Makes the refusal.

        Raises:
            Refusal: If some have a rank, and these are not the whole numbers from 0 or 1 on.

        >>> Standing.of([(2, 0.5), (1, 0.7)], ValueError)
        (Standing(scores=(0.7, 0.5), first_rank=1, is_moved=True), [1, 0])
        """
        ranks, scores = ([place[at] for place in places] for at in (0, 1))
        order, first = [*range(len(places))], None
        if any(rank is not None for rank in ranks):
            known = [int(rank) if _is_whole(rank) else -1 for rank in ranks]
            first = 0 if 0 in known else 1
            if sorted(known) != [*range(first, first + len(known))]:
                problem = (
                    f": ranks must be the whole numbers from 0 or 1 on, each once, got {ranks!r}"
                )
                fix = "number the documents anew, or leave ranks out where the order is right"
                raise refuse(problem[:400], fix)
            order.sort(key=known.__getitem__)
        numbers = tuple(float(scores[at]) for at in order if _is_number(scores[at]))
        complete = numbers if len(numbers) == len(places) else None
        if first is None and not complete:
            return None, order
        return cls(complete, first, order != [*range(len(order))]), order


def beside(value: Any) -> tuple[Any, Any]:
    """Return the rank and the score that stand beside a document, ``None`` where there is none.

    Of two scores, as a reranker leaves them, neither tells the order. A distance counts as its
    negative, so that the nearest is best.

    >>> beside({"id": "a", "rank": 2, "score": 0.5}), beside(("a", 0.5)), beside("a")
    ((2, 0.5), (None, 0.5), (None, None))
    >>> beside({"id": "a", "distance": 0.25})
    (None, -0.25)
    """
    if isinstance(value, Mapping):
        scores = [value[name] for name in SCORES if value.get(name) is not None]
        distance: Any = value.get(DISTANCE)
        if not scores and _is_number(distance):
            scores = [-distance]
        return value.get(RANK), scores[0] if len(scores) == 1 else None
    if isinstance(value, list | tuple):
        return None, value[1] if len(value) == 2 else None
    return None, getattr(value, "score", None)


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return value.strip().isdecimal()
    is_integral = isinstance(value, float) and value.is_integer()
    return is_integral or (isinstance(value, Integral) and not isinstance(value, bool))


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


# Where so many times as many lists rise as fall, it is not clear which of them are wrong.
_UNCLEAR = 4


@dataclass
class Ordering:
    """What ranks and scores say of the order of all lists of a source.

    Attributes:
        lists: How many lists hold documents.
        moved: How many were put into the order of their ranks.
        falling: In how many scores fall with the rank.
        rising: In how many they rise.
        unsorted: How many have no ranks, and scores that rise and fall.
        rising_alone: How many of the rising ones have no ranks.
        first_rank: The rank of the first document, where there are ranks.
    """

    lists: int = 0
    moved: int = 0
    falling: int = 0
    rising: int = 0
    unsorted: int = 0
    rising_alone: int = 0
    first_rank: int | None = None

    def add(self, n_documents: int, standing: Standing | None, refuse: Refuse) -> None:
        """Take one more list.

        Raises:
            Refusal: If its ranks begin at another number than those of the lists before.
        """
        self.lists += n_documents > 0
        if standing is None:
            return
        first = standing.first_rank
        if first is not None:
            self.first_rank = first if self.first_rank is None else self.first_rank
            if first != self.first_rank:
                problem = f": ranks begin at {first}, and in the lists before at {self.first_rank}"
                raise refuse(problem, "number the documents of all lists alike, without gaps")
        self.moved += standing.is_moved
        way = standing.trend
        self.falling += way == "falling"
        self.rising += way == "rising"
        self.rising_alone += way == "rising" and first is None
        self.unsorted += way == "mixed" and first is None

    @property
    def lower_is_better(self) -> bool:
        """Whether scores are distances: they rise with the rank, and fall in no list."""
        return self.rising > 0 and self.falling == 0

    def check(self, refuse: Refuse) -> None:
        """Refuse scores that rise in most lists and fall in others.

        Raises:
            Refusal: In this case.
        """
        if self.rising >= _UNCLEAR * self.falling > 0:
            problem = (
                f": scores rise with the rank in {self.rising} lists and fall in {self.falling}, "
                "so that it is not clear which are better"
            )
            raise refuse(problem, 'give each document its "rank", or leave the scores out')

    def sorted(
        self, documents: Sequence[_Document], standing: Standing | None
    ) -> Sequence[_Document]:
        """Return the documents of a list in the order of their scores, the best first."""
        if standing is None or standing.scores is None or standing.is_sorted:
            return documents
        sign = 1 if self.lower_is_better else -1
        keys = [sign * score for score in standing.scores]
        return [documents[at] for at in sorted(range(len(keys)), key=keys.__getitem__)]

    def notes(self) -> list[str]:
        """Say what was put into another order, and which scores are better, if that is the case."""
        by_score = self.unsorted + (0 if self.lower_is_better else self.rising_alone)
        by_rank = _("{n} of {lists} lists of retrieved documents put into the order of their ranks")
        scored = _(
            "{n} of {lists} lists of retrieved documents put into the order of their scores, the "
            "best first"
        )
        notes = [text.format(n=n, lists=self.lists)
                 for n, text in ((self.moved, by_rank), (by_score, scored)) if n]  # fmt: skip
        if self.lower_is_better:
            notes.append(_("scores rise with the rank: they are distances, and lower is better"))
        return notes

    @classmethod
    def applied(
        cls,
        lists: Sequence[tuple[Sequence[_Document], Standing | None]],
        refuse: Refuse,
        refuse_list: Callable[[int], Refuse],
    ) -> tuple[list[Sequence[_Document]], list[str]]:
        """Return all lists of a source in order, and what is to be said of it.

        Args:
            lists: The documents of each, in the order of their ranks, and what stands beside them.
            refuse: Makes the refusal of the source.
            refuse_list: Makes that of one list, by its position.
        """
        ordering = cls()
        for at, (documents, standing) in enumerate(lists):
            ordering.add(len(documents), standing, refuse_list(at))
        ordering.check(refuse)
        return [ordering.sorted(*each) for each in lists], ordering.notes()

"""Grades in records of ground truth that nobody named: which field holds them, if any does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from krag_eval.core.documents import Item, Record, grade_in, metadata_of, single
from krag_eval.core.language import _

#: The fields of a record that may hold its grade, the surest first.
GRADES = ("relevance", "grade", "label", "score")
# Those that say the same in the metadata of a document, where a label or a score may be anything.
_IN_METADATA = GRADES[:2]
# Those that hold grades only if they are whole numbers.
_WHOLE = GRADES[2:]


@dataclass
class Counts:
    """What documents hold under the name of one field."""

    grades: int = 0
    others: int = 0
    zero: int = 0
    below: int = 0

    def add(self, value: Any, *, whole: bool) -> None:
        """Take one more value."""
        grade = grade_in(value)
        if grade is None or (whole and not grade.is_integer()):
            self.others += 1
            return
        self.grades += 1
        self.zero += grade == 0
        self.below += grade < 0


@dataclass
class Grading:
    """What the ground truth of all queries holds under the names of grades.

    >>> from krag_eval.core.documents import Location, item_in
    >>> grading = Grading()
    >>> grading.add(item_in({"id": name, "relevance": grade}, Location("actual"))
    ...             for name, grade in (("a", 2), ("b", 0)))
    >>> grading.key
    'relevance'
    """

    #: The names of grades, the surest first.
    NAMES: ClassVar = GRADES

    documents: int = 0
    counts: dict[str, Counts] = field(default_factory=dict)

    def add(self, items: Iterable[Item]) -> None:
        """Take the ground truth of one more query."""
        for document in single(items):
            self.documents += 1
            metadata = metadata_of(document)
            for name in GRADES if isinstance(document, Record) else _IN_METADATA:
                if metadata and (value := metadata.get(name)) is not None:
                    self.counts.setdefault(name, Counts()).add(value, whole=name in _WHOLE)

    @property
    def key(self) -> str | None:
        """The field that holds grades: the surest that holds numbers, if some are 0 or less."""
        held = ((name, self.counts.get(name, Counts())) for name in GRADES)
        for name, counts in held:
            if counts.grades and not counts.others:
                return name if counts.zero + counts.below else None
        return None

    def notes(self, key: str | None) -> list[str]:
        """Say which field is read as a grade, and of how many documents that is 0 or less."""
        if key is None:
            return []
        counts = self.counts[key]
        message = _(
            "{key} of the ground truth read as its grade: {n} of {documents} documents have 0 or "
            "less, and are no ground truth"
        )
        n = counts.zero + counts.below
        return [message.format(key=key, n=n, documents=self.documents)]

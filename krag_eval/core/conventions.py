"""The disputed points: what frameworks compute differently under one name, each with a name here.

Also the presets that reproduce other tools, and the choices of averages and hits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_type_hints

from krag_eval.core.errors import InvalidInput, InvalidType, clipped, must, one_of, unknown

if TYPE_CHECKING:
    import pandas as pd


class AveragingMethod(StrEnum):
    """Which averages over queries a ``calculate_*`` method returns."""

    #: Sums of counts over sums of counts: every ground-truth item weighs the same.
    MICRO = "micro"
    #: Means over queries: every query weighs the same.
    MACRO = "macro"
    #: The two side by side.
    BOTH = "both"


class MatchingCriteria(StrEnum):
    """When a query counts as a hit: all of its ground-truth items covered, or any."""

    #: All of its ground-truth items are covered.
    ALL = "all"
    #: At least one of them is.
    PARTIAL = "partial"


@dataclass(frozen=True)
class Conventions:
    """The eight points on which frameworks disagree; the defaults are krag_eval's own.

    Every score stays in [0, 1] unless ``credit="every"``.

    Attributes:
        precision_at: Precision divides by the documents retrieved within the cutoff, min(k, m)
            (``"retrieved"``), or always by k (``"k"``: trec_eval, ranx); so do ``judged`` and
            ``precision_upper``.
        macro_f1: Harmonic mean of macro precision and macro recall (``"of_means"``), or mean of
            the queries' F1 (``"mean_of_f1"``: trec_eval, AutoRAG).
        gain: Gain of grade r in DCG: 2**r - 1 (``"exponential"``) or r (``"linear"``: trec_eval).
        graded_by: A covered item gains by its grade (``"grade"``) or by its similarity at its
            first rank (``"similarity"``), and counts as 1 in the ideal. Where documents gain, under
            other ideals and ``credit="every"``, it is their best similarity (krag with ROUGE).
        ideal: The best possible list holds all ground truth (``"ground_truth"``), only what was
            retrieved, sorted (``"retrieved"``: early krag), or every alternative of every item
            (``"alternatives"``: AutoRAG).
        credit: An item is credited at its first rank (``"once"``), or every matching document
            counts and scores can pass 1 (``"every"``: krag).
        reciprocal_rank: 1 / first relevant rank (``"first"``), or the mean over items of 1 / first
            rank (``"per_item"``: AutoRAG).
        average_precision: Precision at the first rank of each item, over the number of items
            (``"ground_truth"``), or the mean over items of the mean precision at that item's own
            hits (``"per_item"``: AutoRAG).

    Raises:
        InvalidInput: For a value that is not allowed, listing those that are.
        InvalidType: For a value that is not text.

    >>> Conventions(gain="linear")
    Conventions(gain='linear')
    >>> Conventions.parse("gain=linear") == Conventions(gain="linear")
    True
    >>> print(Conventions())
    default
    """

    precision_at: Literal["retrieved", "k"] = "retrieved"
    macro_f1: Literal["of_means", "mean_of_f1"] = "of_means"
    gain: Literal["exponential", "linear"] = "exponential"
    graded_by: Literal["grade", "similarity"] = "grade"
    ideal: Literal["ground_truth", "retrieved", "alternatives"] = "ground_truth"
    credit: Literal["once", "every"] = "once"
    reciprocal_rank: Literal["first", "per_item"] = "first"
    average_precision: Literal["ground_truth", "per_item"] = "ground_truth"

    def __post_init__(self) -> None:
        for name, allowed in _allowed().items():
            one_of(name, getattr(self, name), allowed)

    @classmethod
    def allowed(cls) -> dict[str, tuple[str, ...]]:
        """Return the allowed values of every field, the default first."""
        return dict(_allowed())

    @classmethod
    def trec(cls) -> Conventions:
        """Return the conventions of trec_eval (precision over k, linear gain, mean of F1).

        trec_eval's ``success_k`` is the hit rate with ``matching_criteria="partial"``, and its
        averages count queries without relevant documents as 0 (``no_ground_truth="zero"``).
        """
        return cls(precision_at="k", macro_f1="mean_of_f1", gain="linear")

    @classmethod
    def krag(cls) -> Conventions:
        """Return krag's nDCG as documented, with credit given once so that nothing passes 1.

        Add ``credit="every"`` to reproduce krag to the letter.
        """
        return cls(ideal="retrieved")

    @classmethod
    def autorag(cls) -> Conventions:
        """Return the conventions of AutoRAG's retrieval metrics."""
        return cls(
            macro_f1="mean_of_f1",
            ideal="alternatives",
            credit="every",
            reciprocal_rank="per_item",
            average_precision="per_item",
        )

    @classmethod
    def presets(cls) -> dict[str, Conventions]:
        """Return all presets by name."""
        return {
            "default": cls(),
            "trec": cls.trec(),
            "krag": cls.krag(),
            "autorag": cls.autorag(),
        }

    @classmethod
    def parse(cls, text: str) -> Conventions:
        """Read conventions back from their printed form, or from the name of a preset.

        Raises:
            InvalidInput: If the text is neither; the message says what was expected.
            InvalidType: If it is not text.

        >>> Conventions.parse("trec").gain
        'linear'
        """
        if not isinstance(text, str):
            raise InvalidType("conventions", f"must be text to be parsed, got {clipped(text)}")
        presets = cls.presets()
        if text in presets:
            return presets[text]
        values: dict[str, Any] = {}
        for part in text.split(","):
            name, equals, value = part.strip().partition("=")
            if not equals:
                raise unknown("conventions", text, (*presets, "field=value,field=value"))
            if name not in cls.allowed():
                raise unknown("conventions", name, tuple(cls.allowed()), "a field")
            if name in values:
                problem = f": the field {name!r} is given twice in {clipped(text)}"
                raise InvalidInput("conventions", problem)
            values[name] = value
        return cls(**values)

    def changed(self) -> dict[str, str]:
        """Return the fields that differ from the default, in field order.

        >>> Conventions.krag().changed()
        {'ideal': 'retrieved'}
        """
        return {
            name: getattr(self, name)
            for name, allowed in self.allowed().items()
            if getattr(self, name) != allowed[0]
        }

    def __str__(self) -> str:
        """Return what differs from the default; ``default`` if nothing does."""
        return ",".join(f"{name}={value}" for name, value in self.changed().items()) or "default"

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self.changed().items())
        return f"Conventions({changed})"


@cache
def _allowed() -> dict[str, tuple[str, ...]]:
    # Reading annotations takes longer than averaging, and every evaluation asks several times.
    hints = get_type_hints(Conventions)
    return {field.name: get_args(hints[field.name]) for field in fields(Conventions)}


#: krag_eval's own.
DEFAULT_CONVENTIONS = Conventions()


def checked_conventions(argument: str, conventions: object) -> Conventions:
    """Return conventions, given as such or by their printed form; ``None`` stands for our own."""
    if isinstance(conventions, str):
        return Conventions.parse(conventions)
    if conventions is None:
        return DEFAULT_CONVENTIONS
    if isinstance(conventions, Conventions):
        return conventions
    be = "be Conventions or their printed form, such as Conventions.trec() or 'trec'"
    raise must(argument, be, conventions, kind=InvalidType)


#: Returns every average under given conventions, by key.
Averages = Callable[[Conventions], "dict[str, float]"]


def conventions_table(averages: Averages, own: Conventions) -> pd.DataFrame:
    """Return every average under every preset, and why it differs from the default.

    Args:
        averages: Computes the averages under given conventions.
        own: The conventions in use; a column ``"yours"`` of its own unless they are a preset.

    Returns:
        One row per key; one column per preset, then one column ``"<preset> differs by"`` each that
        names the responsible fields, empty where the number is the same.
    """
    import pandas as pd

    presets = Conventions.presets()
    if own not in presets.values():
        presets["yours"] = own
    known = cache(averages)
    table = pd.DataFrame({name: known(preset) for name, preset in presets.items()})
    for name, preset in presets.items():
        if name != "default":
            responsible = (responsible_fields(known, preset, key) for key in table.index)
            table[f"{name} differs by"] = [*map(", ".join, responsible)]
    return table.rename_axis("metric")


def responsible_fields(averages: Averages, preset: Conventions, key: str) -> list[str]:
    """Name the fields that make one average differ from its default, as ``field=value``.

    A field is responsible if undoing it alone changes the preset's number; where no field does so
    alone, if changing it alone changes the default one.
    """
    default, changed = Conventions(), preset.changed()
    if _same(averages(preset)[key], averages(default)[key]):
        return []
    for start, other in ((preset, default), (default, preset)):
        of_start = averages(start)[key]
        responsible = [
            name
            for name in changed
            if not _same(averages(replace(start, **{name: getattr(other, name)}))[key], of_start)
        ]
        if responsible:
            break
    return [f"{name}={changed[name]}" for name in responsible]


def _same(first: float, second: float) -> bool:
    # The same number reached by another way may differ in its last digits.
    return math.isclose(first, second, rel_tol=1e-12) or (first != first and second != second)

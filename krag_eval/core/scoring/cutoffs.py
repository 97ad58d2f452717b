"""Cutoffs: what k may be, and the one spelling of a metric at a cutoff, such as ``ndcg@10``.

A cutoff is a number of documents, or a budget: as many documents as fit into 1,000 words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from krag_eval.core.errors import Advice, InvalidInput, InvalidType, clipped, must, warn
from krag_eval.core.language import N_, _

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: What a budget counts: words, characters, or what a function of the user's says.
Unit: TypeAlias = Literal["w", "c", "t"]
#: How long a text is: the name of a unit, or a function, such as LangChain's ``length_function``.
Length: TypeAlias = "Literal['words', 'characters'] | Callable[[str], int]"

_UNITS: Final[dict[str, Unit]] = {"words": "w", "characters": "c"}
_AMOUNTS: Final[dict[str, str]] = {
    "w": N_("{} words"),
    "c": N_("{} characters"),
    "t": N_("{} units of length"),
}
#: No text is longer; sums of lengths stay within 64 bits.
MOST_IN_A_TEXT = 2**31


@dataclass(frozen=True)
class Budget:
    """A cutoff by what fits: the longest prefix of a list that is no longer than this altogether.

    Attributes:
        amount: How much fits, at least 1.
        unit: ``"w"`` for words, those of the ``unicode`` tokenizer; ``"c"`` for characters;
            ``"t"`` for what the user's own function counts.

    >>> str(Budget(1000, "w"))
    '1000w'
    """

    amount: int
    unit: Unit

    def __str__(self) -> str:
        return f"{self.amount}{self.unit}"


#: Where a list is cut off: after k documents, nowhere (``None``), or by what fits.
Cutoff: TypeAlias = int | Budget | None
#: One cutoff or several, as they may be given: a budget is spelled ``"1000w"``.
Cutoffs: TypeAlias = "Cutoff | str | Iterable[Cutoff | str]"

#: Where metrics are computed if nothing else is asked for.
DEFAULT_CUTOFFS: tuple[int | None, ...] = (1, 3, 5, 10)
# Far beyond any list; counts stay exact as floats.
_LARGEST = 2**53
_ALLOWED = (
    "a whole number of at least 1, 'all' for all retrieved documents, or a budget such as '1000w'"
)
_BUDGET = re.compile("([0-9]{1,16})([wct])")


def check_cutoff(k: object) -> Cutoff:
    """Return a cutoff: a whole number of at least 1, ``None`` for all documents, or a budget.

    Raises:
        InvalidInput: For 0, a negative number, a float, a bool or anything else.

    >>> check_cutoff(5), check_cutoff("all"), check_cutoff("1000w")
    (5, None, Budget(amount=1000, unit='w'))
    """
    if k is None or (isinstance(k, str) and k == "all"):
        return None
    if isinstance(k, Budget):
        return k
    if isinstance(k, str) and (spelling := _BUDGET.fullmatch(k)):
        return Budget(_count("k", int(spelling[1]), _ALLOWED), spelling[2])  # type: ignore[arg-type]
    return _count("k", k, _ALLOWED)


def _count(argument: str, amount: object, allowed: str) -> int:
    if (
        isinstance(amount, Integral)
        and not isinstance(amount, bool)
        and 1 <= int(amount) <= _LARGEST
    ):
        return int(amount)
    raise must(argument, f"be {allowed}", amount)


def check_cutoffs(k: Any) -> tuple[Cutoff, ...]:
    """Return one or several cutoffs as a tuple, in the order given.

    Raises:
        InvalidInput: If one is not a cutoff, there is none, or one is given twice.

    >>> check_cutoffs([1, 5, None])
    (1, 5, None)
    """
    given = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    cutoffs = tuple(map(check_cutoff, given))
    if not cutoffs:
        raise InvalidInput("k", "must name at least one cutoff, got an empty list")
    if len(set(cutoffs)) < len(cutoffs):
        raise InvalidInput("k", f"must not name a cutoff twice, got {clipped(given)}")
    return cutoffs


def in_order(cutoffs: Iterable[Cutoff]) -> list[Cutoff]:
    """Return cutoffs as they are listed: k from shallow to deep, then budgets by unit and amount.

    >>> mixed = [Budget(500, "w"), None, 5, Budget(80, "c"), Budget(80, "w"), 1]
    >>> [spelled(k) for k in in_order(mixed)]
    ['1', '5', 'all', '80w', '500w', '80c']
    """
    return sorted(cutoffs, key=_place)


def deepest(cutoffs: Iterable[Cutoff]) -> Cutoff:
    """Return the cutoff that sees the most documents: the deepest k; a budget only without any k.

    >>> deepest([1, 10, Budget(1000, "w")]), deepest([None, 10])
    (10, None)
    >>> deepest([Budget(80, "w"), Budget(500, "w")])
    Budget(amount=500, unit='w')
    """
    ordered = in_order(cutoffs)
    by_rank = [k for k in ordered if not isinstance(k, Budget)]
    return (by_rank or ordered)[-1]


def _place(k: Cutoff) -> tuple[int, float]:
    if isinstance(k, Budget):
        return 1 + list(_AMOUNTS).index(k.unit), k.amount
    return 0, math.inf if k is None else k


def amount_in_words(amount: object, unit: str) -> str:
    """Return so much of a unit.

    >>> amount_in_words(1000, "c")
    '1000 characters'
    """
    return _(_AMOUNTS[unit]).format(amount)


def unit_in_words(unit: str) -> str:
    """Return what a budget counts, in English.

    >>> unit_in_words("w")
    'words'
    """
    return _AMOUNTS[unit].removeprefix("{} ")


@dataclass(frozen=True)
class Measure:
    """A function of the user's that says how long a text is, checked at every text.

    Attributes:
        function: The function.
        name: What a signature calls it.
    """

    function: Callable[[str], int]
    name: str

    def __call__(self, text: str) -> int:
        """Return the length of a text.

        Raises:
            InvalidType: If the function returns no whole number.
            InvalidInput: If the number cannot be a length.
        """
        length = self.function(text)
        allowed = f": {self.name} must return a whole number of at least 0"
        if isinstance(length, bool) or not isinstance(length, Integral):
            raise InvalidType("length", f"{allowed}, got {clipped(length)} for {clipped(text)}")
        if not 0 <= int(length) <= MOST_IN_A_TEXT:
            raise InvalidInput("length", f"{allowed}, got {clipped(length)} for {clipped(text)}")
        return int(length)


def settled_cutoffs(
    k: Any,
    budget: Any = None,
    length: Any = "words",
    *,
    default: tuple[int | None, ...] = DEFAULT_CUTOFFS,
    metrics: Sequence[Any] = (),
) -> tuple[tuple[Cutoff, ...], Measure | None]:
    """Settle where lists are cut off, and by what function texts are measured, if by any.

    Args:
        k: A cutoff or several; left at the default, there is none beside a budget.
        budget: How much may fit, or several such numbers.
        length: What they count: ``"words"``, ``"characters"`` or a function ``str -> int``.
        default: What ``k`` is where it is not given.
        metrics: Metrics, whose cutoffs (``"recall@5"``) are added to the others. If all of them
            have one, ``k`` left at the default adds none.

    Raises:
        InvalidType: If ``length`` is of another type.
        InvalidInput: If something is no cutoff or given twice, or no cutoff counts by ``length``.

    Warns:
        KragEvalWarning: If the name of the function does not tell which one it is.

    >>> settled_cutoffs([5], budget=[500, 1000])[0]
    (5, Budget(amount=500, unit='w'), Budget(amount=1000, unit='w'))
    >>> settled_cutoffs([5], metrics=["recall@5", "ndcg@10", "mrr"])[0]
    (5, 10)
    """
    unit, measure = settled_length(length)
    several = isinstance(budget, Iterable) and not isinstance(budget, str)
    amounts = list(budget) if several else [] if budget is None else [budget]
    if several and not amounts:
        raise must("budget", "be a whole number such as 1000, or several", budget)
    with_cutoff = [one for one in metrics if isinstance(one, str) and "@" in one]
    alone = amounts or (with_cutoff and len(with_cutoff) == len(metrics))
    cutoffs = () if alone and k is default else check_cutoffs(k)
    allowed = f"a whole number of {unit_in_words(unit)} from 1 to {_LARGEST}"
    budgets = tuple(Budget(_count("budget", amount, allowed), unit) for amount in amounts)
    if len({*cutoffs, *budgets}) < len(cutoffs) + len(budgets):
        raise InvalidInput("budget", f"must not name a cutoff twice, got {clipped(budget)}")
    named = [parse_metric(one, "metrics")[1] for one in with_cutoff]
    cutoffs = tuple(dict.fromkeys([*cutoffs, *budgets, *named]))
    units = {one.unit for one in cutoffs if isinstance(one, Budget)}
    if "t" in units and measure is None:
        raise _unmeasured()
    if unit not in units and unit != "w":
        raise InvalidInput(
            "length", "is what a budget counts, and there is none", Advice("pass {}", budget=1000)
        )
    return cutoffs, measure


def _unmeasured() -> InvalidInput:
    problem = ": a budget in t is counted by a function of your own, and there is none here"
    return InvalidInput("k", problem, Advice("evaluate with {} and {}", budget=..., length=...))


def settled_length(length: Any) -> tuple[Unit, Measure | None]:
    """Settle what texts are measured by: a unit and, where it is the user's, the function.

    Raises:
        InvalidType, InvalidInput: If it is no name of a unit, and no function.
    """
    from krag_eval.core.matching.identity import UNKNOWN, function_name

    if isinstance(length, Measure):  # settled before
        return "t", length
    if isinstance(length, str) and length in _UNITS:
        return _UNITS[length], None
    if not callable(length):
        allowed = "be 'words', 'characters' or a function from a text to its length"
        kind = InvalidInput if isinstance(length, str) else InvalidType
        raise must("length", allowed, length, kind=kind)
    name = function_name(length)
    if name.endswith(UNKNOWN):
        told = _(
            "The length {} may be any function, so that a signature cannot tell it from another."
        )
        fix = _("Define it by def in a module, or give it an attribute name")
        warn(told.format(name.removesuffix(UNKNOWN)), fix)
    return "t", Measure(length, name)


def lengths_of(texts: Sequence[str], unit: Unit, measure: Measure | None) -> NDArray[np.int64]:
    """Return how long each text is; each distinct one is measured once; shape (texts,).

    >>> lengths_of(["To be, or not to be", "", "Who?"], "w", None).tolist()
    [6, 0, 1]
    """
    import numpy as np

    from krag_eval.core.matching.tokenizers import unicode_tokens

    counts = {"w": lambda text: len(unicode_tokens(text)), "c": len, "t": measure}
    count = counts[unit]
    if count is None:
        raise _unmeasured()
    known = {text: count(text) for text in dict.fromkeys(texts)}
    return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))


def fitting(
    budget: Budget, lengths: NDArray[np.int64], n_retrieved: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many of each list's first documents fit into a budget; shape (queries,).

    Args:
        budget: The budget.
        lengths: Length of every document, by query, then rank; shape (documents,).
        n_retrieved: Documents in each list; shape (queries,).

    >>> import numpy as np
    >>> fitting(Budget(5, "w"), np.array([3, 2, 1, 6]), np.array([3, 1])).tolist()
    [2, 0]
    """
    import numpy as np

    ends = np.cumsum(lengths)
    first = np.cumsum(n_retrieved) - n_retrieved
    before = np.concatenate([[0], ends])[first]
    n_fitting = np.searchsorted(ends, before + budget.amount, side="right") - first
    return np.asarray(np.minimum(n_fitting, n_retrieved), np.int64)


def spelled(k: Cutoff) -> str:
    """Return the cutoff as it is written after the @ sign.

    >>> spelled(10), spelled(None), spelled(Budget(1000, "w"))
    ('10', 'all', '1000w')
    """
    return "all" if k is None else str(k)


def unspelled(text: str) -> Cutoff:
    """Read a cutoff back from its spelling.

    Raises:
        InvalidInput: If it is not one.

    >>> unspelled("10"), unspelled("all"), unspelled("1000w")
    (10, None, Budget(amount=1000, unit='w'))
    """
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_LARGEST))
    return check_cutoff(int(text) if is_number else text)


def parse_metric(text: object, argument: str = "metric") -> tuple[str, Cutoff]:
    """Read an average at a cutoff from its one spelling.

    Args:
        text: Such as ``"ndcg@10"`` or ``"mrr@all"``.
        argument: The argument it came in.

    Raises:
        InvalidInput: If there is no cutoff, or it is not one.

    >>> parse_metric("macro_recall@5"), parse_metric("rbp(p=0.8)@all")
    (('macro_recall', 5), ('rbp(p=0.8)', None))
    """
    key, at, cutoff = text.strip().rpartition("@") if isinstance(text, str) else ("", "", "")
    if not (at and key):
        raise InvalidInput(
            argument,
            ": an average must be spelled with its cutoff, such as 'ndcg@10' or 'mrr@all', "
            f"got {clipped(text)}",
        )
    try:
        return key, unspelled(cutoff)
    except InvalidInput as error:
        problem = f": {clipped(text)}: the cutoff {error.problem}"
        raise InvalidInput(argument, problem, error.fix) from None

"""A run in parts: the exact sums of each part, its findings, and how they add up.

A :class:`Summary` has the sums that all averages follow from. :class:`Findings` are what the whole
run must be warned of: that nothing matched in one part says nothing of the whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from operator import add, or_
from typing import Any

import numpy as np
from numpy.typing import NDArray

from krag_eval.core.conventions import AveragingMethod, Conventions
from krag_eval.core.documents import read_text, warn_of_no_grades
from krag_eval.core.errors import Fix, InvalidInput, told_apart, warn, warn_of
from krag_eval.core.language import N_, Language, _, ngettext, spoken
from krag_eval.core.matching.base import Matcher
from krag_eval.core.scoring import cutoffs as cut
from krag_eval.core.scoring.averages import (
    Average,
    Columns,
    OfAPart,
    Sums,
    joined_by,
    name_by_name,
)
from krag_eval.core.scoring.cutoffs import Budget, Cutoff, spelled
from krag_eval.core.scoring.metrics import (
    LISTED,
    REJECTION_RATE,
    Metric,
    averages_of,
    declared_content,
    declared_metric,
    metrics_of,
)
from krag_eval.core.scoring.missing import MissingQuestions, told_missing
from krag_eval.core.scoring.relevance import Relevance


def _check_same(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Refuse to add parts that were evaluated in different ways."""
    for name, value in ours.items():
        if value != theirs.get(name):
            problem = (
                f"parts of different runs cannot be added: {name} is {value!s} in one and "
                f"{theirs.get(name)!s} in the other"
            )
            raise InvalidInput("", problem, "evaluate all parts with the same settings")


@dataclass(frozen=True, repr=False)
class Summary(OfAPart):
    """Sums over the queries of a run, or of a part of it, at every cutoff.

    Adding the summaries of parts gives the summary of the whole, to the last digit, in any order
    and however they are grouped. A summary is small and can be pickled; its size does not grow
    with the number of queries. ``print`` it, or call it, for its main averages in a sentence.

    Attributes:
        keys: Metric column -> name of its mean.
        averaging_method: Which of the micro and macro keys are averaged.
        conventions: The conventions the metrics were computed under.
        n_queries: Number of queries, counted in the averages or not.
        sums: Cutoff -> sums over the counted queries.
        declared: What is known of metrics that are not computed by default, by column.
        n_failed: Number of queries whose retriever failed, which count as nothing retrieved.
        n_contradicted: Number of pairs that would match if their document did not contradict.
        missing: The questions of the ground truth that the run lacks, if that is known.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> first = OfflineRetrievalEvaluator([["a"]], [["a", "x"]]).evaluate(2).summary
    >>> second = OfflineRetrievalEvaluator([["b", "c"]], [["y", "b"]]).evaluate(2).summary
    >>> (first + second).averages(2)["macro_recall"]
    0.75
    """

    keys: Mapping[str, str]
    averaging_method: AveragingMethod
    conventions: Conventions
    n_queries: int = field(metadata=joined_by(add))
    sums: Mapping[Cutoff, Sums] = field(
        metadata=joined_by(name_by_name(lambda sums: reduce(add, sums)))
    )
    declared: Mapping[str, Metric] = field(default_factory=dict)
    n_failed: int = field(default=0, metadata=joined_by(add))
    n_contradicted: int = field(default=0, metadata=joined_by(add))
    missing: MissingQuestions | None = None

    @classmethod
    def of(
        cls,
        tables: Mapping[Cutoff, Columns],
        counted: NDArray[np.bool_],
        *,
        keys: Mapping[str, str],
        averaging_method: AveragingMethod,
        conventions: Conventions,
        declared: Mapping[str, Metric] | None = None,
    ) -> Summary:
        """Sum the per-query tables of a run.

        Args:
            tables: Cutoff -> per-query columns, each of shape (queries,).
            counted: Whether a query counts in the averages; shape (queries,).
            keys: Metric column -> name of its mean.
            averaging_method: Which of the micro and macro keys are averaged.
            conventions: The conventions the metrics were computed under.
            declared: What is known of metrics that are not computed by default, by column.

        Raises:
            InvalidInput: If a value is infinite.
        """
        declared = declared or {}
        metrics = metrics_of(keys, declared).values()
        names = list(dict.fromkeys(column for metric in metrics for column in metric.columns))
        sums = {}
        for k, table in tables.items():
            n_rejected = 0
            if not counted.all():
                n_rejected = int((table.get(LISTED, table["retrieved"])[~counted] == 0).sum())
                table = {name: column[counted] for name, column in table.items()}
            sums[k] = Sums.of(table, names, n_rejected)
        return cls(dict(keys), averaging_method, conventions, len(counted), sums, declared)

    @spoken
    def __call__(self, language: Language | None = None) -> str:
        """Return the main averages at the deepest cutoff in a sentence; all, without a main one.

        Success is among them where it is not the hit rate.

        Args:
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        >>> from krag_eval import OfflineRetrievalEvaluator
        >>> evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["a", "x"], ["y"]])
        >>> evaluator.evaluate(2, metrics=["recall", "f1"]).summary()
        'Over 2 queries: micro_recall@2 0.5000, macro_recall@2 0.5000.'
        """
        k = cut.deepest(self.k)
        values = self.averages(k)
        main = [key for key, one in self._averages.items() if one.column in _MAIN]
        if values.get("success") == values.get("hit_rate"):
            main = [key for key in main if key != "success"]
        told = ", ".join(f"{key}@{spelled(k)} {values[key]:.4f}" for key in main or values)
        which = _n_queries(self.n_queries)
        if self.n_counted < self.n_queries:
            which = _("{n} of {queries} queries")
            which = which.format(n=self.n_counted, queries=self.n_queries)
        return " ".join([_("Over {}: {}.").format(which, told), *self.caveats()])

    def told_failed(self) -> list[str]:
        """Say in a sentence for how many queries the retriever failed; nothing where it did not."""
        if not self.n_failed:
            return []
        told = _(
            "The retriever failed for {n} of {queries} queries, which count as nothing retrieved."
        )
        return [told.format(n=self.n_failed, queries=self.n_queries)]

    def caveats(self) -> list[str]:
        """Say in a sentence each how many queries failed, and which the run lacks."""
        return [*self.told_failed(), *told_missing({"": self.missing})]

    def __repr__(self) -> str:
        return f"Summary({self()!r})"

    def __str__(self) -> str:
        return self()

    @property
    def k(self) -> tuple[Cutoff, ...]:
        """The cutoffs."""
        return tuple(self.sums)

    @property
    def n_counted(self) -> int:
        """Number of queries that count in the averages."""
        return next(iter(self.sums.values())).n_queries

    def __add__(self, other: Summary) -> Summary:
        """Return the summary of both parts.

        Raises:
            InvalidInput: If they were made with other metrics, cutoffs, averages or conventions.
        """
        if isinstance(other, Summary):
            _check_same(*({**settled_in(one), "k": one.k} for one in (self, other)))
        return super().__add__(other)

    @cached_property
    def _averages(self) -> dict[str, Average]:
        metrics = metrics_of(self.keys, self.declared).values()
        return averages_of(metrics, self.conventions, self.averaging_method)

    @property
    def definitions(self) -> dict[str, Average]:
        """How each average is made and read, by its key: its range, direction and labels."""
        return self._averages | {REJECTION_RATE.key: REJECTION_RATE}

    def averages(self, k: Cutoff) -> dict[str, float]:
        """Return the averages at one of the cutoffs; NaN where no query has a value."""
        sums = self.sums[k].by_name()
        return {key: float(average.of(sums)) for key, average in self._averages.items()}

    def rejection_rate(self, k: Cutoff) -> float | None:
        """Return how often nothing came back for uncounted queries; ``None`` without any."""
        left_out = self.n_queries - self.n_counted
        sums = {"rejected": self.sums[k].n_rejected, "left_out": left_out}
        return float(REJECTION_RATE.of(sums)) if left_out else None

    def to_json(self) -> dict[str, Any]:
        """Return the summary as what JSON can hold, exactly: sums are fractions as text."""
        return {
            "keys": dict(self.keys),
            "averaging_method": self.averaging_method.value,
            "conventions": str(self.conventions),
            "queries": self.n_queries,
            "counted": self.n_counted,
            "at": {
                spelled(k): {
                    "rejected": one.n_rejected,
                    "sums": {
                        name: [str(total), one.n_defined[name]]
                        for name, total in one.totals.items()
                    },
                }
                for k, one in self.sums.items()
            },
            **declared_in(self.declared),
            **({"failed": self.n_failed} if self.n_failed else {}),
            **({"contradicted": self.n_contradicted} if self.n_contradicted else {}),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Summary:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        n_queries, n_counted = _count(content["queries"]), _count(content["counted"])
        if n_counted > n_queries or not content["at"]:
            raise InvalidInput("", "the counts of its queries do not fit together")
        sums = {}
        for k, one in content["at"].items():
            pairs = {name: (_fraction(total), n) for name, (total, n) in one["sums"].items()}
            totals = {name: total for name, (total, _) in pairs.items()}
            n_defined = {name: _count(n, n_counted) for name, (_, n) in pairs.items()}
            n_rejected = _count(one["rejected"], n_queries - n_counted)
            sums[cut.unspelled(k)] = Sums(n_counted, totals, n_defined, n_rejected)
        return cls(
            **metrics_in(content),
            averaging_method=AveragingMethod(content["averaging_method"]),
            conventions=Conventions.parse(content["conventions"]),
            n_queries=n_queries,
            sums=sums,
            n_failed=_count(content.get("failed", 0), n_queries),
            n_contradicted=_count(content.get("contradicted", 0)),
        )


def settled_in(summary: Any) -> dict[str, Any]:
    """Return what the averages of a summary, or of a result, depend on beside its sums."""
    names = ("keys", "averaging_method", "conventions", "declared")
    return {name: getattr(summary, name) for name in names}


# The columns whose averages are named first.
_MAIN = ("recall", "ndcg", "reciprocal_rank", "hit_rate", "success")


def _n_queries(number: int) -> str:
    return ngettext("{} query", "{} queries", number).format(number)


def declared_in(declared: Mapping[str, Metric]) -> dict[str, Any]:
    """Return what is declared of metrics as an entry of a JSON object, if there is anything."""
    content = {name: declared_content(metric) for name, metric in declared.items()}
    return {"declared": content} if content else {}


def metrics_in(content: Mapping[str, Any]) -> dict[str, Any]:
    """Read the names of the means, and what :func:`declared_in` returned, if there is any.

    Raises:
        KeyError, TypeError, ValueError: If they are something else.
    """
    keys, declared = dict(content["keys"].items()), content.get("declared", {})
    if not all(isinstance(one, str) for pair in keys.items() for one in pair):
        raise TypeError("the names of its metrics are not texts")
    metrics = {name: declared_metric(name, keys[name], one) for name, one in declared.items()}
    return {"keys": keys, "declared": metrics}


# Stricter than Fraction itself, which would spell out 1e999999999.
_FRACTION = re.compile(r"-?[0-9]{1,1000}(/[1-9][0-9]{0,999})?")


def _fraction(text: object) -> Fraction:
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise InvalidInput("", f"a sum must be a fraction such as '3/4', got {text!r:.60}")
    return Fraction(text)


def _count(value: object, most: int | None = None) -> int:
    if type(value) is not int or value < 0 or (most is not None and value > most):
        problem = f"a count must be a whole number that fits the others, got {value!r:.60}"
        raise InvalidInput("", problem)
    return value


@dataclass(frozen=True)
class Reach(OfAPart):
    """How far the lists reach, for cutoffs beyond them and budgets that nothing fits into.

    Attributes:
        most: Documents in the longest list.
        shortest: Unit of a budget -> length of the shortest document that a list begins with.
        longest: Unit of a budget -> length of all documents of the longest list.
        unseen: Budget, as it is spelled -> lists of which not even the first document fits.
        n_lists: Lists that are not empty, where there is a budget.
        has_text: Whether a retrieved document has a text; only known where a budget asked for it.
    """

    most: int = field(default=0, metadata=joined_by(max))
    shortest: Mapping[str, int] = field(default_factory=dict, metadata=joined_by(name_by_name(min)))
    longest: Mapping[str, int] = field(default_factory=dict, metadata=joined_by(name_by_name(max)))
    unseen: Mapping[str, int] = field(default_factory=dict, metadata=joined_by(name_by_name(sum)))
    n_lists: int = field(default=0, metadata=joined_by(add))
    has_text: bool = field(default=False, metadata=joined_by(or_))

    @classmethod
    def of(
        cls, relevance: Relevance, cutoffs: Iterable[Cutoff], *, has_text: bool = False
    ) -> Reach:
        """Look at the lists."""
        retrieved = relevance.n_retrieved
        most = int(retrieved.max(initial=0))
        if relevance.lengths is None or not most:
            return cls(most, has_text=has_text)
        first = (np.cumsum(retrieved) - retrieved)[retrieved > 0]
        lengths = relevance.lengths
        budgets = [k for k in cutoffs if isinstance(k, Budget)]
        return cls(
            most,
            {unit: int(one[first].min()) for unit, one in lengths.items()},
            {unit: int(np.add.reduceat(one, first).max()) for unit, one in lengths.items()},
            {str(k): int((lengths[k.unit][first] > k.amount).sum()) for k in budgets},
            len(first),
            has_text,
        )

    def beyond(self, cutoffs: Iterable[Cutoff]) -> list[int]:
        """Return the cutoffs that lie beyond every list, ascending; none if all lists are empty."""
        by_rank = [k for k in cutoffs if isinstance(k, int)]
        return sorted(k for k in by_rank if k > self.most > 0)

    def warn(
        self, cutoffs: Sequence[Cutoff], is_first: Callable[[str], bool] = lambda what: True
    ) -> None:
        """Warn of cutoffs beyond every list, and of budgets that nothing fits into.

        Of the default cutoffs nobody asked for any in particular: there, the signature says how
        far the lists reach.

        Args:
            cutoffs: The cutoffs.
            is_first: Whether something is said for the first time, by what it is about.
        """
        beyond = self.beyond(cutoffs)
        if beyond and tuple(cutoffs) != cut.DEFAULT_CUTOFFS and is_first("beyond every list"):
            problem = ngettext(
                "Every list has at most {most} document, so {these} no more.",
                "Every list has at most {most} documents, so {these} no more.",
                self.most,
            )
            warn(problem.format(most=self.most, these=_that_see(beyond)))
        for unit in self.shortest:
            budgets = [k for k in cut.in_order(cutoffs) if isinstance(k, Budget) and k.unit == unit]
            for what, problem, fix in self._of_budgets(unit, budgets):
                if is_first(what):
                    warn(problem, fix)

    def _of_budgets(self, unit: str, budgets: Sequence[Budget]) -> Iterator[tuple[str, str, str]]:
        """Yield what is wrong with budgets of a unit: in short, in words, and what to do."""
        shortest, longest, larger = self.shortest[unit], self.longest[unit], _(_LARGER)
        small = [one for one in budgets if one.amount < shortest]
        if small:
            budget = cut.amount_in_words(small[-1].amount, unit)
            problem = _(
                "No query's first document fits into {budget} (the shortest has {shortest}): "
                "{these} nothing."
            )
            told = problem.format(budget=budget, shortest=shortest, these=_that_see(small))
            yield f"nothing fits into {small}", told, larger
        for one in budgets[len(small) :]:
            unseen = self.unseen[str(one)]
            if 2 * unseen > self.n_lists:
                budget = cut.amount_in_words(one.amount, unit)
                problem = _(
                    "In {unseen} of {n} queries not even the first document fits into {budget}, so "
                    "that @{one} sees nothing of them."
                )
                told = problem.format(unseen=unseen, n=self.n_lists, budget=budget, one=one)
                yield f"too little: {one}", told, larger
        large = [one for one in budgets if one.amount > longest]
        if large:
            problem = _(
                "No list is longer than {longest} altogether, so {these} whole lists and no more."
            ).format(longest=cut.amount_in_words(longest, unit), these=_that_see(large))
            fix = _("Have more documents retrieved, or choose smaller budgets")
            yield f"all fits into {large}", problem, fix


_LARGER = N_("Choose a larger budget")


def _that_see(cutoffs: Sequence[Cutoff]) -> str:
    """Name cutoffs as the subject of what they see."""
    these = _(" and ").join(", ".join(f"@{k}" for k in cutoffs).rsplit(", ", 1))
    return ngettext("{} sees", "{} see", len(cutoffs)).format(these)


def no_texts() -> InvalidInput:
    """Return the refusal of a budget where nothing can be measured."""
    problem = ": the retrieved documents have no texts, so how many of them fit is not known"
    fix = "evaluate documents with their texts, or choose cutoffs by rank"
    return InvalidInput("budget", problem, fix)


def _added(counts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip(*counts, strict=True)))


@dataclass(frozen=True)
class Findings(OfAPart):
    """What a part of a run found that deserves a warning once all parts are put together.

    Attributes:
        queries: Number of queries.
        any_item: Whether there was ground truth.
        any_retrieved: Whether anything was retrieved.
        any_match: Whether a pair matched.
        best: The highest similarity of any pair, 0 without any.
        with_words: Queries with words on both sides, where the matcher knows words.
        too_long: Of these, those whose ground truth is so long that no retrieved text alone could
            hold enough of it.
        any_grade: Whether a ground-truth document had a grade.
        contradicted: Pairs that would match if their document did not contradict.
        tallies: What was counted, by the sentence that says it.
        reach: How far the lists reach.
    """

    queries: int = field(default=0, metadata=joined_by(add))
    any_item: bool = field(default=False, metadata=joined_by(or_))
    any_retrieved: bool = field(default=False, metadata=joined_by(or_))
    any_match: bool = field(default=False, metadata=joined_by(or_))
    best: float = field(default=0.0, metadata=joined_by(max))
    with_words: int = field(default=0, metadata=joined_by(add))
    too_long: int = field(default=0, metadata=joined_by(add))
    any_grade: bool = field(default=False, metadata=joined_by(or_))
    contradicted: int = field(default=0, metadata=joined_by(add))
    tallies: Mapping[str, tuple[int, ...]] = field(
        default_factory=dict, metadata=joined_by(name_by_name(_added))
    )
    reach: Reach = field(default_factory=Reach, metadata=joined_by(add))

    @classmethod
    def of(cls, relevance: Relevance, **others: Any) -> Findings:
        """Look at what was found."""
        return cls(
            relevance.n_queries,
            len(relevance.grade) > 0,
            bool(relevance.n_retrieved.any()),
            len(relevance.hit_item) > 0,
            float(relevance.pair_similarity.max(initial=0.0)),
            *_too_long(relevance),
            contradicted=relevance.n_contradicted,
            **others,
        )

    def warn(
        self,
        matcher: Matcher,
        threshold: float,
        grade_key: str | None,
        cutoffs: Sequence[Cutoff],
    ) -> None:
        """Say everything there is to say about the run, once."""
        if grade_key is not None and not self.any_grade:
            warn_of_no_grades(grade_key)
        for sentence, counts in self.tallies.items():
            warn_of(sentence, *counts)
        self.warn_of_matches(matcher, threshold)
        self.reach.warn(cutoffs)

    def warn_of_matches(
        self, matcher: Matcher, threshold: float, tried: Callable[[], Fix] = lambda: ""
    ) -> None:
        """Warn if most ground truth is too long for any text, else if hardly anything matched.

        The advice is what another matcher finds, where that is much, else the matcher's own. Where
        a few pairs did match, only the former is worth a warning.

        Args:
            matcher: What compared the texts.
            threshold: Similarity from which a pair is a match.
            tried: Says what another matcher finds, where that is worth saying.
        """
        known = {"matcher": matcher.signature, "queries": _n_queries(self.queries)}
        if 2 * self.too_long > self.with_words and matcher.too_long_advice:
            problem = _(
                "In {n} of {queries} queries all ground truth is longer than every retrieved text, "
                "so that no text alone can hold {threshold} of it."
            ).format(n=self.too_long, queries=self.with_words, threshold=f"{threshold:.3g}")
            warn(problem, matcher.too_long_advice)
        elif self.any_item and not self.any_retrieved:
            problem = _("Nothing was retrieved for any of {} queries.")
            if self.queries == 1:
                problem = _("Nothing was retrieved for the one query there is.")
            fix = tried() or _(
                "Check that the index is filled and that no filter keeps everything back, or that "
                "the lists are those the retriever returned"
            )
            warn(problem.format(self.queries), fix)
        elif self.any_item and (other := tried()):
            problem = _("The matcher {matcher} matched nothing at all in {queries}.")
            if self.any_match:
                problem = _("The matcher {matcher} matched next to nothing in {queries}.")
            warn(problem.format(**known), other)
        elif self.any_item and not self.any_match:
            problem = _("The matcher {matcher} matched nothing at all in {queries}: {why}.")
            see = _("See result.contradicted(), or krag-eval explain FILE --contradicted")
            why = self._why(matcher, threshold)
            warn(problem.format(**known, why=why), see if self.contradicted else matcher.advice)

    def _why(self, matcher: Matcher, threshold: float) -> str:
        """Say why nothing matched."""
        if self.contradicted:
            return _("every document that holds enough of a passage is another text there")
        if self.best:
            best, least = told_apart(self.best, threshold, ".3g")
            told = _("the highest similarity is {best}, below the threshold of {least}")
            return told.format(best=best, least=least)
        if matcher.counts_words and matcher._document_reading is read_text:
            return _(
                "no predicted document shares a run of words with the ground truth that is long "
                "enough to count"
            )
        if matcher.takes_threshold:
            return _("no predicted document is similar to the ground truth in the least")
        return _("no predicted document meets its condition")


def _too_long(relevance: Relevance) -> tuple[int, int]:
    """Return how many queries have words on both sides, and in how many no text can be enough."""
    pieces, retrieved = relevance.pieces, relevance.n_retrieved
    if pieces is None:
        return 0, 0
    longest = np.zeros(relevance.n_queries, np.int64)
    some, first = retrieved > 0, np.cumsum(retrieved) - retrieved
    if some.any():
        longest[some] = np.maximum.reduceat(pieces.document_tokens, first[some])
    query, tokens = relevance.item_query[pieces.alternative_item], pieces.alternative_tokens
    asked = (tokens > 0) & (longest[query] > 0)
    query, tokens = query[asked], tokens[asked]
    enough = np.minimum(longest[query] / tokens, 1.0) >= relevance.threshold
    with_words, possible = np.unique(query), np.unique(query[enough])
    return len(with_words), len(with_words) - len(possible)


@dataclass(frozen=True)
class Partial(OfAPart):
    """The sums and findings of a part of a run: exact, and of one size for any number of rows.

    Partials of the parts add up to that of the whole, in any order, however grouped.

    Attributes:
        settings: What the numbers depend on, to refuse parts of different runs.
        summary: The sums all averages follow from.
        findings: What the whole may have to be warned of.
    """

    settings: Mapping[str, str]
    summary: Summary = field(metadata=joined_by(add))
    findings: Findings = field(metadata=joined_by(add))

    def __add__(self, other: Partial) -> Partial:
        """Return the sums and findings of both parts.

        Raises:
            ValueError: If they were evaluated in different ways.
        """
        if isinstance(other, Partial):
            _check_same(self.settings, other.settings)
        return super().__add__(other)

    def to_json(self) -> dict[str, Any]:
        """Return the partial as what JSON can hold, exactly."""
        return {
            "settings": dict(self.settings),
            "summary": self.summary.to_json(),
            "findings": asdict(self.findings),
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Partial:
        """Read what :meth:`to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: If the content is something else.
        """
        found = content["findings"]
        tallies = {name: tuple(counts) for name, counts in found["tallies"].items()}
        reach = Reach(**found.get("reach", {}))  # 0.1.0 wrote none
        return cls(
            dict(content["settings"]),
            Summary.from_json(content["summary"]),
            Findings(**{**found, "tallies": tallies, "reach": reach}),
        )

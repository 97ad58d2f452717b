"""A history: the results that were saved into a folder, in the order in which they were made.

:class:`History` shows averages over time, with intervals and with what changed between two runs,
and holds a new result to what the last runs found on average.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from krag_eval.comparison import comparable, comparison, gates
from krag_eval.comparison.comparable import has_rows
from krag_eval.comparison.comparison import On, told_left_out
from krag_eval.comparison.gates import GateReport, Terms, truth_digest
from krag_eval.core import (
    DEFINED,
    N_,
    Advice,
    Average,
    Cutoff,
    Drawn,
    InvalidInput,
    InvalidType,
    Language,
    ResultFacts,
    RowsInMemory,
    _,
    clipped,
    deepest,
    errors,
    muted,
    page_of,
    spelled,
    spoken,
    told_missing,
    unreviewed_of,
    unreviewed_sentences,
    warn,
)
from krag_eval.core.language import language_of
from krag_eval.core.matching.identity import same
from krag_eval.core.results.latency import told_failed
from krag_eval.core.results.rows import TableOf
from krag_eval.core.results.saved import read
from krag_eval.intervals import intervals
from krag_eval.loading.reading import MAX_BYTES
from krag_eval.result import EvaluationResult

if TYPE_CHECKING:
    import pandas as pd

#: How many runs a new result is held against, if nothing else is asked for.
LAST = 10
# Fewer are no average to hold a result to: then it is held to the newest alone.
_FEWEST = 3
_LEVEL, _N_RESAMPLES = 0.95, 10_000
# What is shown if nothing is named: what is found, and in what order; the first of each there is.
_SHOWN = (("macro_recall", "micro_recall"), ("ndcg",))
# What a run and the result are called in errors about both.
_CALLED = ("the run", "the result")
# A run dated further ahead would stay the last for good; clocks and time zones differ by less.
_CLOCKS_DIFFER = timedelta(days=1)
# Why runs are left out that could be compared: in a refusal, and beside a verdict.
_ITSELF, _COPY, _AHEAD = "the result itself", "a copy of another run", "dated in the future"
_FAILED = "its gate failed"
_ASIDE = {
    _ITSELF: N_("Left out, as it is the result itself: {}."),
    _COPY: N_("Left out, as they are copies of other runs: {}."),
    _AHEAD: N_("Left out, as they are dated in the future: {}."),
    _FAILED: N_("Left out, as their gate failed: {}."),
}
# Runs that cannot be compared are named up to here.
_NAMED = 3


class Change(NamedTuple):
    """What differs between a run and the one before it.

    Attributes:
        setting: A part of the signature; or ``"questions"`` or ``"ground truth"``, of which it is
            known only that they are others.
        before: What it was; ``None`` if the run before had no such setting.
        after: What it is; ``None`` if the run has no such setting.
    """

    setting: str
    before: str | None = None
    after: str | None = None


@dataclass(frozen=True, eq=False)
class HistoryRun:
    """One saved result of a history.

    Attributes:
        name: The name of its file, without ``.json``.
        result: The result.
        made: When it was made, in UTC.
        made_by_file: Whether that is the time of the file, as the result does not say.
        changes: What changed since the run before.
        is_comparable: Whether it can be compared with the run before: only the retriever, the
            averaging, the cutoffs or the version of krag_eval may be others. True for the first.
    """

    name: str
    result: EvaluationResult
    made: datetime
    made_by_file: bool = False
    changes: tuple[Change, ...] = ()
    is_comparable: bool = True

    def __repr__(self) -> str:
        return f"HistoryRun({self.name!r}, made {minute(self.made)})"


def _asked(result: ResultFacts, metric: object) -> dict[str, tuple[str, Cutoff]]:
    if metric is None:
        problem = "must name what may not drop below the last runs, got none"
        raise InvalidInput("metric", problem, Advice("name it by {}", metric=...))
    return comparable.checked_metrics({"the result": result}, metric)


# A run, and it and the result on the queries and cutoffs that they are compared on.
_Pair: TypeAlias = tuple[HistoryRun, ResultFacts, ResultFacts]


@dataclass(frozen=True, repr=False)
class HistoryReport(GateReport):
    """What became of the conditions that a history held a result to; true if all hold.

    Where metrics were held against different runs, ``n_compared`` is the fewest queries, and
    ``left_out`` is of the last of them; :attr:`note` has all.

    Attributes:
        held_against: Metric -> the runs whose average the result was held against, the last first.
        told: Which runs these are, and which could not be compared, a sentence each.
        itself: The files in the folder that are the result itself.
    """

    held_against: Mapping[str, tuple[HistoryRun, ...]] = field(default_factory=dict, hash=False)
    told: tuple[str, ...] = ()
    itself: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Which runs the result was held against, and which queries were left out."""
        return " ".join(self.told)


@dataclass(frozen=True, eq=False, repr=False)
class History(Drawn):
    """The results saved in a folder: averages over time, and what changed between two runs.

    :meth:`plot` draws :func:`~krag_eval.plotting.history_curves`.

    Made by :meth:`of`; not meant to be built by hand.

    Attributes:
        folder: Where they are.
        runs: The runs, the oldest first.
        metrics: The averages that are shown, such as ``"ndcg@10"``.
        left_out: File -> why it is no run: it is damaged, or no saved result.

    >>> import tempfile
    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> folder = tempfile.mkdtemp()
    >>> actual = [[f"passage {i}"] for i in range(40)]
    >>> def finds(first_n):
    ...     predicted = [truth if i < first_n else ["?"] for i, truth in enumerate(actual)]
    ...     return OfflineRetrievalEvaluator(actual, predicted).evaluate(k=10)
    >>> finds(30).to_json(f"{folder}/monday.json")
    >>> history = History.of(folder)
    >>> history.table[["run", "metric", "value"]]
          run           metric  value
    0  monday  macro_recall@10   0.75
    1  monday          ndcg@10   0.75
    >>> report = history.check(finds(10), metric="ndcg@10")
    >>> report.passed, [run.name for run in report.held_against["ndcg@10"]]
    (False, ['monday'])
    """

    _drawn_by = "history_curves"

    folder: str
    runs: tuple[HistoryRun, ...]
    metrics: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        folder: str | os.PathLike[str],
        metric: str | Iterable[str] | None = None,
        *,
        last: int | None = None,
    ) -> History:
        """Read the results that ``to_json`` saved into a folder, the oldest first.

        Every file whose name ends in ``.json`` is read, those of folders within are not. The order
        is that of the times at which the results were made; of a result that does not say, saved
        before this was kept, the time of its file is taken.

        Args:
            folder: The folder.
            metric: Averages to show, such as ``"ndcg@10"``, or several; if not given, recall and
                nDCG at 10, or else at the deepest cutoff that all runs have.
            last: Only so many runs, the last ones; all if not given.

        Raises:
            FileNotFoundError: If there is no such folder.
            NotADirectoryError: If it is a file.
            TypeError: If an argument is of the wrong type.
            ValueError: If no file in it is a saved result, no run has a metric, or ``last`` is not
                a whole number of at least 1.

        Warns:
            KragEvalWarning: If a file is damaged, no saved result or of more than 1 GiB, it is left
                out.
        """
        if not isinstance(folder, str | os.PathLike):
            raise InvalidType("folder", f"must be the name of a folder, got {clipped(folder)}")
        if last is not None:
            last = errors.whole("last", last, 1)
        named = os.fsdecode(folder)
        runs, left_out = _read(Path(folder))
        for file, why in left_out.items():
            told = _("{file} is left out of the history: {why}")
            warn(told.format(file=file, why=why))
        if not runs:
            problem = f": {named} holds no saved result"
            raise InvalidInput("folder", problem, "save results there with to_json or --json")
        runs = _with_changes(sorted(runs, key=lambda one: (one.made, one.name)))
        runs = runs[-last:] if last else runs
        return cls(named, tuple(runs), _metrics_of(runs, metric), left_out)

    @cached_property
    def _bounds(self) -> dict[tuple[str, str], tuple[float, float]]:
        """The intervals of all runs, by run and metric; undefined without per-query rows."""
        intervals.warn_of_few_queries(min(run.result.n_counted for run in self.runs))
        # Resamples of as many queries are the same draws, and drawing them is what takes long.
        alike: defaultdict[Any, dict[str, ResultFacts]] = defaultdict(dict)
        for run in self.runs:
            averages = _known(run.result, self.metrics)
            if averages and has_rows(run.result) and run.result.counted.any():
                alike[run.result.n_counted, tuple(averages.items())][run.name] = run.result
        return {
            (name, metric): (one.low, one.high)
            for (_n, averages), results in alike.items()
            for metric, standing in intervals.standings(
                results, dict(averages), intervals.check_sampling(_LEVEL, _N_RESAMPLES)
            ).items()
            for name, one in standing.items()
        }

    def value(self, run: HistoryRun, metric: str) -> float:
        """Return an average of a run; NaN if it is undefined, or was not evaluated."""
        for key, k in _known(run.result, [metric]).values():
            return run.result.averages(k)[key]
        return math.nan

    def bounds(self, run: HistoryRun, metric: str) -> tuple[float, float]:
        """Return the 95 % interval of an average of a run, that of ``confidence_intervals``.

        It is NaN where the average is undefined, or the run has no per-query rows.

        Warns:
            KragEvalWarning: The first time, if a run has fewer than 30 queries.
        """
        return self._bounds.get((run.name, metric), (math.nan, math.nan))

    @property
    def definitions(self) -> dict[str, Average]:
        """How each of the averages shown is read, by its name."""
        return {
            metric: run.result.definitions[key]
            for run in self.runs
            for metric, (key, _k) in _known(run.result, self.metrics).items()
        }

    @property
    def table(self) -> pd.DataFrame:
        """One row per run and metric, the oldest run first.

        Columns: ``run``, ``made``, ``made_by_file``, ``metric``, ``value``, ``low`` and ``high``
        (the 95 % interval), ``comparable`` (with the run before), ``changed``, in words, and
        ``failed``: for how many queries the retriever failed, which count as nothing retrieved;
        and ``missing``: how many questions of the ground truth are left out.
        """
        import pandas as pd

        names = ["run", "made", "made_by_file", "metric", "value", "low", "high"]
        rows = [
            (run.name, run.made, run.made_by_file, metric, self.value(run, metric),
             *self.bounds(run, metric), run.is_comparable, "; ".join(page_of(run).sentences),
             run.result.n_failed, run.result.n_missing)
            for run in self.runs
            for metric in self.metrics
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=[*names, "comparable", "changed", "failed", "missing"])

    def to_dict(self) -> dict[str, Any]:
        """Return the runs as JSON has them; what is undefined is ``None``."""
        return {
            "folder": self.folder,
            "metrics": list(self.metrics),
            "runs": [self._as_dict(run) for run in self.runs],
            "left_out": dict(self.left_out),
        }

    def _as_dict(self, run: HistoryRun) -> dict[str, Any]:
        numbers = {
            metric: (self.value(run, metric), *self.bounds(run, metric)) for metric in self.metrics
        }
        return {
            "run": run.name,
            "made": run.made.isoformat(timespec="milliseconds"),
            "made_by_file": run.made_by_file,
            "metrics": {
                metric: {
                    name: None if math.isnan(one) else one
                    for name, one in zip(("value", "low", "high"), values, strict=True)
                }
                for metric, values in numbers.items()
            },
            "comparable": run.is_comparable,
            "changes": [change._asdict() for change in run.changes],
            "failed": run.result.n_failed,
            "missing": run.result.n_missing,
            "signature": run.result.signature,
        }

    @spoken
    def check(
        self,
        result: ResultFacts,
        floors: Mapping[str, float] | Iterable[str] | None = None,
        *,
        metric: str | Iterable[str],
        max_drop: float | None = None,
        last: int = LAST,
        on: On = "all",
        by: str | None = None,
        baseline: ResultFacts | None = None,
        strict: bool = False,
        allow_failures: int = 0,
        allow_missing: int = 0,
        clusters: str | None = None,
        level: float = _LEVEL,
        n_resamples: int = _N_RESAMPLES,
        seed: int = 0,
        language: Language | None = None,
    ) -> HistoryReport:
        """Check whether a result is as good as the last runs that it compares with, on average.

        As ``result.check(baseline=…)``, where the baseline is, for each question, the mean of what
        the last runs found; of a micro average, of its counts. These are runs that have the metric,
        share at least half of the result's questions, are comparable with it, that is, on the same
        ground truth with the same settings, and did not fail their gate, if their file says so. Of
        fewer than three, it is the last alone. The result itself is left out, wherever its file is,
        and so is a run dated more than a day ahead of the clock. A run under several names, with
        equal values and made at the same moment, counts once.

        Args:
            result: The new result.
            floors: The least each average may be, as ``result.check`` takes them.
            metric: What may not drop: ``"ndcg@10"``, or several.
            max_drop: How far it may drop, 0 if not given; see ``result.check``.
            last: How many such runs are averaged, at most.
            on: ``"common"`` to compare each question with those of the runs that have it.
            by: A tag, no slice of which may drop further either.
            baseline: A result that it may not fall behind either: a history follows a slow decline.
            strict: Whether what is inconclusive fails.
            allow_failures: For how many queries the retriever may have failed, in the result and in
                a run; a run where it failed for more is not compared with.
            allow_missing: How many questions of the ground truth the result, and a run, may lack,
                likewise.
            clusters: A tag of the queries that belong together.
            level: As in ``result.check``.
            n_resamples: Number of random swaps, and of resamples of the bootstrap.
            seed: The same seed gives the same verdict.
            language: Of the reasons, ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else
                ``"en"``.

        Raises:
            TypeError: If an argument is of the wrong type.
            ValueError: If there is no run to compare with, or ``result.check`` refuses.
        """
        if not isinstance(result, ResultFacts):
            raise InvalidType("result", f"must be an EvaluationResult, got {clipped(result)}")
        last, language = errors.whole("last", last, 1), language_of(language)
        metrics = _asked(result, metric)
        sampling = intervals.check_sampling(level, n_resamples, seed)
        terms = Terms(
            *(sampling, max_drop, on, by, clusters, errors.boolean("strict", strict)),
            *(allow_failures, allow_missing),
        )
        failed = gates.allowed_failures({"new": result}, terms)
        missing = gates.allowed_missing({"new": result}, terms)
        pairs, apart = _comparable(self.runs, result, terms)
        groups = self._groups(pairs, apart, metrics, last)
        compared = []
        for names, several in groups:
            mean = _mean_of(several, result, [metrics[name][1] for name in names])
            averaged = [ours for _, ours, _ in several] if len(several) > 1 else []
            compared.append(gates.against(result, mean, names, terms, averaged))
            failed |= {run.name: n for run, _, _ in several if (n := run.result.n_failed)}
            missing |= {run.name: one for run, _, _ in several if (one := run.result.missing)}
        found = [*gates.floor_gates(result, floors), *gates.drop_gates(compared, by, "the history")]
        notes = [note for one in compared for note in told_left_out(len(one.queries), one.left_out)]
        against_it: tuple[comparison.Comparison, ...] = ()
        if baseline is not None:
            as_they_are = terms._replace(strict=False)
            with_it = gates.check(result, None, baseline, list(metrics), as_they_are)
            said = _("{} (against the baseline)")
            found += [replace(one, reason=said.format(one.reason)) for one in with_it.gates]
            failed |= with_it.failed
            missing |= with_it.missing
            against_it = with_it.comparisons
            notes += told_left_out(with_it.n_compared or 0, with_it.left_out)
        told = [*self._told(groups), *_told_apart(apart), *dict.fromkeys(notes)]
        runs = {run.name: run.result for _, several in groups for run, *_ in several}
        drafts = unreviewed_of({**runs, "new": result})
        return HistoryReport(
            gates=gates.settled(found, terms),
            left_out={name: some for one in compared for name, some in one.left_out.items()},
            n_compared=min(len(one.queries) for one in compared),
            language=language,
            failed=failed,
            missing=missing,
            ground_truth=truth_digest(result.rows),
            comparisons=(*compared, *against_it),
            held_against={
                name: tuple(run for run, _, _ in several)
                for names, several in groups
                for name in names
            },
            told=(
                *told,
                *told_failed(failed),
                *told_missing(missing),
                *unreviewed_sentences(drafts),
                *_told_before(result),
            ),
            itself=tuple(
                os.path.join(self.folder, f"{name}.json")
                for name, why in apart.items()
                if why == _ITSELF
            ),
        )

    def _groups(
        self, pairs: Sequence[_Pair], apart: Mapping[str, str], metrics: Iterable[str], last: int
    ) -> list[tuple[list[str], list[_Pair]]]:
        """Return the runs to average, the last one first, with the metrics that these are for.

        Of fewer than three, it is the last one alone.

        Raises:
            InvalidInput: If there is none to compare with.
        """
        groups: dict[tuple[str, ...], tuple[list[str], list[_Pair]]] = {}
        for metric in metrics:
            having = [pair for pair in pairs if _has_same(pair, metric)][:last]
            if not having:
                others = [f"{name}: {why}" for name, why in apart.items()]
                others += [f"{run.name}: it has no {metric}" for run, _, _ in pairs]
                more = f"; and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
                problem = f": none of the runs in {self.folder} can be compared on {metric} "
                problem += f"({'; '.join(others[:_NAMED])}{more})"
                fix = "save a result there of the same queries with the same settings"
                raise InvalidInput("history", problem, fix)
            having = having if len(having) >= _FEWEST else having[:1]
            runs = tuple(run.name for run, _, _ in having)
            groups.setdefault(runs, ([], having))[0].append(metric)
        return list(groups.values())

    def _told(self, groups: Iterable[tuple[list[str], list[_Pair]]]) -> Iterator[str]:
        """Say against which runs a result was held."""
        for metrics, pairs in groups:
            told = _("Held against the last comparable run in {folder} alone ({metrics}): {runs}.")
            if len(pairs) > 1:
                told = _(
                    "Held against the mean of the last {n} comparable runs in {folder} "
                    "({metrics}): {runs}."
                )
            yield told.format(
                n=len(pairs), folder=self.folder, metrics=", ".join(metrics),
                runs=", ".join(run.name for run, _, _ in pairs),
            )  # fmt: skip
            settings = [theirs.settings for *_, theirs in pairs[:1]]
            yield from told_others([*settings, *(one.settings for _, one, _ in pairs)])


def _read(folder: Path) -> tuple[list[HistoryRun], dict[str, str]]:
    """Read the results in a folder; return them, and why other files are none."""
    runs, left_out = [], {}
    for path in sorted(Path(one.path) for one in os.scandir(folder) if one.name.endswith(".json")):
        try:
            if not path.is_dir():
                runs.append(_run(path))
        except errors.Refusal as error:
            left_out[path.name] = errors.sentence(error.problem, "").rstrip(".")
        except OSError as error:  # others may be read
            left_out[path.name] = f"it cannot be read ({error.strerror or error})"
    return runs, left_out


def _run(path: Path) -> HistoryRun:
    """Read one result.

    Raises:
        InvalidInput: If it is none, or more than what anybody would keep in a history.
        OSError: If it cannot be read.
    """
    if not path.is_file():  # a pipe would wait for somebody to write
        raise InvalidInput("", "it is no regular file")
    kept = path.stat()
    if kept.st_size > MAX_BYTES:
        problem = f"it has {kept.st_size:,} bytes, and no more than {MAX_BYTES:,} are read of one"
        raise InvalidInput("", problem)
    result = read(path, EvaluationResult)
    try:
        made = result.made or datetime.fromtimestamp(kept.st_mtime, UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput("", f"the time of its file is no date ({error})") from error
    return HistoryRun(path.stem, result, made.astimezone(UTC), result.made is None)


def _with_changes(runs: Sequence[HistoryRun]) -> list[HistoryRun]:
    found = list(runs[:1])
    for before, run in pairwise(runs):
        changes, is_comparable = _changes(before.result, run.result)
        found.append(replace(run, changes=tuple(changes), is_comparable=is_comparable))
    return found


def _changes(before: ResultFacts, after: ResultFacts) -> tuple[list[Change], bool]:
    """Return what changed between two results, and whether they can be compared.

    Of results without rows, the settings alone are known.
    """
    ours, theirs = before.settings, after.settings
    changes = [
        Change(name, ours.get(name), theirs.get(name))
        for name in {**theirs, **ours}
        if ours.get(name) != theirs.get(name)
    ]
    are_apart = not {*before.k} & {*after.k} or any(
        same(one.before or "", one.after or "") is False
        for one in changes
        if one.setting not in comparison.MAY_DIFFER
    )
    if has_rows(before) and has_rows(after):
        with muted():
            both = comparison.aligned({"before": before, "after": after})[0]
            _, measured = comparison.differing(both["before"], both["after"])
        if measured:
            same_labels = sorted(map(str, before.labels)) == sorted(map(str, after.labels))
            changes.append(Change("ground truth" if same_labels else "questions"))
            are_apart = True
    return changes, not are_apart


def _metrics_of(runs: Sequence[HistoryRun], metric: str | Iterable[str] | None) -> tuple[str, ...]:
    """Return the averages to show, by the names that they have in the last run with them."""
    latest = runs[-1].result
    if metric is None:
        shared = [k for k in latest.k if all(k in run.result.k for run in runs)] or latest.k
        at = 10 if 10 in shared else deepest(shared)
        known = latest.averages(at)
        chosen = [next((key for key in keys if key in known), None) for keys in _SHOWN]
        keys = [key for key in chosen if key] or list(known)[:2]
        return tuple(f"{key}@{spelled(at)}" for key in keys)
    asked = [metric] if isinstance(metric, str) or not isinstance(metric, Iterable) else [*metric]
    if not asked:
        raise InvalidInput("metric", "must name at least one metric, got none")
    return tuple(dict.fromkeys(_spelling(runs, one) for one in asked))


def _spelling(runs: Sequence[HistoryRun], metric: str) -> str:
    """Return the name of an average in the last run that has it.

    Raises:
        InvalidInput: If none has, with what the last run lacks.
    """
    for run in reversed(runs):
        with suppress(InvalidInput):
            return next(iter(comparable.checked_metrics({run.name: run.result}, metric)))
    return next(iter(comparable.checked_metrics({runs[-1].name: runs[-1].result}, metric)))


def _known(result: ResultFacts, metrics: Iterable[str]) -> dict[str, tuple[str, Cutoff]]:
    """Return those of the averages that a result has: name -> (key, cutoff)."""
    return {name: one for name, one in intervals.every_average(result).items() if name in metrics}


def _comparable(
    runs: Sequence[HistoryRun], result: ResultFacts, terms: Terms
) -> tuple[list[_Pair], dict[str, str]]:
    """Return the runs that a result can be held against, the last first, and why not the others."""
    pairs: list[_Pair] = []
    apart: dict[str, str] = {}
    soon = datetime.now(UTC) + _CLOCKS_DIFFER
    for several in _gathered(reversed(runs)):
        *copies, run = several  # by name, the first of them stands for all
        if run.result.is_same_run(result):
            apart |= dict.fromkeys((one.name for one in several), _ITSELF)
            continue
        apart |= dict.fromkeys((one.name for one in copies), _COPY)
        pair = _AHEAD if run.made > soon else _brought_to(run, result, terms)
        if not isinstance(pair, str) and any(one.result.gate == "failed" for one in several):
            pair = _FAILED
        if isinstance(pair, str):
            apart[run.name] = pair
        else:
            pairs.append(pair)
    return pairs, apart


def _gathered(runs: Iterable[HistoryRun]) -> list[list[HistoryRun]]:
    """Gather what is one run under several names: equal results, made at the same moment."""
    found: list[list[HistoryRun]] = []
    at: defaultdict[datetime, list[list[HistoryRun]]] = defaultdict(list)
    for run in runs:
        others = at[run.made] if has_rows(run.result) else []
        known = next((one for one in others if one[0].result == run.result), None)
        if known is None:
            known = []
            found.append(known)
            others.append(known)
        known.append(run)
    return found


def _brought_to(run: HistoryRun, result: ResultFacts, terms: Terms) -> _Pair | str:
    """Return a run and a result on the queries they are compared on, or why they cannot be."""
    if run.result.n_failed > terms.allow_failures:
        return f"{run.result.n_failed} of {run.result.n_queries} queries failed"
    if (lacking := run.result.missing) and lacking.n_left_out > terms.allow_missing:
        return f"{lacking.n} of {lacking.questions} questions are missing"
    try:
        with muted():
            both = dict(zip(_CALLED, (run.result, result), strict=True))
            ours, theirs = comparison.aligned(both, terms.on)[0].values()
        apart = [one for several in comparison.differing(ours, theirs) for one in several]
    except errors.Refusal as error:
        return error.problem.removeprefix(": ")
    if not apart and 2 * theirs.n_queries < result.n_queries:
        return f"it has {theirs.n_queries} of the {result.n_queries} queries"
    return "; ".join(apart) or (run, ours, theirs)


def _told_before(result: ResultFacts) -> Iterator[str]:
    """Say that a result failed a gate before, and on which conditions if that is known."""
    if result.gate == "failed":
        failed = [name for name, outcome in result.verdicts.items() if outcome == "failed"]
        message = _(
            "This result has failed a gate before{conditions}, so later ones are not held to it, "
            "whatever it passes now."
        )
        yield message.format(conditions=f" ({', '.join(failed)})" if failed else "")


def _told_apart(apart: Mapping[str, str]) -> Iterator[str]:
    """Say which runs were left out, and how many could not be compared."""
    for why, told in _ASIDE.items():
        names = [name for name, its in apart.items() if its == why]
        if names:
            yield _(told).format(", ".join(names))
    refused = {name: why for name, why in apart.items() if why not in _ASIDE}
    if refused:
        name, why = next(iter(refused.items()))
        told = _("Not comparable: {n} of the runs, such as {run} ({why}).")
        yield told.format(n=len(refused), run=name, why=why)


def _has_same(pair: _Pair, metric: str) -> bool:
    """Tell whether a run has a metric, and not by another function."""
    _, ours, theirs = pair
    known = _known(ours, [metric]).values()
    return any(comparison.same_metric(ours, theirs, key) is not False for key, _ in known)


def _mean_of(pairs: Sequence[_Pair], result: ResultFacts, cutoffs: Sequence[Cutoff]) -> ResultFacts:
    """Return the mean of runs: each column of each query over the runs that have it.

    It has the queries of the result that some run has. Where a column may be undefined, it is over
    the runs where it is defined, and how many these are is a column of its own.
    """
    run, newest, _ = pairs[0]
    if len(pairs) == 1:
        return run.result
    position = {label: place for place, label in enumerate(result.labels)}
    others = [ours for _, ours, _ in pairs]
    at = [
        slice(None) if ours.labels == result.labels else [position[one] for one in ours.labels]
        for ours in others
    ]
    has = np.zeros((len(pairs), result.n_queries), np.bool_)
    for of_run, places in zip(has, at, strict=True):
        of_run[places] = True
    kept = np.flatnonzero(has.any(axis=0))
    digests = None
    if result.rows.digests is not None and all(one.rows.digests is not None for one in others):
        digests = [result.rows.digests[place] for place in kept.tolist()]
    tables = {}
    for k in dict.fromkeys(cutoffs):
        columns = dict(_mean_columns([one.tables[k] for one in others], at, has))
        columns["ground_truth"] = result.tables[k]["ground_truth"]
        tables[k] = {name: column[kept] for name, column in columns.items()}
    labels = [result.labels[place] for place in kept.tolist()]
    rows = RowsInMemory(labels, tables, result.counted[kept], digests)
    settings = comparison.settings_of(newest.settings, rows)
    return replace(newest, rows=rows, settings=settings, evidence=None, totals=None, retrieval=None)


def _mean_columns(
    tables: Sequence[TableOf], at: Sequence[slice | list[int]], has: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the columns that all runs have, averaged, and those that say where they are defined.

    Args:
        tables: The columns of each run.
        at: Where its queries are among those of the result.
        has: Whether it has a query; shape (runs, queries).
    """
    n_runs = has.sum(axis=0)
    for name in (one for one in tables[0] if all(one in table for table in tables)):
        values = np.full(has.shape, np.nan)
        for of_run, table, places in zip(values, tables, at, strict=True):
            of_run[places] = table[name]
        n_defined = (~np.isnan(values)).sum(axis=0)
        # One run after the other, so that as many queries as there are change no digit.
        total = sum(np.nan_to_num(values, nan=0.0))
        yield (
            name,
            np.divide(total, n_defined, out=np.full(len(n_runs), np.nan), where=n_defined > 0),
        )
        if (n_defined < n_runs).any():
            yield DEFINED + name, n_defined / np.maximum(n_runs, 1)


def told_others(settings: Sequence[Mapping[str, str]]) -> list[str]:
    """Say which settings may not be the same in all runs."""
    told = _(
        "The {name} may not be the same in all runs: {value} does not tell all that it depends on."
    )
    return [told.format(name=name, value=one) for name, one in comparison.may_be_others(settings)]


def minute(moment: datetime) -> str:
    """Return a time to the minute."""
    return f"{moment:%Y-%m-%d %H:%M}"

"""A history: the results that were saved into a folder, in the order in which they were made.

:class:`History` shows averages over time, with intervals and with what changed between two runs,
and holds a new result to the best of the last runs.
"""

from __future__ import annotations

import html
import math
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from krag_eval._errors import (
    Advice,
    InvalidInput,
    InvalidType,
    Language,
    Refusal,
    clipped,
    language_of,
    muted,
    sentence,
    warn,
    whole,
)
from krag_eval.matching.identity import same
from krag_eval.results.result import EvaluationResult
from krag_eval.results.saved import read
from krag_eval.scoring.averages import Average
from krag_eval.scoring.cutoffs import Cutoff, deepest, spelled
from krag_eval.statistics.comparison import (
    MAY_DIFFER,
    On,
    as_html,
    as_text,
    brought_together,
    checked_metrics,
    differing,
    may_be_others,
)
from krag_eval.statistics.gates import GateReport, check
from krag_eval.statistics.intervals import warn_of_few_queries
from krag_eval.statistics.paired import standings

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = [
    "LAST",
    "Change",
    "History",
    "HistoryReport",
    "HistoryRun",
    "cells",
    "headed",
    "told",
    "told_changes",
]

#: How many runs a new result is held against, if nothing else is asked for.
LAST = 10
_LEVEL, _N_RESAMPLES = 0.95, 10_000
# Runs whose resamples are held in memory together.
_DRAWN_AT_ONCE = 50
# What is shown if nothing is named: what is found, and in what order; the first of each there is.
_SHOWN = (("macro_recall", "micro_recall"), ("ndcg",))
# What a run and the result are called in errors about both.
_CALLED = ("the run", "the result")
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
        return f"HistoryRun({self.name!r}, made {_minute(self.made)})"


@dataclass(frozen=True, repr=False)
class HistoryReport(GateReport):
    """What became of the conditions that a history held a result to; true if all hold.

    Where several runs were the best, ``n_compared`` is the fewest queries it was held against one
    of them on, and ``left_out`` is of the last of them; :attr:`note` has all.

    Attributes:
        best: Metric -> the run that the result was held against.
        told: Which runs these are, and which could not be compared, a sentence each.
    """

    best: Mapping[str, HistoryRun] = field(default_factory=dict, hash=False)
    told: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """Which runs the result was held against, and which queries were left out."""
        return " ".join(self.told)


@dataclass(frozen=True, eq=False)
class History:
    """The results saved in a folder: averages over time, and what changed between two runs.

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
    >>> report.passed, report.best["ndcg@10"].name
    (False, 'monday')
    """

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
            KragEvalWarning: If a file is damaged, or no saved result; it is left out.
        """
        if not isinstance(folder, str | os.PathLike):
            raise InvalidType("folder", f"must be the name of a folder, got {clipped(folder)}")
        if last is not None:
            last = whole("last", last, 1)
        named = os.fsdecode(folder)
        runs, left_out = _read(Path(folder))
        for file, why in left_out.items():
            warn(_WORDS[language_of()]["unreadable"].format(file=file, why=why))
        if not runs:
            problem = f": {named} holds no saved result"
            raise InvalidInput("folder", problem, "save results there with to_json or --json")
        runs = _with_changes(sorted(runs, key=lambda one: (one.made, one.name)))
        runs = runs[-last:] if last else runs
        return cls(named, tuple(runs), _metrics_of(runs, metric), left_out)

    @cached_property
    def _bounds(self) -> dict[tuple[str, str], tuple[float, float]]:
        """The intervals of all runs, by run and metric; undefined without per-query rows."""
        warn_of_few_queries(min(run.result.n_counted for run in self.runs))
        return {
            (name, metric): (one.low, one.high)
            for results, averages in _drawn_alike(self.runs, self.metrics)
            for metric, standing in standings(
                results, averages, level=_LEVEL, n_resamples=_N_RESAMPLES, seed=0
            ).items()
            for name, one in standing.items()
        }

    def value(self, run: HistoryRun, metric: str) -> float:
        """Return an average of a run; NaN if it is undefined, or was not evaluated."""
        key_and_k = _known(run.result, [metric]).get(metric)
        if key_and_k is None:
            return math.nan
        key, k = key_and_k
        return run.result.averages(k)[key]

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
        found: dict[str, Average] = {}
        for run in self.runs:
            for metric, (key, _) in _known(run.result, self.metrics).items():
                found[metric] = run.result.definitions[key]
        return found

    @property
    def table(self) -> pd.DataFrame:
        """One row per run and metric, the oldest run first.

        Columns: ``run``, ``made``, ``made_by_file``, ``metric``, ``value``, ``low`` and ``high``
        (the 95 % interval), ``comparable`` (with the run before) and ``changed``, in words.
        """
        import pandas as pd

        names = ["run", "made", "made_by_file", "metric", "value", "low", "high"]
        rows = [
            (run.name, run.made, run.made_by_file, metric, self.value(run, metric),
             *self.bounds(run, metric), run.is_comparable, "; ".join(told_changes(run)))
            for run in self.runs
            for metric in self.metrics
        ]  # fmt: skip
        return pd.DataFrame(rows, columns=[*names, "comparable", "changed"])

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
            "signature": run.result.signature,
        }

    def plot(self, ax: Axes | None = None, *, language: Language | None = None) -> Axes:
        """Draw each metric from run to run, with its intervals.

        A line breaks where two runs cannot be compared.

        Args:
            ax: Where to draw; a new figure if not given.
            language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.

        Returns:
            The matplotlib Axes; nothing is shown or saved.

        Raises:
            ValueError: If there are more than seven metrics, or one without an upper end, such as
                ``mean_rank``, among others.
        """
        from krag_eval.plotting import history_curves

        return history_curves(self, ax, language=language)

    def check(
        self,
        result: EvaluationResult,
        floors: Mapping[str, float] | Iterable[str] | None = None,
        *,
        metric: str | Iterable[str],
        max_drop: float | None = None,
        last: int = LAST,
        on: On = "all",
        by: str | None = None,
        clusters: str | None = None,
        level: float = _LEVEL,
        n_resamples: int = _N_RESAMPLES,
        seed: int = 0,
        language: Language | None = None,
    ) -> HistoryReport:
        """Check whether a result is as good as the best of the last runs that it compares with.

        As ``result.check(baseline=…)``, where the history finds the baseline, for each metric one:
        among the last runs that have the metric and are comparable with the result, that is, on the
        same queries and ground truth, with the same settings. The result itself is left out,
        wherever its file is. The best of ten was lucky more often than not, so allow for a drop.

        Args:
            result: The new result.
            floors: The least each average may be, as ``result.check`` takes them.
            metric: What may not drop: ``"ndcg@10"``, or several.
            max_drop: How far it may drop, 0 if not given. A larger drop fails only if the interval
                of the paired difference excludes 0.
            last: Among how many runs the best is looked for.
            on: ``"common"`` to compare the queries that a run and the result both have. The best
                run is then the one that the result falls behind most on them.
            by: A tag, no slice of which may drop further either.
            clusters: A tag of the queries that belong together.
            level: How often the interval should cover the true difference, between 0 and 1.
            n_resamples: Number of resamples of the bootstrap.
            seed: The same seed gives the same verdict.
            language: Of the reasons, ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else
                ``"en"``.

        Raises:
            TypeError: If an argument is of the wrong type.
            ValueError: If there is no run to compare with, or ``result.check`` refuses.
        """
        if not isinstance(result, EvaluationResult):
            raise InvalidType("result", f"must be an EvaluationResult, got {clipped(result)}")
        last, language = whole("last", last, 1), language_of(language)
        metrics = _asked(result, metric)
        among = _Comparable.of(self, result, on)
        best = {name: among.best(name, *place, last) for name, place in metrics.items()}
        sampling = {"level": level, "n_resamples": n_resamples, "seed": seed, "clusters": clusters}
        parts = [] if floors is None else [check(result, floors, sampling={}, language=language)]
        for run in dict.fromkeys(best.values()):
            names = [name for name, one in best.items() if one is run]
            parts.append(check(result, baseline=run.result, metric=names, max_drop=max_drop, on=on,
                               by=by, sampling=sampling, language=language))  # fmt: skip
        notes = dict.fromkeys(filter(None, (part.note for part in parts)))
        return HistoryReport(
            gates=tuple(gate for part in parts for gate in part.gates),
            left_out={name: some for part in parts for name, some in part.left_out.items()},
            n_compared=min(part.n_compared for part in parts if part.n_compared is not None),
            language=language,
            best=best,
            told=(*among.told(best, last, language), *notes),
        )

    def __repr__(self) -> str:
        language = language_of()
        lines = [headed(self, language), *as_text(cells(self, language), n_names=2)]
        return "\n".join([*(line.rstrip() for line in lines), *told(self, language)])

    def _repr_html_(self) -> str:
        language = language_of()
        head, table = html.escape(headed(self, language)), as_html(cells(self, language))
        below = "".join(
            f"<p><small>{html.escape(line)}</small></p>" for line in told(self, language)
        )
        return f"<p>{head}</p>{table}{below}"


def _read(folder: Path) -> tuple[list[HistoryRun], dict[str, str]]:
    """Read the results in a folder; return them, and why other files are none."""
    runs, left_out = [], {}
    for path in sorted(Path(one.path) for one in os.scandir(folder) if one.name.endswith(".json")):
        if not path.is_file():
            if path.is_symlink() and not path.exists():
                left_out[path.name] = "it is a link to a file that is not there"
            continue
        try:
            result = read(path)
        except Refusal as error:
            left_out[path.name] = sentence(error.problem, "").rstrip(".")
            continue
        except OSError as error:  # others may be read
            left_out[path.name] = f"it cannot be read ({error.strerror or error})"
            continue
        by_file = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        made = result.made or by_file
        runs.append(HistoryRun(path.stem, result, made.astimezone(UTC), result.made is None))
    return runs, left_out


def _with_changes(runs: Sequence[HistoryRun]) -> list[HistoryRun]:
    found = list(runs[:1])
    for before, run in pairwise(runs):
        settings, measured = _apart(before.result, run.result)
        changes = (*_changed_settings(before.result, run.result), *measured)
        found.append(replace(run, changes=changes, is_comparable=not settings and not measured))
    return found


def _has_rows(result: EvaluationResult) -> bool:
    """Tell whether there are per-query rows: a run in parts may have them in a file, or nowhere."""
    try:
        return result.labels is not None
    except (Refusal, OSError):
        return False


def _changed_settings(before: EvaluationResult, after: EvaluationResult) -> list[Change]:
    """Return the parts of the signature that changed, in its order."""
    ours, theirs = before.settings, after.settings
    return [
        Change(name, ours.get(name), theirs.get(name))
        for name in {**theirs, **ours}
        if ours.get(name) != theirs.get(name)
    ]


def _apart(before: EvaluationResult, after: EvaluationResult) -> tuple[bool, list[Change]]:
    """Tell whether settings keep two results from being compared, and what else does.

    Of results without rows, the settings alone are known.
    """
    if not (_has_rows(before) and _has_rows(after)):
        return _settings_apart(before, after), []
    with muted():
        ours, theirs = brought_together(before, after)
    settings, measured = differing(ours, theirs)
    same = sorted(map(str, before.labels)) == sorted(map(str, after.labels))
    what = "ground truth" if same else "questions"
    return bool(settings), [Change(what)] if measured else []


def _settings_apart(before: EvaluationResult, after: EvaluationResult) -> bool:
    return any(
        one.setting not in MAY_DIFFER and same(one.before or "", one.after or "") is False
        for one in _changed_settings(before, after)
    )


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
    refused: InvalidInput | None = None
    for run in reversed(runs):
        try:
            return next(iter(checked_metrics({run.name: run.result}, metric)))
        except InvalidInput as error:
            refused = refused or error
    assert refused is not None  # there is a run
    raise refused


def _known(result: EvaluationResult, metrics: Iterable[str]) -> dict[str, tuple[str, Cutoff]]:
    """Return those of the averages that a result has: name -> (key, cutoff)."""
    return {
        f"{key}@{spelled(k)}": (key, k)
        for k in result.k
        for key in result.averages(k)
        if f"{key}@{spelled(k)}" in metrics
    }


def _drawn_alike(
    runs: Sequence[HistoryRun], metrics: Iterable[str]
) -> Iterator[tuple[dict[str, EvaluationResult], dict[str, tuple[str, Cutoff]]]]:
    """Yield results that can be resampled together, by their runs, and their averages.

    Resamples of as many queries are the same draws, and drawing them is what takes long.
    """
    alike = defaultdict(list)
    for run in runs:
        averages = _known(run.result, metrics)
        if averages and _has_rows(run.result) and run.result.counted.any():
            alike[run.result.n_counted, tuple(averages.items())].append(run)
    for (_, shown), several in alike.items():
        for start in range(0, len(several), _DRAWN_AT_ONCE):
            some = several[start : start + _DRAWN_AT_ONCE]
            yield {run.name: run.result for run in some}, dict(shown)


def _asked(result: EvaluationResult, metric: object) -> dict[str, tuple[str, Cutoff]]:
    if metric is None:
        problem = "must name what may not drop below the best run, got none"
        raise InvalidInput("metric", problem, Advice("name it by {}", metric=...))
    return checked_metrics({"the result": result}, metric)


@dataclass(frozen=True)
class _Comparable:
    """The runs that a result can be held against, and why it cannot be against the others.

    Attributes:
        history: The history.
        pairs: A run, and it and the result as they would be compared; the last run first.
        refused: Run -> why it cannot be compared.
        itself: The runs that are the result itself.
    """

    history: History
    pairs: Sequence[tuple[HistoryRun, EvaluationResult, EvaluationResult]]
    refused: Mapping[str, str]
    itself: Sequence[str]

    @classmethod
    def of(cls, history: History, result: EvaluationResult, on: On) -> _Comparable:
        pairs, refused, itself = [], {}, []
        for run in reversed(history.runs):
            if run.result.made == result.made and run.result == result:
                itself.append(run.name)
                continue
            try:
                with muted():
                    ours, theirs = brought_together(run.result, result, on, _CALLED)
                apart = [one for several in differing(ours, theirs) for one in several]
            except Refusal as error:
                apart = [error.problem.removeprefix(": ")]
            if apart:
                refused[run.name] = "; ".join(apart)
            else:
                pairs.append((run, ours, theirs))
        return cls(history, pairs, refused, itself)

    def best(self, metric: str, key: str, k: Cutoff, last: int) -> HistoryRun:
        """Return the run that the result falls behind most; of equals, the last one.

        Raises:
            InvalidInput: If there is none to compare with.
        """
        having = [pair for pair in self.pairs if metric in _known(pair[1], [metric])][:last]
        if not having:
            raise self._nothing(metric)
        lower = having[0][1].definitions[key].lower_is_better
        behind = _behind(key, k, lower_is_better=lower)
        run, _, _ = max(having, key=behind)
        return run

    def _nothing(self, metric: str) -> InvalidInput:
        others = [f"{name}: {why}" for name, why in self.refused.items()]
        others += [f"{name} is the result itself" for name in self.itself]
        others += [f"{run.name} has no {metric}" for run, _, _ in self.pairs]
        more = f"; and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        problem = (
            f": none of the runs in {self.history.folder} can be compared on {metric} "
            f"({'; '.join(others[:_NAMED])}{more})"
        )
        fix = "save a result there that was evaluated on the same queries with the same settings"
        return InvalidInput("history", problem, fix)

    def told(self, best: Mapping[str, HistoryRun], last: int, language: Language) -> Iterable[str]:
        """Say which runs were the best, and how many could not be compared."""
        w = _WORDS[language]
        of_runs = w["and"].join(w["of run"].format(metric=m, run=r.name) for m, r in best.items())
        n = min(last, len(self.pairs))
        kind = "held against one" if n == 1 else "held"
        yield w[kind].format(best=of_runs, n=n, folder=self.history.folder)
        if self.itself:
            yield w["itself"].format(", ".join(self.itself))
        if self.refused:
            name, why = next(iter(self.refused.items()))
            yield w["not comparable"].format(n=len(self.refused), run=name, why=why)


def _behind(
    key: str, k: Cutoff, *, lower_is_better: bool
) -> Callable[[tuple[HistoryRun, EvaluationResult, EvaluationResult]], float]:
    """Return what says how far the result falls behind a run on the queries of both."""

    def behind(pair: tuple[HistoryRun, EvaluationResult, EvaluationResult]) -> float:
        _, run, result = pair
        was, now = run.averages(k)[key], result.averages(k)[key]
        if math.isnan(was):
            return -math.inf
        moved = was - (0.0 if math.isnan(now) else now)
        return -moved if lower_is_better else moved

    return behind


# What is said of a history, in both languages.
_WORDS: Mapping[Language, Mapping[str, str]] = {
    "en": {
        "head": "{n} runs in {folder}",
        "head of one": "{n} run in {folder}",
        "unreadable": "{file} is left out of the history: {why}",
        "run": "run",
        "made": "made (UTC)",
        "interval": "95 % interval",
        "from to": "{} to {}",
        "changed": "{name} from {before} to {after}",
        "new": "{name} is now {after}",
        "gone": "{name} is no longer {before}",
        "questions": "other questions",
        "ground truth": "other ground truth",
        "since": "{run}: {changes}",
        "not comparable with": "{run}: {changes} (not comparable with the run before)",
        "may be others": "The {name} may not be the same in all runs: {value} does not tell all "
        "that it depends on.",
        "by file": "The time of {n} runs is that of their files (*): results saved before this was "
        "kept do not say when they were made.",
        "by file of one": "The time of {n} run is that of its file (*): results saved before this "
        "was kept do not say when they were made.",
        "without rows": "Without intervals, because they were saved without per-query rows: {}.",
        "held": "Held against the best of the last {n} comparable runs in {folder}: {best}.",
        "held against one": "Held against {n} comparable run in {folder}: {best}.",
        "itself": "Left out, as it is the result itself: {}.",
        "of run": "{metric} of {run}",
        "and": " and ",
        "not comparable": "Not comparable: {n} of the runs, such as {run} ({why}).",
    },
    "ko": {
        "head": "{folder}에 저장된 실행 {n}회",
        "head of one": "{folder}에 저장된 실행 {n}회",
        "unreadable": "{file} 파일은 평가 기록에서 제외했습니다: {why}",
        "run": "실행",
        "made": "평가 시각(UTC)",
        "interval": "95% 신뢰구간",
        "from to": "{}~{}",
        "changed": "{name}: {before} → {after}",
        "new": "{name}: {after} (추가)",
        "gone": "{name}: {before} (없어짐)",
        "questions": "질문이 바뀜",
        "ground truth": "정답이 바뀜",
        "since": "{run}: {changes}",
        "not comparable with": "{run}: {changes} (바로 앞 실행과 비교할 수 없음)",
        "may be others": "{name} 설정은 실행마다 다를 수 있습니다. {value}만으로는 무엇에 따라 "
        "정해지는지 다 알 수 없습니다.",
        "by file": "실행 {n}회는 결과에 평가 시각이 없어 파일의 수정 시각으로 "
        "대신했습니다(*). 이전 버전에서 저장한 결과에는 평가 시각이 없습니다.",
        "by file of one": "실행 {n}회는 결과에 평가 시각이 없어 파일의 수정 시각으로 "
        "대신했습니다(*). 이전 버전에서 저장한 결과에는 평가 시각이 없습니다.",
        "without rows": "질문별 값 없이 저장되어 신뢰구간을 구할 수 없는 실행: {}.",
        "held": "{folder}의 비교할 수 있는 최근 실행 {n}회 가운데 가장 좋은 실행과 "
        "비교했습니다({best}).",
        "held against one": "{folder}에서 비교할 수 있는 실행 {n}회와 비교했습니다({best}).",
        "itself": "새 결과와 같은 실행이라 제외했습니다: {}.",
        "of run": "{metric}: {run}",
        "and": ", ",
        "not comparable": "비교할 수 없는 실행이 {n}회 있습니다. 예: {run} ({why}).",
    },
}


def told_changes(run: HistoryRun, language: Language | None = None) -> list[str]:
    """Say what changed since the run before, a phrase for each change.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> result = OfflineRetrievalEvaluator([["a"]], [["a"]]).evaluate(5)
    >>> changes = (Change("threshold", "0.8", "0.7"), Change("grades", None, "yes"))
    >>> told_changes(HistoryRun("new", result, datetime.now(UTC), changes=changes), "en")
    ['threshold from 0.8 to 0.7', 'grades is now yes']
    """
    w, phrases = _WORDS[language_of(language)], []
    for name, before, after in run.changes:
        kind = "gone" if after is None else "new" if before is None else "changed"
        kind = name if before is None and after is None else kind
        phrases.append(w[kind].format(name=name, before=before, after=after))
    return phrases


def headed(history: History, language: Language) -> str:
    """Say how many runs there are, and where."""
    n = len(history.runs)
    kind = "head of one" if n == 1 else "head"
    return _WORDS[language][kind].format(n=n, folder=history.folder)


def cells(history: History, language: Language) -> list[list[str]]:
    """Return the runs as text, header first: run, time, and each metric with its interval."""
    w = _WORDS[language]
    header = [w["run"], w["made"]]
    for metric in history.metrics:
        header += [metric, w["interval"]]
    return [header] + [
        [run.name, _minute(run.made) + "*" * run.made_by_file]
        + [cell for metric in history.metrics for cell in _cells(history, run, metric, w)]
        for run in history.runs
    ]


def _cells(history: History, run: HistoryRun, metric: str, w: Mapping[str, str]) -> tuple[str, str]:
    low, high = history.bounds(run, metric)
    value = history.value(run, metric)
    spanned = "-" if math.isnan(low) else w["from to"].format(f"{low:.3f}", f"{high:.3f}")
    return "-" if math.isnan(value) else f"{value:.4f}", spanned


def told(history: History, language: Language) -> list[str]:
    """Say what changed from run to run, and what the table does not know, a line each."""
    w, lines = _WORDS[language], []
    for run in history.runs:
        if run.changes:
            kind = "since" if run.is_comparable else "not comparable with"
            changes = "; ".join(told_changes(run, language))
            lines.append(w[kind].format(run=run.name, changes=changes))
    for name, value in may_be_others([run.result.settings for run in history.runs]):
        lines.append(w["may be others"].format(name=name, value=value))
    n = sum(run.made_by_file for run in history.runs)
    if n:
        lines.append(w["by file of one" if n == 1 else "by file"].format(n=n))
    bare = [run.name for run in history.runs if not _has_rows(run.result)]
    return [*lines, *([w["without rows"].format(", ".join(bare))] if bare else [])]


def _minute(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"

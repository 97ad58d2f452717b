"""A pytest plugin: the fixture ``krag_gate`` fails a test whose result is not good enough.

pytest finds it by itself where krag_eval is installed, in every run of every suite: what evaluates
loads when a gate is used, and not before.
"""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

import pytest

if TYPE_CHECKING:
    from krag_eval.comparison.gates import GateReport
    from krag_eval.history.history import History
    from krag_eval.result import EvaluationResult

__all__ = ["KragGate", "krag_gate"]

# Under this name a report carries a gate: with pytest-xdist from worker to controller, too.
_PROPERTY = "krag_gate"
_WORST = 5


class KragGate:
    """What the fixture ``krag_gate`` is: call it with a result and what the result must reach.

    Args:
        record: Called with each condition, as one line.
        warn: Called with each condition that is inconclusive, as one line.

    >>> from krag_eval import OfflineRetrievalEvaluator
    >>> krag_gate = KragGate(print)
    >>> result = OfflineRetrievalEvaluator([["a", "b"]], [["a", "x"]]).evaluate(5)
    >>> report = krag_gate(result, {"recall@5": 0.5})
    passed: macro_recall@5 is 0.5000, at or above the floor of 0.5
    >>> report.passed
    True
    """

    def __init__(
        self, record: Callable[[str], None], warn: Callable[[str], None] | None = None
    ) -> None:
        self._record, self._warn = record, warn or (lambda reason: None)

    def __call__(
        self,
        result: EvaluationResult,
        floors: Mapping[str, float] | Iterable[str] | None = None,
        *,
        baseline: EvaluationResult | str | os.PathLike[str] | None = None,
        history: History | str | os.PathLike[str] | None = None,
        last: int | None = None,
        metric: str | Iterable[str] | None = None,
        max_drop: float | None = None,
        on: Literal["all", "common"] = "all",
        by: str | None = None,
        strict: bool = False,
        save: str | os.PathLike[str] | None = None,
        allow_failures: int = 0,
        allow_missing: int = 0,
        **sampling: Any,
    ) -> GateReport:
        """Check a result as :meth:`EvaluationResult.check` does; fail the test if it falls short.

        With a history, it checks as :meth:`History.check` does.

        Args:
            result: The result.
            floors: The least each average may be, ``{"recall@5": 0.8}`` or ``["recall@5=0.8"]``.
            baseline: An earlier result, or the file it was saved in by ``to_json``.
            history: A history, or the folder of one: the result is held to the mean of its last
                runs. A baseline beside it guards against a slow decline.
            last: How many runs of the history are averaged; 10 if not given.
            metric: What may not drop below the baseline.
            max_drop: How far it may drop; 0 if not given.
            on: ``"all"`` or ``"common"``, the queries to compare on.
            by: A tag, no slice of which may drop further either.
            strict: Whether what is inconclusive fails; otherwise it is a warning.
            save: The file to save the result in, with what became of this gate, such as one in the
                folder of the history; not the baseline. A result that fails this gate, or failed
                one before, is not saved: a file that holds it already gets the failure noted.
            allow_failures: For how many queries the retriever may have failed.
            allow_missing: How many questions of the ground truth may be left out, as the run lacks
                them.
            **sampling: ``level``, ``n_resamples``, ``seed`` and ``clusters``, as in ``check``.

        Returns:
            The conditions, all of which hold.

        Raises:
            pytest.fail.Exception: If one does not hold. The message has each condition, the 95 %
                interval of what fell short and the worst queries, where the result holds its rows.
                Also if the file of the baseline, or the folder of the history, cannot be read, the
                message then says how to make it, and if the call is refused, as ``check`` does: no
                result, an unknown average, no run to compare with, and the like.
        """
        __tracebackhide__ = True
        from krag_eval.core import Refusal

        refused = ""
        try:
            _check_save(save, baseline)
            asked = {"metric": metric, "max_drop": max_drop, "on": on, "by": by, **sampling}
            asked |= {"strict": strict, "baseline": baseline}
            asked |= {"allow_failures": allow_failures, "allow_missing": allow_missing}
            asked |= {} if last is None else {"last": last}
            report = _checked(result, floors, history, asked)
            not_saved = [] if save is None else [*_saved(result, save, report)]
            lines = [*repr(report).splitlines(), *not_saved]
            short = [] if report else [*_told(result, report), *not_saved]
        except _NoBaselineError as error:
            refused = error.args[0]
        except Refusal as error:
            refused = str(error)
        # Outside the handlers, or pytest would print the refusal's traceback before it.
        if refused:
            pytest.fail(refused, pytrace=False)
        for line in lines:
            self._record(line)
        for gate in report.gates:
            if gate.is_inconclusive and gate.passed:
                self._warn(gate.reason)
        if short:
            pytest.fail("\n".join(short), pytrace=False)
        return report


#: The results that failed a gate in this process, as long as there is use for them.
_FAILED: WeakValueDictionary[int, EvaluationResult] = WeakValueDictionary()


def _check_save(
    save: str | os.PathLike[str] | None, baseline: EvaluationResult | str | os.PathLike[str] | None
) -> None:
    """Refuse to replace the baseline, by its file or by what is in that.

    Raises:
        InvalidInput: If the file is, or holds, the baseline.
    """
    from krag_eval.core import InvalidInput, Refusal, check_apart
    from krag_eval.result import EvaluationResult

    if save is None or baseline is None:
        return
    if isinstance(baseline, str | os.PathLike):
        check_apart({"save": save}, [baseline])
    elif isinstance(baseline, EvaluationResult):
        saved = None
        with suppress(Refusal, OSError):  # there is none yet, or it is no result
            saved = EvaluationResult.from_json(save)
        if saved is not None and saved.is_same_run(baseline):
            raise InvalidInput("save", f": {os.fspath(save)} holds the baseline", "name another")


def _saved(
    result: EvaluationResult, save: str | os.PathLike[str], report: GateReport
) -> Iterator[str]:
    """Save a result that never failed a gate; say that another is not saved."""
    from krag_eval.core import Refusal
    from krag_eval.core.results.saved import note_gate

    if not report:
        _FAILED[id(result)] = result
    if id(result) not in _FAILED and result.gate != "failed":
        result.to_json(save, gate=report)
        return
    with suppress(Refusal, OSError):  # there is no such file, or it holds another result
        note_gate(save, report.noted, report.verdicts, result)
    yield _("not saved in {}: the result failed a gate").format(os.fspath(save))


class _NoBaselineError(Exception):
    """There is no baseline to be read; its argument says how to make one."""


def _checked(
    result: EvaluationResult,
    floors: Mapping[str, float] | Iterable[str] | None,
    history: History | str | os.PathLike[str] | None,
    asked: dict[str, Any],
) -> GateReport:
    """Check a result, against what may be the file of a baseline or the folder of a history.

    Raises:
        _NoBaselineError: If that cannot be read.
        Refusal: If anything else is not possible.
    """
    from krag_eval.core import check_options, errors
    from krag_eval.history.history import History
    from krag_eval.result import EvaluationResult

    if not isinstance(result, EvaluationResult):
        raise errors.must("result", "be an EvaluationResult", result, kind=errors.InvalidType)
    baseline = asked["baseline"]
    if isinstance(baseline, str | os.PathLike):
        with _to_be_made(os.fspath(baseline), errors.InvalidInput, OSError):
            asked["baseline"] = EvaluationResult.from_json(baseline)
    if history is None:
        check_options(EvaluationResult.check, asked)
        return result.check(floors, **asked)
    check_options(History.check, asked)
    if not isinstance(history, History):
        with _to_be_made(os.path.join(os.fspath(history), "first.json"), OSError):
            history = History.of(history)
    return history.check(result, floors, **asked)


@contextmanager
def _to_be_made(path: str, *kinds: type[Exception]) -> Iterator[None]:
    """Say that there is no baseline to compare with, and how to make one."""
    try:
        yield
    except kinds as error:
        in_shell = f"krag-eval evaluate results.jsonl --json {shlex.quote(path)}"
        lines = [
            _("no baseline: {}").format(error),
            _("Save one, from a result that you accept, and commit it:"),
            _("  in Python: {}").format(f"result.to_json({path!r})"),
            _("  in the shell: {}").format(in_shell),
        ]
        raise _NoBaselineError("\n".join(lines)) from error


def _(text: str) -> str:
    """Return a text in the language of the moment; in English if there is no such language."""
    from krag_eval.core import InvalidInput, _ as translated

    try:
        return translated(text)
    except InvalidInput:  # a mistake in KRAG_EVAL_LANG, which must not end the whole run
        return text


def _told(result: EvaluationResult, report: GateReport) -> Iterator[str]:
    """Yield the lines of a failure: the conditions, intervals, and the worst queries."""
    from krag_eval.core import InvalidInput, muted

    short = list(dict.fromkeys(gate.metric for gate in report.gates if not gate.passed))
    # The first line is all that pytest's short summary shows.
    yield _("retrieval is not good enough: {}").format(", ".join(short))
    yield from (f"  {line}" for line in repr(report).splitlines())
    # Without rows, or where no query counts, there is no more to tell.
    with suppress(InvalidInput), muted():
        yield from _intervals(result, short)
        yield from _worst(result, short)


def _intervals(result: EvaluationResult, metrics: Iterable[str]) -> Iterator[str]:
    from krag_eval.core import span

    table, n = result.confidence_intervals(), int(result.counted.sum())
    for name in metrics:
        if name in table.index and not (bounds := table.loc[name, ["low", "high"]]).isna().any():
            told = _("95 % interval of {metric}: {span} ({n} queries)")
            yield told.format(metric=name, n=n, span=span(*bounds))


def _worst(result: EvaluationResult, metrics: Iterable[str]) -> Iterator[str]:
    from krag_eval.core import clipped, parse_metric, spelled

    for k in dict.fromkeys(parse_metric(name, "floors")[1] for name in metrics):
        lost = result.misses(k)
        if not len(lost):
            continue
        told = _("worst queries @{k}, of {n} whose ground truth is not all found:")
        yield told.format(k=spelled(k), n=len(lost))
        rows = zip(lost.index, lost["covered"], lost["ground_truth"], strict=True)
        told = _("  {label}: found {covered} of {wanted}")
        for label, covered, wanted in islice(rows, _WORST):
            yield told.format(label=clipped(label), covered=covered, wanted=wanted)


@pytest.fixture
def krag_gate(request: pytest.FixtureRequest) -> KragGate:
    """Fail this test if a result of krag_eval is not good enough, and say so in the summary.

    ``krag_gate(result, {"recall@5": 0.8})``; see :class:`KragGate`.
    """
    kept = request.node.user_properties

    def warned(reason: str) -> None:
        # Recorded and not raised: a suite that turns warnings into errors does not fail on it.
        message = KragEvalWarning(_("inconclusive gate: {}").format(reason))
        path, line = request.node.location[:2]
        told = warnings.WarningMessage(message, KragEvalWarning, path, (line or 0) + 1)
        about = {"warning_message": told, "nodeid": request.node.nodeid, "when": "runtest"}
        noted = request.config.hook.pytest_warning_recorded
        noted.call_historic(kwargs={**about, "location": None})

    from krag_eval.core import KragEvalWarning

    return KragGate(lambda line: kept.append((_PROPERTY, line)), warned)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Write a line for each condition that a gate checked."""
    # Every test is torn down once, whatever became of it, and that report has all it recorded.
    lines = [
        f"{value}  [{report.nodeid}]"
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", None) == "teardown"
        for name, value in report.user_properties
        if name == _PROPERTY
    ]
    if lines:
        from krag_eval.core import InvalidInput, _, speaking
        from krag_eval.core.language import languages
        from krag_eval.core.text import harmless

        unsure: tuple[str, ...] = ()
        for one in languages():
            with speaking(one):
                unsure += (_("inconclusive").upper(),)
        title = "retrieval gates"
        with suppress(InvalidInput):  # the variable may name no language, as the gates have said
            title = _("retrieval gates")
        terminalreporter.section(title)
        for line in sorted(lines, key=lambda line: not line.startswith(unsure)):
            terminalreporter.line(harmless(line), yellow=line.startswith(unsure))

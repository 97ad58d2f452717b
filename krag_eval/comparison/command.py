"""``krag-eval compare``, which of several retrievers is better; ``gate``, a verdict; ``plan``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from krag_eval.cli import options, output, reading, verdicts
from krag_eval.cli.shell import Verdict, printable, warnings_as
from krag_eval.core import (
    InvalidInput,
    Page,
    Refusal,
    _,
    deepest,
    one_of,
    option,
    page_of,
    spelled,
    warn,
)
from krag_eval.core.files import file_identity

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.comparison.comparison import Comparison
    from krag_eval.comparison.gates import GateReport
    from krag_eval.history.history import HistoryReport
    from krag_eval.result import EvaluationResult

# Queries of each pair that changed most.
_CHANGED = 3
_ENDINGS = (".jsonl", ".ndjson", ".json")


@options.command(
    "Compare retrievers on the same queries.",
    "krag-eval compare before.jsonl after.jsonl --matcher coverage --metric recall@5",
)
def compare(
    files: tuple[str, ...],
    metric: tuple[str, ...] = options.metric_option(
        "What to compare, as macro_recall@5; nDCG at the deepest cutoff otherwise."
    ),
    baseline: str | None = option(
        "Compare the others with this system alone: a FILE, or the name it has in the tables.",
        "NAME",
    ),
    on: Literal["all", "common"] = options.ON,
    clusters: str | None = options.CLUSTERS,
    typed: Any = options.EVALUATION,
    outputs: Any = options.saving(
        markdown="Save the table as Markdown.",
        latex="Save the table as LaTeX.",
        to_judge="Save the unjudged documents that could change the difference, as CSV, for "
        "'krag-eval label'.",
        plot="Draw the differences with their intervals, as .png, .svg or .pdf.",
        report=True,
    ),
) -> None:
    """Compare each FILE with each other, query by query ('-' reads standard input).

    A FILE is JSONL, as 'krag-eval evaluate' reads it, or a result it saved, whose name ends in
    .json. All must be over the same queries, in any order. Of three and more, the first may be the
    ground truth, without retrieved documents, of all others. A difference is the second minus the
    first; p is that of a paired permutation test, after Holm's correction.
    """
    from krag_eval.comparison.comparison import compare as compared
    from krag_eval.comparison.comparison_page import changed

    asked = options.Evaluation.of(typed)
    if "golden" not in asked.settings and reading.is_golden(files, asked):
        asked, files = asked.with_settings(golden=files[0]), files[1:]
    named = _named(files)
    by_file = {file: name for name, file in named.items()}
    if baseline is not None:
        baseline = by_file.get(baseline) or one_of("baseline", baseline, [*named])
    read = {name: file for name, file in named.items() if reading.is_saved(file)}
    useless = [*options.given(typed)] if read == named else []
    if useless:
        problem = "says how to evaluate, and every FILE is a saved result"
        raise InvalidInput(useless[0], problem, "leave it out, or name the JSONL files")
    saved = {name: reading.saved_result(file) for name, file in read.items()}
    asked, metrics = _asked(asked, metric, named, saved)
    output.check_not_read(outputs, [str(one.rows.path) for one in saved.values() if one.rows.path])
    results = {}
    for name, file in named.items():
        with warnings_as(name=printable(name)):
            results[name] = saved.get(name) or reading.evaluated_file(file, asked)[1]
    found = compared(results, metrics, baseline=baseline, on=on, clusters=clusters)
    page = page_of(found)

    def draw(ax: Axes) -> None:
        from krag_eval.plotting import forest_size

        if ax.figure is not None:  # as tall as its rows need
            ax.figure.set_size_inches(*forest_size(found))  # type: ignore[union-attr]
        found.plot(ax)

    output.emit(
        outputs,
        lambda: replace(page, tables=[*page.tables, *changed(found, _CHANGED)]),
        lambda: {
            "n_queries": len(found.queries),
            "baseline": found.baseline,
            **({} if found.clusters is None else {"clusters": found.clusters}),
            **({"dependent": dict(found.dependent)} if found.dependent else {}),
            **({"failed": found.failed} if found.failed else {}),
            **(
                {"missing": {name: one._asdict() for name, one in found.missing.items()}}
                if found.missing
                else {}
            ),
            "differences": output.records_of(found.table),
            "signature": f"{found.signature} | n_resamples={found.n_resamples}",
        },
        lambda: found.table,
        markdown=(partial(output.write_text, page.markdown()), _("the table, in Markdown")),
        latex=(partial(output.write_text, page.latex()), _("the table, in LaTeX")),
        to_judge=(lambda to: found.to_judge().to_csv(to), _("documents to judge")),
        plot=(draw, _("the differences with their intervals")),
        report=found.report,
    )


def _named(files: Sequence[str]) -> dict[str, str]:
    """Return the files by the names of their systems.

    These are their stems, with as much of their names and paths as tells them apart.

    >>> [*_named(["runs/bm25.jsonl.gz", "runs/dense.json"])]
    ['bm25', 'dense']
    >>> [*_named(["old/bm25.json", "new/bm25.json"])], [*_named(["bm25.json", "bm25.jsonl"])]
    (['old/bm25', 'new/bm25'], ['bm25.json', 'bm25.jsonl'])
    """
    if len(files) < 2:
        raise InvalidInput("files", f": name at least two to compare, got {len(files)}")
    if len({file_identity(file) or file for file in files}) < len(files):
        raise InvalidInput("files", f": each is named once, got {', '.join(files)}")
    names = reading.names_of_files(["stdin" if file == "-" else _stem(file) for file in files])
    names = names if len(set(names)) == len(files) else reading.names_of_files(files)
    return dict(zip(names, files, strict=True))


def _stem(path: str) -> str:
    path = path.removesuffix(".gz")
    for ending in _ENDINGS:
        if path.endswith(ending) and os.path.basename(path) != ending:
            return path.removesuffix(ending)
    return path


def _asked(
    asked: options.Evaluation,
    metric: Sequence[str],
    named: Mapping[str, str],
    saved: Mapping[str, EvaluationResult],
) -> tuple[options.Evaluation, Sequence[str]]:
    """Return how to evaluate files that are no saved results, and what to compare.

    Raises:
        InvalidInput: Before a long file is read, if something could not be compared.
    """
    from krag_eval.comparison.comparable import checked_metrics

    to_be_evaluated = [name for name in named if name not in saved]
    if not metric:
        cutoffs = [*([asked.k] if to_be_evaluated else []), *(one.k for one in saved.values())]
        shared = set.intersection(*map(set, cutoffs))
        metric = (f"ndcg@{spelled(deepest(shared or asked.k))}",)
    if to_be_evaluated:
        asked = asked.computing("metric", metric)
        expected = asked.plan().nothing().summary
        checked_metrics(dict.fromkeys(to_be_evaluated, expected), metric)
    return asked, metric


#: What a gate holds a result to, beside floors.
_DROP: options.Options = {
    "metric": options.metric_option("What may not drop below the baseline, as ndcg@10."),
    "max_drop": option(
        "How far it may drop; a larger drop fails only if it is more than chance (one-sided p).  "
        "[default: 0]",
        "X",
        kind=float,
    ),
    "by": option(
        "Hold every slice of the queries to --max-drop too: by a column, or by items, "
        "question_length, golden_length or language. Slices of under 10 queries are not checked.",
        "TAG",
    ),
    "strict": option(
        "Fail also what is inconclusive: a larger drop that may be chance.", kind=bool
    ),
    **options.ALLOWED,
    "on": options.ON,
    "clusters": options.CLUSTERS,
}


@options.command(
    "Check a saved result against floors and a baseline.",
    "krag-eval gate new.json --baseline old.json --metric recall@5 --max-drop 0.02",
    reads=("baseline", "history"),
)
def gate(
    new: str,
    run: str | None,
    baseline: str | None = option(
        "What NEW may not fall behind: a saved result, or a file that is evaluated like NEW.", "OLD"
    ),
    history: str | None = option(
        "Hold NEW to the mean of the last comparable results saved in FOLDER, and write into NEW "
        "what became of it. A --baseline beside it guards against a slow decline.",
        "FOLDER",
    ),
    last: int | None = option("Take the mean of the last N of --history.  [default: 10]", "N"),
    drop: Any = _DROP,
    floors: tuple[str, ...] = options.FLOORS,
    typed: Any = options.EVALUATION,
    redact: bool = option("Leave out questions: name them by their position in NEW, from 0."),
    outputs: Any = options.saving(
        verdicts.FORMATS,
        markdown="Save the verdict as Markdown, with its numbers and the questions that got worse.",
        json="Save NEW, with its verdict; Python reads it back.",
        report=True,
    ),
) -> Verdict:
    """Check NEW, a result saved by 'krag-eval evaluate --json', and exit with 0 or 1.

    NEW may also be a file of queries, or ground truth with RUN behind it, as 'krag-eval evaluate'
    reads them; how to evaluate is said as there.

    1 says that it is not good enough: an average is below its floor, or has dropped by more than
    --max-drop below the baseline, and by more than chance. A larger drop that may be chance is
    inconclusive: 0, or 1 with --strict. What cannot be checked or compared is refused with 2, as
    are results with queries that failed.
    """
    from krag_eval.comparison.gates import parse_floor
    from krag_eval.comparison.gates_page import note_of

    if last is not None and history is None:
        raise InvalidInput("last", "is about --history, and none was given")
    if baseline is not None:
        _check_another(baseline, run or new)
    how = {**drop, "metric": drop["metric"] or None}
    named = [*drop["metric"], *(parse_floor(one)[0] for one in floors)]
    asked = _how_to_evaluate(new, run, typed, history, is_kept="json" in outputs)
    if redact and "report" in outputs:
        raise InvalidInput("redact", "leaves out what --report shows", "leave out one of them")
    need_rows = baseline is not None or history is not None
    result = _saved_or_evaluated(new, asked, named, run, need_rows=need_rows)
    how["baseline"] = None
    if baseline is not None:
        of_both = asked.with_settings(golden=new) if run else asked
        how["baseline"] = _saved_or_evaluated(baseline, of_both, named)
    report: GateReport
    if history is None:
        report = result.check(floors or None, **how)
    else:
        from krag_eval.history.history import LAST, History

        how["last"] = LAST if last is None else last
        report = History.of(history).check(result, floors or None, **how)
        if reading.is_saved(new):
            _note_verdict(new, result, report)
    rows = _rows(report)
    markdown = partial(verdicts.as_markdown, report, result, redact=redact)
    output.emit(
        outputs,
        lambda: Page(verdict=page_of(report).concluded["verdict"]),  # the lines are printed below
        lambda: {
            "passed": report.passed,
            "outcome": report.outcome,
            "gates": output.records_of(rows),
            "failed": dict(report.failed),
            "missing": {name: one._asdict() for name, one in report.missing.items()},
            "ground_truth": report.ground_truth,
            "note": note_of(report, redact=redact),
        },
        lambda: rows,
        {"markdown": markdown, **verdicts.formats(report, new, "--baseline", redact=redact)},
        markdown=(
            lambda target: output.write_text(markdown(), target),
            _("the verdict, in Markdown"),
        ),
        json=(partial(output.write_json, result, gate=report), _("the result")),
        report=report.comparisons[0].report if report.comparisons else result.report,
    )
    return verdicts.pronounce(report, redact=redact)


def _check_another(baseline: str, new: str) -> None:
    """Refuse to hold a file against itself, by whatever names."""
    with suppress(OSError):  # what is not there is refused where it is read
        if os.path.samefile(baseline, new):
            problem = f": {baseline} and {new} are one file, which cannot be worse than itself"
            raise InvalidInput("baseline", problem, "name the file of an earlier run")


def _saved_or_evaluated(
    file: str,
    asked: options.Evaluation,
    averages: Sequence[str],
    run: str | None = None,
    *,
    need_rows: bool = True,
) -> EvaluationResult:
    """Read a saved result, or evaluate a file of queries on the averages that are looked at."""
    if reading.is_saved(file):
        return reading.saved_result(file, need_rows=need_rows)
    with warnings_as(name=printable(file)):
        return reading.evaluated_file(file, asked.computing("metric", averages), run=run)[1]


def _how_to_evaluate(
    new: str, run: str | None, typed: Mapping[str, Any], history: str | None, *, is_kept: bool
) -> options.Evaluation:
    """Return how to evaluate what is no saved result; refuse what has no effect."""
    given = [*options.given(typed)]
    if reading.is_saved(new) and (given or run):
        problem = f"says what to evaluate, and {new} is a saved result"
        raise InvalidInput(given[0] if given else "run", problem, "leave it out")
    if history is not None and not (is_kept or reading.is_saved(new)):
        problem = f"is a folder of saved results, and {new} is none"
        raise InvalidInput("history", problem, "save it by --json NEW.json")
    return options.Evaluation.of(typed)


def _note_verdict(new: str, result: EvaluationResult, report: HistoryReport) -> None:
    """Write into a saved result what became of its gate, so that no later one is held to a failure.

    It is written under every name that it has in the folder of the history, too.

    Warns:
        KragEvalWarning: If a file cannot be written, or holds another result by now.
    """
    from krag_eval.core.results.saved import note_gate

    files = {os.path.realpath(file): file for file in (*report.itself, new)}
    for file in files.values():
        try:
            note_gate(file, report.noted, report.verdicts, result)
        except (OSError, Refusal) as error:
            why = error.problem if isinstance(error, Refusal) else error.strerror or error
            told = _(
                "what became of this gate could not be written into {new} ({error}), so that a "
                "history takes it for any other run"
            )
            warn(told.format(new=printable(file), error=why))


def _rows(report: GateReport) -> pd.DataFrame:
    import pandas as pd

    names = ["metric", "slice", "passed", "outcome", "reason"]
    rows = [[getattr(one, name) for name in names] for one in report.gates]
    return pd.DataFrame(rows, columns=names)


# A plan takes the spread of the differences from a comparison, and none of its intervals.
_RESAMPLES_OF_A_PILOT = 100


@options.command(
    "Find out how many questions show a difference.",
    "krag-eval plan old.json new.json --metric ndcg@10 --detect 0.02",
)
def plan(
    pilot: tuple[str, ...],
    detect: float = option(
        "The difference that you would not want to miss, as 0.02.", "X", required=True
    ),
    metric: str | None = option(
        "On what; nDCG at 10, or else at the deepest cutoff, if not given.", "METRIC@K"
    ),
    power: float = option(
        "How often a true difference of that size is to be shown.", "X", default=0.8
    ),
    alpha: float = option(
        "How often a difference is shown where there is none.", "X", default=0.05
    ),
    correlation: float | None = option(
        "Of one PILOT: how its values go together with those of another system.  [default: 0.5]",
        "X",
    ),
    on: Literal["all", "common"] = options.ON,
    clusters: str | None = options.CLUSTERS,
    outputs: Any = options.saving(
        plot="Draw what can be shown by number of questions, as .png, .svg or .pdf."
    ),
) -> None:
    """Say how many questions show a difference, and what those of PILOT can show.

    Two PILOTs are results of two systems on the same questions, saved by 'krag-eval evaluate
    --json'; of one, how a second system would go together with it is assumed.
    """
    import pandas as pd

    from krag_eval.comparison.comparison import compare as compared
    from krag_eval.comparison.planning import plan_questions

    known: Comparison | EvaluationResult
    if len(pilot) == 1:
        known = reading.saved_result(pilot[0])
    elif len(pilot) > 2:
        raise InvalidInput("pilot", f": name one result or two, got {len(pilot)}")
    else:
        results = {name: reading.saved_result(file) for name, file in _named(pilot).items()}
        how: dict[str, Any] = {"on": on, "clusters": clusters, "n_resamples": _RESAMPLES_OF_A_PILOT}
        known = compared(results, metric=metric, **how)
    found = plan_questions(
        known,
        metric,
        detect=detect,
        power=power,
        alpha=alpha,
        correlation=correlation,
        clusters=clusters if len(pilot) == 1 else None,
    )
    numbers = found.to_dict()
    effects = ", ".join(f"{tag} {effect:.2f}" for tag, effect in found.dependent.items())
    row = {**numbers, "systems": " and ".join(found.systems), "dependent": effects}
    output.emit(
        outputs,
        lambda: page_of(found),
        lambda: numbers,
        lambda: pd.DataFrame([row]),
        plot=(found.plot, _("what can be shown")),
    )

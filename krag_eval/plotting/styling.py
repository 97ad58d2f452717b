"""What all plots share: colours, axes, legends, rounded numbers, names, files."""

from __future__ import annotations

import io
import math
import os
import re
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast
from xml.sax.saxutils import escape

from krag_eval.core import (
    DEFINED,
    METRICS,
    REJECTION_RATE,
    Average,
    Budget,
    Cutoff,
    InvalidInput,
    InvalidType,
    Language,
    Metric,
    _,
    averages_of,
    clipped,
    deepest,
    fitted,
    must,
    naming,
    ngettext,
    one_of,
    parse_metric,
    pgettext,
    speaking,
    spelled,
    spoken,
)
from krag_eval.core.language import languages
from krag_eval.core.scoring.metrics import metrics_of
from krag_eval.plotting import fonts

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from krag_eval.comparison.slices import SlicedComparison, Slices
    from krag_eval.core import ResultFacts

from krag_eval.core.language import language
from krag_eval.core.scoring.averages import told

INK, PAPER = "#000000", "#ffffff"
#: What is not certain, or not about any system or metric.
FAINT = "#767676"
#: How a query or an item came out. No metric and no system has these colours.
FOUND, PARTIAL, MISSED = "#009e73", "#c88200", "#a81020"
#: The sides of a comparison, dark enough for text.
BETTER, WORSE = "#0072b2", "#b3320f"


class Look(NamedTuple):
    """How a line is drawn, so that it can be told apart without colour too."""

    colour: str
    marker: str
    dashes: str | tuple[int, tuple[float, ...]] = "-"
    hollow: bool = False

    @property
    def line(self) -> dict[str, Any]:
        """What ``Axes.plot`` takes for a line without markers."""
        return {"color": self.colour, "linestyle": self.dashes}


# Name -> the colour for white paper, the one for dark paper, marker and dashes. Of the metrics, the
# first seven, which are drawn together most, are the furthest apart with any colour vision.
_METRICS: Mapping[str, tuple[str, str, str, str]] = {
    "recall": ("#14489a", "#699efc", "o", "-"),
    "precision": ("#962a55", "#f482a6", "s", "--"),
    "ndcg": ("#7424f5", "#9a3cf5", "D", "-"),
    "reciprocal_rank": ("#4796cf", "#a7d6fc", "^", "-."),
    "average_precision": ("#0e0e0d", "#eeeae9", "v", ":"),
    "hit_rate": ("#8b8888", "#76736f", "X", "--"),
    "f1": ("#4a1a52", "#a264a0", "P", "-."),
    "token_recall": ("#4166ad", "#a0b4f1", "<", "-"),
    "token_precision": ("#9c678f", "#db90c9", ">", "--"),
    "token_iou": ("#8371e5", "#7f68c1", "p", "-."),
    "redundancy": ("#082d2c", "#2f8290", "h", ":"),
    "success": ("#6e6b6b", "#868483", "d", "-"),
    "r_precision": ("#b04fc0", "#b37dcb", "*", "--"),
    "rbp": ("#505863", "#c4c5ca", "8", "-."),
    "rank": ("#3d5a80", "#8fb3dd", "H", "-"),
    "judged": ("#727e00", "#e8f280", "o", ":"),
    "bpref": ("#06098f", "#895ff0", "s", "-."),
    "infap": ("#4f100c", "#b4685e", "^", "-"),
    "precision_upper": ("#f60298", "#fe0898", "D", ":"),
    "rbp_residual": ("#045f8a", "#52b0dd", "v", "-."),
    "aspect_recall": ("#f213f0", "#f924f5", "<", "--"),
    "alpha_ndcg": ("#7b4b94", "#c49be0", ">", "-"),
    "unwanted": ("#6b4a1e", "#e07b4f", "X", ":"),
    "clean": ("#1b5e3f", "#5fb48a", "P", "-"),
    "citation_precision": ("#5c3a8a", "#b597e0", "p", "--"),
    "citation_recall": ("#24477a", "#7fc3de", "h", "-."),
}
_SYSTEMS: Mapping[str, tuple[str, str, str, str]] = {
    "system-1": ("#2e91ef", "#4c92f9", "o", "-"),
    "system-2": ("#7f4503", "#f2be5f", "s", "--"),
    "system-3": ("#2c7c5e", "#247a61", "^", "-."),
    "system-4": ("#f26701", "#c3370a", "D", "-"),
    "system-5": ("#b27f9f", "#ad7ea0", "v", "--"),
    "system-6": ("#204763", "#9ad1fd", "P", "-."),
    "system-7": (INK, PAPER, "X", ":"),
}
_OTHERS = {
    "better": (BETTER, "#4aa8ea"),
    "worse": (WORSE, "#ff8f4d"),
    "unsure": (FAINT, "#8d939c"),
    "grid": ("#b0b0b0", "#8d939c"),
    "bar": ("#2f5d8c", "#86b1dd"),
}
#: Of bars that the axis names.
BAR = _OTHERS["bar"][0]
#: How one system after the other is drawn.
LINES = tuple(Look(light, marker, dashes) for light, _, marker, dashes in _SYSTEMS.values())
#: Lines that can be told apart in one picture.
MOST_LINES = len(LINES)
# How metrics of the user's own are: in no colour of a metric or of a status.
_OWN = (LINES[1], LINES[5], LINES[4], LINES[0])
#: Colour -> its name in the CSS of a page, and what it is on dark paper. Those of ink, paper and
#: status are the page's.
ON_DARK: Mapping[str, tuple[str, str]] = {
    light: (f"--c-{name.replace('_', '-')}", dark)
    for name, (light, dark, *_) in {**_METRICS, **_SYSTEMS, **_OTHERS}.items()
    if light != INK
}
# Of lines in one colour, as recall at several cutoffs, each has others of these.
_DASHES = ("-", "--", "-.", ":", (0, (10, 2)), (0, (6, 2, 1, 2, 1, 2)), (0, (1, 3)))


SIZE = (7.0, 5.0)


def looks_of(averages: Iterable[str]) -> list[Look]:
    """Return how to draw each average: in the colour of its metric, whatever else is drawn.

    Micro averages are hollow. Lines of one metric differ in dashes.

    >>> [one.colour for one in looks_of(["ndcg@5", "recall", "micro_recall", "macro_recall@5"])]
    ['#7424f5', '#14489a', '#14489a', '#14489a']
    >>> [one.hollow for one in looks_of(["macro_recall", "micro_recall"])]
    [False, True]
    """
    looks: list[Look] = []
    for average in averages:
        look = _look_of(average, looks)
        start, taken = _DASHES.index(look.dashes), {(one.colour, one.dashes) for one in looks}
        start += look.hollow
        turns = [_DASHES[(start + turn) % len(_DASHES)] for turn in range(len(_DASHES))]
        free = (dashes for dashes in turns if (look.colour, dashes) not in taken)
        looks.append(look._replace(dashes=next(free, turns[0])))
    return looks


def _look_of(average: str, others: Sequence[Look]) -> Look:
    """Return the look of a metric; of one without, one that no other line has, if possible."""
    key = average.partition("@")[0].partition("(")[0]
    known = averages_of(METRICS.values()).get(key)
    name = key if known is None else known.column.removeprefix(DEFINED)
    if name in _METRICS:
        light, _, marker, dashes = _METRICS[name]
        return Look(light, marker, dashes, hollow=key == f"micro_{name}")
    first = zlib.crc32(key.encode()) % len(_OWN)
    turns = [*_OWN[first:], *_OWN[:first]]
    colours = {one.colour for one in others}
    return next((look for look in turns if look.colour not in colours), turns[0])


def axes(ax: Axes | None, width: float = SIZE[0], height: float = SIZE[1]) -> Axes:
    """Return the axes given, or those of a new pyplot figure, of so many inches.

    A notebook displays such a figure by itself, so a cell that ends with new axes shows no line
    ``<Axes: …>`` beside it.
    """
    if ax is not None:
        return ax
    from matplotlib import pyplot

    made = pyplot.subplots(figsize=(width, height), layout="constrained")[1]
    made._ipython_display_ = _show_nothing  # type: ignore[attr-defined]
    return made


def _show_nothing() -> None:
    """Stand in for what IPython would write of an object; a pickle can name a function."""


def value_label(value: float) -> str:
    """Round to two digits, but never to a 0 or 1 that the value is not.

    >>> value_label(0.0), value_label(0.001), value_label(0.456), value_label(0.999)
    ('0.00', '<0.01', '0.46', '>0.99')
    """
    if math.isnan(value):
        return "n/a"
    rounded = f"{value:.2f}"
    if rounded == "0.00" and value > 0:
        return "<0.01"
    return ">0.99" if rounded == "1.00" and value < 1 else rounded


def share_label(number: int, of: int) -> str:
    """Return a share in percent, never 0 or 100 for what is not.

    >>> share_label(1, 1000), share_label(2, 3), share_label(999, 1000)
    ('<1 %', '67 %', '>99 %')
    """
    rounded = round(100 * number / of)
    if rounded == 0 and number:
        said = "<1"
    else:
        said = ">99" if rounded == 100 and number < of else str(rounded)
    return _("{} %").format(said)


def draw_score_axis(ax: Axes, values: Sequence[float], axis: str = "x") -> None:
    """Let an axis run from 0 to 1, further if a value does, with room for labels."""
    finite = [value for value in values if math.isfinite(value)]
    lowest, highest = min([0.0, *finite]), max([1.0, *finite])
    room = 0.08 * (highest - lowest) * (1.0 if axis == "x" else 0.4)
    limits = lowest - room * (lowest < 0), highest + room
    ax.set(**{f"{axis}lim": limits})
    if (lowest, highest) == (0.0, 1.0):
        ax.set(**{f"{axis}ticks": [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]})
    finish(ax, axis)


def finish(ax: Axes, grid: str) -> None:
    """Leave out what says nothing, and draw a light grid along the axis of values."""
    ax.grid(axis=grid, alpha=0.3)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if grid == "x":
        ax.tick_params(axis="y", length=0)


def name_rows(ax: Axes, names: Sequence[str], room: float = 0.4) -> None:
    """Name the rows of an axis, the first one on top, with so much room above and below."""
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - room, room - 1)


def with_legend(
    ax: Axes, title: str, columns: int = 2, handles: Sequence[Any] | None = None
) -> Axes:
    """Put the legend between title and axes, where it covers nothing."""
    legend = ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        borderaxespad=0.2,
        borderpad=0.2,
        handlelength=1.8,
        columnspacing=1.5,
    )
    return titled(ax, title, 10 + 18 * -(-len(legend.get_texts()) // columns))


def queries_of(result: ResultFacts) -> str:
    """Say how many queries count, how many do not, failed, or are missing."""
    told, skipped = number_of_queries(result.n_counted), result.n_queries - result.n_counted
    told = _("{}, {} skipped").format(told, skipped) if skipped else told
    told = _("{}, {} failed").format(told, result.n_failed) if result.n_failed else told
    return _("{}, {} missing").format(told, result.n_missing) if result.n_missing else told


def number_of_queries(number: int) -> str:
    """Say "1 query" or "5 queries"."""
    return ngettext("{} query", "{} queries", number).format(number)


# Columns of a name that the user chose.
_WIDTH = 40


def titled(ax: Axes, title: str, pad: float | None = None) -> Axes:
    """Write the title, and let all texts be seen whole."""
    ax.set_title(title, loc="left", pad=pad)
    fonts.make_readable(ax)
    return ax


def check_alone(argument: str, given: object) -> None:
    """Refuse several results where a picture shows one.

    Args:
        argument: The argument that holds them.
        given: What was given.

    Raises:
        InvalidType: If these are several.
    """
    if isinstance(given, Mapping | list | tuple):
        problem = f"must be one result, got a {type(given).__name__} of {len(given)}"
        instead = "draw each on an ax of its own, as plt.subplots(1, 2) makes them"
        raise InvalidType(argument, problem, instead)


def queries_of_all(systems: Mapping[str, ResultFacts]) -> str:
    """Return how many queries each has, said once where all have as many."""
    return " / ".join(dict.fromkeys(queries_of(one) for one in systems.values()))


def systems_of(
    results: ResultFacts | Mapping[str, ResultFacts], argument: str = "results"
) -> Mapping[str, ResultFacts]:
    """Return what to draw by name; a result alone has none.

    Raises:
        InvalidType: If it is something else.
        InvalidInput: If there are none, or more than can be told apart.
    """
    from krag_eval.core import ResultFacts

    if isinstance(results, ResultFacts):
        return {"": results}
    if not isinstance(results, Mapping) or not all(
        isinstance(name, str) and isinstance(one, ResultFacts) for name, one in results.items()
    ):
        allowed = "must be an EvaluationResult, or map names to such results"
        raise InvalidType(argument, f"{allowed}, got {clipped(results)}")
    if not 1 <= len(results) <= MOST_LINES:
        be = f"be 1 to {MOST_LINES} systems (more cannot be told apart)"
        raise must(argument, be, len(results))
    return results


def deepest_of_all(systems: Mapping[str, ResultFacts], argument: str = "results") -> Cutoff:
    """Return the deepest cutoff that all results have.

    Raises:
        InvalidInput: If there is none.
    """
    first, *others = systems.values()
    shared = [k for k in first.k if all(k in one.k for one in others)]
    if not shared:
        evaluated = " | ".join(",".join(map(spelled, one.k)) for one in systems.values())
        raise InvalidInput(argument, f": the results have no cutoff in common, but {evaluated}")
    return deepest(shared)


def intervals_of(
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None,
    systems: Mapping[str, ResultFacts],
) -> Mapping[str, pd.DataFrame]:
    """Return the intervals of each system that has any."""
    if intervals is None:
        return {}
    if "" in systems and not (isinstance(intervals, Mapping) and "" in intervals):
        return {"": cast("pd.DataFrame", intervals)}
    if not isinstance(intervals, Mapping):
        be = "map the names of results to tables"
        raise must("intervals", be, intervals, kind=InvalidType)
    for name in intervals:
        one_of("intervals", name, list(systems))
    return intervals


def tag_name(slices: Slices | SlicedComparison, columns: int) -> str:
    """Return what a tag is called: a built-in one has a label, others are cut to fit."""
    if not slices.about:
        return fitted(slices.tag, columns)
    return {
        "items": _("number of ground-truth items"),
        "question_length": _("words of the question"),
        "golden_length": _("words of the longest ground-truth item"),
        "language": _("language of the question"),
        "diagnosis": _("diagnosis"),
    }[slices.tag]


def cause_name(cause: str) -> str:
    """Return what a class of a diagnosis is called; anything else is its own name."""
    return {
        "found": pgettext("of an item", "found"),
        "found_in_pieces": _("found in pieces"),
        "ranked_too_low": _("ranked too low"),
        "not_retrieved": _("in the index, not retrieved"),
        "not_in_top_k": _("in the index, not in the first k"),
        "cut_apart": _("cut apart by the splitter"),
        "contradicted": _("in the index in another version"),
        "not_in_index": _("not in the index"),
        "not_seen": _("missed, not looked for"),
        "no_words": _("without words"),
    }.get(cause, cause)


def _language_name(name: str) -> str:
    return {
        "Korean": _("Korean"),
        "Japanese": _("Japanese"),
        "Han script": _("Han script"),
        "Latin script": _("Latin script"),
    }.get(name, name)


_Sliced = TypeVar("_Sliced", bound="Slices | SlicedComparison")


def labelled(slices: _Sliced) -> _Sliced:
    """Return slices by a built-in tag with the labels of its values; others as they are."""
    name_of = {"diagnosis": cause_name, "language": _language_name}.get(slices.tag)
    if not slices.about or name_of is None:
        return slices
    rows = [replace(one, slice=name_of(one.slice or "")) for one in slices.rows]
    return cast("_Sliced", replace(cast("Any", slices), rows=tuple(rows)))


@spoken
def metric_name(key: str, language: Language, result: ResultFacts | None = None) -> str:
    """Return the name of an average for people; one without a label keeps its own.

    Args:
        key: The average, or the metric.
        language: ``"en"`` or ``"ko"``; if not given, ``KRAG_EVAL_LANG``, else ``"en"``.
        result: The result it is from, which knows the labels of metrics of your own.

    >>> metric_name("macro_recall", "en"), metric_name("recall", "ko"), metric_name("mine", "en")
    ('Macro recall', '재현율', 'mine')
    """
    return metric_label(key, result)


def metric_label(key: str, result: ResultFacts | None = None) -> str:
    """Return the name of an average or a metric in the language of the moment."""
    metrics = METRICS
    if result is not None:
        metrics = metrics_of(result.keys, result.declared, result.criteria)
    return fitted(label_of(key, metrics) or key, _WIDTH)


def column_label(column: str, result: ResultFacts) -> str:
    """Return the name of a value per query; one without a label has that of its average."""
    label = metric_label(column, result)
    return metric_label(result.keys[column], result) if label == column else label


def average_name(average: str, result: ResultFacts | None = None) -> str:
    """Return the name of an average at its cutoff; what has no cutoff is no average.

    >>> average_name("macro_recall@10"), average_name("ndcg@1000w")
    ('Macro recall at k = 10', 'nDCG within 1,000 words')
    """
    try:
        key, k = parse_metric(average)
    except InvalidInput:
        return fitted(average, _WIDTH)
    return at_cutoff(metric_label(key, result), k)


def at_cutoff(name: str, k: Cutoff) -> str:
    """Return what is called so with its cutoff behind it."""
    return _("{metric} {cutoff}").format(metric=name, cutoff=cutoff_words(k))


def with_direction(name: str, average: Average | None, *, lines: int = 1) -> str:
    """Return the name of an average, with a word, or a line below it, where lower is better."""
    if average is None or not average.lower_is_better:
        return name
    told = _("{} (lower is better)")
    return told.format(name) if lines == 1 else f"{name}\n{told.format('').strip()}"


def cutoff_words(k: Cutoff) -> str:
    """Return a cutoff within a title.

    >>> cutoff_words(5), cutoff_words(Budget(1000, "w"))
    ('at k = 5', 'within 1,000 words')
    """
    if isinstance(k, Budget):
        return {
            "w": _("within {:,} words"),
            "c": _("within {:,} characters"),
            "t": _("within {:,} units of length"),
        }[k.unit].format(k.amount)
    return _("over all retrieved documents") if k is None else _("at k = {}").format(k)


def bounds_of(
    intervals: pd.DataFrame | Mapping[str, pd.DataFrame] | None, average: str
) -> tuple[float, float] | None:
    """Return the interval of one average, such as ``"ndcg@10"``; ``None`` if it is undefined.

    Raises:
        InvalidInput: If the table has no such row, or is no table of intervals.
        InvalidType: If it is no table.
    """
    if intervals is None:
        return None
    if not {"low", "high"} <= set(getattr(intervals, "columns", ())):
        kind = InvalidInput if hasattr(intervals, "columns") else InvalidType
        raise kind(
            "intervals",
            "must be what confidence_intervals returned, with the columns 'low' and 'high', "
            f"got {type(intervals).__name__}",
        )
    table = cast("pd.DataFrame", intervals)
    if average not in table.index:
        fix = "compute them from the same result"
        raise InvalidInput("intervals", f"have no row {average!r}", fix)
    low, high = (float(table[bound][average]) for bound in ("low", "high"))
    return None if math.isnan(low) or math.isnan(high) else (low, high)


#: File name endings that :func:`save_plot` accepts.
PLOT_FORMATS = (".png", ".svg", ".pdf")

#: CSS that gives the elements of :func:`inline_svg` their colours on dark paper, for a page that
#: sets ``--ink``, ``--paper``, ``--good``, ``--warn`` and ``--bad`` itself.
DARK = "@media screen and (prefers-color-scheme: dark) {{ :root {{ {} }} }}".format(
    " ".join(f"{variable}: {colour};" for variable, colour in ON_DARK.values())
)

# Colour -> the variable of a page that it is taken from.
_VARIABLES = {
    INK: "--ink",
    PAPER: "--paper",
    FOUND: "--good",
    PARTIAL: "--warn",
    MISSED: "--bad",
    **{colour: variable for colour, (variable, _) in ON_DARK.items()},
}
_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
_TAG = re.compile(r"<[^<>]+>")
_NAMES = re.compile(r'(\bid="|href="#|url\(#)')


def save_plot(path: str | os.PathLike[str], draw: Callable[[Axes], object]) -> None:
    """Draw into a file: PNG, SVG or PDF, by the ending of its name.

    Args:
        path: The file; one of that name is overwritten.
        draw: Called with the Axes to draw on, such as ``lambda ax: metric_bars(result, 5, ax)``.

    Raises:
        InvalidInput: For another ending, listing those that are possible.
        OSError: If the file cannot be written; the error names it.
    """
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending not in PLOT_FORMATS:
        problem = f"must end in one of {', '.join(PLOT_FORMATS)}, got {os.fspath(path)!r}"
        raise InvalidInput("path", problem)
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    draw(figure.subplots())
    # In memory first: of a full disk, matplotlib's PDF writer says something else.
    written = io.BytesIO()
    with _boxes_for_missing_letters():
        figure.savefig(written, format=ending[1:], dpi=150, bbox_inches="tight", pad_inches=0.15)
    with naming(path), open(path, "wb") as file:
        file.write(written.getbuffer())


def inline_svg(
    draw: Callable[[Axes], object],
    name: str,
    *,
    title: str | None = None,
    size: tuple[float, float] = SIZE,
) -> str:
    """Draw an ``<svg>`` element for a page that holds several.

    Text stays text, in whatever font the reader has: it can be read aloud, copied and found, and
    needs no Korean font where it is drawn. The same drawing gives the same characters. Colours are
    those of a saved plot, unless the page sets variables: ``--ink`` and ``--paper``, ``--good``,
    ``--warn`` and ``--bad``, and those in ``DARK``.

    Args:
        draw: Called with the Axes to draw on.
        name: Put before every id, so that they are unique within the page: letters and digits.
        title: What a screen reader says; the picture's own title if not given.
        size: Width and height in inches.
    """
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    written = io.StringIO()
    with _boxes_for_missing_letters(), warnings.catch_warnings():
        for language in languages():  # whichever the drawing warns in
            with speaking(language):
                beginning = re.escape(_(fonts.NO_FONT).partition("{")[0])
            warnings.filterwarnings("ignore", message=beginning)
        ax = figure.subplots()
        draw(ax)
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name}):
            canvas = FigureCanvasSVG(figure)
            # As savefig does, which draws everything once more to find the places.
            figure.get_layout_engine().execute(figure)  # type: ignore[union-attr]
            figure.set_layout_engine("none")
            for patch in (figure.patch, *(one.patch for one in figure.axes)):
                patch.set(facecolor="none", edgecolor="none")
            canvas.print_svg(written, metadata={"Date": None})  # type: ignore[no-untyped-call]
    title = ax.get_title(loc="left").replace("\n", " ") if title is None else title
    return _for_a_page(written.getvalue(), name, title)


def _for_a_page(document: str, name: str, title: str) -> str:
    """Take the ``<svg>`` element out of an SVG document; nothing in it reaches beyond it."""
    svg = document[document.index("<svg") :].rstrip()
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Its style sheet would hold for the whole page.
    svg = re.sub(r"\s*<style\b.*?</style>", "", svg, flags=re.DOTALL)
    svg = _TAG.sub(lambda tag: _COLOUR.sub(_variable, _NAMES.sub(rf"\g<1>{name}-", tag[0])), svg)
    start = svg.index(">")
    view_box = re.search(r'viewBox="[^"]*"', svg[:start])
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'{view_box[0] if view_box else ""} role="img" stroke-linejoin="round" '
        # What is black has no colour of its own in what matplotlib writes.
        f'stroke-linecap="butt" style="fill: var(--ink, {INK})"><title>{escape(title)}</title>'
    )
    return opening + svg[start + 1 :]


def _variable(colour: re.Match[str]) -> str:
    """Let a page change a colour, where the colour has a variable."""
    name, value = colour.groups()
    return f"{name}: var({_VARIABLES[value]}, {value})" if value in _VARIABLES else colour[0]


@contextmanager
def _boxes_for_missing_letters() -> Iterator[None]:
    """Keep matplotlib from warning of every single letter that no font has."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def label_of(name: str, metrics: Mapping[str, Metric]) -> str | None:
    """Return what people call an average or, of a metric that has two, the metric itself.

    >>> label_of("macro_recall", METRICS), label_of("recall", METRICS)
    ('Macro recall', 'Recall')
    """
    averages = averages_of(metrics.values()) | {REJECTION_RATE.key: REJECTION_RATE}
    metric = metrics.get(name)
    if name not in averages and metric is not None and metric.micro:
        return told(metric.labels, language())
    return averages[name].label() if name in averages else None

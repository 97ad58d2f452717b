"""Draw the pictures of docs/metrics.md: one per metric and one of places, of values computed.

    python docs/images/make_metric_pictures.py

Letters stay letters in these SVG files, so that the reader's own font draws them, Hangul as well;
run again, it writes the same files byte for byte with the same matplotlib.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from krag_eval import OfflineRetrievalEvaluator
from krag_eval.plotting.styling import finish

HERE = Path(__file__).parent / "metrics"
ORANGE, BLUE, GREEN, GREY = "#E69F00", "#0072B2", "#009E73", "#999999"
#: The query that the page works through by hand.
ACTUAL, PREDICTED = [["a", "b", "c"]], [["a", "x", "b", "y", "z"]]
RELEVANT = {"a", "b"}
#: What somebody looked at and found not relevant.
JUDGED = [["x"]]
#: The aspect of the question that each item speaks to.
ASPECTS = {"a": "price", "b": "hours", "c": "price"}
#: What must not come back, and what the answer cited.
LISTS = {"unwanted": [["x", "z"]], "cited": [["a", "c", "x"]]}
CUTOFFS = [1, 2, 3, 4, 5]
#: A query whose third document holds three of its five items.
FIVE = ["g1", "g2", "g3", "g4", "g5"]
RICH = ["g1", "g2", "g3 g4 g5", "x", "y"]
#: The passage and the chunks whose words are counted.
PASSAGE = "Cards are free for residents and cost nine euros for everyone else"
CHUNKS = [
    "Opening hours. Cards are free for residents and cost",
    "Parking is free on Sundays",
    "free for residents and cost nine euros",
    "Ask at the desk",
    "cost nine euros for everyone else. Lost cards cost two",
]
KOREAN = {
    "rank": "순위",
    "cutoff k": "컷오프 k",
    "all": "all (모두)",
    "partial": "partial (하나라도)",
    "precision": "정밀도",
    "recall": "재현율",
    "rank of the first relevant document": "첫 관련 문서의 순위",
    "reciprocal rank": "순위의 역수",
    "mean rank": "평균 순위",
    "found rate": "찾은 질문 비율",
    "precision at the rank": "그 순위의 정밀도",
    "an item is first found: counts": "항목을 처음 찾음: 더함",
    "no new item": "새로 찾은 항목 없음",
    "the list": "실제 목록",
    "the best list": "최선의 목록",
    "gain after discount": "할인한 이득",
    "place": "자리",
    "new words of the passage": "새로 나온 정답 단어",
    "back again": "또 나온 정답 단어",
    "other words": "그 밖의 단어",
}


def main() -> None:
    """Draw every metric in both languages."""
    HERE.mkdir(exist_ok=True)
    for name, draw in pictures().items():
        save(draw(), HERE / name)


def pictures() -> dict[str, Callable[[], Figure]]:
    """Return what draws each file, by its name."""
    return {
        f"{metric}{suffix}.svg": partial(draw, language)
        for metric, draw in PICTURES.items()
        for language, suffix in (("en", ""), ("ko", "_ko"))
    }


def said(word: str, language: str) -> str:
    """Return a label in the language asked for."""
    return KOREAN.get(word, word) if language == "ko" else word


def save(figure: Figure, path: Path) -> None:
    """Write a figure, without a date, and with fonts that every reader has."""
    options = {"svg.fonttype": "none", "svg.hashsalt": "krag_eval"}
    with matplotlib.rc_context(options), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's font has it
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    text = path.read_text("utf-8").replace("'DejaVu Sans'", "system-ui, sans-serif")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")


def of_example(metric: str, criteria: str = "all") -> list[float]:
    """Return a metric of the example at every cutoff."""
    actual = [{"page_content": one, "metadata": {"aspect": ASPECTS[one]}} for one in ACTUAL[0]]
    evaluator = OfflineRetrievalEvaluator(
        [actual],
        PREDICTED,
        matching_criteria=criteria,
        judged=JUDGED,
        aspect_key="aspect",
        **LISTS,
    )
    result = evaluator.evaluate(k=CUTOFFS, metrics=[metric])
    column = next(iter(result.keys))
    return [float(result.per_query(k)[column].iloc[0]) for k in CUTOFFS]


def new_axes(language: str, x: str, *, documents: bool = True) -> tuple[Figure, Axes]:
    """Return axes over the ranks of the example, with its documents above them."""
    figure = Figure(figsize=(5.0, 3.1), facecolor="white")
    ax = figure.add_axes((0.12, 0.16, 0.85, 0.56 if documents else 0.76))
    ax.set(xlim=(0.4, 5.6), ylim=(0, 1.12), xticks=CUTOFFS, yticks=[0, 0.5, 1])
    ax.set_xlabel(said(x, language))
    finish(ax, "y")
    if documents:
        for rank, name in enumerate(PREDICTED[0], start=1):
            draw_document(figure, rank, name, name in RELEVANT)
    return figure, ax


def draw_document(figure: Figure, rank: int, name: str, relevant: bool) -> None:
    """Draw one document of the list above its rank, filled if it is relevant."""
    figure.text(
        0.12 + 0.85 * (rank - 0.4) / 5.2,
        0.82,
        name,
        ha="center",
        va="center",
        color="white" if relevant else "#555555",
        fontweight="bold" if relevant else "normal",
        bbox={
            "boxstyle": "round,pad=0.45",
            "facecolor": GREEN if relevant else "white",
            "edgecolor": GREEN if relevant else GREY,
        },
    )


def bars(ax: Axes, values: Sequence[float], color: str, **options: object) -> None:
    """Draw bars with their values on top."""
    ax.bar(CUTOFFS, values, width=0.55, color=color, **options)  # type: ignore[arg-type]
    for k, value in zip(CUTOFFS, values, strict=True):
        ax.text(k, value + 0.02, f"{value:.2f}", ha="center", va="bottom", fontsize=9)


def legend(ax: Axes, columns: int = 2) -> None:
    """Put the legend above everything."""
    handles, labels = ax.get_legend_handles_labels()
    options = {"loc": "upper center", "frameon": False, "fontsize": 9}
    ax.figure.legend(handles, labels, ncols=columns, bbox_to_anchor=(0.5, 1.01), **options)


def hit_rate(language: str) -> Figure:
    """All and any of the items found within k."""
    figure, ax = new_axes(language, "cutoff k")
    for criteria, color, style in (("partial", BLUE, "o-"), ("all", ORANGE, "s--")):
        values = of_example("hit_rate", criteria)
        ax.plot(CUTOFFS, values, style, color=color, label=said(criteria, language))
    ax.set_ylim(-0.08, 1.12)
    legend(ax)
    return figure


def one_metric(metric: str) -> Callable[[str], Figure]:
    """Return a drawing of one metric at every cutoff, as bars."""

    def draw(language: str) -> Figure:
        figure, ax = new_axes(language, "cutoff k")
        bars(ax, of_example(metric), BLUE)
        return figure

    return draw


def f1(language: str) -> Figure:
    """F1 between precision and recall."""
    figure, ax = new_axes(language, "cutoff k")
    for metric, color, style in (("precision", GREY, "v:"), ("recall", GREY, "^--")):
        ax.plot(CUTOFFS, of_example(metric), style, color=color, label=said(metric, language))
    ax.plot(CUTOFFS, of_example("f1"), "o-", color=BLUE, linewidth=2, label="F1")
    legend(ax, 3)
    return figure


def reciprocal_rank(language: str) -> Figure:
    """1 / rank, by the rank of the first relevant document."""
    ranks = list(range(1, 11))
    lists = [[f"x{i}" for i in range(rank - 1)] + ["a"] for rank in ranks]
    result = OfflineRetrievalEvaluator([["a"]] * 10, lists).evaluate(k=10)
    values = [float(value) for value in result.per_query(10)["reciprocal_rank"]]
    figure, ax = new_axes(language, "rank of the first relevant document", documents=False)
    ax.bar(ranks, values, width=0.6, color=BLUE)
    for rank, value in zip(ranks, values, strict=True):
        ax.text(rank, value + 0.02, f"{value:.2f}", ha="center", va="bottom", fontsize=9)
    ax.set(xlim=(0.4, 10.6), xticks=ranks, ylabel=said("reciprocal rank", language))
    return figure


def rank(language: str) -> Figure:
    """Two queries, found at ranks 1 and 3: a harder query joins the average."""
    evaluator = OfflineRetrievalEvaluator([["a"], ["b"]], [["a", "x", "y"], ["x", "y", "b"]])
    means = [evaluator.calculate_mean_rank(k=k) for k in CUTOFFS]
    figure, ax = new_axes(language, "cutoff k", documents=False)
    ax.set(ylim=(0, 3.2), yticks=[0, 1, 2, 3])
    for key, color, style in (("mean_rank", BLUE, "o-"), ("found_rate", ORANGE, "s--")):
        label = said(key.replace("_", " "), language)
        ax.plot(CUTOFFS, [mean[key] for mean in means], style, color=color, label=label)
    ax.legend(loc="upper left", ncols=2, frameon=False, fontsize=9)
    return figure


def average_precision(language: str) -> Figure:
    """The precision at every rank, coloured where an item is first found."""
    figure, ax = new_axes(language, "rank")
    values = of_example("precision")
    first = [name in RELEVANT for name in PREDICTED[0]]
    bars(ax, values, GREY, alpha=0.35)
    counted = [value if new else 0 for value, new in zip(values, first, strict=True)]
    ax.bar(
        CUTOFFS, counted, 0.55, color=BLUE, label=said("an item is first found: counts", language)
    )
    ax.bar([0], [0], color=GREY, alpha=0.35, label=said("no new item", language))
    ax.set_ylabel(said("precision at the rank", language))
    legend(ax)
    return figure


def ndcg(language: str) -> Figure:
    """What every rank earns, beside what it earns in the best list."""
    best = discounted(["a", "b", "c"])
    actual = discounted(PREDICTED[0])
    figure, ax = new_axes(language, "rank")
    for offset, gains, color, label in (
        (-0.2, actual, BLUE, "the list"),
        (0.2, best, ORANGE, "the best list"),
    ):
        places = [rank + offset for rank in CUTOFFS]
        ax.bar(places, gains, 0.36, color=color, label=said(label, language))
        for place, gain in zip(places, gains, strict=True):
            if gain:
                ax.text(place, gain + 0.02, f"{gain:.2f}", ha="center", va="bottom", fontsize=9)
    ax.set_ylabel(said("gain after discount", language))
    legend(ax)
    return figure


def ndcg_places(language: str) -> Figure:
    """The place of every item, below the document at its first rank."""
    items = OfflineRetrievalEvaluator([FIVE], [RICH], "contains").evaluate(5).explain(0).items
    best = discounted(FIVE, FIVE)
    figure, ax = new_axes(language, "place", documents=False)
    ax.set_position((0.12, 0.16, 0.85, 0.56))
    for rank, name in enumerate(RICH, start=1):
        draw_document(figure, rank, name, any(item.first_rank == rank for item in items))
    places = [item.place for item in items]
    ax.bar(places, [best[place - 1] for place in places], 0.55, color=BLUE)
    for name, item in zip(FIVE, items, strict=True):
        gain = best[item.place - 1]
        ax.text(item.place, gain / 2, name, ha="center", va="center", color="white")
        ax.text(item.place, gain + 0.02, f"{gain:.2f}", ha="center", va="bottom", fontsize=9)
        if item.place != item.first_rank:
            ax.annotate(
                "",
                (item.place - 0.1, gain + 0.17),
                (item.first_rank + 0.25, 1.12),
                arrowprops={"arrowstyle": "->", "color": GREY},
            )
    ax.set_ylabel(said("gain after discount", language))
    return figure


def in_words(metric: str) -> Callable[[str], Figure]:
    """Return a drawing of a metric that counts words, below the words of every chunk."""

    def draw(language: str) -> Figure:
        evaluator = OfflineRetrievalEvaluator([[PASSAGE]], [CHUNKS], "coverage(union=yes)")
        result = evaluator.evaluate(k=CUTOFFS, metrics=[metric])
        figure, ax = new_axes(language, "cutoff k", documents=False)
        ax.set_position((0.12, 0.16, 0.85, 0.56))
        bars(ax, [float(result.per_query(k)[metric].iloc[0]) for k in CUTOFFS], BLUE)
        draw_words(figure)
        kinds = {"new words of the passage": 1.0, "back again": 0.4, "other words": 0.0}
        boxes = [box((0, 0), 1, 1, shade) for shade in kinds.values()]
        names = [said(kind, language) for kind in kinds]
        options = {"loc": "upper center", "frameon": False, "fontsize": 9, "handlelength": 1}
        figure.legend(boxes, names, ncols=3, bbox_to_anchor=(0.5, 1.01), **options)
        return figure

    return draw


def draw_words(figure: Figure) -> None:
    """Draw a box for every word of every chunk, five in a row, above its rank."""
    passage, known = PASSAGE.split(), set()
    for rank, chunk in enumerate(CHUNKS, start=1):
        words = chunk.replace(".", "").split()
        shades = [0.0] * len(words)
        blocks = SequenceMatcher(None, passage, words, autojunk=False).get_matching_blocks()
        for place, first, size in blocks:
            if size >= 5:  # the runs that coverage counts
                run = range(place, place + size)
                shades[first : first + size] = [0.4 if word in known else 1.0 for word in run]
                known |= set(run)
        left = 0.12 + 0.85 * (rank - 0.8) / 5.2
        for number, shade in enumerate(shades):
            corner = (left + 0.02 * (number % 5), 0.85 - 0.05 * (number // 5))
            figure.add_artist(box(corner, 0.016, 0.036, shade))


def box(corner: tuple[float, float], width: float, height: float, shade: float) -> Rectangle:
    """Return the box of a word, the fuller the more it brings."""
    return Rectangle(corner, width, height, facecolor=(GREEN, shade), edgecolor=GREY, linewidth=0.7)


def discounted(documents: Sequence[str], wanted: Sequence[str] = ACTUAL[0]) -> list[float]:
    """Return what each rank earns: the nDCG of one item found there, as its best list earns 1."""
    gains = []
    for rank in CUTOFFS:
        found = documents[rank - 1 : rank]
        if not set(found) & set(wanted):
            gains.append(0.0)
            continue
        alone = [f"other {place}" for place in range(1, rank)] + list(found)
        gains.append(OfflineRetrievalEvaluator([found], [alone]).calculate_ndcg()["ndcg"])
    return gains


PICTURES: dict[str, Callable[[str], Figure]] = {
    "hit_rate": hit_rate,
    "precision": one_metric("precision"),
    "recall": one_metric("recall"),
    "f1": f1,
    "reciprocal_rank": reciprocal_rank,
    "rank": rank,
    "average_precision": average_precision,
    "ndcg": ndcg,
    "ndcg_places": ndcg_places,
    "success": one_metric("success"),
    "r_precision": one_metric("r_precision"),
    "rbp": one_metric("rbp"),
    "judged": one_metric("judged"),
    "bpref": one_metric("bpref"),
    "infap": one_metric("infap"),
    "precision_upper": one_metric("precision_upper"),
    "rbp_residual": one_metric("rbp_residual"),
    "aspect_recall": one_metric("aspect_recall"),
    "alpha_ndcg": one_metric("alpha_ndcg"),
    "unwanted": one_metric("unwanted"),
    "clean": one_metric("clean"),
    "citation_precision": one_metric("citation_precision"),
    "citation_recall": one_metric("citation_recall"),
    "token_recall": in_words("token_recall"),
    "token_precision": in_words("token_precision"),
    "token_iou": in_words("token_iou"),
    "redundancy": in_words("redundancy"),
}

if __name__ == "__main__":
    main()

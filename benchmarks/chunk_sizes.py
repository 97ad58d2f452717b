"""Chunk sizes at equal k and within equal budgets: the tables of docs/chunk-sizes.md.

    python -m benchmarks.chunk_sizes [--language ko] [--markdown | --offsets] [--picture FILE]

One of the two handbooks in ``notebooks/data`` is cut into chunks of several sizes. BM25 of the
notebooks ranks all chunks for each question; the ground truth are excerpts of the handbook, so that
every chunk size is asked for the same words. The Korean handbook is shorter, and a Korean word says
more than an English one, so its chunks and budgets are half as large.
"""

from __future__ import annotations

import argparse
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings

import numpy as np

from krag_eval import EvaluationResult, KragEvalWarning, OfflineRetrievalEvaluator, load_dataset

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
K = 5
PICTURED = "macro_token_recall"


class Setting(NamedTuple):
    """What is cut, and how; sizes are words of a chunk and those it shares with the next one."""

    text: str
    questions: str
    sizes: tuple[tuple[int, int], ...]
    budgets: tuple[int, ...]
    pictured_budgets: tuple[int, ...]


class Measured(NamedTuple):
    """One chunk size: how many chunks there are, what comes back, what it scores."""

    n_chunks: int
    found: list[list[Any]]
    alone: EvaluationResult
    together: EvaluationResult


SETTINGS = {
    "en": Setting(
        "handbook.txt",
        "handbook_questions.jsonl",
        ((50, 0), (100, 0), (200, 0), (200, 100), (400, 0), (800, 0)),
        (500, 1000, 2000),
        tuple(range(250, 3001, 250)),
    ),
    "ko": Setting(
        "handbook.ko.txt",
        "handbook_questions.ko.jsonl",
        ((25, 0), (50, 0), (100, 0), (100, 50), (200, 0), (400, 0)),
        (250, 500, 1000),
        tuple(range(125, 1501, 125)),
    ),
}
#: What the sizes are, one of them, and one whose chunks overlap.
HEADINGS = {
    "en": ("words per chunk", "{}", "{}, half shared"),
    "ko": ("청크의 단어 수", "{}", "{}, 절반씩 겹침"),
}
ROWS = {
    "en": (
        "chunks", f"recall@{K}, one chunk", f"recall@{K}, together", f"token recall@{K}",
        f"token precision@{K}", f"redundancy@{K}", "token recall in {:,} words",
    ),
    "ko": (
        "청크 수", f"재현율@{K}, 청크 하나", f"재현율@{K}, 합쳐서", f"토큰 재현율@{K}",
        f"토큰 정밀도@{K}", f"중복률@{K}", "{:,}단어 안의 토큰 재현율",
    ),
}  # fmt: skip
#: The rows that count chunks, and say what recall costs.
NO_RECALL = (0, 4, 5)
#: What a line of the picture is called, and one of chunks that overlap.
NAMES = {
    "en": ("{} words", "{} words, {} shared"),
    "ko": ("{}단어", "{}단어, {}단어씩 겹침"),
}


@cache
def measured(language: str) -> dict[tuple[int, int], Measured]:
    """Return what every chunk size scores."""
    setting = SETTINGS[language]
    text, dataset = handbook(language)
    return {size: of_size(text, dataset, size, setting) for size in setting.sizes}


@cache
def handbook(language: str) -> tuple[str, Any]:
    """Return the text, and the questions about it."""
    setting, data = SETTINGS[language], NOTEBOOKS / "data"
    questions = load_dataset(data / setting.questions, actual="excerpts")
    return (data / setting.text).read_text("utf-8"), questions


def of_size(text: str, dataset: Any, size: tuple[int, int], setting: Setting) -> Measured:
    rag = small_rag()
    n_words, shared = size
    documents = rag.chunks(text, n_words, overlap=shared)
    bm25 = rag.BM25(documents=documents, k=len(documents))
    found = [bm25.invoke(question) for question in dataset.questions]
    # Budgets that no chunk fits into and excerpts longer than all chunks are what is shown here.
    with catch_warnings(action="ignore", category=KragEvalWarning):
        alone, together = (
            OfflineRetrievalEvaluator(dataset.actual, found, matcher=matcher).evaluate(
                k=K, budget=setting.pictured_budgets
            )
            for matcher in ("coverage", "coverage(union=yes)")
        )
    return Measured(len(documents), found, alone, together)


def small_rag() -> Any:
    """Import the retrieval system of the notebooks, which is a script beside them."""
    if str(NOTEBOOKS) not in sys.path:
        sys.path.append(str(NOTEBOOKS))
    import small_rag

    return small_rag


def table(language: str) -> dict[str, list[float]]:
    """Return the rows of the table: what is measured, and its number for each chunk size."""
    *names, within = ROWS[language]
    sizes = list(measured(language).values())
    at_k = [one.alone.averages(K) for one in sizes]
    numbers: list[list[float]] = [
        [one.n_chunks for one in sizes],
        [scores["macro_recall"] for scores in at_k],
        [one.together.averages(K)["macro_recall"] for one in sizes],
        [scores["macro_token_recall"] for scores in at_k],
        [scores["macro_token_precision"] for scores in at_k],
        [scores["redundancy"] for scores in at_k],
    ]
    rows = dict(zip(names, numbers, strict=True))
    for budget in SETTINGS[language].budgets:
        found = [one.alone.averages(f"{budget}w") for one in sizes]
        rows[within.format(budget)] = [scores["macro_token_recall"] for scores in found]
    return rows


def cells(language: str, bold: str = "{}") -> list[list[str]]:
    """Return the table as texts, the chunk sizes first; the best recall of each row in bold."""
    heading, plain, overlapping = HEADINGS[language]
    sizes = [(overlapping if shared else plain).format(n) for n, shared in measured(language)]
    lines = [[heading, *sizes]]
    for place, (name, numbers) in enumerate(table(language).items()):
        shown = [f"{number:.2f}" if place else f"{number:,}" for number in numbers]
        best = None if place in NO_RECALL else max(shown)
        lines.append([name, *(bold.format(text) if text == best else text for text in shown)])
    return lines


def markdown(language: str) -> str:
    """Return the table as it stands in the page."""
    first, *rest = (f"| {' | '.join(line)} |" for line in cells(language, bold="**{}**"))
    return "\n".join([first, "|---" * (len(measured(language)) + 1) + "|", *rest])


def name_of(size: tuple[int, int], language: str) -> str:
    return NAMES[language][size[1] > 0].format(*size)


def agreement(language: str) -> dict[tuple[int, int], tuple[float, float]]:
    """Return, for each size, how token recall at K and that by places agree over the questions.

    Returns:
        The correlation, and the mean of the absolute difference.
    """
    text, dataset = handbook(language)
    # What the matcher counts: Korean is read by letters.
    token = r"[^\W_]" if language == "ko" else r"\S+"
    words = np.array([match.span() for match in re.finditer(token, text)])
    agreed = {}
    for size, one in measured(language).items():
        by_words = one.alone.per_query(K)["token_recall"].to_numpy()
        by_places = [
            held(words, [small_rag().located(str(excerpt), text) for excerpt in excerpts], found)
            for excerpts, found in zip(dataset.actual, one.found, strict=True)
        ]
        error = np.abs(by_words - by_places).mean()
        agreed[size] = float(np.corrcoef(by_words, by_places)[0, 1]), float(error)
    return agreed


def held(words: np.ndarray, excerpts: list[Any], found: list[Any]) -> float:
    """Return the share of the excerpts' words that lie in one of the first K chunks."""

    def inside(document: Any) -> np.ndarray:
        place = document.metadata
        return (words[:, 0] < place["end"]) & (words[:, 1] > place["start"])

    retrieved = np.any([inside(chunk) for chunk in found[:K]], axis=0)
    wanted = [inside(excerpt) for excerpt in excerpts]
    return float(sum((one & retrieved).sum() for one in wanted) / sum(one.sum() for one in wanted))


def draw(language: str, path: Path) -> None:
    """Draw words retrieved against words found, a line for each chunk size."""
    from matplotlib.figure import Figure

    from krag_eval.plotting import budget_curves

    ax = Figure(figsize=(8.2, 5.0), layout="constrained").add_subplot()
    results = {name_of(size, language): one.alone for size, one in measured(language).items()}
    budget_curves(results, metric=PICTURED, ax=ax, language=language)
    ax.figure.savefig(path, dpi=90, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--language", choices=list(SETTINGS), default="en", help="which handbook")
    parser.add_argument("--markdown", action="store_true", help="the table as the page has it")
    parser.add_argument("--offsets", action="store_true", help="compare with places in the text")
    parser.add_argument("--picture", type=Path, metavar="FILE", help="draw it, too (PNG)")
    arguments = parser.parse_args()
    if arguments.picture:
        draw(arguments.language, arguments.picture)
    if arguments.markdown:
        print(markdown(arguments.language))
        return
    if arguments.offsets:
        for size, (correlation, error) in agreement(arguments.language).items():
            name = name_of(size, arguments.language)
            print(f"{name:>24}: correlation {correlation:.3f}, mean difference {error:.3f}")
        return
    for name, *values in cells(arguments.language):
        print(f"{name:>26}", *(f"{value:>16}" for value in values))


if __name__ == "__main__":
    main()

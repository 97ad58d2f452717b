"""What `evaluate_retriever` costs over the retriever's own `batch` and the evaluator by hand.

    python -m benchmarks.retrievers [--quick]

The same 1,000 questions, documents and evaluator on both sides. The retriever is LangChain's vector
store in memory, over only 200 texts: a larger one takes longer, and krag_eval's share shrinks. A
second row keeps every document in a checkpoint. The last is what is added to the quickest
retriever there can be, one that looks its answer up in a dict: microseconds per question, whatever
the retriever.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import zlib
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore

from benchmarks.measuring import Goal, Rounds, Row, in_turns, spelled_seconds, table
from krag_eval import EvaluationResult, OfflineRetrievalEvaluator, evaluate_retriever

N_QUESTIONS = 1000
N_TEXTS = 200
DEPTH = 10
CUTOFFS = (1, 5, 10)


class WordCounts(Embeddings):
    """Counts words in 256 bins: deterministic, and without a model."""

    def embed_query(self, text: str) -> list[float]:
        """Return how often each bin was hit."""
        counts = [0.0] * 256
        for word in re.findall(r"\w+", text):
            counts[zlib.crc32(word.encode()) % 256] += 1
        return counts

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the counts of each text."""
        return [self.embed_query(text) for text in texts]


class LookedUp(BaseRetriever):
    """Returns what a dict holds for the question."""

    found: dict[str, list[Document]]

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.found[query]


def make_corpus(n_texts: int) -> list[str]:
    random_ = random.Random(7)
    words = [f"word{number}" for number in range(5_000)]
    return [" ".join(random_.choices(words, k=60)) for _ in range(n_texts)]


def by_hand(retriever: BaseRetriever, dataset: list[dict[str, Any]]) -> EvaluationResult:
    questions = [row["question"] for row in dataset]
    predicted = retriever.batch(questions)
    evaluator = OfflineRetrievalEvaluator(
        [row["actual"] for row in dataset], predicted, queries=questions
    )
    return evaluator.evaluate(CUTOFFS)


def rows(quick: bool = False) -> list[Row]:
    n_questions, n_rounds = (200, 3) if quick else (N_QUESTIONS, 7)
    texts = make_corpus(N_TEXTS)
    questions = [f"{texts[i % N_TEXTS][:200]} {i}?" for i in range(n_questions)]
    dataset = [{"question": q, "actual": [texts[i % N_TEXTS]]} for i, q in enumerate(questions)]
    store = InMemoryVectorStore.from_texts(texts, WordCounts())
    searching = store.as_retriever(search_kwargs={"k": DEPTH})
    documents = [Document(text) for text in texts] * 2
    found = {q: documents[i % N_TEXTS :][:DEPTH] for i, q in enumerate(questions)}
    return [
        *through_a_vector_store(searching, dataset, n_rounds),
        through_a_dict(LookedUp(found=found), dataset, 3 * n_rounds),
    ]


def asked(retriever: BaseRetriever, dataset: list[dict[str, Any]], **options: Any) -> Any:
    return evaluate_retriever(retriever, dataset, CUTOFFS, progress=False, **options)


def through_a_vector_store(
    retriever: BaseRetriever, dataset: list[dict[str, Any]], n_rounds: int
) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.jsonl"

        def kept() -> EvaluationResult:
            path.unlink(missing_ok=True)
            return asked(retriever, dataset, checkpoint=path)

        taken = in_turns(
            {
                "by hand": lambda: by_hand(retriever, dataset),
                "ours": lambda: asked(retriever, dataset),
                "kept": kept,
            },
            n_rounds,
        )
    check_same(taken)
    name = f"evaluate_retriever, {len(dataset):,} questions, over batch and evaluator"
    return [
        added(name, taken, "ours", Goal("at most", 5)),
        added("the same with a checkpoint", taken, "kept", None, f"{DEPTH} documents per line"),
    ]


def through_a_dict(retriever: BaseRetriever, dataset: list[dict[str, Any]], n_rounds: int) -> Row:
    taken = in_turns(
        {"by hand": lambda: by_hand(retriever, dataset), "ours": lambda: asked(retriever, dataset)},
        n_rounds,
    )
    check_same(taken)
    more = taken.median("ours") - taken.median("by hand")
    return Row(
        "what is added per question, whatever the retriever",
        more / len(dataset) * 1e6,
        unit="µs",
        ours=spelled_seconds(taken.median("ours")),
        theirs=spelled_seconds(taken.median("by hand")),
        note="the retriever is a dict",
    )


def added(name: str, taken: Rounds, job: str, goal: Goal | None, note: str = "") -> Row:
    """Return the row that says how much more CPU time a job takes than by hand, in percent."""
    return Row(
        name,
        100 * (taken.ratio(job, "by hand") - 1),
        unit="%",
        ours=spelled_seconds(taken.median(job)),
        theirs=spelled_seconds(taken.median("by hand")),
        goal=goal,
        note=note,
    )


def check_same(taken: Rounds) -> None:
    if any(result != taken.results["by hand"] for result in taken.results.values()):
        raise AssertionError("the results differ")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer questions and rounds")
    print(table(rows(parser.parse_args().quick)))

"""Compare the rules of study/systems.py that were written anew with the tools they come from.

    python -m study.against_tools [PAIRS.jsonl]

A line of the file is a list of wanted text and chunk. Without a file, they are excerpts of the
Korean and English texts in ``benchmarks/texts/dev``, each with the chunks of its text, some of them
damaged. Whatever tool is installed is asked about every pair; nothing is installed.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contradictions import corpora, damage
from study.systems import System, decide, systems

Asked = Callable[[str, str], bool]
_EACH = 1_500  # pairs of each language


def main(arguments: Sequence[str]) -> None:
    """Print how often each rule and its tool decide alike."""
    pairs = _read(Path(arguments[0])) if arguments else [*_made("en"), *_made("ko")]
    found = systems()
    for name, load in _TOOLS.items():
        if name not in found:
            print(f"{name}: not here")
            continue
        try:
            ask = load()
        except (ImportError, LookupError) as error:
            print(f"{name}: the tool is not here ({error})")
            continue
        told, different = _compared(found[name], ask, pairs)
        print(f"{name}: {told}")
        for wanted, chunk in different[:3]:
            print(f"    {wanted!r}\n    {chunk!r}")


def _read(path: Path) -> list[tuple[str, str]]:
    return [tuple(json.loads(line)[:2]) for line in path.read_text("utf-8").splitlines()]


def _made(language: str) -> list[tuple[str, str]]:
    """Return pairs of excerpt and chunk, a half of which are right, or nearly."""
    draw = random.Random(0)
    pairs, changes = [], list(damage(language).values())
    for one in corpora("dev", language):
        for excerpt, right in zip(one.excerpts, one.right, strict=True):
            chunks = [*np.flatnonzero(right), *draw.sample(range(len(one.chunks)), 3)]
            for at in chunks:
                chunk = draw.choice([str, partial(draw.choice(changes), draw)])(one.chunks[at])
                pairs.append((excerpt, chunk))
                pairs.append(
                    (excerpt, f"{chunk[:200]} {excerpt}"[-len(excerpt) - draw.randint(0, 60) :])
                )
    return draw.sample(pairs, min(_EACH, len(pairs)))


def _compared(
    system: System, ask: Asked, pairs: list[tuple[str, str]]
) -> tuple[str, list[tuple[str, str]]]:
    ours = decide(system, system.similarities(pairs))
    theirs = np.array([ask(wanted, chunk) for wanted, chunk in pairs])
    different = [pairs[at] for at in np.flatnonzero(ours != theirs)]
    alike = f"{np.sum(ours == theirs):,} of {len(pairs):,} alike"
    return f"{alike}; {ours.sum():,} and {theirs.sum():,} accepted", different


# --- the tools, each asked about one pair ---


def _ragas() -> Asked:
    from ragas.dataset_schema import SingleTurnSample
    from ragas.metrics import NonLLMContextRecall

    metric = NonLLMContextRecall()

    def ask(wanted: str, chunk: str) -> bool:
        sample = SingleTurnSample(retrieved_contexts=[chunk], reference_contexts=[wanted])
        return asyncio.run(metric.single_turn_ascore(sample)) == 1

    return ask


def _continuous_eval(strategy: str) -> Asked:
    retrieval: Any = import_module("continuous_eval.metrics.retrieval")
    rules: Any = import_module("continuous_eval.metrics.retrieval.matching_strategy")
    metric = retrieval.PrecisionRecallF1(getattr(rules, strategy)())
    return lambda wanted, chunk: metric.compute([chunk], [wanted])["context_recall"] == 1


def _krag(method: str) -> Asked:
    evaluators: Any = import_module("krag.evaluators")
    document: Any = import_module("krag.document").KragDocument
    by_text = method == "text"
    made = (
        evaluators.OfflineRetrievalEvaluators
        if by_text
        else (evaluators.RougeOfflineRetrievalEvaluators)
    )
    some = [[document(page_content="some")]]
    evaluator = made(some, some, match_method=method)
    return lambda wanted, chunk: bool(evaluator.text_match(wanted, chunk))


def _chroma() -> Asked:
    search = import_module("chunking_evaluation.utils").rigorous_document_search
    return lambda wanted, chunk: search(chunk, wanted) is not None


def _dpr() -> Asked:
    has_answer = import_module("dpr.data.qa_validation").has_answer
    tokenizer = import_module("dpr.utils.tokenizers").SimpleTokenizer()
    return lambda wanted, chunk: has_answer([wanted], chunk, tokenizer, "string")


def _azure() -> Asked:
    evaluator = import_module("azure.ai.evaluation").RougeScoreEvaluator("rouge1")
    return lambda wanted, chunk: evaluator(ground_truth=wanted, response=chunk)["rouge_passed"]


_TOOLS: dict[str, Callable[[], Asked]] = {
    "ragas": _ragas,
    "continuous-eval ROUGE": partial(_continuous_eval, "RougeChunkMatch"),
    "continuous-eval sentences": partial(_continuous_eval, "ExactSentenceMatch"),
    "continuous-eval ROUGE sentences": partial(_continuous_eval, "RougeSentenceMatch"),
    "krag text": partial(_krag, "text"),
    "krag ROUGE-1": partial(_krag, "rouge1"),
    "krag ROUGE-2": partial(_krag, "rouge2"),
    "krag ROUGE-L": partial(_krag, "rougeL"),
    "Chroma": _chroma,
    "DPR": _dpr,
    "Azure ROUGE-1": _azure,
}

if __name__ == "__main__":
    main(sys.argv[1:])

"""Compare every ROUGE score of a file with rouge-score's.

    python -m benchmarks.rouge_parity FILE.jsonl[.gz]

Each line of the file is an object with "actual" and "predicted", two lists of texts. For every
type, with and without stemmer, the largest absolute difference over all pairs and the three
statistics is printed; it should be 0. rouge-score takes minutes for some thousand pairs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from rouge_score.rouge_scorer import RougeScorer

from benchmarks.rouge import ROUGE_TYPES, dense_scores, pairs, queries_of_file
from krag_eval.matchers.rouge import RougeMatcher

STATISTICS = ("precision", "recall", "fmeasure")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path, help="JSONL with actual and predicted texts")
    queries = queries_of_file(parser.parse_args().file)
    for stemmer in (False, True):
        scorer = RougeScorer(list(ROUGE_TYPES), use_stemmer=stemmer)
        expected = [scorer.score(*pair) for pair in pairs(queries)]
        for rouge_type in ROUGE_TYPES:
            for statistic in STATISTICS:
                matcher = RougeMatcher(
                    rouge_type, statistic=statistic, tokenizer="rouge_score", stemmer=stemmer
                )
                theirs = np.array([getattr(scores[rouge_type], statistic) for scores in expected])
                difference = np.abs(dense_scores(matcher.match(queries), queries) - theirs)
                print(
                    f"{rouge_type}  stemmer {'yes' if stemmer else 'no ':3}  {statistic:9}  "
                    f"{len(theirs):,} pairs, {np.count_nonzero(theirs):,} above 0, "
                    f"largest difference {difference.max(initial=0.0)}",
                    flush=True,
                )


if __name__ == "__main__":
    main()

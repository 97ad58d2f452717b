"""Results made in a line, as evaluated or as they come out of a file, which may be changed."""

import json
from dataclasses import replace

from reference import no_advice

from krag_eval import OfflineRetrievalEvaluator
from krag_eval.core.results.saved import _checksum

MISSING = ...

# Sample S, worked by hand in docs/metrics.md.
ACTUAL = [["doc1", "doc2", "doc5"], ["doc3", "doc4"]]
PREDICTED = [["doc1", "doc2", "doc5"], ["doc6", "doc4", "doc5"]]


def sample_s(*args, **options):
    """Return an evaluator of sample S."""
    return OfflineRetrievalEvaluator(ACTUAL, PREDICTED, *args, **options)


def evaluated(actual, predicted, matcher="text", k=(1, 2, 5), metrics=None, **options):
    """Return the result of such lists, without advice on them."""
    k = list(k) if isinstance(k, tuple) else k
    with no_advice():
        evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher, **options)
        return evaluator.evaluate(k, metrics=metrics)


def with_rows(result, **changed):
    """Return a result with other tags, or other queries that count."""
    return replace(result, rows=replace(result.rows, **changed))


def write_lines(path, rows):
    """Write rows as JSON lines, to be evaluated in chunks."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    return path


def read_back(result, folder, name="result.json", **options):
    """Save a result of any type and read it again."""
    result.to_json(folder / name, **options)
    return type(result).from_json(folder / name)


def changed(path, *steps_and_value, sealed=True):
    """Set one place of a saved result to another value, or remove it.

    If it is sealed anew, its checksum fits.
    """
    content = json.loads(path.read_text("utf-8"))
    *steps, last, value = steps_and_value
    place = content
    for step in steps:
        place = place[step]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    if sealed:
        del content["checksum"]
        content["checksum"] = _checksum(content)
    path.write_text(json.dumps(content), "utf-8")

"""Results made in a line, as evaluated or as they come out of a file."""

from reference import no_advice

from krag_eval import OfflineRetrievalEvaluator

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


def read_back(result, folder, name="result.json", **options):
    """Save a result of any kind and read it again."""
    result.to_json(folder / name, **options)
    return type(result).from_json(folder / name)

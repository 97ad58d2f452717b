"""What matchers find, in the forms that tests compare, and ways to copy them."""

import copy
import pickle
import unicodedata

import numpy as np
import pytest

from krag_eval import Matcher, OfflineRetrievalEvaluator
from krag_eval.core import QuerySet

#: Gives a test ``copied``, which returns a copy of a matcher, made in either way.
copies = pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "pickle"]
)
#: For texts drawn at random, of which some are blank or too short.
quiet = pytest.mark.filterwarnings("ignore::krag_eval.core.errors.KragEvalWarning")


def nfd(text):
    """Return the decomposed spelling, as file names have it on some systems."""
    return unicodedata.normalize("NFD", text)


def matches_of(matcher, actual, predicted, labels=None):
    """Return what a matcher finds for some queries."""
    return matcher.match(QuerySet.from_lists(actual, predicted, labels))


def rows_of(matches):
    """Return each pair that was found: (item, rank, similarity)."""
    columns = matches.item, matches.rank, matches.similarity
    return list(zip(*(one.tolist() for one in columns), strict=True))


def found(matcher, actual, predicted, labels=None):
    """Return what a matcher finds for some queries: (item, rank, similarity)."""
    return rows_of(matches_of(matcher, actual, predicted, labels))


def pairs(matcher, actual, predicted):
    """Return what a matcher finds for one query: (item, rank, similarity)."""
    return found(matcher, [actual], [predicted])


def scores_of(matcher, actual, predicted):
    """Return the similarities of all pairs of one query; shape (actual, predicted)."""
    scores = np.zeros((len(actual), len(predicted)))
    for item, rank, similarity in pairs(matcher, actual, predicted):
        scores[item, rank - 1] = similarity
    return scores


def per_query(matcher, actual, predicted, **options):
    """Return the per-query table over all retrieved documents."""
    evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher, **options)
    return evaluator.evaluate(None).per_query()


class Given(Matcher):
    """Looks similarities up by the two texts, or has one for all pairs."""

    def __init__(self, table, threshold=0.5, name="given"):
        self.table, self.threshold, self.name = table, threshold, name

    def similarity(self, actual, predicted):
        if isinstance(self.table, dict):
            return self.table[actual.page_content, predicted.page_content]
        return self.table

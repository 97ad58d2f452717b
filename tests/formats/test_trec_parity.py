"""Agreement with trec_eval, through pytrec_eval, from the files on: ties, grades, missing topics.

Both sides read the same text. Values agree per topic far beyond the four digits trec_eval prints.
"""

import io
import random

import pytest
import pytrec_eval
from places import DATA

from krag_eval.datasets import read_trec

CUTOFFS = (1, 2, 3, 5, 10, 20)
#: trec_eval's measure -> our column, without a cutoff and with one.
UNCUT = {"map": "average_precision", "recip_rank": "reciprocal_rank", "ndcg": "ndcg",
         "set_P": "precision", "set_recall": "recall", "set_F": "f1"}  # fmt: skip
CUT = {"P": "precision", "recall": "recall", "success": "hit_rate", "map_cut": "average_precision",
       "ndcg_cut": "ndcg"}  # fmt: skip
MEASURES = {*UNCUT, *(f"{name}.{','.join(map(str, CUTOFFS))}" for name in CUT)}


def judgements_in(text):
    """Return judgements the way pytrec_eval takes them, without comments."""
    rows = (line.split() for line in text.splitlines() if not line.startswith("#"))
    found = {}
    for topic, _, document, grade in rows:
        found.setdefault(topic, {})[document] = int(grade)
    return found


def by_trec_eval(qrels, run, level=1):
    """Return trec_eval's values per topic; a topic missing from the run has only zeros, as -c."""
    judged = judgements_in(qrels)
    evaluator = pytrec_eval.RelevanceEvaluator(judged, MEASURES, relevance_level=level)
    found = evaluator.evaluate(pytrec_eval.parse_run(io.StringIO(run)))
    zeros = dict.fromkeys(next(iter(found.values())), 0.0)
    return {topic: found.get(topic, zeros) for topic in judged}


def assert_agree(result, theirs):
    """Check every measure of every topic."""
    for k in (None, *CUTOFFS):
        table = result.per_query(k)
        for measure, column in (UNCUT if k is None else CUT).items():
            name = measure if k is None else f"{measure}_{k}"
            expected = {topic: values[name] for topic, values in theirs.items()}
            assert table[column].to_dict() == pytest.approx(expected, abs=1e-9), name


def random_files(seed, grades):
    """Return judgements and a run of 60 topics over few documents, few scores: many ties.

    Lines are in no order; some topics stand on one side only, some have nothing relevant.
    """
    source = random.Random(seed)
    corpus = [f"{prefix}{n}" for prefix in ("DOC-", "doc_", "가") for n in range(12)]
    judged, retrieved = [], []
    for topic in range(60):
        if topic % 10 != 3:
            judged += [
                f"{topic}\t0\t{document}\t{source.choice(grades)}"
                for document in source.sample(corpus, source.randint(1, 20))
            ]
        if topic % 10 != 7:
            scores = [round(source.uniform(-2, 2), source.choice((0, 0, 1, 6))) for _ in range(25)]
            retrieved += [
                f"{topic} Q0 {document} {source.randint(0, 99)} {source.choice(scores)} x"
                for document in source.sample(corpus, source.randint(1, 25))
            ]
    source.shuffle(judged)
    source.shuffle(retrieved)
    return "\n".join(judged), "\n".join(retrieved)


@pytest.mark.filterwarnings("ignore:.*(left out|are missing):krag_eval.KragEvalWarning")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("grades", [(0, 1), (-1, 0, 0, 1, 2, 3)], ids=["binary", "graded"])
def test_random_files(seed, grades):
    """All measures, all topics."""
    qrels, run = random_files(seed, grades)
    dataset = read_trec(io.StringIO(qrels), io.StringIO(run))
    assert_agree(dataset.evaluator().evaluate([*CUTOFFS, None]), by_trec_eval(qrels, run))


@pytest.mark.filterwarnings("ignore:.*are missing:krag_eval.KragEvalWarning")
@pytest.mark.parametrize("name", ["tied.run", "spread.run"])
def test_files(name):
    """Small files that were written for these tests."""
    dataset = read_trec(DATA / "graded.qrels", DATA / name)
    theirs = by_trec_eval((DATA / "graded.qrels").read_text(), (DATA / name).read_text())
    assert_agree(dataset.evaluator().evaluate([*CUTOFFS, None]), theirs)


def test_scores_beyond_single_precision():
    """Where the warning says so, the order is that of single precision."""
    source = random.Random(1)
    rows = [
        f"{topic} Q0 d{document} 0 {1 + source.randint(0, 40) * 1e-8!r} x"
        for topic in range(30)
        for document in range(20)
    ]
    qrels = "\n".join(f"{topic} 0 d{topic % 20} 1" for topic in range(30))
    with pytest.warns(UserWarning, match="of 30 topics .* scores differ only beyond single"):
        dataset = read_trec(io.StringIO(qrels), io.StringIO("\n".join(rows)))
    theirs = by_trec_eval(qrels, "\n".join(rows))
    assert_agree(dataset.evaluator().evaluate([*CUTOFFS, None]), theirs)


@pytest.mark.filterwarnings("ignore:.*(left out|are missing):krag_eval.KragEvalWarning")
def test_relevance_level():
    """Everything but nDCG, which trec_eval computes from all grades."""
    qrels, run = random_files(9, (0, 1, 2))
    dataset = read_trec(io.StringIO(qrels), io.StringIO(run), relevance_level=2)
    table = dataset.evaluator().evaluate([None]).per_query()
    theirs = by_trec_eval(qrels, run, level=2)
    for measure, column in UNCUT.items():
        if measure != "ndcg":
            expected = {topic: values[measure] for topic, values in theirs.items()}
            assert table[column].to_dict() == pytest.approx(expected, abs=1e-9), measure

"""Rows as clusters hold them, and the result of a local run over them."""

import random

from krag_eval import OfflineRetrievalEvaluator

WORDS = ["opening", "hours", "of", "the", "library", "books", "loans", "fees", "rooms", "printing",
         "access", "cards"]  # fmt: skip


def sample(n_queries=60, seed=3):
    """Return rows with texts: some found, some missed, some with nothing retrieved."""
    rng = random.Random(seed)

    def text():
        return " ".join(rng.choices(WORDS, k=rng.randint(6, 12)))

    rows = []
    for number in range(n_queries):
        actual = [text() for _ in range(rng.randint(1, 3))]
        predicted = [text() for _ in range(rng.randint(0, 6))]
        for one in actual:
            if rng.random() < 0.6:
                predicted.insert(rng.randrange(len(predicted) + 1), f"{text()} {one} {text()}")
        rows.append({"question": f"Question {number}?", "actual": actual, "predicted": predicted})
    return rows


def within():
    """Return cutoffs by what fits: by words and by a function that travels to the workers."""

    def half(text):
        return -(-len(text.split()) // 2)

    return {"k": [3, "40w"], "budget": [12, 30], "length": half}


def check_run(result, rows):
    """Check a run of the sample by coverage against a local one: averages, signature and rows."""
    expected = local(sample(), matcher="coverage")
    assert result.to_dict() == expected.to_dict()
    assert result.signature == expected.signature
    assert len(rows) == len(expected.labels)
    of = {row["query"]: row for row in rows}
    for k in (1, 3, 10):
        table = expected.per_query(k)
        for name in ("recall", "ndcg", "average_precision", "covered"):
            assert [of[label][f"{name}@{k}"] for label in expected.labels] == table[name].tolist()
    digests = [of[label]["ground_truth_digest"] for label in expected.labels]
    assert digests == list(expected.rows.digests)


def check_budgets(result, rows):
    """Check a run at these cutoffs against a local one: averages, signature and rows."""
    expected = local(sample(), **within(), matcher="coverage(union=yes)")
    assert result.to_dict() == expected.to_dict()
    assert result.signature == expected.signature
    of = {row["query"]: row for row in rows}
    for k in result.k:
        assert [of[label][f"recall@{k}"] for label in expected.labels] == expected.per_query(k)[
            "recall"
        ].tolist()
    lists = [[len(text.split()) for text in row["predicted"]] for row in sample()]
    said = [of[label]["lengths@w"] for label in expected.labels]
    assert said == [" ".join(map(str, lengths)) for lengths in lists]
    n_covered = [len(of[label]["first_ranks"].split()) for label in expected.labels]
    whole = local(sample(), None, matcher="coverage(union=yes)")
    assert n_covered == whole.tables[None]["covered"].tolist()


#: Rows that say what was looked at, in a column of their own; in the second, nothing was.
SEEN = [
    {"question": "q0", "actual": ["A", "B"], "predicted": ["N", "A", "U"], "seen": ["N"],
     "bad": ["U", "N"], "used": ["B", "X"]},
    {"question": "q1", "actual": ["C"], "predicted": ["U", "C"], "seen": None, "bad": None,
     "used": []},
    {"question": "q2", "actual": ["D"], "predicted": ["N"], "seen": ["U", "N"], "bad": [],
     "used": None},
]  # fmt: skip


def with_seen():
    """Return how these rows are evaluated."""
    return {
        "k": [1, 3],
        "metrics": [
            "judged",
            "bpref",
            "precision_upper",
            "unwanted",
            "clean",
            "citation_precision",
            "citation_recall",
        ],
        "judged_field": "seen",
        "unwanted_field": "bad",
        "cited_field": "used",
        "unjudged": "leave_out",
    }


def check_seen(result, rows):
    """Check a run of them against one in this process: averages, and what is known of each."""
    options = with_seen()
    expected = OfflineRetrievalEvaluator(
        [row["actual"] for row in SEEN],
        [row["predicted"] for row in SEEN],
        queries=[row["question"] for row in SEEN],
        judged=[row["seen"] for row in SEEN],
        unwanted=[row["bad"] for row in SEEN],
        cited=[row["used"] for row in SEEN],
        unjudged="leave_out",
    ).evaluate(options["k"], metrics=options["metrics"])
    assert result.to_dict() == expected.to_dict()
    of = {row["query"]: row for row in rows}
    assert [of[label]["judged"] for label in expected.labels] == ["1 1 0", "0 1", "1"]
    found = [of[label]["judged_digest"] for label in expected.labels]
    assert found == list(expected.rows.judged.digests)
    found = [of[label]["unwanted_digest"] for label in expected.labels]
    assert found == expected.rows.unwanted


def local(rows, k=(1, 3, 10), budget=None, length="words", **options):
    """Evaluate the rows in this process."""
    return OfflineRetrievalEvaluator(
        [row["actual"] for row in rows],
        [row["predicted"] for row in rows],
        queries=[row["question"] for row in rows],
        **options,
    ).evaluate(k, budget=budget, length=length)

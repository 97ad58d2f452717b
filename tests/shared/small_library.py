"""Questions to a small library: a passage found, one cut in two, one too late, one in no chunk."""

from places import DOCS

from krag_eval import CoverageMatcher, OfflineRetrievalEvaluator

#: The page that shows these commands.
PAGE = DOCS / "diagnosis.md"
CHUNKS = [
    "Opening hours. The house is open from nine to six on weekdays.",
    "Books may be kept for four weeks and renewed",
    "twice unless somebody else is waiting for them.",
    "A lost card costs five euros and is replaced at the desk on the same day.",
    "Tea and coffee are served in the garden from May to September.",
]
# One whole in chunk 0, one over the chunks 1 and 2, one in chunk 3, one in none.
ACTUAL = [
    ["The house is open from nine to six on weekdays."],
    ["Books may be kept for four weeks and renewed twice unless somebody else is waiting."],
    ["A lost card costs five euros and is replaced at the desk."],
    ["Parking is free for members on Sundays and holidays."],
]
QUESTIONS = [
    "When are you open?",
    "How long may I keep a book?",
    "I lost my card.",
    "Can I park here?",
]
# The third finds its chunk at rank 3, beyond k = 2.
PREDICTED = [[CHUNKS[i] for i in ranks] for ranks in ([0, 4, 3], [1, 0, 4], [4, 1, 3], [0, 4, 1])]


def rows_of(predicted):
    return [
        {"question": question, "actual": actual, "predicted": documents}
        for question, actual, documents in zip(QUESTIONS, ACTUAL, predicted, strict=True)
    ]


def result_of(k, labels=QUESTIONS):
    evaluator = OfflineRetrievalEvaluator(
        ACTUAL, PREDICTED, matcher=CoverageMatcher(), queries=labels
    )
    return evaluator.evaluate(k=k)

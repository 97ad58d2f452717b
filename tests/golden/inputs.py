"""What golden outputs are made of: files to run commands on, and one result of every type."""

import json
import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from places import DATA

import krag_eval
from krag_eval import (
    AnyOf,
    Conventions,
    CoverageMatcher,
    EvaluationResult,
    ExactTextMatcher,
    FuzzyMatcher,
    History,
    OfflineRetrievalEvaluator,
    RougeMatcher,
    calibrate,
    compare,
    debias,
    evaluate_retriever,
    evaluate_support,
    load_dataset,
    plan_questions,
    sweep,
)
from krag_eval.datasets import demo_dataset

_DEMO = Path(krag_eval.__file__).parent / "data" / "demo.jsonl"
#: Seconds since 1970 at which the runs of the history were made.
_DAYS = {"a": 1767225600, "b": 1767312000, "c": 1767398400, "d": 1767484800}
PAIRS = [
    ("The fee is five euros.", "Pay the fee: the fee is five euros.", 1),
    ("The fee is five euros.", "The fee is nine pounds.", 0),
    ("We open at nine on weekdays.", "On weekdays we open at nine on weekdays.", 1),
    ("We open at nine on weekdays.", "We close at nine on weekdays.", 0),
    ("대출 기간은 3주입니다.", "안내: 대출 기간은 3주입니다.", 1),
    ("대출 기간은 3주입니다.", "연체료는 하루 100원입니다.", 0),
]
SWEEP = """\
corpus = "corpus.txt"
questions = "asked.jsonl"
k = 2
budget = [20]
metric = "recall@2"

[splitters]
lines = { call = "pieces:lines" }
"two lines" = { call = "pieces:lines", n = 2 }

[retrievers]
shared = "pieces:shared_words"
"""
PIECES = '''\
"""A splitter and a retriever of a few lines."""


def lines(text, n=1):
    """Split into so many lines at a time."""
    rows = text.splitlines()
    return [" ".join(rows[i : i + n]) for i in range(0, len(rows), n)]


def shared_words(chunks):
    """Rank by the words that a chunk shares with the question."""
    def search(question):
        asked = set(question.lower().split())
        words = [set(one.page_content.lower().split()) for one in chunks]
        return sorted(chunks, key=lambda one: -len(asked & words[chunks.index(one)]))[:5]
    return search
'''
CORPUS = [
    "The library opens at nine on weekdays and at ten on Saturdays.",
    "Books may be kept for three weeks and renewed twice.",
    "A card costs five euros for readers from other counties.",
    "Lost books cost the price of a new one.",
]
ASKED = [
    ("When does the library open on Saturdays?", CORPUS[0]),
    ("How long may books be kept?", CORPUS[1]),
    ("What does a card cost?", CORPUS[2]),
]


def rows(lost: int = 0) -> list[dict[str, Any]]:
    """Return the demo's questions with tags; every ``lost``-th list lacks its first document."""
    found = []
    for i, line in enumerate(_DEMO.read_text("utf-8").splitlines()):
        row = json.loads(line)
        if lost and i % lost == 0:
            row["predicted"] = row["predicted"][1:]
        row["corpus"] = "library" if row["question"].isascii() else "bicycles"
        row["source"] = f"page {i // 2}"
        found.append(row)
    return found


def write(folder: Path) -> None:
    """Write all files that commands are run on."""
    _write_lines(folder / "run.jsonl", rows())
    _write_lines(folder / "worse.jsonl", rows(lost=3))
    texts = dict.fromkeys(t for row in rows() for t in [*row["actual"], *row["predicted"]])
    cut = [part for text in texts for part in (text[:90], text[90:]) if part.strip()]
    _write_lines(folder / "chunks.jsonl", [{"page_content": one} for one in cut])
    again = [{"id": str(at), "text": "\n".join(cut[at : at + 2])} for at in range(1, len(cut), 3)]
    _write_lines(folder / "cut_anew.jsonl", again)
    asked = [{"question": q, "actual": [a], "predicted": CORPUS[:2]} for q, a in ASKED]
    _write_lines(folder / "asked.jsonl", asked)
    (folder / "corpus.txt").write_text("\n".join(CORPUS), "utf-8")
    (folder / "pieces.py").write_text(PIECES, "utf-8")
    (folder / "sweep.toml").write_text(SWEEP, "utf-8")
    table = "question,actual,predicted\n" + "".join(
        f'{row["question"].replace(",", "")},"[""a""]","[""{i}"", ""a""]"\n'
        for i, row in enumerate(rows()[:5])
    )
    (folder / "run.csv").write_text(table, "utf-8")
    labelled = "".join(f'"{a}","{b}",{label}\n' for a, b, label in PAIRS)
    (folder / "pairs.csv").write_text("actual,predicted,relevant\n" + labelled, "utf-8")
    for name in ("graded.qrels", "spread.run", "tied.run", "result_0.1.0.json"):
        shutil.copy(DATA / name, folder)
    (folder / "bad.jsonl").write_text(
        '{"question": "Q", "actual": ["a"]}\n{"question": \n', "utf-8"
    )
    (folder / "empty.jsonl").write_text("", "utf-8")
    (folder / "damaged.json").write_text('{"krag_eval": "result", "version"', "utf-8")
    _save(folder)


def _write_lines(path: Path, lines: list[dict[str, Any]]) -> None:
    text = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines)
    path.write_text(text, "utf-8")


def _save(folder: Path) -> None:
    """Save results: two to compare, and four runs of a history, made on four days."""
    (folder / "runs").mkdir()
    before = os.environ.get("SOURCE_DATE_EPOCH", "")
    for (name, day), lost in zip(_DAYS.items(), (4, 5, 0, 3), strict=True):
        os.environ["SOURCE_DATE_EPOCH"] = str(day)
        system(lost).to_json(folder / "runs" / f"{name}.json")
    os.environ["SOURCE_DATE_EPOCH"] = before
    system().to_json(folder / "old.json")
    system(3).to_json(folder / "new.json")


def evaluator(lost: int = 0, **options: Any) -> OfflineRetrievalEvaluator:
    """Return an evaluator of the demo with tags."""
    found = rows(lost)
    tags = {name: [row[name] for row in found] for name in ("corpus", "source")}
    given = {"matcher": "coverage", "tags": tags} | options
    return OfflineRetrievalEvaluator(
        [row["actual"] for row in found],
        [row["predicted"] for row in found],
        queries=[row["question"] for row in found],
        **given,
    )


def system(lost: int = 0, k: Any = (1, 3, 5), **options: Any) -> EvaluationResult:
    """Evaluate the demo."""
    with warnings.catch_warnings(action="ignore"):
        return evaluator(lost, **options).evaluate(k=list(k))


def index() -> list[str]:
    """Return the chunks of the demo's index: every text cut in two."""
    lines = Path("chunks.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line)["page_content"] for line in lines]


def _labelled(of_people: bool) -> EvaluationResult:
    rng = random.Random(1)
    truth = [f"passage {i}" for i in range(120)]
    lists = [[one if rng.random() < 0.6 else "x", "y", "z"] for one in truth]
    judged = [lists[i][0] if rng.random() < 1 / 7 else truth[i] for i in range(120)]
    chosen = rng.sample(range(120), 40) if of_people else range(120)
    return OfflineRetrievalEvaluator(
        [[truth[i] if of_people else judged[i]] for i in chosen],
        [lists[i] for i in chosen],
        queries=[f"Question {i}?" for i in chosen],
    ).evaluate(k=[1, 3])


def _questions() -> Any:
    return load_dataset([{"question": q, "actual": [a]} for q, a in ASKED])


def _asked() -> EvaluationResult:
    def retrieve(question: str) -> list[str]:
        return CORPUS[1:3]

    return evaluate_retriever(retrieve, _questions(), k=2, progress=False)


def _swept() -> Any:
    scope: dict[str, Any] = {}
    exec(PIECES, scope)
    return sweep(
        ["\n".join(CORPUS)],
        _questions(),
        splitters={"lines": scope["lines"]},
        retrievers={"shared": scope["shared_words"]},
        k=2,
        budget=[20],
        progress=False,
    )


def _judged() -> EvaluationResult:
    return OfflineRetrievalEvaluator(
        [["A", "B", "C"]] * 3,
        [["A", "U", "N", "B"], ["U", "A"], ["N", "V", "C"]],
        matcher="id",
        judged=[["A", "B", "C", "N"]] * 3,
        unjudged="bounds",
    ).evaluate([1, 3])


def _graded() -> EvaluationResult:
    actual = [[AnyOf(["A", "B"]), "C"], ["D"]]
    return OfflineRetrievalEvaluator(
        actual, [["B", "x", "C"], ["y", "D"]], conventions=Conventions.trec()
    ).evaluate([1, 3])


def _two() -> dict[str, EvaluationResult]:
    return {"old": system(), "new": system(3)}


#: Name -> what makes one result of that type, in a folder that `write` filled.
RESULTS: dict[str, Callable[[], Any]] = {
    "evaluator": evaluator,
    "result": system,
    "result of one cutoff": lambda: system(k=[3], matcher="text"),
    "result by alternatives": _graded,
    "result with bounds": _judged,
    "result with budgets": lambda: system(k=["50w", "100w"]),
    "result of 0.1.0": lambda: EvaluationResult.from_json("result_0.1.0.json"),
    "result saved": lambda: EvaluationResult.from_json("old.json"),
    "result asked": _asked,
    "support": lambda: evaluate_support(
        [[[1, 0], [0.5, 0], [0, 0]], [[0, 1]]], importance=[["vital", "okay", "okay"], ["vital"]]
    ),
    "comparison": lambda: compare(_two(), metric=["ndcg@5", "recall@5"]),
    "comparison in common": lambda: compare(
        {**_two(), "third": system(5)}, "recall@5", baseline="old", on="common"
    ),
    "comparison by clusters": lambda: compare(_two(), "recall@5", clusters="source"),
    "slices": lambda: system().by("corpus", k=5),
    "slices by length": lambda: system().by("question_length", k=5),
    "comparison in slices": lambda: compare(_two(), "recall@5").by("corpus"),
    "gates": lambda: system(3).check(
        {"recall@5": 0.5, "ndcg@5": 0.99}, baseline=system(), metric="recall@5", max_drop=0.02
    ),
    "gates of slices": lambda: system(3).check(baseline=system(), metric="ndcg@5", by="corpus"),
    "history": lambda: History.of("runs"),
    "history gate": lambda: History.of("runs").check(system(3), metric="ndcg@5"),
    "diagnosis": lambda: system().diagnose(index(), k=3, foreign_index="allow"),
    "diagnosis without index": lambda: system().diagnose(k=3),
    "explanation": lambda: system().explain(rows()[0]["question"], k=3),
    "explanation of another": lambda: system(matcher="text").explain(rows()[3]["question"], k=3),
    "intervals": lambda: system().confidence_intervals(n_resamples=500),
    "misses": lambda: system().misses(k=3),
    "conventions": lambda: evaluator().explain_conventions(k=3),
    "audit": lambda: krag_eval.audit(demo_dataset(), index()),
    "calibration": lambda: calibrate("coverage", PAIRS),
    "agreement": lambda: krag_eval.agreement("coverage", PAIRS),
    "debiased": lambda: debias(
        human=_labelled(True),
        judge=_labelled(False),
        unlabelled=_labelled(False),
        metric="recall@3",
    ),
    "predictions": lambda: system().predicts([i % 3 > 0 for i in range(28)]),
    "plan": lambda: plan_questions(system(), "recall@5", detect=0.1),
    "to judge": lambda: compare({"a": _judged(), "b": _judged()}, "precision@3").to_judge(4),
    "latency": lambda: _asked().latency,
    "sweep": _swept,
    "dataset": demo_dataset,
}


def numbers() -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the name and the numbers of every matcher, convention and cutoff."""
    matchers: tuple[Any, ...] = (
        "text", "contains", "coverage", "coverage(union=true)", "rouge1", "rouge2", "rougeL",
        "fuzzy", "coverage(numbers=true)", "rougeL(statistic=recall)",
    )  # fmt: skip
    combined = [RougeMatcher("rouge1") & CoverageMatcher(), ExactTextMatcher() | FuzzyMatcher()]
    conventions = {
        "default": Conventions(),
        "trec": Conventions.trec(),
        "krag": Conventions.krag(),
        "autorag": Conventions.autorag(),
    }
    for matcher in [*matchers, *combined]:
        for name, chosen in conventions.items():
            result = system(5, k=(1, 3, 5, "60w"), matcher=matcher, conventions=chosen)
            yield (
                f"{matcher if isinstance(matcher, str) else matcher.signature}, {name}",
                result.to_dict(),
            )
    yield "coverage, partial", system(5, matching_criteria="partial").to_dict()
    yield "coverage, every", system(5, conventions=Conventions(credit="every")).to_dict()

"""The JSON Schemas of what commands print with ``--format json``, made from what they print.

``python tests/schemas.py`` writes ``krag_eval/data/COMMAND.schema.json`` anew from the outputs of
:data:`COMMANDS`, with what each field means (:data:`TOLD`). A change of a type, or a field that is
gone, breaks a program that reads it: read the difference before you commit it. New fields may come.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before the import below, so that this tree is described
    sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent / "shared")]

from cli_runs import finding, invoked, written
from golden.recorder import settled

from krag_eval import to_label

DATA = Path(__file__).parents[1] / "krag_eval" / "data"
#: Command -> what is run of it, so that every field is there at least once.
COMMANDS = {
    "agree": ["anna.jsonl ben.jsonl", "eva.jsonl zoe.jsonl"],
    "audit": ["run.jsonl --index chunks.jsonl", "asked.jsonl", "twice.jsonl"],
    "calibrate": ["pairs.csv", "mixed.jsonl -m fuzzy"],
    "compare": [
        "old.json new.json --metric recall@5,ndcg@5",
        "run.jsonl worse.jsonl -m coverage -k 3 --metric recall@3 --clusters source",
        "some.jsonl more.jsonl few.jsonl -k 1 --metric mean_rank@1 --baseline some",
        "alike.jsonl unlike.jsonl -k 1 --metric recall@1",
        "failed.json answered.json --metric recall@1",
    ],
    "diagnose": ["run.jsonl --index chunks.jsonl -m coverage -k 3"],
    "evaluate": [
        "run.jsonl -m coverage --intervals --by corpus -k 1,3,all",
        "some.jsonl --fail-under recall@1=0.9 -k 1",
        "scored.jsonl --score-cutoff auto --no-ground-truth skip -k 1",
        "scored.jsonl --score-cutoff 0.5 --no-ground-truth skip -k 1",
        "none.jsonl -k 1",
        "truth.jsonl spans.jsonl -k 1",
        "truth.jsonl lacking.jsonl -k 1 --missing skip",
        "run.jsonl --index chunks.jsonl -k 3",
    ],
    "explain": [
        "failed.json 1",
        "run.jsonl 4 -m coverage -k 3",
        "run.jsonl 2 -k 3",
        "none.jsonl 0 -k 1",
        "named.jsonl q1 -k 1",
        "otherwise.jsonl --contradicted -m coverage",
        "run.jsonl --contradicted -m text",
    ],
    "gate": [
        "new.json --baseline old.json --metric ndcg@5 --by corpus",
        "new.json --fail-under recall@5=0.3 --fail-under ndcg@5=0.99",
        "new.json --history runs --metric recall@5",
        "failed.json --fail-under recall@1=0.1 --allow-failures 1",
    ],
    "history": ["runs", "runs --last 2"],
    "label": ["run.jsonl -k 3 --sample 5", "pairs.csv", "none.jsonl"],
    "misses": [
        "run.jsonl -m coverage -k 3",
        "old.json -k 3",
        "failed.json",
        "otherwise.jsonl -m coverage -k 1",
        "named.jsonl -k 1",
    ],
    "plan": [
        "old.json new.json --detect 0.1 --metric recall@5",
        "old.json --detect 0.1 --metric recall@5 --clusters corpus",
    ],
    "reanchor": ["labels.jsonl --old old.jsonl --new anew.jsonl"],
    "sweep": ["sweep.toml", "chosen.toml"],
    "trec": ["graded.qrels spread.run tied.run"],
}
#: Field -> what it holds, by its path within a command or by its name alone.
TOLD = {
    "verdict": "What it comes to, in a sentence or several, in the language that was asked for.",
    "advice": "What to do about it, a sentence each, warnings among them; it may be empty.",
    "signature": "What the numbers depend on; only numbers of the same signature can be compared.",
    "k": 'The cutoff: a number of documents, "all", or a budget such as "1000w".',
    "query": "The question, or what else names the query.",
    "position": "The position of the query, from 0.",
    "misses.misses.id": "The query's own id, where each has one.",
    "explain.id": "The query's own id, where each has one.",
    "item": "The place of the item in the ground truth of its query, from 1.",
    "rank": "A rank, from 1; null where there is none.",
    "metric": "An average with its cutoff.",
    "matcher": "The matcher, with its settings.",
    "similarity": "Between 0 and 1.",
    "n_queries": "How many queries there are.",
    "clusters": "By what the queries were grouped.",
    "dependent": "Tag -> the design effect of queries that share its value, where it matters.",
    "failed": "Name -> for how many queries its retriever failed.",
    "missing": "Name -> the questions of the ground truth that its run lacks: n of how many, and "
    "whether they are left out (skip) or count as nothing retrieved (zero).",
    "evaluate.missing": "The questions that the run lacks: n of how many, and whether they are "
    "left out (skip) or count as nothing retrieved (zero).",
    "runs.missing": "How many questions of the ground truth are left out, as the run lacks them.",
    "baseline": "What the others are compared with, if that is one alone.",
    "differences": "Two systems on one metric: value_b minus value_a, with its interval and p.",
    "differences.a": "The one system.",
    "differences.b": "The other.",
    "value_a": "The average of a; null where it is undefined, as below.",
    "value_b": "The average of b.",
    "difference": "The second minus the first, or the slice minus the rest.",
    "ci_low": "The lower end of the interval of the difference.",
    "ci_high": "Its upper end.",
    "p_permutation": "p of a paired permutation test.",
    "p_holm": "That p, corrected for all tests made here: below 0.05, the difference is shown.",
    "effect_size": "The mean of the differences by query over their standard deviation; null where "
    "these are all alike, and the verdict says so.",
    "wins": "For how many queries b is better.",
    "ties": "For how many they are equal.",
    "losses": "For how many a is better.",
    "slices.slice": "The value of the tag.",
    "slices.n": "How many queries have it.",
    "slices.value": "The average of these.",
    "slices.low": "The lower end of its interval.",
    "slices.high": "The upper end.",
    "slices.rest": "The average of all other queries.",
    "score_cutoff.cutoff": "The score.",
    "score_cutoff.n_dropped": "How many documents were dropped.",
    "score_cutoff.held_out": "What a chosen cutoff is worth on the half that did not choose it.",
    "choice.cell": "Its name.",
    "choice.value": "Its average on the questions it was chosen by.",
    "choice.held_out": "Its average on the others.",
    "choice.overrated": "By how much the first is better.",
    "looked_up.n": "How many different documents were retrieved.",
    "looked_up.there": "How many of them are in the index.",
    "agree.labellers": "The two people.",
    "agree.n_pairs": "How many pairs both labelled.",
    "agree.n_open": "Labeller -> how many pairs have no label.",
    "agree.kappa": "Cohen's kappa; null where both gave one label to all.",
    "agree.interval": "Its interval.",
    "agree.level": "How often such an interval covers the true kappa.",
    "agree.share": "Of the pairs, how many have the same label from both.",
    "agree.counts": "Pairs by what both say.",
    "agree.counts.found": "Both say relevant.",
    "agree.counts.false_alarms": "The second alone says relevant.",
    "agree.counts.missed": "The first alone says relevant.",
    "agree.counts.rejected": "Both say not relevant.",
    "agree.disagreements": "The pairs on which they differ.",
    "agree.disagreements.first": "Whether the first says relevant.",
    "agree.disagreements.second": "Whether the second says relevant.",
    "label.n_pairs": "How many pairs there are to label.",
    "label.n_questions": "How many questions they are of.",
    "label.page": "The digest of the pairs, by which files of one page are known.",
    "label.seed": "What sample and order were drawn by.",
    "audit.looked_at": "What was looked at -> how many.",
    "audit.findings": "What was looked for -> how often it was found; null where it was not.",
    "audit.unchecked": "What was not looked for -> what it needs.",
    "audit.tiers": "How much of the questions stands in their ground truth -> how many do.",
    "calibrate.best_threshold": "The threshold that agrees best with the labels.",
    "calibrate.interval": "Its interval.",
    "calibrate.gap": "Any threshold above the first up to the second separates all pairs.",
    "calibrate.level": "How often such an interval covers the true threshold.",
    "calibrate.precision": "Of the pairs taken for matches, how many are.",
    "calibrate.recall": "Of the matches, how many are taken for one.",
    "calibrate.f1": "The harmonic mean of the two.",
    "calibrate.n_pairs": "How many pairs were labelled.",
    "calibrate.borderline": "The pairs nearest to the threshold.",
    "n_items": "How many items of ground truth were diagnosed.",
    "n_chunks": "How many chunks the index has.",
    "looked_up": "How many of the retrieved documents are in the index.",
    "classes": "By cause, in order: what is found, then what is lost by what.",
    "classes.class": "The cause.",
    "classes.label": "What removing it would give, in words.",
    "classes.items": "How many items it is about.",
    "classes.share": "Of all items.",
    "classes.cumulative": "The recall with this and all causes before it removed.",
    "evaluate.diagnosis": "Where what is missing was lost (--index), as diagnose prints it.",
    "not_in_index": "What was looked for and is not in the index, beside what comes nearest.",
    "counts": "Cause -> how many items it is about.",
    "evaluate.n_counted": "How many of them count in the averages.",
    "evaluate.n_failed": "For how many of them the retriever failed.",
    "evaluate.n_contradicted": "How many documents contradict a passage that they nearly hold.",
    "evaluate.metrics": "Average with its cutoff -> its value; null where it is undefined.",
    "evaluate.intervals": "Average with its cutoff -> the ends of its 95 % interval (--intervals).",
    "evaluate.slices": "Tag -> averages within slices of the queries (--by).",
    "evaluate.score_cutoff": "The score below which documents were dropped (--score-cutoff).",
    "explain.status": "What became of the query.",
    "explain.metrics": "Metric -> its value for this query; null where it is undefined.",
    "explain.documents": "What each retrieved document matched, best first.",
    "explain.documents.credit": "What it is rewarded for.",
    "explain.documents.text": "Its text; null where texts were not kept.",
    "explain.items": "What became of each item of the ground truth.",
    "explain.items.outcome": "How it was found or missed.",
    "explain.items.text": "Its text; null where texts were not kept.",
    "explain.failure": "What went wrong when the retriever was asked.",
    "explain.n_contradicted": "How many there are (--contradicted).",
    "explain.contradicted": "Documents that say something else than a passage (--contradicted).",
    "gate.passed": "Whether it is good enough, as the exit code says.",
    "gate.outcome": "What became of the worst condition: passed, inconclusive or failed.",
    "gate.gates": "The conditions.",
    "gate.gates.slice": "The slice of the queries that it is about; null for all of them.",
    "gate.gates.passed": "Whether it holds.",
    "gate.gates.outcome": "passed, inconclusive or failed.",
    "gate.gates.reason": "Why, with the numbers.",
    "gate.ground_truth": "The digest of the ground truth that the verdict rests on.",
    "gate.note": "Which queries were left out, and what was compared with.",
    "history.folder": "The folder.",
    "history.metrics": "The averages that are shown.",
    "history.runs": "The runs, the oldest first, with their values and intervals.",
    "history.runs.run": "Its name.",
    "history.runs.made": "When it was evaluated.",
    "history.runs.comparable": "Whether it can be compared with the run before.",
    "history.runs.changes": "What changed since the run before.",
    "history.runs.failed": "For how many queries the retriever failed.",
    "history.left_out": "Name -> why it was left out.",
    "misses.n_misses": "How many queries lost something; misses holds the first of them (-n).",
    "misses.misses": "The queries that lost most, these first, with their own metrics.",
    "misses.misses.status": "What became of it.",
    "misses.misses.missed": "The item that was missed; null where texts were not kept.",
    "misses.misses.covered": "How many of its items were found.",
    "misses.misses.ground_truth": "How many items it has.",
    "misses.misses.retrieved": "How many documents were looked at.",
    "misses.misses.contradicted_by": "The rank of a document that says something else.",
    "plan.detect": "The difference that is not to be missed.",
    "plan.power": "How often a true difference of that size is to be shown.",
    "plan.alpha": "How often a difference is shown where there is none.",
    "plan.questions": "How many questions it takes.",
    "plan.pilot_questions": "How many the pilot has.",
    "plan.detectable": "The difference from which on the pilot can show one.",
    "plan.sd": "The standard deviation of the paired differences.",
    "plan.design_effect": "How many times as many questions it takes for the clusters.",
    "plan.n_clusters": "How many clusters the pilot has.",
    "plan.systems": "The two systems of the pilot; of one, none.",
    "plan.correlation": "Of a pilot of one: the assumed correlation with another system.",
    "reanchor.counts": "State -> how many ground truths are in it.",
    "sweep.reused": "How many answers were kept from before.",
    "sweep.asked": "How many questions were asked.",
    "sweep.cells": "Every splitter with every retriever, and its numbers.",
    "sweep.cells.cell": "Its name.",
    "sweep.cells.splitter": "The splitter.",
    "sweep.cells.retriever": "The retriever.",
    "sweep.cells.chunks": "How many chunks it has.",
    "sweep.cells.pareto": "Whether none is as good for as little context, and better or shorter.",
    "sweep.cells.same_as": "The cell whose chunks it has.",
    "sweep.choice": "The cell chosen on one half of the questions, and its value on the other.",
    "trec.runs": "Run -> trec_eval's measure -> its value.",
    "trec.signature": "Run -> what its numbers depend on.",
}
#: Objects whose fields are names of the user's, or of metrics.
MAPS = {
    "agree.n_open", "audit.findings", "audit.looked_at", "audit.tiers", "audit.tiers.*",
    "audit.unchecked",
    "compare.dependent", "compare.failed", "compare.missing", "diagnose.counts",
    "evaluate.intervals", "evaluate.diagnosis.counts", "evaluate.metrics", "evaluate.slices",
    "explain.metrics", "gate.failed", "gate.missing", "history.left_out",
    "history.runs.metrics", "plan.dependent", "reanchor.counts", "trec.runs", "trec.runs.*",
    "trec.signature",
}  # fmt: skip
# A rank, an item, a text may be missing wherever one may stand.
NULLABLE = {"rank", "missed", "contradicted_by", "text", "same_as", "failure", "choice"}


def write_inputs() -> None:
    """Write what the commands read, beside the inputs of the golden files."""
    for name, n in (("some", 20), ("more", 35), ("few", 0)):
        written(f"{name}.jsonl", finding(n))
    for name, n in (("alike", 20), ("unlike", 30)):  # two by two
        rows = [{**one, "source": at // 2} for at, one in enumerate(finding(n))]
        written(f"{name}.jsonl", rows)
    written("none.jsonl", [{"question": "When?", "actual": ["a"], "predicted": ["b"]}])
    written("named.jsonl", [{"id": "q1", "actual": ["a"], "predicted": ["b"]}])
    written("twice.jsonl", [{"question": "When?", "actual": ["It opens at nine o'clock."]}] * 2)
    rows = [{"question": f"{at}?", "actual": ["a"] if at % 2 else [],
             "predicted": [["a", 0.9 if at % 2 else 0.2]]} for at in range(20)]  # fmt: skip
    written("scored.jsonl", rows)
    passage = "In 2024 revenue from lending rose to a record high"
    row = {"question": "Revenue?", "actual": [passage]}
    written("otherwise.jsonl", [{**row, "predicted": [f"{passage.replace('4', '3')}, too."]}])
    labels = {"at nine": True, "at ten": False, "nine": True, "at nine sharp": False}
    pairs = labels.items()
    written("mixed.jsonl", [{"actual": "at nine", "predicted": text, "relevant": is_relevant}
                            for text, is_relevant in pairs])  # fmt: skip
    anna = [{**row, "labeller": "anna", "time": None, "relevant": at % 2 == 0}
            for at, row in enumerate(to_label("run.jsonl").rows)]  # fmt: skip
    written("anna.jsonl", [{**anna[0], "relevant": None}, *anna[1:]])
    written("ben.jsonl", [{**row, "labeller": "ben", "relevant": at % 3 > 0}
                          for at, row in enumerate(anna)])  # fmt: skip
    for name in ("eva", "zoe"):
        written(f"{name}.jsonl", [{**row, "labeller": name, "relevant": False} for row in anna])
    passages = ["We open at nine on weekdays and at ten on Sundays", "Books are lent for 21 days"]
    written("labels.jsonl", [{"question": str(at), "actual": [str(at)]} for at in range(2)])
    written("old.jsonl", [{"id": str(at), "text": text} for at, text in enumerate(passages)])
    written("anew.jsonl", [{"id": "n0", "text": f"Welcome. {passages[0]}."}])
    truth = [{"question": f"{at}?", "actual": ["a"]} for at in range(3)]
    written("truth.jsonl", truth)
    spans = [{"run_type": "retriever", "id": one["question"], "name": "search", "error": None,
              "inputs": {"query": one["question"]}, "outputs": {"documents": ["a"]}}
             for one in truth]  # fmt: skip
    spans[1] |= {"outputs": None, "error": "TimeoutError: too slow"}
    written("spans.jsonl", spans)
    written("answered.jsonl", [{**one, "predicted": ["a"]} for one in truth])
    written("lacking.jsonl", [{"question": one["question"], "predicted": ["a"]}
                              for one in truth[:2]])  # fmt: skip
    invoked("evaluate truth.jsonl spans.jsonl -k 1 --json failed.json")
    invoked("evaluate answered.jsonl -k 1 --json answered.json")
    asked = Path("asked.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in asked] * 20
    written("many.jsonl", [{**one, "question": f"{one['question']} {at}"}
                           for at, one in enumerate(rows)])  # fmt: skip
    sweep = Path("sweep.toml").read_text("utf-8").replace("asked.jsonl", "many.jsonl")
    Path("chosen.toml").write_text(sweep, "utf-8")


@cache
def outputs(language: str = "en") -> dict[tuple[str, str], Any]:
    """Run every command; return the JSON it printed, by its name and what was typed behind it."""
    return dict(_printed(language))


def _printed(language: str) -> Iterator[tuple[tuple[str, str], Any]]:
    with settled(language):
        write_inputs()
        for command, several in COMMANDS.items():
            for typed in several:
                ran = invoked(f"{command} {typed} --format json")
                assert ran.stdout, f"{command} {typed}: {ran.stderr}"
                yield (command, typed), json.loads(ran.stdout)


def schemas() -> dict[str, str]:
    """Return the text of each schema, by command."""
    found: dict[str, list[Any]] = {}
    for (command, _typed), content in outputs().items():
        found.setdefault(command, []).append(content)
    return {command: _text(command, several) for command, several in found.items()}


def _text(command: str, several: list[Any]) -> str:
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:krag-eval:output-of-{command}:1",
        "title": f"What krag-eval {command} --format json prints",
    }
    schema = head | schema_of(command, several)
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def schema_of(path: str, values: list[Any]) -> dict[str, Any]:
    """Return what all of some values are like, and what the field at their path means."""
    name = path.rpartition(".")[2]
    told = what_is_told_of(path)
    schema: dict[str, Any] = {"description": told} if told and "." in path else {}
    kinds = {_kind(one) for one in values}
    if "number" in kinds or name in NULLABLE:
        kinds.add("null")  # what is undefined, or not known
    kinds -= {"integer"} if "number" in kinds else set()
    schema["type"] = kinds.pop() if len(kinds) == 1 else sorted(kinds)
    objects = [one for one in values if isinstance(one, Mapping)]
    if objects and path in MAPS:
        inner = [value for one in objects for value in one.values()]
        schema["additionalProperties"] = schema_of(f"{path}.*", inner) if inner else True
    elif objects:
        schema |= _properties(path, objects)
    if items := [item for one in values if isinstance(one, list) for item in one]:
        schema["items"] = schema_of(path, items)
        schema["items"].pop("description", None)
    return schema


def what_is_told_of(path: str) -> str | None:
    """Return what a field holds: by its whole path, that within its parent, or its name."""
    parts = [one for one in path.split(".") if one != "*"]
    return next((TOLD[one] for at in (0, -2, -1) if (one := ".".join(parts[at:])) in TOLD), None)


def _properties(path: str, objects: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields that are told of: others, as metrics, are not promised."""
    names = list(dict.fromkeys(name for one in objects for name in one))
    told = [name for name in names if what_is_told_of(f"{path}.{name}")]
    unknown = sorted({*names} - {*told}) if "." not in path else []
    assert not unknown, f"say in TOLD what {path} holds as {', '.join(unknown)}"
    required = [name for name in told if all(name in one for one in objects)]
    fields = {
        name: schema_of(f"{path}.{name}", [one[name] for one in objects if name in one])
        for name in told
    }
    return {"required": required, "properties": fields}


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else kinds.get(type(value), "object")


if __name__ == "__main__":
    for command, text in schemas().items():
        (DATA / f"{command}.schema.json").write_text(text, "utf-8")
        print(f"wrote {DATA / command}.schema.json")

"""Work out every expected.json of this folder from its golden set and its run, by the definitions.

Sets and loops, nothing of krag_eval: it is meant to be read beside a program in another language.
``python tests/contract/derive.py`` writes the files anew.
"""

import json
import math
import re
import unicodedata
from pathlib import Path

FOLDER = Path(__file__).parent
CASES = sorted(path.parent for path in FOLDER.glob("*/golden.jsonl"))


def lines_of(path):
    """Return the objects of a file, one per line."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line.strip()]


def joined(golden, run):
    """Return each line of the golden set with its line of the run.

    By id where all lines of both have one, else by question, whatever its white space.
    """
    by_id = all(one.get("id") is not None for one in golden + run)

    def key(one):
        text = one["id"] if by_id else unicodedata.normalize("NFC", one["question"])
        return text if by_id else " ".join(text.split())

    found = {key(one): one for one in run}
    assert len(found) == len(run) == len(golden)
    return [(one, found[key(one)]) for one in golden]


# --- which documents match -------------------------------------------------------------------


def text_of(document):
    text = document if isinstance(document, str) else document.get("page_content", "")
    return unicodedata.normalize("NFC", text)


def same_id(truth, document):
    """An id is text; a text alone is an id, and 7 is "7"."""
    ids = [one if isinstance(one, str) else str(one["id"]) for one in (truth, document)]
    return ids[0] == ids[1]


def same_text(truth, document):
    return text_of(truth) == text_of(document)


def covered(truth, document, tokens):
    """The share of the truth's words in runs of 5 or more of the document's reaches 0.8.

    Of Korean, letters count in place of words, in runs of 12.
    """
    least = 5 if tokens == "words" else 12
    one, other = (
        re.findall(r"\w+" if tokens == "words" else r"\w", text_of(each).lower())
        for each in (truth, document)
    )
    least = min(least, len(one))
    runs = {tuple(other[at : at + least]) for at in range(len(other) - least + 1)}
    held = set()
    for at in range(len(one) - least + 1):
        if tuple(one[at : at + least]) in runs:
            held.update(range(at, at + least))
    return len(held) / len(one) >= 0.8


def spanned(truth, document):
    """The share of the truth's span that the document's span holds reaches 0.8."""
    (source, first, last), (other, begin, end) = map(span_of, (truth, document))
    return source == other and (min(last, end) - max(first, begin)) / (last - first) >= 0.8


def span_of(document):
    """Return source, first place, and the place behind the last, which characters leave out."""
    place = document if "source" in document else document["metadata"]
    if place.get("lines") is not None:
        return place["source"], place["lines"][0], place["lines"][1] + 1
    return place["source"], place["start"], place["end"]


def alternatives(item):
    """Return the documents that an item is satisfied by, each alone."""
    return item["any_of"] if isinstance(item, dict) and "any_of" in item else [item]


def matches(item, document, settings, tokens):
    """Tell whether a document matches an item, or any of its alternatives."""
    document = document[0] if isinstance(document, list) else document  # the score stands behind
    how = {"id": same_id, "text": same_text, "spans": spanned}.get(settings["matcher"])
    if how is None:
        return any(covered(one, document, tokens) for one in alternatives(item))
    return any(how(one, document) for one in alternatives(item))


def tokens_of(items):
    """Return what is compared of a query: letters if more than 15 % of its letters are Korean."""
    texts = [text_of(one) for item in items for one in alternatives(item)]
    letters = [one for text in texts for one in text if one.isalpha()]
    korean = sum("가" <= one <= "힣" for one in letters)
    return "letters" if letters and korean / len(letters) > 0.15 else "words"


# --- one query -------------------------------------------------------------------------------


def grade_of(item, key):
    document = alternatives(item)[0]  # which all have the same
    metadata = {} if isinstance(document, str) else document.get("metadata") or {}
    return metadata.get(key, 1) if key else 1


class Query:
    """What is found of one question."""

    def __init__(self, golden, run, settings):
        key = settings.get("grade_key")
        self.items = [one for one in golden["actual"] if grade_of(one, key) > 0]
        self.grades = [grade_of(one, key) for one in self.items]
        self.tokens = tokens_of(self.items)
        self.settings, self.golden, self.run = settings, golden, run
        self.predicted = run["predicted"]
        ranks = [self.ranks_of(item, self.predicted) for item in self.items]
        self.first = [min(one, default=None) for one in ranks]
        self.relevant = {rank for one in ranks for rank in one}

    def ranks_of(self, item, documents):
        return [rank for rank, one in enumerate(documents, 1)
                if matches(item, one, self.settings, self.tokens)]  # fmt: skip

    def at(self, k):
        """Return the query's own numbers within the first k documents."""
        seen = min(k, len(self.predicted))
        first = [rank for rank in self.first if rank is not None and rank <= k]
        relevant = sum(rank <= k for rank in self.relevant)
        precision_at = [sum(one <= rank for one in self.relevant) / rank for rank in first]
        gains = [(2**grade - 1) / math.log2(rank + 1) for grade, rank in
                 zip(self.grades, self.first, strict=True) if rank in first]  # fmt: skip
        ideal = sorted(self.grades, reverse=True)[:k]
        best = sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
        return {
            "hit_rate": float(len(first) == len(self.items)),
            "success": float(bool(first)),
            "precision": relevant / seen if seen else 0.0,
            "recall": len(first) / len(self.items),
            "mrr": 1 / min(first) if first else 0.0,
            "map": sum(precision_at) / len(self.items),
            "ndcg": sum(gains) / best,
            **self.judged_at(k, seen),
            **self.unwanted_at(k, seen),
            **self.citations(),
        }

    def judged_at(self, k, seen):
        """Return how much somebody looked at, ground truth included, where that is known."""
        judged = self.golden.get("judged")
        if judged is None:
            return {}
        looked_at = [one for one in judged if isinstance(judged, list) or judged[one]]
        ranks = {rank for one in [*self.items, *looked_at]
                 for rank in self.ranks_of(one, self.predicted[:k])}  # fmt: skip
        return {"judged": len(ranks) / seen if seen else 0.0}

    def unwanted_at(self, k, seen):
        """Return what matches a document that must not come back, where there is such a list."""
        if self.golden.get("unwanted") is None:
            return {}
        ranks = {rank for one in self.golden["unwanted"]
                 for rank in self.ranks_of(one, self.predicted[:k])}  # fmt: skip
        return {"unwanted": len(ranks) / seen if seen else 0.0, "clean": float(not ranks)}

    def citations(self):
        """Return what the answer cited, held against the ground truth, where that is known."""
        cited = self.run.get("cited")
        if cited is None:
            return {}
        ranks = [self.ranks_of(item, cited) for item in self.items]
        right = {rank for one in ranks for rank in one}
        return {
            "citation_precision": len(right) / len(cited) if cited else 0.0,
            "citation_recall": sum(map(bool, ranks)) / len(ranks),
        }


# --- all queries -----------------------------------------------------------------------------


def mean(values):
    return sum(values) / len(values)


def f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def averages(queries, k):
    """Return the averages over queries within the first k documents."""
    each = [one.at(k) for one in queries]
    found = {name: mean([one[name] for one in each if name in one])
             for name in dict.fromkeys(name for one in each for name in one)}  # fmt: skip
    macro = found.pop("precision"), found.pop("recall")
    covered = sum(rank is not None and rank <= k for one in queries for rank in one.first)
    relevant = sum(rank <= k for one in queries for rank in one.relevant)
    seen = sum(min(k, len(one.predicted)) for one in queries)
    micro = relevant / seen if seen else 0.0, covered / sum(len(one.items) for one in queries)
    for name, (precision, recall) in {"micro": micro, "macro": macro}.items():
        found[f"{name}_precision"], found[f"{name}_recall"] = precision, recall
        found[f"{name}_f1"] = f1(precision, recall)
    return found


def derived(case):
    """Return what expected.json is to hold, but for the settings, which it is read from."""
    kept = json.loads((case / "expected.json").read_text("utf-8"))
    pairs = joined(*(lines_of(case / f"{name}.jsonl") for name in ("golden", "run")))
    queries = [Query(*pair, kept["settings"]) for pair in pairs]
    # Without ground truth there is nothing to find; such queries are left out of every average.
    asked = [one for one in queries if one.items]
    return {
        "settings": kept["settings"],
        "first_ranks": [one.first for one in queries],
        "metrics": {str(k): averages(asked, k) for k in map(int, kept["metrics"])},
    }


if __name__ == "__main__":
    for case in CASES:
        text = json.dumps(derived(case), indent=2)
        text = re.sub(r"\[[^\[\]]*\]", lambda found: re.sub(r"\n\s*", "", found[0]), text)
        (case / "expected.json").write_text(text + "\n", "utf-8")

"""The same digits, and the same bytes, on every run; no global state is set or kept.

Each run is a process of its own, because hash seeds and thread counts are settled when one starts.
"""

import gc
import json
import os
import tracemalloc
import weakref
from pathlib import Path

import pytest
from langchain_core.documents import Document
from places import SHARED
from processes import PACKAGE, printed

from krag_eval import (
    ContainsMatcher,
    CoverageMatcher,
    EmbeddingMatcher,
    ExactTextMatcher,
    FuzzyMatcher,
    IdMatcher,
    KiwiTokenizer,
    Matcher,
    MetadataMatcher,
    OfflineRetrievalEvaluator,
    RougeMatcher,
)
from krag_eval.matchers.rouge import _stem

PATH = os.pathsep.join([PACKAGE, str(Path(__file__).parent), str(SHARED)])

# Everything a user can get out, with what hash seeds shuffle: alternatives, repeats, equal scores.
RUN = """
import random, sys, warnings
from pathlib import Path
import numpy as np
from krag_eval import *
from test_determinism import MATCHERS

warnings.simplefilter("ignore")
shuffled = random.Random(7)
words = [f"word{n}" for n in range(60)] + ["밥을", "먹었다", "naïve"]
texts = [" ".join(shuffled.choices(words, k=shuffled.randint(3, 30))) for _ in range(80)]

def documents(n):
    return [
        {"page_content": t, "id": str(texts.index(t)), "metadata": {"page": len(t) % 7}}
        for t in shuffled.choices(texts, k=n)
    ]

actual = [[AnyOf(documents(3)), *documents(2)] for _ in range(40)]
predicted = [documents(8) for _ in range(40)]

folder = Path(sys.argv[1])
for name, matcher in MATCHERS.items():
    if name not in ("own", "kiwi"):
        evaluator = OfflineRetrievalEvaluator(actual, predicted, matcher=matcher)
        result = evaluator.evaluate([1, 3, 5, None])
        result.to_json(folder / f"{name}.json", texts=True)
result.report(folder / "result.html")
other = OfflineRetrievalEvaluator(actual, predicted[::-1], matcher=matcher)
other = other.evaluate([1, 3, 5, None])
compared = compare({"one": result, "two": other}, metric=["ndcg@5", "mrr@3"])
compared.report(folder / "comparison.html")
(folder / "comparison.txt").write_text(compared.summary() + compared.to_markdown())
(folder / "intervals.csv").write_text(confidence_intervals(result).to_csv())
(folder / "explanation.txt").write_text(result.explain(position=3).to_text())
(folder / "per_query.csv").write_text(result.per_query(3).to_csv())
pairs = [(a, b, n % 3 == 0) for n, (a, b) in enumerate(zip(texts[::2], texts[1::2]))]
(folder / "calibration.txt").write_text(repr(calibrate("rouge1", pairs)))
"""


def outputs_of(folder: Path, **environment: str) -> dict[str, bytes]:
    """Run the script above in a process of its own; return the files it wrote."""
    folder.mkdir()
    # A saved result says when it was made.
    environment |= {"PYTHONPATH": PATH, "SOURCE_DATE_EPOCH": "0"}
    printed(RUN, folder, cwd=folder, **environment)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("runs") / "first"
    return outputs_of(folder, PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONHASHSEED": "1"},
        {"PYTHONHASHSEED": "4242", "OMP_NUM_THREADS": "4", "OPENBLAS_NUM_THREADS": "4"},
        {"PYTHONHASHSEED": "7", "LC_ALL": "C", "TZ": "Asia/Seoul", "PYTHONUTF8": "1"},
    ],
    ids=["hash seed", "threads", "locale and time zone"],
)
def test_every_run_writes_the_same_bytes(outputs, environment, tmp_path):
    """Results, reports, comparisons and tables, under every matcher."""
    assert len(outputs) == 19
    other = outputs_of(tmp_path / "other", **environment)
    assert [name for name in outputs if outputs[name] != other.get(name)] == []


GLOBAL_STATE = """
import atexit, decimal, gc, importlib, json, locale, logging, os, pkgutil, random, signal, socket
import sys, tempfile, threading, warnings
import numpy as np, pandas as pd, matplotlib
import click, jinja2, kiwipiepy, langchain_core.documents, matplotlib.figure
import matplotlib.font_manager, nltk.stem.porter, pyarrow, rapidfuzz.process, rich.console
import langchain_core.callbacks, langchain_core.retrievers, langchain_core.runnables
import rich.table, tqdm.auto, rouge_score.rouge_scorer, scipy.stats

def state():
    loggers = logging.Logger.manager.loggerDict
    return {
        "log handlers": repr([logging.root.handlers, *(
            (name, one.handlers, one.level) for name, one in sorted(loggers.items())
            if name.startswith("krag_eval") and isinstance(one, logging.Logger))]),
        "log level": logging.root.level,
        "warning filters": repr(warnings.filters),
        "showing warnings": repr(warnings.showwarning),
        "numpy errors": repr(np.geterr()),
        "numpy printing": repr(np.get_printoptions()),
        "pandas options": repr(pd.describe_option(_print_desc=False)),
        "matplotlib": repr(dict(matplotlib.rcParams)) + matplotlib.get_backend(),
        "random": repr(random.getstate()) + repr(np.random.get_state()),
        "locale": locale.setlocale(locale.LC_ALL),
        "decimal": repr(decimal.getcontext()),
        "garbage collector": repr((gc.isenabled(), gc.get_threshold(), gc.get_freeze_count())),
        "signals": repr([signal.getsignal(one) for one in signal.valid_signals()]),
        "exit": atexit._ncallbacks(),
        "threads": threading.active_count(),
        "sockets": repr(socket.getdefaulttimeout()),
        "environment": repr(dict(os.environ)),
        "folder": os.getcwd(),
        "path": repr(sys.path),
        "recursion": sys.getrecursionlimit(),
        "hooks": repr((sys.excepthook, sys.displayhook, sys.unraisablehook)),
        "streams": repr((sys.stdout.encoding, sys.stdout.errors, id(sys.stdout), id(sys.stderr))),
    }

def changed(since):
    return sorted(name for name, value in state().items() if value != since[name])

matplotlib.get_backend(), matplotlib.font_manager.fontManager
tempfile.TemporaryDirectory().cleanup()  # weakref.finalize asks for the exit at its first use
before = state()
import krag_eval
for module in pkgutil.walk_packages(krag_eval.__path__, "krag_eval."):
    if module.name != "krag_eval.__main__":
        importlib.import_module(module.name)
imported = changed(before)

from krag_eval import OfflineRetrievalEvaluator, compare
def result_of(found):
    predicted = [["a", "x", "b"]] * found + [["x"]] * (9 - found)
    return OfflineRetrievalEvaluator([["a", "b"]] * 9, predicted, "rouge1").evaluate([1, 3])

results = [result_of(4), result_of(7)]
with warnings.catch_warnings(action="ignore"):
    compare({"a": results[0], "b": results[1]}, metric="mrr@3").report("page.html")
    results[0].report("result.html")
    results[0].to_json("result.json")
    type(results[0]).from_json("result.json").explain(0).to_html()
print(json.dumps([imported, changed(before)]))
"""


def test_neither_importing_nor_using_it_changes_anything_global(tmp_path):
    """No log handler, no warning filter, no option of numpy, pandas or matplotlib, no random state.

    What other packages do when they load is theirs, so they are loaded first.
    """
    assert json.loads(printed(GLOBAL_STATE, cwd=tmp_path, MPLBACKEND="agg")) == [[], []]


class Letters:
    """Embeds a text by its letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0 + text.count(letter) for letter in "abcdefgh0123456789"] for text in texts]


class OwnMatcher(Matcher):
    def similarity(self, actual, predicted):
        return float(actual.page_content == predicted.page_content)


MATCHERS = {
    "text": ExactTextMatcher(),
    "id": IdMatcher(),
    "metadata": MetadataMatcher("page"),
    "contains": ContainsMatcher(),
    "coverage": CoverageMatcher(0.2),
    "rouge2": RougeMatcher("rouge2", 0.1, tokenizer="rouge_score"),
    "rougeL": RougeMatcher("rougeL", 0.3),
    "kiwi": RougeMatcher("rouge1", tokenizer=KiwiTokenizer()),
    "fuzzy": FuzzyMatcher(threshold=0.4),
    "embedding": EmbeddingMatcher(Letters(), 0.97),
    "and": CoverageMatcher(0.1) & RougeMatcher("rouge1", 0.2),
    "or": IdMatcher() | FuzzyMatcher(),
    "own": OwnMatcher(),
    "rouge1": RougeMatcher("rouge1", 0.3, stemmer=True),
}
every_matcher = pytest.mark.parametrize("matcher", MATCHERS.values(), ids=MATCHERS)


class Text(str):
    """A text that can be watched."""


def documents(run: int, n_queries: int, words: int) -> list[list[Document]]:
    """Return one document per query, of words that no other run has."""
    return [
        [Document(" ".join(f"r{run}q{q}w{w}" for w in range(words)), id=f"{run}-{q}")]
        for q in range(n_queries)
    ]


@every_matcher
@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_nothing_is_kept_of_a_discarded_evaluator(matcher):
    """Neither it, nor its matches, nor a document, nor a text, though the matcher lives on."""
    texts = [Text("밥을 먹었다 1"), Text("the library opens at nine 2")]
    given = [[Document(str(text), id=str(n), metadata={"page": 1})] for n, text in enumerate(texts)]
    evaluator = OfflineRetrievalEvaluator(given, given, matcher=matcher)
    of_texts = OfflineRetrievalEvaluator([[one] for one in texts], [[one] for one in texts], "text")
    result = evaluator.evaluate(k=1)
    of_texts.evaluate(k=1)
    watched = [weakref.ref(one) for one in (evaluator, of_texts, result, result.evidence)]
    watched += [weakref.ref(one) for one in (*given[0], *given[1], *texts)]
    del evaluator, of_texts, result, given, texts
    gc.collect()
    assert [one() for one in watched if one() is not None] == []


@pytest.mark.parametrize("name", [name for name in MATCHERS if name != "metadata"])
@pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")
def test_memory_does_not_grow_with_evaluators_that_are_gone(name):
    """Every run has words of its own; a cache of texts, tokens or stems would keep them.

    One run makes 1,600 distinct words; kept, they would take 100 kB and more.
    """

    def run(number):
        given = documents(number, n_queries=40, words=40)
        evaluator = OfflineRetrievalEvaluator(given, given, matcher=MATCHERS[name])
        evaluator.evaluate(k=[1, 5]).to_dict()
        _stem.cache_clear()  # bounded: 65,536 words of a process are kept

    for number in range(2):  # what is loaded once, such as a model, is loaded here
        run(number)
    gc.collect()
    tracemalloc.start()
    try:
        run(2)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(3, 8):
            run(number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 50_000

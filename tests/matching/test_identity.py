"""What a thing of the user's is: equal things are equal in every process, others are told apart."""

from __future__ import annotations

import functools
import itertools
import operator
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from pydantic import BaseModel, Field, PrivateAttr, SecretStr

from krag_eval import (
    CoverageMatcher,
    EmbeddingMatcher,
    History,
    JudgeMatcher,
    Matcher,
    Metric,
    OfflineRetrievalEvaluator,
    RougeMatcher,
    compare,
)
from krag_eval.errors import InvalidInput, KragEvalWarning
from krag_eval.matching.identity import digest_of, function_name, mark_of, same

KNOWN = r"#[0-9a-f]{12}"
LISTS = [[f"passage {i}"] for i in range(40)]


class Stem:
    """Keeps the beginnings of words, counts its calls and remembers texts."""

    def __init__(self, n):
        self.n = n
        self.calls = 0
        self.known: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def __call__(self, text):
        self.calls += 1
        if text not in self.known:
            self.known[text] = [word[: self.n] for word in text.split()]
        return self.known[text]

    def words(self, text):
        return self(text)


class Named(Stem):
    name = "stem"


@dataclass
class Split:
    by: str = " "

    def __call__(self, text):
        return text.split(self.by)


class Pattern:
    def __init__(self, source):
        self._pattern = re.compile(source)

    def __call__(self, text):
        return self._pattern.findall(text)


class Weighted:
    def __init__(self, *weights):
        self.weights = np.array(weights)

    def __call__(self, text):
        return text.split()[: int(self.weights.sum())]


class Client:
    """Keeps what it is made with, and makes something of it that differs every time."""

    def __init__(self, n):
        self.n = n
        self.session = iter("ab"), time.monotonic()

    def __call__(self, text):
        return text.split()[: self.n]


class Slotted:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n

    def __call__(self, text):
        return text.split()[: self.n]


def _set_later(client, n):
    client.more = n
    return client


def closing_over(n):
    return lambda text: text.split()[:n]


def with_default(n):
    def first(text: str, n: int = n) -> list[str]:
        return text.split()[:n]

    return first


def first(n: int, text: str) -> list[str]:
    return text.split()[:n]


#: How it is made -> from 3 and from 5, two that are not the same.
MAKERS: dict[str, Callable[[int], Any]] = {
    "object": Stem,
    "object of a class with a name": Named,
    "bound method": lambda n: Stem(n).words,
    "closure": closing_over,
    "default": with_default,
    "partial": lambda n: functools.partial(first, n),
    "partial by name": lambda n: functools.partial(first, n=n),
    "cached": lambda n: functools.lru_cache(closing_over(n)),
    "dataclass": lambda n: Split(str(n)),
    "pattern": lambda n: Pattern(f"\\w{n}"),
    "array": lambda n: Weighted(n, 1),
    "slots": Slotted,
    "object that connects": Client,
    "object that is set later": lambda n: _set_later(Client(3), n),
    "method of a text": lambda n: f"a{n}b".split,
    "method of a pattern": lambda n: re.compile(f"a{n}").findall,
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_holds_other_values_has_another_name(kind):
    """And what holds equal ones has the same."""
    make = MAKERS[kind]
    three, again, five = (function_name(make(n)) for n in (3, 3, 5))
    assert three == again != five
    assert re.search(f"{KNOWN}$", three)
    assert three.partition("#")[0] == five.partition("#")[0]


def test_two_lambdas_on_one_line_are_two():
    one, two = (lambda text: text.split(), lambda text: text.split(","))
    (three,) = (lambda text: lambda other: text.split(other),)
    names = {function_name(function) for function in (one, two, three, three(" "), three(","))}
    assert len(names) == 5
    assert not any(name.endswith("#unknown") for name in names)


def test_use_does_not_change_what_a_thing_is():
    """What its own methods write is memory: calls counted, texts remembered."""
    stem, before = Stem(3), function_name(Stem(3))
    stem("seen before")
    assert function_name(stem) == before
    stem.n = 4
    assert function_name(stem) != before


SEEN: list[str] = []
LIMIT = 3


def test_what_a_function_uses_of_its_module_counts(monkeypatch):
    """A setting does; a list that it appends to does not."""

    def cut(text):
        SEEN.append(text)
        return text.split()[:LIMIT]

    before = function_name(cut)
    cut("a b")
    assert function_name(cut) == before
    monkeypatch.setitem(cut.__globals__, "LIMIT", 4)
    assert function_name(cut) != before


def test_functions_that_are_called_count(tmp_path):
    """Of the user's own modules, wherever they are."""
    source = "def cut(text): return helped(text)\ndef helped(text): return text[:{}]\n"
    names = set()
    for n in (1, 2):
        (tmp_path / "own.py").write_text(source.format(n), "utf-8")
        names.add(_run("import own; print(function_name(own.cut))", tmp_path))
    assert len(names) == 2


# How a function comes to what shop.ranking holds, and whether it can be told before it is called.
ROUNDABOUT = {
    "import shop.ranking\ndef make(): return lambda texts: shop.ranking.top(texts)": True,
    "def make():\n    from shop.ranking import top\n    return lambda texts: top(texts)": False,
    "def make():\n    import shop.ranking\n    return lambda texts: shop.ranking.top(texts)": False,
    "from shop import ranking\ndef make(): return lambda texts: getattr(ranking, 'top')(texts)":
        False,
    "import shop.ranking as one\nMODULES = [one]\ndef make(): return MODULES[0].top": False,
    "import shop.ranking\ndef make():\n    from shop.ranking import top as first\n"
    "    return lambda texts: first(texts)": True,
    "from shop.ranking import Kind\ndef make(): return lambda texts: texts[:Kind.SHORT.value]":
        True,
    "from shop.ranking import Kind\ndef make(kind=Kind.SHORT): return lambda texts: kind": True,
    "from shop.ranking import Size\ndef make(): return lambda texts: texts[:Size.SMALL]": True,
    "N = {}\ndef make():\n    global N\n    N = N\n    return lambda texts: texts[:N]": True,
    "N = int('{}')\ndef make():\n    global N\n    N = N\n    return lambda texts: texts[:N]":
        False,
    "N = [{}]\ndef make():\n    N[0] += 0\n    return lambda texts: texts[:N[0]]": True,
}  # fmt: skip
RANKING = """
import enum
def top(texts): return texts[:{0}]
class Kind(enum.Enum):
    SHORT = {0}
class Size(enum.IntEnum):
    SMALL = {0}
"""


@pytest.mark.parametrize("source", ROUNDABOUT)
def test_an_edit_is_seen_or_it_is_said_that_it_is_not(tmp_path, source):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    marks = []
    for n in (11, 12):
        (tmp_path / "shop" / "ranking.py").write_text(RANKING.format(n), "utf-8")
        (tmp_path / "own.py").write_text(source.replace("{}", str(n)), "utf-8")
        marks.append(_run("import own; print(mark_of(own.make))", tmp_path))
    assert len({*marks} - {"#unknown"}) == 2 * ROUNDABOUT[source]


def test_memory_and_installed_modules_leave_a_function_known(tmp_path):
    """Though it declares the memory global, or imports the module when it is called."""
    source = (
        "MODEL = None\ndef cut(text):\n    import json, numpy.linalg as n\n    global MODEL\n"
        "    MODEL = MODEL or text.split\n    return json, n, MODEL()"
    )
    (tmp_path / "own.py").write_text(source, "utf-8")
    code = "import own; print(mark_of(own.cut)); own.cut('a'); print(mark_of(own.cut))"
    before, after = _run(code, tmp_path).split()
    assert re.fullmatch(KNOWN, before)
    assert after == before


def _run(code, folder, seed="0"):
    head = "from krag_eval.matching.identity import *\n"
    path = f"import sys; sys.path[:0] = [{str(folder)!r}]\n"
    done = subprocess.run([sys.executable, "-c", path + head + code], capture_output=True,
                          text=True, check=True, encoding="utf-8")  # fmt: skip
    return done.stdout.strip()


WRITTEN = """
import re
WORDS = {"the", "a", "of", "und", "그"}
class Tokenizer:
    def __init__(self, words, options): self.words, self.options = words, options
    def __call__(self, text): return [w for w in text.split() if w not in self.words | WORDS]
def make():
    return Tokenizer(frozenset("xyz"), {"b": 1.5, "a": [None, True, re.compile("a+")]})
"""
# The same, by whoever lays it out otherwise.
LAID_OUT = '''"""A module."""
import re

WORDS = {"그", "of",
         "the", "a", "und"}  # small ones


class Tokenizer:
    """Leaves out words."""

    def __init__(self, words, options):
        """Keep both."""
        self.words, self.options = words, options

    def __call__(self, text):
        # Those of the module, too.
        return [w for w in text.split() if w not in (self.words | WORDS)]


def make():
    return Tokenizer(frozenset("zyx"), {"a": [None, True, re.compile("a+")], "b": 1.5})
'''


def test_every_process_folder_and_layout_has_the_same_name(tmp_path):
    """Hash seeds, paths, comments, docstrings and the order of a set say nothing."""
    names = set()
    for number, source in enumerate((WRITTEN, LAID_OUT, WRITTEN)):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "shop.py").write_text(source, "utf-8")
        names.add(_run("import shop; print(function_name(shop.make()))", folder))
    (name,) = names
    assert re.fullmatch(f"shop.Tokenizer{KNOWN}", name)


def test_a_digest_is_what_it_was():
    """It stands in saved results, so it must not change with Python or this package.

    The tree of the source, and the values: computed once, and kept here.
    """
    assert function_name(functools.partial(first, 3)).rpartition("#")[2] == "0d737c1a1000"


@pytest.mark.parametrize(
    "thing",
    [
        iter("ab"),
        functools.partial(first, iter("ab")),
        eval("lambda text: text.split()"),
        type("Made", (), {"__call__": eval("lambda self, text: [text]")})(),
        itertools.count(),
    ],
)
def test_what_cannot_be_told_says_so(thing):
    assert mark_of(thing) == "#unknown"


def test_what_holds_itself_is_told():
    stem: Any = Stem(3)
    stem.n = [stem]
    assert re.fullmatch(KNOWN, mark_of(stem))


class Hostile:
    """Fails whatever is asked of it."""

    def __getattr__(self, name):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError

    def __hash__(self):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


def test_nothing_of_the_users_is_called():
    """No property, comparison or representation."""

    class Lazy:
        def __init__(self):
            self.size = 3

        @property
        def model(self):
            raise AssertionError

        def __call__(self, text):
            return [text]

    assert re.fullmatch(KNOWN, mark_of(Lazy()))
    assert mark_of(Hostile()) == "#unknown"
    assert mark_of(functools.partial(first, Hostile())) == "#unknown"


def test_what_is_installed_and_ours_is_known_by_its_name():
    """Signatures of built-in matchers stay to the letter, and so do those of libraries."""
    assert function_name(str.split) == "builtins.str.split"
    assert function_name(re.split) == "re.split"
    assert mark_of(np.sort) == ""
    assert CoverageMatcher().signature == "coverage(min_run=5,tokenizer=auto(words,letters))"


def test_an_edited_file_is_not_taken_for_what_runs(tmp_path):
    """What is on disk may be newer than the function; what was read before is not forgotten."""
    file = tmp_path / "own.py"
    edit = f"open({str(file)!r}, 'w').write('def cut(text): return text[:2] + text\\n')\n"
    names = []
    for before, after in ((edit, ""), ("", edit), ("", "")):
        file.write_text("def cut(text): return text[:1]\n", "utf-8")
        named = "name = function_name(own.cut)\n"
        names.append(_run(f"import own\n{before}{named}{after}{named}print(name)", tmp_path))
    assert names[0] == "own.cut#unknown"
    assert names[1] == names[2] != names[0]


# --- secrets ---


class Model(BaseChatModel):
    """Says yes; a stand-in for a provider's model."""

    model: str = "small"
    temperature: float | None = None
    top_p: float | None = None
    base_url: str = "https://api.example.com/v1"
    api_key: SecretStr = SecretStr("")
    token: str = ""
    default_headers: dict[str, str] = Field(default_factory=dict)
    client: Any = Field(default=None, exclude=True)
    asked: int = 0

    def _generate(self, messages, *args, **kwargs):
        self.asked += 1
        return ChatResult(generations=[ChatGeneration(message=AIMessage("yes"))])

    @property
    def _llm_type(self):
        return "model"


PROMPT = ChatPromptTemplate.from_template("{question} {actual} {predicted}")


def yes(message):
    return message.content == "yes"


def chain(base=None, **fields):
    return PROMPT | (base or Model(**fields)) | RunnableLambda(yes)


def with_a_key(key):
    """Return what holds a key in every place where one may be."""

    def in_a_closure(question, actual, predicted):
        return bool(key)

    def in_a_closure_by_name(question, actual, predicted):
        return bool(api_key)

    api_key = key
    return [
        chain(api_key=SecretStr(key)),
        chain(token=key),
        chain(default_headers={"Authorization": f"Bearer {key}", "X-Api-Key": key}),
        chain(base_url=f"https://me:{key}@api.example.com/v1?api_key={key}&version=2"),
        PROMPT | Model().bind(api_key=key) | RunnableLambda(yes),
        functools.partial(holding, api_key=key),
        in_a_closure_by_name,
        *([in_a_closure] if key.startswith("sk-") else []),
    ]


def holding(question, actual, predicted, api_key="sk-abc"):
    return True


def test_a_key_that_rotates_changes_nothing(tmp_path):
    """No signature, no cache, no digest."""
    old, new = "sk-proj-oldoldold0123456789", "sk-proj-newnewnew9876543210"
    for one, other in zip(with_a_key(old), with_a_key(new), strict=True):
        signatures = {JudgeMatcher(judge).signature for judge in (one, other)}
        assert len(signatures) == 1
        assert "unknown" not in signatures.pop()
        for judge in (one, other):
            matcher = JudgeMatcher(judge, cache=tmp_path / "judged.sqlite")
            matcher.similarity("a", "b", "?")
        assert matcher.cost.kept == 1
        (tmp_path / "judged.sqlite").unlink()


def test_a_key_in_the_source_changes_nothing(tmp_path):
    """By its name or by its form, in code, in an address, as a default."""
    source = """
def ask(text, api_key="{0}"):
    access_token = "{0}"
    return call(text, password="{0}", headers={{"Authorization": "Bearer {0}"}}, to="http://u:{0}@h/",
                other="sk-live-{0}")
def call(*args, **options): return []
"""
    names = set()
    for key in ("hunter2hunter2", "swordfish12345"):
        (tmp_path / "own.py").write_text(source.format(key), "utf-8")
        names.add(_run("import own; print(function_name(own.ask))", tmp_path))
    assert len(names) == 1


# --- judges ---


def other_model():
    return chain(model="large")


def fallen_back(model):
    return chain(Model().with_fallbacks([Model(model=model)]))


def configured(model):
    field = ConfigurableField(id="model")
    return Model().configurable_fields(model=field).with_config(configurable={"model": model})


class Verdict(BaseModel):
    good: bool = Field(description="whether it will do")


class Strict(BaseModel):
    good: bool = Field(description="whether it will do, strictly")


def behind(kind):
    return PROMPT | Model() | RunnableLambda(lambda message: kind(good=True).good)


#: Judges that are each another one than all others.
OTHERS: dict[str, Callable[[], Any]] = {
    "plain": chain,
    "model": lambda: chain(model="large"),
    "temperature": lambda: chain(temperature=1.0),
    "top_p": lambda: chain(top_p=0.5),
    "address": lambda: chain(base_url="http://localhost:8000/v1"),
    "bound model": lambda: chain(Model().bind(model="large")),
    "bound temperature": lambda: chain(Model().bind(temperature=1)),
    "other bound temperature": lambda: chain(Model().bind(temperature=0)),
    "bound twice": lambda: chain(Model().bind(temperature=1).bind(top_p=1)),
    "lambda before": lambda: RunnableLambda(lambda texts: {**texts, "actual": "x"}) | chain(),
    "lambda behind": lambda: PROMPT | Model() | RunnableLambda(lambda m: m.content != "no"),
    "other lambda behind": lambda: PROMPT | Model() | RunnableLambda(lambda m: m.content != "No"),
    "fallback": lambda: fallen_back("large"),
    "other fallback": lambda: fallen_back("tiny"),
    "configured": lambda: chain(configured("large")),
    "other configured": lambda: chain(configured("tiny")),
    "structured output": lambda: behind(Verdict),
    "other structured output": lambda: behind(Strict),
}


def test_judges_that_differ_in_anything_are_told_apart():
    """Not one signature twice, and the same one of the same judge."""
    signatures = {name: JudgeMatcher(make()).signature for name, make in OTHERS.items()}
    assert len(set(signatures.values())) == len(OTHERS)
    assert signatures == {name: JudgeMatcher(make()).signature for name, make in OTHERS.items()}
    assert not any("unknown" in one for one in signatures.values())


@pytest.mark.parametrize("options", [{}, {"version": "1"}])
def test_no_judge_gets_the_judgements_of_another(tmp_path, options):
    """In one file, each asks once; with a version as well, which says what cannot be seen."""
    for _ in range(2):
        asked = []
        for make in OTHERS.values():
            matcher = JudgeMatcher(make(), cache=tmp_path / "judged.sqlite", **options)
            matcher.similarity("a", "b", "?")
            asked.append(matcher.cost.calls)
        expected = [1] * len(OTHERS) if _ == 0 else [0] * len(OTHERS)
        assert asked == expected


@pytest.mark.parametrize(
    "same_judge",
    [
        lambda: chain(client=object()),
        lambda: chain().with_retry(),
        lambda: chain().with_config(tags=["a"], run_name="judging"),
        lambda: chain(Model(name="mine", tags=["a"])),
        lambda: chain(Model().with_retry(stop_after_attempt=2)),
    ],
)
def test_what_changes_no_answer_asks_nothing_anew(same_judge):
    """Retries, tags and callbacks cost nobody a second run."""
    assert JudgeMatcher(same_judge()).signature == JudgeMatcher(chain()).signature


def test_a_judge_that_was_asked_is_the_same(tmp_path):
    """Models count, connect and remember."""
    judge = chain()
    for expected in (1, 0):
        matcher = JudgeMatcher(judge, cache=tmp_path / "judged.sqlite")
        matcher.similarity("a", "b", "?")
        assert matcher.cost.calls == expected


def test_what_cannot_be_told_of_a_judge_needs_a_version(tmp_path):
    """A model behind a function, or one that holds what nobody can look into."""
    hidden = GenericFakeChatModel(messages=iter([AIMessage("yes")]))
    for judge in (chain(hidden), eval("lambda question, actual, predicted: True")):
        assert "#unknown" in JudgeMatcher(judge).signature
        with pytest.raises(InvalidInput) as caught:
            JudgeMatcher(judge, cache=tmp_path / "judged.sqlite")
        assert caught.value.argument == "cache"
        assert "unknown" not in JudgeMatcher(judge, version="1").signature


@pytest.mark.parametrize("version", ["", "1"])
def test_values_bound_to_a_function_are_part_of_a_judge(version):
    """A version stands for its code, not for another model bound to it."""

    def asking(model):
        return lambda question, actual, predicted: bool(model)

    for make in (asking, lambda model: functools.partial(_asked_of, model=model)):
        small, again, large = (
            JudgeMatcher(make(model), version=version, name="judge").signature
            for model in ("small", "small", "large")
        )
        assert small == again != large


def _asked_of(question, actual, predicted, model="tiny"):
    return bool(model)


# --- results ---


def evaluated(matcher="text", metric=None):
    evaluator = OfflineRetrievalEvaluator(LISTS, LISTS, matcher=matcher)
    return evaluator.evaluate(1, metrics=["recall", *([metric] if metric else [])])


class Vectors:
    def __init__(self, weight):
        self.weight = weight

    def embed_documents(self, texts):
        return [[float(len(text)), self.weight] for text in texts]


def asking_for(share):
    return lambda actual, predicted: share


#: What the user's own object is in -> a matcher with one that holds a number.
MATCHERS: dict[str, Callable[[float], Matcher]] = {
    "coverage": lambda n: CoverageMatcher(tokenizer=Stem(int(n))),
    "rouge": lambda n: RougeMatcher("rouge1", tokenizer=Stem(int(n))),
    "embedding": lambda n: EmbeddingMatcher(Vectors(n), 0.5),
    "langchain": lambda n: EmbeddingMatcher(DeterministicFakeEmbedding(size=int(n)), 0.5),
    "made once": lambda n: EmbeddingMatcher(functools.partial(Vectors, n), 0.5),
    "function": lambda n: Matcher.from_function(asking_for(n / 10), threshold=0),
    "named function": lambda n: Matcher.from_function(asking_for(n / 10), threshold=0, name="mine"),
    "combined": lambda n: CoverageMatcher(tokenizer=Stem(int(n))) & CoverageMatcher(),
}


@pytest.mark.parametrize("kind", MATCHERS)
def test_results_of_two_things_of_one_name_are_not_compared(kind):
    """Of equal ones they are, without a word."""
    make = MATCHERS[kind]
    three, again, five = (evaluated(make(n)) for n in (3, 3, 5))
    assert compare(three, again, metric="recall@1").differences[0].difference == 0
    with pytest.raises(InvalidInput) as caught:
        compare(three, five, metric="recall@1")
    assert caught.value.argument == "results"


def counted(value):
    return Metric.per_query("mine", lambda query: value)


def test_a_metric_of_another_function_is_not_compared():
    """Others of the same results are; between equal lists nothing is better by 1."""
    nothing, everything = (evaluated(metric=counted(value)) for value in (0.0, 1.0))
    with pytest.raises(InvalidInput) as caught:
        compare(nothing, everything, metric="mean_mine@1")
    assert caught.value.argument == "results"
    with pytest.raises(InvalidInput):
        everything.check(baseline=nothing, metric="mean_mine@1")
    assert compare(nothing, everything, metric="recall@1").differences
    same_again = evaluated(metric=counted(0.0))
    assert compare(nothing, same_again, metric="mean_mine@1").differences


def test_built_in_metrics_are_not_in_a_signature():
    assert "metrics" not in evaluated().settings
    assert re.fullmatch(f"mine{KNOWN}", evaluated(metric=counted(1.0)).settings["metrics"])


def unsure(settings, metric=None):
    result = evaluated(CoverageMatcher(tokenizer=Stem(3)), metric)
    return replace(result, settings={**result.settings, **settings})


@pytest.mark.parametrize(
    "settings",
    [
        {"matcher": f"coverage(min_run=5,tokenizer={__name__}.Stem)"},  # as before there were marks
        {"matcher": f"coverage(min_run=5,tokenizer={__name__}.Stem#unknown)"},
    ],
)
def test_what_may_be_the_same_is_compared_with_a_warning(settings, tmp_path):
    """In a comparison, a gate and a history; the files are comparable."""
    old, new = unsure(settings), unsure({})
    with pytest.warns(KragEvalWarning, match="Stem"):
        compare(old, new, metric="recall@1")
    with pytest.warns(KragEvalWarning, match="Stem"):
        assert new.check(baseline=old, metric="recall@1").passed
    old.to_json(tmp_path / "1.json")
    new.to_json(tmp_path / "2.json")
    history = History.of(tmp_path)
    assert all(run.is_comparable for run in history.runs)
    assert "may not be the same" in repr(history)


def test_a_metric_of_an_old_file_is_compared_with_a_warning():
    new = evaluated(metric=counted(1.0))
    old = replace(new, settings={k: v for k, v in new.settings.items() if k != "metrics"})
    with pytest.warns(KragEvalWarning, match="mine"):
        compare(old, new, metric="mean_mine@1")


@pytest.mark.parametrize(
    ("ours", "theirs", "alike"),
    [
        ("a#0123456789ab", "a#0123456789ab", True),
        ("a#0123456789ab", "a#0123456789ac", False),
        ("a#0123456789ab", "b#0123456789ab", False),
        ("a#0123456789ab", "a", None),
        ("a#unknown", "a#0123456789ab", None),
        ("a#unknown", "b#unknown", False),
        ("(a#0123456789ab & b)", "(a & b#0123456789ab)", None),
        ("(a#unknown & b#0123456789ab)", "(a#unknown & b#0123456789ac)", False),
        ("mine(settings unknown)", "mine#0123456789ab", None),
        ("mine(x=1,settings unknown)", "mine(x=1,settings unknown)", None),
        ("text", "text", True),
        ("coverage(min_run=5)", "coverage(min_run=8)", False),
    ],
)
def test_signatures_are_the_same_others_or_do_not_tell(ours, theirs, alike):
    assert same(ours, theirs) is alike
    assert same(theirs, ours) is alike


def test_large_things_are_told_fast():
    """A vocabulary of ten thousand words; what is too large is said to be unknown."""
    vocabulary = [f"word {i}" for i in range(10_000)]
    assert digest_of(vocabulary)[1]
    assert not digest_of([[i] for i in range(100_000)])[1]


def test_a_history_holds_a_metric_against_runs_of_the_same_function(tmp_path):
    """Runs by another are left out, and refused where there is no other."""
    result = evaluated(metric=counted(1.0))
    evaluated(metric=counted(0.0)).to_json(tmp_path / "other.json")
    history = History.of(tmp_path)
    with pytest.raises(InvalidInput) as caught:
        history.check(result, metric="mean_mine@1")
    assert caught.value.argument == "history"
    unsure({}, counted(1.0)).to_json(tmp_path / "coverage.json")
    evaluated(metric=counted(1.0)).to_json(tmp_path / "same.json")
    assert History.of(tmp_path).check(result, metric="mean_mine@1").passed


def test_a_path_counts_from_home_or_the_working_directory(tmp_path, monkeypatch):
    """The same folder of models is elsewhere on every machine."""
    names = set()
    for user in ("ann", "bo"):
        (tmp_path / user).mkdir()
        monkeypatch.setattr("os.path.expanduser", lambda _, user=user: str(tmp_path / user))
        for path in (str(tmp_path / user / "model"), tmp_path / user / "model"):
            names.add((type(path).__name__, mark_of(functools.partial(first, path))))
    assert len(names) == 2


# --- what counts ---


def renamed(thing, **globals_):
    """Return a function that sees other globals."""
    return type(thing)(thing.__code__, {**thing.__globals__, **globals_}, thing.__name__)


TOKEN_RE = re.compile(r"\w+")


def tokens(text):
    return TOKEN_RE.findall(text)


class Sized:
    def __init__(self, min_token_length=1, by_token=True):
        self.min_token_length, self.by_token = min_token_length, by_token


def of_field(key):
    return lambda found: found[key]


class Switched:
    def __init__(self, model):
        self.model = model
        self.more = 1

    def use(self, model):
        self.model = model


class Around:
    """Keeps all it is made with, and more."""

    def __init__(self, inner):
        self.inner = inner
        self.words = set(WORDS)
        self.more = 1


WORDS: list[str] = []


def reading(text):
    WORDS[:] = text.split()
    return Around(1)


def of_body(given):
    class Words:
        words = given
        sep = " "

        def __call__(self, text):
            return [word for word in text.split(self.sep) if word not in self.words]

    return Words()


def _with_of_class(thing, **values):
    for name, value in values.items():
        setattr(type(thing), name, value)
    return thing


class OwnEmbeddings(Embeddings):
    def __init__(self, name):
        self.name = name

    def embed_documents(self, texts):
        return [[float(len(self.name))] for _ in texts]

    def embed_query(self, text):
        return [1.0]


class Privately(BaseModel, OwnEmbeddings):
    name: str = "a"
    _size: int = PrivateAttr(1)


def _private(size):
    embeddings = Privately()
    embeddings._size = size
    return embeddings


#: Two of each, which differ.
PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "pattern": lambda: (tokens, renamed(tokens, TOKEN_RE=re.compile(r"\w"))),
    "number": lambda: (Sized(1), Sized(5)),
    "bool": lambda: (Sized(), Sized(by_token=False)),
    "key of a dict": lambda: (of_field("title"), of_field("body")),
    "bound number": lambda: (Model().bind(token_limit=5), Model().bind(token_limit=9)),
    "picked": lambda: (chain().pick("relevant"), chain().pick("same")),
    "parser": lambda: (
        JsonOutputKeyToolsParser(key_name="a"),
        JsonOutputKeyToolsParser(key_name="b"),
    ),
    "set by a method": lambda: (Switched("a"), Switched("b")),
    "set later": lambda: (Around(1), _set_later(Around(1), 2)),
    "set within": lambda: (Around(Around(1)), Around(_set_later(Around(1), 2))),
    "read by a constructor": lambda: (reading("a b"), reading("c d")),
    "of the body of a class": lambda: (of_body({"a"}), of_body({"b"})),
    "of a class, later": lambda: (of_body({"a"}), _with_of_class(of_body({"a"}), sep=",")),
    "of embeddings": lambda: (OwnEmbeddings("bge"), OwnEmbeddings("e5")),
    "private": lambda: (_private(1), _private(2)),
    "field called name": lambda: (Privately(name="a"), Privately(name="b")),
    "itemgetter": lambda: (operator.itemgetter("a"), operator.itemgetter("b")),
    "attrgetter": lambda: (operator.attrgetter("a"), operator.attrgetter("b", "c")),
    "methodcaller": lambda: (operator.methodcaller("a", 1), operator.methodcaller("a", b=1)),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_two_that_differ_are_not_the_same(kind):
    """And each is what it is, made once more."""
    one, other = map(mark_of, PAIRS[kind]())
    assert re.fullmatch(KNOWN, one)
    assert one != other
    assert (one, other) == tuple(map(mark_of, PAIRS[kind]()))


def test_what_is_picked_is_the_same_in_every_process(tmp_path):
    """An address is not what it is."""
    code = "import operator; print(mark_of(operator.itemgetter('a')))"
    assert _run(code, tmp_path) == mark_of(operator.itemgetter("a"))


def test_a_long_text_is_told_fast():
    """20 MB in less than a second."""
    text = "word://" * 3_000_000
    start = time.perf_counter()
    assert digest_of(text)[1]
    assert time.perf_counter() - start < 1


def test_a_tokenizer_whose_name_fails_is_named_after_its_class():
    class Broken:
        @property
        def name(self):
            raise RuntimeError

    assert function_name(Hostile()) == f"{__name__}.Hostile#unknown"
    assert ".Broken#" in function_name(Broken())


def test_a_judge_that_holds_too_much_keeps_what_else_is_told(tmp_path):
    """With a version, which stands for the rest."""
    large = list(range(30_000))
    ends = RunnableLambda(lambda message: message.content == "yes" and bool(large))
    for model in ("small", "large"):
        judge = PROMPT | Model().bind(model=model) | ends
        matcher = JudgeMatcher(judge, version="1", cache=tmp_path / "judged.sqlite")
        matcher.similarity("a", "b", "?")
        assert matcher.cost.calls == 1


def test_no_secret_of_an_address_stands_in_a_signature():
    """Nor in that of a judge."""
    address = "https://user:hunter2@host/m?api_key=abc"
    judged = JudgeMatcher(chain(model=address)).signature
    embeddings: Any = OwnEmbeddings("a")
    embeddings.model = address
    embedded = EmbeddingMatcher(embeddings, 0.5).signature
    assert "host" in embedded
    judged += embedded
    assert "hunter2" not in judged
    assert "abc" not in judged


def test_a_prompt_with_a_function_is_the_same_again():
    """Not by where in memory it lies."""
    functions = [lambda: "today" for _ in range(2)]
    one, other = (
        JudgeMatcher(PROMPT.partial(question=function) | Model() | yes).signature
        for function in functions
    )
    assert one == other

"""What a thing of the user's is: equal things are equal in every process, others are told apart."""

from __future__ import annotations

import functools
import itertools
import logging
import operator
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import processes
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers.openai_tools import JsonOutputKeyToolsParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import ConfigurableField, RunnableLambda
from processes import printed
from pydantic import BaseModel, Field, PrivateAttr, SecretStr

from krag_eval import (
    CoverageMatcher,
    EmbeddingMatcher,
    History,
    JudgeMatcher,
    KragEvalWarning,
    Matcher,
    Metric,
    OfflineRetrievalEvaluator,
    RougeMatcher,
    compare,
)
from krag_eval.core.matching.identity import digest_of, function_name, mark_of, same
from krag_eval.errors import InvalidInput

KNOWN = r"#[0-9a-f]{12}"
LOG = logging.getLogger(__name__)
LISTS = [[f"passage {i}"] for i in range(40)]


class Stem:
    """Keeps the beginnings of words."""

    def __init__(self, n):
        self.n = n

    def __call__(self, text):
        return [word[: self.n] for word in text.split()]

    def words(self, text):
        return self(text)


class Named(Stem):
    name = "stem"


class Counting(Stem):
    """Counts its calls."""

    calls = 0

    def __call__(self, text):
        self.calls += 1
        return super().__call__(text)


class Remembering(Stem):
    """Remembers texts, under a name."""

    name = "stem"

    def __init__(self, n):
        super().__init__(n)
        self.known: dict[str, list[str]] = {}

    def __call__(self, text):
        return self.known.setdefault(text, super().__call__(text))


class Held:
    """Keeps what it is made with."""

    def __init__(self, held, by_token=True, min_token_length=1):
        self.held, self.by_token, self.min_token_length = held, by_token, min_token_length
        self.more = 1


class Slotted:
    __slots__ = ("n",)

    def __init__(self, n):
        self.n = n


@dataclass
class Split:
    by: str = " "


class OwnEmbeddings(Embeddings):
    def __init__(self, name):
        self.name = name

    def embed_documents(self, texts):
        return [[float(len(text)), float(len(self.name))] for text in texts]

    def embed_query(self, text):
        return [1.0]


class Privately(BaseModel, OwnEmbeddings):
    name: str = "a"
    _size: int = PrivateAttr(1)


def changed(thing, **values):
    """Return a thing with attributes that were set later."""
    for name, value in values.items():
        setattr(thing, name, value)
    return thing


def of_body(given, sep=" "):
    class Words:
        words = given

        def __call__(self, text):
            return [word for word in text.split(self.sep) if word not in self.words]

    Words.sep = sep
    return Words()


def closing_over(n):
    return lambda text: text.split()[:n]


def with_default(n):
    def first(text: str, n: int = n) -> list[str]:
        return text.split()[:n]

    return first


def first(n: int, text: str) -> list[str]:
    return text.split()[:n]


def of_pattern(n):
    """Return a function that uses a pattern of its module."""
    known = {**globals(), "PATTERN": re.compile(f"\\w{n}")}
    return type(first)((lambda text: PATTERN.findall(text)).__code__, known)  # noqa: F821


#: How it is made -> from 3 and from 5, two that are not the same.
MAKERS: dict[str, Callable[[int], Any]] = {
    "object": Stem,
    "object of a class with a name": Named,
    "object with a name": lambda n: changed(Stem(n), name="mine"),
    "function of the module": lambda n: lambda text: first(n, text),
    "bound method": lambda n: Stem(n).words,
    "closure": closing_over,
    "default": with_default,
    "partial": lambda n: functools.partial(first, n),
    "partial by name": lambda n: functools.partial(first, n=n),
    "cached": lambda n: functools.lru_cache(closing_over(n)),
    "dataclass": lambda n: Split(str(n)),
    "pattern": lambda n: Held(re.compile(f"\\w{n}")),
    "pattern of a module": of_pattern,
    "number": lambda n: Held(1, min_token_length=n),
    "bool": lambda n: Held(1, by_token=n == 3),
    "text": lambda n: Held(str(n)),
    "slots": Slotted,
    "object that is set later": lambda n: changed(Held(3), more=n),
    "object that is set within": lambda n: Held(changed(Held(1), more=n)),
    "method of a text": lambda n: f"a{n}b".split,
    "method of a pattern": lambda n: re.compile(f"a{n}").findall,
    "body of a class": lambda n: of_body({n}),
    "attribute of a class": lambda n: of_body({"a"}, sep=str(n)),
    "key of a dict": lambda n: (lambda key: lambda found: found[key])(str(n)),
    "bound number": lambda n: Model().bind(token_limit=n),
    "picked": lambda n: chain().pick(str(n)),
    "parser": lambda n: JsonOutputKeyToolsParser(key_name=str(n)),
    "embeddings": lambda n: functools.partial(first, OwnEmbeddings(str(n))),
    "private": lambda n: functools.partial(first, changed(Privately(), _size=n)),
    "field called name": lambda n: functools.partial(first, Privately(name=str(n))),
    "itemgetter": operator.itemgetter,
    "attrgetter": lambda n: operator.attrgetter(*"abcde"[:n]),
    "methodcaller": lambda n: operator.methodcaller("a", n),
    "methodcaller by name": lambda n: operator.methodcaller("a", b=n),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_holds_other_values_has_another_name(kind):
    """And what holds equal ones has the same; they are named alike but for the mark."""
    make = MAKERS[kind]
    three, again, five = (mark_of(make(n)) for n in (3, 3, 5))
    assert three == again != five
    assert re.fullmatch(KNOWN, three)
    names = {function_name(make(n)) for n in (3, 3, 5)}
    assert len(names) == 2
    assert len({one.partition("#")[0] for one in names}) == 1


def test_two_lambdas_on_one_line_are_two():
    one, two = (lambda text: text.split(), lambda text: text.split(","))
    (three,) = (lambda text: lambda other: text.split(other),)
    names = {function_name(function) for function in (one, two, three, three(" "), three(","))}
    assert len(names) == 5
    assert not any(name.endswith("#unknown") for name in names)


SEEN: list[str] = []
LIMIT = 3


def limited(text):
    return text.split()[:LIMIT]


def test_what_a_function_uses_of_its_module_counts(monkeypatch):
    before = function_name(limited)
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert function_name(limited) != before


def seeing(text):
    SEEN.append(text)
    return text.split()


def seeing_through(text):
    return seeing(text)


def limiting(text):
    global LIMIT
    LIMIT = max(LIMIT, len(text))
    return text.split()


def counting(n=0):
    def count(text):
        nonlocal n
        n += 1
        return text.split()

    return count


def keeping(text, known={}):  # noqa: B006
    known[text] = known.get(text) or text.split()
    return known[text]


def defined_later(text):
    return yet_to_come(text)  # noqa: F821


def looked_up(text):
    return globals()["first"](3, text)


def evaluated_later(text):
    return eval("first(3, text)")


def imported_later(text):
    import processes

    return processes.printed(text)


def of_a_module_of_ones_own(text):
    return processes.printed(text)


#: What changes what it holds, or comes to what its source does not name.
NOT_PLAIN: dict[str, Any] = {
    "list of the module": seeing,
    "through another": seeing_through,
    "name of the module": limiting,
    "name around it": counting(),
    "default": keeping,
    "yet to be defined": defined_later,
    "looked up": looked_up,
    "evaluated": evaluated_later,
    "imported": imported_later,
    "module": of_a_module_of_ones_own,
    "object that counts": Counting(3),
    "object that remembers": Remembering(3),
    "method that remembers": Remembering(3).words,
    "array": functools.partial(first, np.array([1.0])),
    "lock": Held(threading.Lock()),
    "iterator": iter("ab"),
    "partial of an iterator": functools.partial(first, iter("ab")),
    "no source": eval("lambda text: text.split()"),
    "method without source": type("Made", (), {"__call__": eval("lambda self, text: [text]")})(),
    "counter": itertools.count(),
    "too large": [[i] for i in range(100_000)],
}


@pytest.mark.parametrize("kind", NOT_PLAIN)
def test_what_is_not_plain_is_unknown(kind):
    assert mark_of(NOT_PLAIN[kind]) == "#unknown"
    assert function_name(NOT_PLAIN[kind]).endswith("#unknown")


def test_what_is_unknown_of_an_event_is_not_its_state():
    """So that what a folder keeps of a sweep is found again, with a warning."""
    event = threading.Event()
    before = digest_of(Held(event))
    event.set()
    assert digest_of(Held(event)) == before
    assert not before[1]


def test_a_function_is_called_by_the_name_that_it_was_given():
    """It is the user's word; of an object, ``name`` may be any field."""
    assert function_name(changed(counting(), name="count-2")) == "count-2"
    assert function_name(changed(Counting(3), name="count-2")) == "count-2#unknown"


# A function and what it comes to in shop.ranking, and whether that can be told.
ROUNDABOUT = {
    "def make():\n    from shop.ranking import top\n    return lambda texts: top(texts)": False,
    "def make():\n    import shop.ranking\n    return lambda texts: shop.ranking.top(texts)": False,
    "def make():\n    from .ranking import top\n    return lambda texts: top(texts)": False,
    "import shop.ranking\ndef make(): return lambda texts: shop.ranking.top(texts)": False,
    "import shop.ranking as one\nMODULES = [one]\ndef make(): return MODULES[0].top": False,
    "from shop.ranking import top\ndef make(): return lambda texts: top(texts)": True,
    "from shop.ranking import Kind\ndef make(): return lambda texts: texts[:Kind.SHORT.value]":
        True,
    "from shop.ranking import Kind\ndef make(kind=Kind.SHORT): return lambda texts: kind": True,
    "from shop.ranking import Size\ndef make(): return lambda texts: texts[:Size.SMALL]": True,
    "N = [{}]\ndef make(): return lambda texts: texts[:N[0]]": True,
}  # fmt: skip
RANKING = """
import enum
def top(texts): return texts[:{0}]
class Kind(enum.Enum):
    SHORT = {0}
class Size(enum.IntEnum):
    SMALL = {0}
"""


def test_an_edit_is_seen_or_it_is_said_that_it_is_not(tmp_path):
    marks = []
    for n in (11, 12):
        folder = tmp_path / str(n)
        (folder / "shop").mkdir(parents=True)
        (folder / "shop" / "__init__.py").touch()
        (folder / "shop" / "ranking.py").write_text(RANKING.format(n), "utf-8")
        for number, source in enumerate(ROUNDABOUT):
            (folder / f"own{number}.py").write_text(source.replace("{}", str(n)), "utf-8")
        code = f"for n in range({len(ROUNDABOUT)}): print(mark_of(__import__(f'own{{n}}').make))"
        marks.append(_run(code, folder).split())
    told = [len({*pair} - {"#unknown"}) for pair in zip(*marks, strict=True)]
    assert told == [2 * known for known in ROUNDABOUT.values()]


def test_installed_modules_leave_a_function_known():
    """Though it imports them when it is called, or asks a logger."""

    def cut(text):
        import json

        LOG.debug(text)
        return json, np.linalg, sorted(word.lower() for word in text.split())

    assert re.fullmatch(KNOWN, mark_of(cut))


def _run(code, folder):
    head = f"import sys; sys.path[:0] = [{str(folder)!r}]\n"
    head += "from krag_eval.core.matching.identity import *\n"
    return printed(head + code).strip()


WRITTEN = """
import re
WORDS = {"the", "a", "of", "und", "그"}
class Tokenizer:
    def __init__(self, words, options): self.words, self.options = words, options
    def __call__(self, text): return [w for w in text.split() if w not in self.words | WORDS]
def make():
    return Tokenizer(frozenset("xyz"), {"b": 1.5, "a": [None, True, re.compile("a+")]})
"""
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


def test_what_holds_itself_or_very_much_is_told():
    """Ten thousand words, and a text of 20 MB, in less than a second."""
    stem = Stem(3)
    stem.n = [stem]
    assert re.fullmatch(KNOWN, mark_of(stem))
    assert digest_of([f"word {i}" for i in range(10_000)])[1]
    text, start = "word://" * 3_000_000, time.perf_counter()
    assert digest_of(text)[1]
    assert time.perf_counter() - start < 1


def fails(*_):
    raise RuntimeError


#: Fails whatever is asked of it.
Hostile = type(
    "Hostile", (), dict.fromkeys(("__getattr__", "__eq__", "__hash__", "__repr__"), fails)
)


class Lazy:
    """Has a property, which may be expensive, and a name that fails."""

    size = 3

    @property
    def name(self):
        raise RuntimeError

    @property
    def model(self):
        raise AssertionError


def test_nothing_of_the_users_is_called():
    """No property, comparison or representation; a tokenizer is named after its class."""
    assert re.fullmatch(f"{__name__}.Lazy{KNOWN}", function_name(Lazy()))
    assert function_name(Hostile()) == f"{__name__}.Hostile#unknown"
    assert mark_of(functools.partial(first, Hostile())) == "#unknown"


def test_what_is_installed_and_ours_is_known_by_its_name():
    """Signatures of built-in matchers stay to the letter, and so do those of libraries."""
    assert function_name(str.split) == "builtins.str.split"
    assert function_name(re.split) == "re.split"
    assert mark_of(np.sort) == ""
    signature = "coverage(min_run=5,tokenizer=auto(words,letters),guard=aligned)"
    assert CoverageMatcher().signature == signature


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

    def _generate(self, messages, *args, **kwargs):
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
    api_key = key
    judges = [
        chain(api_key=SecretStr(key)),
        chain(token=key),
        chain(default_headers={"Authorization": f"Bearer {key}", "X-Api-Key": key}),
        chain(base_url=f"https://me:{key}@api.example.com/v1?api_key={key}&version=2"),
        PROMPT | Model().bind(api_key=key) | RunnableLambda(yes),
        functools.partial(asked_of, api_key=key),
        lambda question, actual, predicted: bool(api_key),
    ]
    if key.startswith("sk-"):
        judges.append(lambda question, actual, predicted: bool(key))
    return judges


def asked_of(question, actual, predicted, api_key="sk-abc", model="tiny"):
    return bool(model)


def judged_by(judge, file, **options):
    """Ask a judge about a pair; return how often it was called."""
    matcher = JudgeMatcher(judge, cache=file, **options)
    matcher.similarity("a", "b", "?")
    return matcher.cost.calls


def test_a_key_that_rotates_changes_nothing(tmp_path):
    """No signature, no cache, no digest."""
    keys = "sk-proj-oldoldold0123456789", "sk-proj-newnewnew9876543210"
    for number, judges in enumerate(zip(*map(with_a_key, keys), strict=True)):
        (signature,) = {JudgeMatcher(judge).signature for judge in judges}
        assert "unknown" not in signature
        assert [judged_by(judge, tmp_path / f"{number}.sqlite") for judge in judges] == [1, 0]


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
        folder = tmp_path / key  # Python takes a file of the same size and second for compiled
        folder.mkdir()
        (folder / "own.py").write_text(source.format(key), "utf-8")
        names.add(_run("import own; print(function_name(own.ask))", folder))
    assert len(names) == 1


# --- judges ---


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
    for calls in (1, 0):
        asked = [judged_by(make(), tmp_path / "judged.sqlite", **options)
                 for make in OTHERS.values()]  # fmt: skip
        assert asked == [calls] * len(OTHERS)


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
    judge = chain()
    assert [judged_by(judge, tmp_path / "judged.sqlite") for _ in range(2)] == [1, 0]


def test_what_cannot_be_told_of_a_judge_needs_a_version(tmp_path):
    """A model behind a function, or one that holds what nobody can look into."""
    hidden = GenericFakeChatModel(messages=iter([AIMessage("yes")]))
    for judge in (chain(hidden), eval("lambda question, actual, predicted: True")):
        assert "#unknown" in JudgeMatcher(judge).signature
        with pytest.raises(InvalidInput) as caught:
            JudgeMatcher(judge, cache=tmp_path / "judged.sqlite")
        assert caught.value.argument == "cache"
        assert "version" in str(caught.value.fix)
        assert "unknown" not in JudgeMatcher(judge, version="1").signature


@pytest.mark.parametrize("version", ["", "1"])
@pytest.mark.parametrize(
    "make",
    [
        lambda model: lambda question, actual, predicted: bool(model),
        lambda model: functools.partial(asked_of, model=model),
    ],
)
def test_values_bound_to_a_function_are_part_of_a_judge(version, make):
    """A version stands for its code, not for another model bound to it."""
    small, again, large = (
        JudgeMatcher(make(model), version=version, name="judge").signature
        for model in ("small", "small", "large")
    )
    assert small == again != large


# --- results ---


def evaluated(matcher="text", metric=None):
    metrics = ["recall", *([metric] if metric else [])]
    return OfflineRetrievalEvaluator(LISTS, LISTS, matcher=matcher).evaluate(1, metrics=metrics)


def refused(ask):
    """Return the argument that is blamed."""
    with pytest.raises(InvalidInput) as caught:
        ask()
    return caught.value.argument


#: What the user's own object is in -> a matcher with one that holds a number.
MATCHERS = {
    "coverage": lambda n: CoverageMatcher(tokenizer=Stem(n)),
    "rouge": lambda n: RougeMatcher("rouge1", tokenizer=Stem(n)),
    "embedding": lambda n: EmbeddingMatcher(OwnEmbeddings("x" * n), 0.5),
    "langchain": lambda n: EmbeddingMatcher(DeterministicFakeEmbedding(size=n), 0.5),
    "made once": lambda n: EmbeddingMatcher(functools.partial(OwnEmbeddings, "x" * n), 0.5),
    "function": lambda n: Matcher.from_function(lambda a, p: n / 10, threshold=0),
    "named function": lambda n: Matcher.from_function(lambda a, p: n / 10, threshold=0, name="m"),
    "combined": lambda n: CoverageMatcher(tokenizer=Stem(n)) & CoverageMatcher(),
}


@pytest.mark.parametrize("kind", MATCHERS)
def test_results_of_two_things_of_one_name_are_not_compared(kind):
    """Of equal ones they are, without a word."""
    three, again, five = (evaluated(MATCHERS[kind](n)) for n in (3, 3, 5))
    assert compare(three, again, metric="recall@1").differences[0].difference == 0
    assert refused(lambda: compare(three, five, metric="recall@1")) == "results"


def counted(value):
    return Metric.per_query("mine", lambda query: value)


def test_a_metric_of_an_old_file_is_compared_with_a_warning():
    new = evaluated(metric=counted(1.0))
    old = replace(new, settings={k: v for k, v in new.settings.items() if k != "metrics"})
    with pytest.warns(KragEvalWarning, match="mine"):
        compare(old, new, metric="mean_mine@1")


def test_a_metric_of_another_function_is_not_compared():
    """Others of the same results are; between equal lists nothing is better by 1."""
    nothing, again, everything = (evaluated(metric=counted(value)) for value in (0.0, 0.0, 1.0))
    mine = {"metric": "mean_mine@1"}
    assert refused(lambda: compare(nothing, everything, **mine)) == "results"
    assert refused(lambda: everything.check(baseline=nothing, **mine))
    assert compare(nothing, everything, metric="recall@1").differences
    assert compare(nothing, again, **mine).differences


def test_built_in_metrics_are_not_in_a_signature():
    assert "metrics" not in evaluated().settings
    assert re.fullmatch(f"mine{KNOWN}", evaluated(metric=counted(1.0)).settings["metrics"])


def unsure(settings, metric=None):
    result = evaluated(CoverageMatcher(tokenizer=Stem(3)), metric)
    return replace(result, settings={**result.settings, **settings})


@pytest.mark.parametrize("mark", ["", "#unknown"], ids=["before there were marks", "unknown"])
def test_what_may_be_the_same_is_compared_with_a_warning(mark, tmp_path):
    """In a comparison, a gate and a history; the files are comparable."""
    guard = "guard=aligned"
    old = unsure({"matcher": f"coverage(min_run=5,tokenizer={__name__}.Stem{mark},{guard})"})
    new = unsure({})
    with pytest.warns(KragEvalWarning, match="Stem"):
        compare(old, new, metric="recall@1")
    with pytest.warns(KragEvalWarning, match="Stem"):
        assert new.check(baseline=old, metric="recall@1").passed
    old.to_json(tmp_path / "1.json")
    new.to_json(tmp_path / "2.json")
    history = History.of(tmp_path)
    assert all(run.is_comparable for run in history.runs)
    assert "may not be the same" in repr(history)


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


def test_a_history_holds_a_metric_against_runs_of_the_same_function(tmp_path):
    """Runs by another are left out, and refused where there is no other."""
    result = evaluated(metric=counted(1.0))
    evaluated(metric=counted(0.0)).to_json(tmp_path / "other.json")
    asked = {"metric": "mean_mine@1"}
    assert refused(lambda: History.of(tmp_path).check(result, **asked)) == "history"
    unsure({}, counted(1.0)).to_json(tmp_path / "coverage.json")
    evaluated(metric=counted(1.0)).to_json(tmp_path / "same.json")
    assert History.of(tmp_path).check(result, **asked).passed


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


def test_a_judge_that_holds_too_much_keeps_what_else_is_told(tmp_path):
    """With a version, which stands for the rest."""
    large = list(range(30_000))
    ends = RunnableLambda(lambda message: message.content == "yes" and bool(large))
    judges = [PROMPT | Model().bind(model=model) | ends for model in ("small", "large")]
    file = tmp_path / "judged.sqlite"
    assert [judged_by(judge, file, version="1") for judge in judges] == [1, 1]


def test_a_prompt_with_a_function_is_the_same_again():
    """Not by where in memory it lies."""
    prompts = [PROMPT.partial(question=lambda: "today") for _ in range(2)]
    one, other = (JudgeMatcher(prompt | Model() | yes).signature for prompt in prompts)
    assert one == other


def test_no_secret_of_an_address_stands_in_a_signature():
    """Nor in that of a judge."""
    address = "https://user:hunter2@host/m?api_key=abc"
    embeddings = changed(OwnEmbeddings("a"), model=address)
    matchers = EmbeddingMatcher(embeddings, 0.5), JudgeMatcher(chain(model=address))
    told = " ".join(one.signature for one in matchers)
    assert "host" in told
    assert not any(secret in told for secret in ("hunter2", "abc"))

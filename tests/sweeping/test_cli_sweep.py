"""``krag-eval sweep``: a file that names functions in, the table of Python out."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, content, refusal, rows_in, run, written

from krag_eval import sweep

MODULE = """
def sentences(text, ending="."):
    return [f"{one.strip()}{ending}" for one in text.split(".") if one.strip()]

def whole(text):
    return [text]

def lacking(text, n_words):
    return [text]

def make(chunks, first=0):
    def found(question):
        number = int(question)
        return [one for one in chunks if number >= first and f"Rule {number} " in one.page_content]
    return found

def questions():
    return [{"question": str(i), "actual": [f"Rule {i} is about numbers."]} for i in range(40)]

def corpus():
    return [f"Rule {i} is about numbers. Rule {i} ends here." for i in range(40)]
"""
SCOPE = {}
exec(MODULE, SCOPE)
CORPUS, ROWS = SCOPE["corpus"](), SCOPE["questions"]()
SWEEP = """
corpus = ["one.txt", "rest.jsonl"]
questions = "questions.jsonl"
k = 1
metric = "recall@1"
n_resamples = 200
[splitters]
whole = "rag:whole"
sentences = {call = "rag:sentences", ending = "."}
[retrievers]
all = "rag:make"
half = {call = "rag:make", first = 20}
"""
CALL = "sweep sweep.toml"
# Of two splitters with two retrievers.
RECALLS = [1, 0.5, 1, 0.5]
pytestmark = pytest.mark.filterwarnings("ignore:.*No list is longer than")


@pytest.fixture(autouse=True)
def _files(sample):
    module("")
    Path("one.txt").write_text(CORPUS[0], "utf-8")
    written("rest.jsonl", CORPUS[1:])
    written("questions.jsonl", ROWS)
    changed()


def module(more, *changes):
    """Write the module beside the file, with something in place of another or behind it."""
    text = MODULE.replace(*changes) if changes else MODULE
    Path("rag.py").write_text(f"{text}\n{more}", "utf-8")


def changed(*changes, before=""):
    """Write the file with something in place of another, or before all."""
    text = before + SWEEP
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in text
        text = text.replace(old, new, 1)
    Path("sweep.toml").write_text(text, "utf-8")


def calling(call):
    """Let the corpus be made by a call."""
    changed('["one.txt", "rest.jsonl"]', f'{{call = "{call}"}}')


def recalls(found):
    return [cell["macro_recall@1"] for cell in found["cells"]]


@pytest.fixture(scope="module")
def expected():
    """Return the sweep as Python makes it, with functions of its own."""
    return sweep(
        CORPUS,
        ROWS,
        {"whole": SCOPE["whole"], "sentences": SCOPE["sentences"]},
        {"all": SCOPE["make"], "half": lambda chunks: SCOPE["make"](chunks, first=20)},
        k=1,
        metric="recall@1",
        n_resamples=200,
        progress=False,
    )


def test_the_numbers_of_python(expected):
    """All of the table but the times, the choice, and the differences."""
    found = content(CALL)
    assert (found["metric"], found["baseline"]) == ("macro_recall@1", "whole + all")
    table = expected.table.drop(columns=["latency_p50", "pareto", "same_as"])
    for row, (name, numbers) in zip(found["cells"], table.iterrows(), strict=True):
        assert row["cell"] == name
        assert {key: row[key] for key in numbers.index} == numbers.to_dict()
    assert found["choice"]["cell"] == expected.choice.name
    assert found["choice"]["overrated"] == expected.choice.overrated
    assert [row["difference"] for row in found["differences"]] == [
        one.difference for one in expected.comparison.differences
    ]
    # A column per cell is printed, those on the front marked, with the summary.
    printed = run(CALL).stdout
    assert "all*" in printed
    assert "".join(expected.summary().splitlines()[0].split()) in "".join(printed.split())


def test_outputs_and_the_folder(expected):
    """A row per cell; a picture, a page; what was asked is kept where the option says."""
    call = f"{CALL} --folder kept --csv - --plot pareto.svg --report page.html"
    first = run(call)
    rows = rows_in(first.stdout)
    assert [row["cell"] for row in rows] == expected.table.index.tolist()
    assert [float(row["macro_recall@1"]) for row in rows] == RECALLS
    assert Path("pareto.svg").read_bytes().startswith(b"<?xml")
    assert "sentences + half" in Path("page.html").read_text("utf-8")
    assert len(list(Path("kept").glob("*/answers.jsonl"))) == 4
    # Latencies too: nothing is asked again.
    assert run(f"{CALL} --folder kept --csv -").stdout == first.stdout


def test_an_edited_argument_is_asked_anew():
    """In the same folder, under the same name; what is reused is said."""
    told = []
    for first in (20, 30, 30):
        changed("first = 20", f"first = {first}")
        found = content(f"{CALL} --folder kept")
        told.append([found["reused"], found["asked"], recalls(found)[1]])
    assert told == [[0, 160, 0.5], [80, 80, 0.25], [160, 0, 0.25]]
    assert "160 answers of" in run(f"{CALL} --folder kept --format json").stderr
    assert "160 answers of" in run(f"{CALL} --folder kept").stdout


def test_an_edited_function_is_asked_anew():
    """Not for a comment; the same for one that it calls."""
    change = ("number >= first", "late_enough(number, first)")
    helper = "def late_enough(number, first):\n    return number {} first\n"
    asked = []
    for version in (
        ("",),
        ("# A comment",),
        (helper.format(">="), *change),
        (helper.format(">"), *change),
    ):
        module(*version)
        os.utime("rag.py", (len(asked), len(asked)))  # Python looks at the time of a file
        asked.append(content(f"{CALL} --folder kept")["asked"])
    assert asked == [160, 0, 160, 160]


def test_the_report_of_one_cell():
    """It is that of its result: there is nothing it could be compared with."""
    changed("sentences =", "# ", "half =", "# ")
    output = run(f"{CALL} --report page.html --plot pareto.svg").stdout
    assert "1 cell over 40 questions." in output
    assert "matcher=coverage" in Path("page.html").read_text("utf-8")


def test_a_folder_is_seen_from_where_it_is_named(monkeypatch):
    """In the file from there; typed from here, whatever the file says."""
    changed(before='folder = "in-the-file"\n')
    Path("here").mkdir()
    monkeypatch.chdir("here")
    assert run("sweep ../sweep.toml --folder kept").exit_code == 0
    assert not Path("../in-the-file").exists()
    assert run("sweep ../sweep.toml").exit_code == 0
    for folder in ("kept", "../in-the-file"):
        assert len(list(Path(folder).glob("*/answers.jsonl"))) == 4


def test_what_toml_spells_otherwise():
    """It has no word for nothing, so budgets are false; and arrays where Python has tuples."""
    changed(before='budget = false\nbaseline = ["sentences", "half"]\n')
    found = content(CALL)
    assert found["baseline"] == "sentences + half"
    assert "macro_recall@1" in found["cells"][0]
    assert not [name for name in found["cells"][0] if name.endswith("w")]


def test_a_retriever_that_is_offline_is_told_with_its_cell():
    """Its words are those of the network, and say nothing of where."""
    module("def offline(chunks):\n"
           "    def found(question): raise ConnectionError('refused')\n"
           "    return found\n")  # fmt: skip
    changed('\nall = "rag:make"', '\nall = "rag:offline"')
    done = run(CALL)
    first, *notes = done.stderr.splitlines()
    assert (done.exit_code, first) == (2, "krag-eval: error: refused")
    assert [("'0'" in note, "whole + all" in note) for note in notes] == [
        (True, False), (False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "questions",
    ['{call = "rag:questions"}', '{call = "krag_eval:load_dataset", source = "questions.jsonl"}'],
)
def test_corpus_and_questions_by_functions(questions):
    """For what no file holds as it is; public functions of ours need no leave."""
    changed('["one.txt", "rest.jsonl"]', '{call = "rag:corpus"}', '"questions.jsonl"', questions)
    assert recalls(content(CALL)) == RECALLS


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("k = 1", "k = = 1", "TOML"),
        ('questions = "questions.jsonl"', "", "'questions'"),
        ("k = 1", "cutoff = 1", "'cutoff'"),
        (":whole", ":hole", "splitters.whole"),
        (':whole"', '.whole"', "splitters.whole"),
        ('whole = "', 'whole = "unittest.nothing.', "splitters.whole"),
        ("ending = ", "end = ", "splitters.sentences"),
        (":whole", ":lacking", "splitters.whole"),
        ("first = 20", "chunks = 3, first = 20, last = 1", "retrievers.half"),
        ("k = 1", "k = 1\nfolder = 3", "--folder"),
        ("whole = ", "whole = 3 # ", "splitters.whole"),
        ('corpus = ["one.txt", "rest.jsonl"]', "corpus = 3", "corpus"),
        ('"questions.jsonl"', "{actual = 3}", "questions"),
        ("recall@1", "recall@9", "recall@9"),  # what Python refuses, in its words
    ],
)
def test_refusals_name_the_file(old, new, told):
    """And what is wrong in it."""
    changed(old, new)
    message = refusal(CALL)
    assert told in message
    assert "sweep.toml" in message or told in ("--folder", "recall@9")


# What says that it was called.
RUN = "def f(*given, **named):\n    open('{}', 'w').close()\n    return ['text']\n"
HOSTILE = """
import functools, os, pathlib, subprocess as shell
from subprocess import Popen, getoutput
class Held: pass
made = Held()
made.run = getoutput
_hidden = f
here = pathlib.Path({!r})
touch = here.touch
renamed = functools.partial(touch)
twice = functools.partial(renamed)
class Own(type(here)): pass
own = Own(here).touch
"""


@pytest.mark.parametrize(
    "call",
    [
        'subprocess:getoutput", cmd = "touch run',  # of an installed module
        'os:system", command = "touch run',
        'rag:os.system", command = "touch run',  # through a module that the file imports
        'rag:getoutput", cmd = "touch run',  # imported by name
        'rag:Popen", args = "run',
        'rag:shell.getoutput", cmd = "touch run',
        'rag:made.run", cmd = "touch run',  # held by an object of the file's
        "rag:f.__globals__",
        'rag:here.touch", exist_ok = true, mode = "',  # a method of an object of another's class
        "rag:touch",
        "rag:renamed",
        "rag:twice",
        "rag:Own.touch",
        "rag:own",
        "rag:_hidden",
        "pack:f",  # a package beside
        "pack.inner:f",
        "folder.inner:f",  # a folder without __init__.py
        "../above:f",
        "linked:f",  # a link to a file elsewhere
        "json:f",  # named like a standard module
        "click:f",  # named like an installed one
        'krag_eval:evaluate_file", source = "run.jsonl", per_query = "run.csv',
        "krag_eval:History",
        "krag_eval:errors.os.system",
        "krag_eval.cli:main",
        "bm25s:BM25",  # which says of nothing that it is public
        "__main__:f",
    ],
)
def test_a_file_names_functions_of_files_beside_it_alone(call):
    """Data alone runs nothing: neither the function nor a module that is not allowed."""
    ran = Path.cwd() / "run"
    calling(call)
    Path("here").mkdir()
    Path("sweep.toml").rename("here/sweep.toml")
    code = RUN.format(ran) + f"open('{ran}', 'w').close()\n"
    for name in ("pack/__init__", "pack/inner", "folder/inner", "json", "click", "../above"):
        path = Path(f"here/{name}.py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, "utf-8")
    Path("here/linked.py").symlink_to(Path("above.py").resolve())
    Path("here/rag.py").write_text(RUN.format(ran) + HOSTILE.format(str(ran)), "utf-8")
    assert "corpus" in refusal("sweep here/sweep.toml")
    assert not ran.exists()
    assert not Path("run.csv").exists()


@pytest.mark.parametrize("call", ["allowed_pack:texts", "allowed_pack.inner:texts"])
def test_functions_of_other_modules_are_allowed_by_name(call):
    """A package, and what is in it; not what it imports."""
    Path("allowed_pack").mkdir()
    Path("allowed_pack/__init__.py").write_text("import os\nfrom .inner import texts\n", "utf-8")
    Path("allowed_pack/inner.py").write_text(f"def texts():\n    return {CORPUS!r}\n", "utf-8")
    calling(call)
    assert "--allow-module" in refusal(CALL)
    assert run(f"{CALL} --allow-module allowed_pack").exit_code == 0
    calling("allowed_pack:os.getcwd")
    assert "os" in refusal(f"{CALL} --allow-module allowed_pack")
    assert str(Path.cwd()) not in sys.path


@pytest.mark.parametrize("call", ["kept", "bound", "Corpus", "made", "method"])
def test_what_a_file_makes_of_its_functions_is_its_own(call):
    """Wrapped, bound, its classes and their objects."""
    module("""
import functools
kept, bound = functools.lru_cache(corpus), functools.partial(corpus)
class Corpus(list):
    def __init__(self): self += corpus()
    def __call__(self): return self
made = Corpus()
method = made.__call__
""")
    calling(f"rag:{call}")
    assert run(CALL).exit_code == 0


@pytest.mark.parametrize("returned", ["None", "3", "'text'", "{'a': 1}"])
def test_a_corpus_that_is_no_list_of_texts_names_the_file(returned):
    """What its function returns is refused by the file that names it."""
    module(f"def other(): return {returned}")
    calling("rag:other")
    assert refusal(CALL).startswith("sweep.toml: corpus must ")


@pytest.mark.skipif(os.name == "nt", reason="Windows has another way of interrupting a process")
@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
def test_an_interrupt_tells_what_is_kept(jobs):
    """By whichever process asked, all of which find the file; the last 20 of 40 questions wait."""
    wait = "        if number >= 20: import time; time.sleep(600)\n"
    module(
        "", "        return [one for one in chunks", f"{wait}        return [one for one in chunks"
    )
    command = [sys.executable, "-m", "krag_eval", *CALL.split(), "--folder", "kept", *jobs]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    try:
        while True:
            answers = [*Path("kept").glob("*/answers.jsonl")]
            n_ready = sum(one.read_bytes().count(b"\n") >= 21 for one in answers)
            if n_ready == (2 if jobs else 1):
                break
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    told = "".join(said.split())
    assert told.count("20of40answersarekept") == len(answers)
    assert all(one.parent.name in told for one in answers)

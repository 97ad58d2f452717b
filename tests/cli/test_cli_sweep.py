"""``krag-eval sweep``: a file that names functions in, the table of Python out."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, refusal, run

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
CORPUS = [f"Rule {i} is about numbers. Rule {i} ends here." for i in range(40)]
ROWS = [{"question": str(i), "actual": [f"Rule {i} is about numbers."]} for i in range(40)]
SWEEP = """
corpus = ["one.txt", "rest.jsonl"]
questions = "questions.jsonl"
k = 1
metric = "recall@1"
n_resamples = 200
[splitters]
whole = "{module}:whole"
sentences = {{call = "{module}:sentences", ending = "."}}
[retrievers]
all = "{module}:make"
half = {{call = "{module}:make", first = 20}}
"""
pytestmark = pytest.mark.filterwarnings("ignore:.*No list is longer than")


@pytest.fixture
def file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Write a sweep with a module of its own, since modules stay imported."""
    module = f"rag_{abs(hash(request.node.nodeid))}"
    (tmp_path / f"{module}.py").write_text(MODULE, "utf-8")
    (tmp_path / "one.txt").write_text(CORPUS[0], "utf-8")
    (tmp_path / "rest.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in CORPUS[1:]))
    (tmp_path / "questions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in ROWS))
    path = tmp_path / "sweep.toml"
    path.write_text(SWEEP.format(module=module), "utf-8")
    return path


def expected():
    """Return the sweep as Python makes it, with functions of its own."""
    scope: dict = {}
    exec(MODULE, scope)
    return sweep(
        CORPUS,
        ROWS,
        {"whole": scope["whole"], "sentences": scope["sentences"]},
        {"all": scope["make"], "half": lambda chunks: scope["make"](chunks, first=20)},
        k=1,
        metric="recall@1",
        n_resamples=200,
        progress=False,
    )


def test_the_numbers_of_python(file: Path) -> None:
    """All of the table but the times, the choice, and the differences."""
    content = json.loads(run("sweep", file, "--format", "json").stdout)
    found = expected()
    assert (content["metric"], content["baseline"]) == ("macro_recall@1", "whole + all")
    table = found.table.drop(columns=["latency_p50", "pareto", "same_as"])
    for row, (name, numbers) in zip(content["cells"], table.iterrows(), strict=True):
        assert row["cell"] == name
        assert {key: row[key] for key in numbers.index} == numbers.to_dict()
    assert content["choice"]["cell"] == found.choice.name
    assert content["choice"]["overrated"] == found.choice.overrated
    assert [row["difference"] for row in content["differences"]] == [
        one.difference for one in found.comparison.differences
    ]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_what_is_printed(file: Path, language: str) -> None:
    """A column per cell, those on the front marked, and the summary in the language."""
    result = run("--lang", language, "sweep", file)
    assert result.exit_code == 0
    assert "all*" in result.stdout
    assert "macro_recall@1" in result.stdout
    told = expected().summary(language)
    assert "".join(told.splitlines()[0].split()) in "".join(result.stdout.split())


def test_outputs_and_the_folder(file: Path, tmp_path: Path) -> None:
    """A row per cell; a picture, a page; what was asked is kept where the option says."""
    kept, plot, page = (tmp_path / name for name in ("kept", "pareto.svg", "page.html"))
    options = ("--folder", kept, "--csv", "-", "--plot", plot, "--report", page)
    first = run("sweep", file, *options)
    rows = list(csv.DictReader(io.StringIO(first.stdout)))
    assert [row["cell"] for row in rows] == expected().table.index.tolist()
    assert [float(row["macro_recall@1"]) for row in rows] == [1, 0.5, 1, 0.5]
    assert plot.read_bytes().startswith(b"<?xml")
    assert "sentences + half" in page.read_text("utf-8")
    assert len(list(kept.glob("*/answers.jsonl"))) == 4
    assert run("sweep", file, *options).stdout == first.stdout  # latencies too: nothing was asked


def test_an_edited_argument_is_asked_anew(file: Path, tmp_path: Path) -> None:
    """In the same folder, under the same name; what is reused is said."""
    options = ("--folder", tmp_path / "kept", "--format", "json")
    recalls = []
    for first in (20, 30, 30):
        text = file.read_text("utf-8").replace("first = 20", f"first = {first}")
        file.write_text(text, "utf-8")
        done = run("sweep", file, *options)
        found = json.loads(done.stdout)
        recalls.append([found["reused"], found["asked"], found["cells"][1]["macro_recall@1"]])
    assert recalls == [[0, 160, 0.5], [80, 80, 0.25], [160, 0, 0.25]]
    assert "160 answers of" in done.stderr
    assert "160 answers of" in run("sweep", file, *options[:2]).stdout


def test_an_edited_function_is_asked_anew(file: Path, tmp_path: Path) -> None:
    """Not for a comment; the same for one that it calls."""
    (module,) = file.parent.glob("rag_*.py")
    code = module.read_text("utf-8")
    helped = code.replace("number >= first", "late_enough(number, first)")
    helper = "def late_enough(number, first):\n    return number >= first\n"
    versions = [code, "# A comment\n" + code, helped + helper, helped + helper.replace(">=", ">")]
    asked = []
    for version in versions:
        module.write_text(version, "utf-8")
        sys.modules.pop(module.stem, None)
        options = ("--folder", tmp_path / "kept", "--format", "json")
        asked.append(json.loads(run("sweep", file, *options).stdout)["asked"])
    assert asked == [160, 0, 160, 160]


def test_the_report_of_one_cell(file: Path, tmp_path: Path) -> None:
    """Is that of its result: there is nothing it could be compared with."""
    lines = file.read_text("utf-8").splitlines()
    kept = [one for one in lines if not one.startswith(("sentences", "half"))]
    file.write_text("\n".join(kept), "utf-8")
    page = tmp_path / "page.html"
    done = run("sweep", file, "--report", page, "--plot", tmp_path / "pareto.svg")
    assert done.exit_code == 0
    assert "1 cell over 40 questions." in done.stdout
    assert "matcher=coverage" in page.read_text("utf-8")


def test_a_folder_in_the_file_is_seen_from_it(file: Path) -> None:
    """Like all paths there."""
    file.write_text('folder = "kept"\n' + file.read_text("utf-8"), "utf-8")
    assert run("sweep", file).exit_code == 0
    assert len(list((file.parent / "kept").glob("*/answers.jsonl"))) == 4


def test_a_folder_that_is_typed_is_seen_from_here(
    file: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like all paths there, whatever the file says."""
    file.write_text('folder = "in-the-file"\n' + file.read_text("utf-8"), "utf-8")
    here = tmp_path_factory.mktemp("here")
    monkeypatch.chdir(here)
    assert run("sweep", file, "--folder", "kept").exit_code == 0
    assert len(list((here / "kept").glob("*/answers.jsonl"))) == 4
    assert not (file.parent / "kept").exists()
    assert not (file.parent / "in-the-file").exists()


def test_no_budgets(file: Path) -> None:
    """TOML has no word for nothing, so it is false."""
    file.write_text("budget = false\n" + file.read_text("utf-8"), "utf-8")
    (first, *_) = json.loads(run("sweep", file, "--format", "json").stdout)["cells"]
    assert "macro_recall@1" in first
    assert not [name for name in first if name.endswith("w")]


def test_a_baseline_as_a_pair(file: Path) -> None:
    """TOML has arrays where Python has tuples."""
    file.write_text('baseline = ["sentences", "half"]\n' + file.read_text("utf-8"), "utf-8")
    found = json.loads(run("sweep", file, "--format", "json").stdout)
    assert found["baseline"] == "sentences + half"


def test_a_retriever_that_is_offline_is_told_with_its_cell(file: Path) -> None:
    """Its words are those of the network, and say nothing of where."""
    (module,) = file.parent.glob("rag_*.py")
    offline = """
def offline(chunks):
    def found(question):
        raise ConnectionError("refused")
    return found
"""
    module.write_text(module.read_text("utf-8") + offline, "utf-8")
    text = file.read_text("utf-8")
    file.write_text(
        text.replace(f'\nall = "{module.stem}:make"', f'\nall = "{module.stem}:offline"')
    )
    done = run("sweep", file)
    assert done.exit_code == 2
    first, *notes = done.stderr.splitlines()
    assert first == "krag-eval: error: refused"
    assert [("'0'" in note, "whole + all" in note) for note in notes] == [
        (True, False), (False, True)
    ]  # fmt: skip


def test_corpus_and_questions_by_functions(file: Path) -> None:
    """For what no file holds as it is."""
    module = next(file.parent.glob("rag_*.py")).stem
    text = file.read_text("utf-8")
    text = text.replace('["one.txt", "rest.jsonl"]', f'{{call = "{module}:corpus"}}')
    text = text.replace('"questions.jsonl"', f'{{call = "{module}:questions"}}')
    file.write_text(text, "utf-8")
    content = json.loads(run("sweep", file, "--format", "json").stdout)
    assert [row["macro_recall@1"] for row in content["cells"]] == [1, 0.5, 1, 0.5]


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
    ],
)
def test_refusals_name_the_file(file: Path, old: str, new: str, told: str) -> None:
    """And what is wrong in it."""
    text = file.read_text("utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), "utf-8")
    message = refusal("sweep", file)
    assert str(file) in message or told.startswith("--")
    assert told in message


# What says that it was called.
RUN = "def f(*given, **named):\n    open('{}', 'w').close()\n    return ['text']\n"


def calling(file: Path, call: str) -> Path:
    """Let the corpus be made by a call."""
    text = file.read_text("utf-8")
    file.write_text(text.replace('["one.txt", "rest.jsonl"]', f'{{call = "{call}"}}'), "utf-8")
    return file


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
def test_a_file_names_functions_of_files_beside_it_alone(
    file: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data alone runs nothing: neither the function nor a module that is not allowed."""
    folder = file.parent / "here"
    folder.mkdir()
    there, ran = file.rename(folder / "sweep.toml"), file.parent / "run"
    monkeypatch.chdir(file.parent)
    code = RUN.format(ran) + f"open('{ran}', 'w').close()\n"
    for name in ("pack/__init__", "pack/inner", "folder/inner", "json", "click", "../above"):
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(code, "utf-8")
    (folder / "linked.py").symlink_to(file.parent / "above.py")
    (folder / "rag.py").write_text(
        "import os, subprocess as shell\nfrom subprocess import Popen, getoutput\n"
        "class Held: pass\nmade = Held()\nmade.run = getoutput\n"
        f"{RUN.format(ran)}_hidden = f\n"
        f"import functools, pathlib\nhere = pathlib.Path({str(ran)!r})\ntouch = here.touch\n"
        "renamed = functools.partial(touch)\ntwice = functools.partial(renamed)\n"
        "class Own(type(here)): pass\nown = Own(here).touch\n",
        "utf-8",
    )
    assert "corpus" in refusal("sweep", calling(there, call))
    assert not ran.exists()
    assert not (file.parent / "run.csv").exists()


def test_functions_of_other_modules_are_allowed_by_name(file: Path, tmp_path: Path) -> None:
    """A package, and what is in it; not what it imports."""
    pack = tmp_path / "allowed_pack"
    pack.mkdir()
    (pack / "__init__.py").write_text("import os\nfrom .inner import texts\n", "utf-8")
    (pack / "inner.py").write_text(f"def texts():\n    return {CORPUS!r}\n", "utf-8")
    whole = file.read_text("utf-8")
    for call in ("allowed_pack:texts", "allowed_pack.inner:texts"):
        file.write_text(whole, "utf-8")
        assert "--allow-module" in refusal("sweep", calling(file, call))
        assert run("sweep", file, "--allow-module", "allowed_pack").exit_code == 0
    file.write_text(whole, "utf-8")
    calling(file, "allowed_pack:os.getcwd")
    assert "os" in refusal("sweep", file, "--allow-module", "allowed_pack")
    assert str(tmp_path) not in sys.path


@pytest.mark.parametrize("call", ["kept", "bound", "Corpus", "made", "method"])
def test_what_a_file_makes_of_its_functions_is_its_own(file: Path, call: str) -> None:
    """Wrapped, bound, its classes and their objects."""
    module = next(file.parent.glob("rag_*.py"))
    more = """
import functools
kept, bound = functools.lru_cache(corpus), functools.partial(corpus)
class Corpus(list):
    def __init__(self): self += corpus()
    def __call__(self): return self
made = Corpus()
method = made.__call__
"""
    module.write_text(MODULE + more, "utf-8")
    assert run("sweep", calling(file, f"{module.stem}:{call}")).exit_code == 0


@pytest.mark.parametrize("returned", ["None", "3", "'text'", "{'a': 1}"])
def test_a_corpus_that_is_no_list_of_texts_names_the_file(file: Path, returned: str) -> None:
    module = next(file.parent.glob("rag_*.py"))
    module.write_text(f"{MODULE}\ndef other(): return {returned}\n", "utf-8")
    message = refusal("sweep", calling(file, f"{module.stem}:other"))
    assert str(file) in message
    assert "corpus" in message


def test_public_functions_of_ours(file: Path) -> None:
    """Need no leave."""
    text = file.read_text("utf-8").replace(
        '"questions.jsonl"',
        f"{{call = 'krag_eval:load_dataset', source = '{file.parent}/questions.jsonl'}}",
    )
    file.write_text(text, "utf-8")
    assert run("sweep", file).exit_code == 0


def test_processes_find_the_file_beside(file: Path) -> None:
    """As this one does."""
    command = [sys.executable, "-m", "krag_eval", "sweep", str(file), "--format", "json"]
    one, two = (
        subprocess.run([*command, *jobs], env=ENVIRONMENT, capture_output=True, check=True)
        for jobs in ([], ["--jobs", "2"])
    )
    values = [[cell["macro_recall@1"] for cell in json.loads(done.stdout)["cells"]]
              for done in (one, two)]  # fmt: skip
    assert values == [[1, 0.5, 1, 0.5]] * 2


@pytest.mark.skipif(os.name == "nt", reason="Windows has another way of interrupting a process")
@pytest.mark.parametrize("jobs", [[], ["--jobs", "2"]])
def test_an_interrupt_tells_what_is_kept(file: Path, tmp_path: Path, jobs: list[str]) -> None:
    """By whichever process asked: here the last 20 of 40 questions have no answer."""
    module = next(file.parent.glob("rag_*.py"))
    waiting = "        if number >= 20: import time; time.sleep(600)\n        return"
    module.write_text(MODULE.replace("        return [one for one in chunks", f"{waiting} [one for "
                                     "one in chunks"), "utf-8")  # fmt: skip
    kept = tmp_path / "kept"
    command = [sys.executable, "-m", "krag_eval", "sweep", str(file), "--folder", str(kept)]
    process = subprocess.Popen([*command, *jobs], env=ENVIRONMENT, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip

    def n_written() -> list[int]:
        return [one.read_bytes().count(b"\n") for one in kept.glob("*/answers.jsonl")]

    try:
        while sum(n >= 21 for n in n_written()) < (2 if jobs else 1):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    folders = [one.parent.name for one in kept.glob("*/answers.jsonl")]
    told = "".join(said.split())
    assert told.count("20of40answersarekept") == len(folders)
    assert all(one in told for one in folders)


def test_what_python_refuses_is_refused(file: Path) -> None:
    """With its words, and exit code 2."""
    file.write_text(file.read_text("utf-8").replace("recall@1", "recall@9"), "utf-8")
    assert "recall@9" in refusal("sweep", file)


def test_a_missing_file(tmp_path: Path) -> None:
    """Named."""
    assert "none.toml" in refusal("sweep", tmp_path / "none.toml")

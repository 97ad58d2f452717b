"""Writing files: what may be written where, and which file an error names."""

import errno
import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from cli_runs import ENVIRONMENT, invoked
from refusals import blamed

from krag_eval import OfflineRetrievalEvaluator, evaluate_file, evaluate_retriever, load_dataset
from krag_eval.core import check_apart, naming, replacing
from krag_eval.plotting import PLOT_FORMATS, save_plot

LINE = '{"question": "When?", "actual": ["a"], "predicted": ["a"]}\n'
on_posix = pytest.mark.skipif(os.name == "nt", reason="limits and links of POSIX")


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """Write a file of queries into a directory of its own."""
    path = tmp_path / "data" / "part.jsonl"
    path.parent.mkdir()
    path.write_text(LINE)
    return path


# --- what is read is not written -------------------------------------------------------------


def spellings(path: Path) -> dict[str, Path]:
    """Return other names of a file: links, a way round, and a way through a link."""
    hard, soft = path.with_name("hard"), path.parent.parent / "soft"
    around = path.parent.parent / "around"
    os.link(path, hard)
    soft.symlink_to(path)
    around.symlink_to(path.parent, target_is_directory=True)
    return {
        "itself": path,
        "hard link": hard,
        "symbolic link": soft,
        "through a link": around / path.name,
        "with dots": path.parent / ".." / path.parent.name / path.name,
    }


def are_refused(outputs, inputs, argument="json", **options):
    """Check that an output is refused, by its argument."""
    with blamed(argument) as caught:
        check_apart(outputs, inputs, **options)
    return str(caught.value)


@on_posix
@pytest.mark.parametrize(
    "name", ["itself", "hard link", "symbolic link", "through a link", "with dots"]
)
def test_whatever_it_is_called(queries, name):
    """One file among several; as the path that was read, and as the one to be written."""
    other = queries.parent.parent / "other"
    other.write_text("")
    named = spellings(queries)[name]
    for output, read in ((named, queries), (queries, named)):
        are_refused({"csv": other.with_name("new"), "json": output}, [other, read])


@on_posix
def test_a_file_that_a_directory_reaches_by_a_link(queries):
    """What is read is the file, wherever its link is."""
    folder = queries.parent.parent / "links"
    folder.mkdir()
    (folder / "part.jsonl").symlink_to(queries)
    assert "part.jsonl is among" in are_refused({"json": queries}, [folder])


def test_by_a_name_in_another_case(queries, monkeypatch):
    """Where the file system says that both are one."""
    real = os.stat
    loud = queries.with_name("PART.JSONL")
    monkeypatch.setattr(os, "stat", lambda path, **more: real(
        queries if os.fspath(path) == str(loud) else path, **more))  # fmt: skip
    assert "PART.JSONL is among" in are_refused({"json": loud}, [queries])


def test_a_new_file_in_a_directory_that_is_read(queries):
    """It would be read the next time, if its name is one of those that are."""
    folder, new = queries.parent, queries.with_name("new.json")
    endings = {"is_read": lambda name: name.endswith((".json", ".jsonl"))}
    assert "new.json would be among" in are_refused({"json": new}, [folder], **endings)
    check_apart({"plot": queries.with_name("chart.png")}, [folder], **endings)
    check_apart({"json": new}, [queries], **endings)  # the file alone is read


@on_posix
def test_two_outputs_in_one_file(queries):
    """There or not, and by whatever name."""
    new, named = queries.with_name("new"), spellings(queries)
    for one, other in (
        (new, new.parent / "." / "new"),
        (new, queries.parent.parent / "around" / "new"),
        (named["hard link"], queries),
        (named["symbolic link"], queries),
    ):
        assert "name a file of its own" in are_refused({"json": one, "csv": other}, [], "csv")
    check_apart({"json": new, "csv": queries}, [])


@pytest.mark.parametrize(("platform", "is_one"), [("darwin", True), ("linux", False)])
def test_two_new_outputs_whose_names_differ_by_case(tmp_path, monkeypatch, platform, is_one):
    """They are one file where file systems usually fold case."""
    monkeypatch.setattr(sys, "platform", platform)
    outputs = {"json": tmp_path / "Out", "csv": tmp_path / "out"}
    check = partial(are_refused, argument="csv") if is_one else check_apart
    check(outputs, [])


def test_the_directory_of_the_progress(tmp_path):
    """Neither another output nor the input may be in it."""
    folder = tmp_path / "rows.csv.partial"
    rows, within = {"per_query": tmp_path / "rows.csv"}, folder / "part-000000.csv"
    for outputs, inputs in (({**rows, "json": within}, []), (rows, [within]), (rows, [folder])):
        message = are_refused(outputs, inputs, "per_query", folders={"per_query": folder})
        assert "lies in" in message
    check_apart({**rows, "json": tmp_path / "a"}, [tmp_path], is_read=lambda name: False,
                folders={"per_query": folder})  # fmt: skip


@on_posix
def test_an_open_file_is_known_by_its_descriptor(queries, tmp_path):
    """As standard streams are; pipes and terminals may be read and written."""
    with queries.open("rb") as file:
        for output, read in ((queries, file.fileno()), (file.fileno(), queries)):
            are_refused({"json": output}, [read])
    read, write = os.pipe()
    check_apart({"json": write}, [write])
    os.close(read)
    os.close(write)


def test_what_is_not_there_is_not_read(tmp_path):
    """The reader says that it is missing."""
    check_apart({"json": tmp_path / "out"}, [tmp_path / "none", "a\0b"])


@on_posix
@pytest.mark.parametrize("name", ["hard link", "symbolic link", "through a link"])
def test_a_streamed_file_is_not_replaced_by_its_rows(queries, name):
    """Not through a link to a file of the directory, either."""
    source = queries.rename(queries.with_name("part.csv"))
    linked = queries.parent.parent / "in"
    linked.mkdir()
    (linked / "part.jsonl").symlink_to(source)
    named = spellings(source)[name]
    output = named if named.suffix else named.rename(named.with_name(f"{named.name}.csv"))
    for path in (linked, linked / "part.jsonl"):
        with pytest.raises(ValueError, match=r"^per_query: .* among the files"):
            evaluate_file(path, per_query=output, progress=False)
    assert source.read_text() == LINE


def test_a_result_does_not_overwrite_its_rows(queries):
    """Nor does its page."""
    rows = queries.parent.parent / "rows.csv"
    result = evaluate_file(queries, 5, per_query=rows, progress=False)
    before = rows.read_bytes()
    for write in (result.to_json, result.report):
        with pytest.raises(ValueError, match=r"^path: .*rows\.csv is among the files"):
            write(rows)
    assert rows.read_bytes() == before


# --- a disk that is full ---------------------------------------------------------------------


@contextmanager
def no_room(n_bytes=64):
    """Let no file grow beyond that, as on a full disk."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # What Python compiles meanwhile would be cut off as well, and found so by others.
    compiled, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        sys.dont_write_bytecode = compiled


def blamed_lack_of_room(write, path, named=None, n_bytes=64):
    """Check that the error names the file, and that nothing is left of it."""
    before = set(path.parent.rglob("*"))
    with pytest.raises(OSError, match=r"File too large|too large") as caught, no_room(n_bytes):
        write(path)
    assert caught.value.errno == errno.EFBIG
    assert caught.value.filename == str(named or path)
    return set(path.parent.rglob("*")) - before


@on_posix
@pytest.mark.parametrize("write", ["to_json", "report"])
def test_a_result(tmp_path, write):
    """Complete or not at all."""
    lists = [[f"a text of some length {i}"] for i in range(50)]
    result = OfflineRetrievalEvaluator(lists, lists).evaluate(5)
    assert blamed_lack_of_room(getattr(result, write), tmp_path / "out.html") == set()


@on_posix
@pytest.mark.parametrize("ending", PLOT_FORMATS)
def test_a_picture(tmp_path, ending):
    """In every format: matplotlib's PDF writer would end in an error of its own."""
    blamed_lack_of_room(lambda path: save_plot(path, lambda ax: None), tmp_path / f"a{ending}")


@on_posix
@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".csv", ".parquet"])
def test_a_data_set(tmp_path, ending):
    """In every format."""
    rows = [{"question": f"{i}?", "actual": [f"{i} a"], "predicted": [str(i)]} for i in range(99)]
    dataset = load_dataset(rows)
    assert blamed_lack_of_room(dataset.save, tmp_path / f"out{ending}") == set()


@on_posix
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_rows_as_they_come(tmp_path, ending):
    """The file that could not be written is the one of the progress."""
    queries = tmp_path / "queries.jsonl"
    queries.write_text(LINE * 99)
    out = tmp_path / f"rows{ending}"
    part = tmp_path / f"rows{ending}.partial" / f"part-000000{ending}"
    blamed_lack_of_room(
        lambda path: evaluate_file(queries, 5, per_query=path, progress=False), out, part
    )
    assert not out.exists()


@on_posix
@pytest.mark.parametrize("n_bytes", [64, 2000])
def test_a_checkpoint(tmp_path, n_bytes):
    """At its first line, or at that of an answer."""
    rows = [{"question": "When?", "actual": ["a"]}]
    path = tmp_path / "run.jsonl"

    def write(path):
        evaluate_retriever(lambda question: ["a" * 3000], rows, 1, checkpoint=path)

    blamed_lack_of_room(write, path, n_bytes=n_bytes)


def test_an_error_that_names_another_file_keeps_its_name(tmp_path):
    """And one without a number of the system keeps its words."""
    for error in (FileNotFoundError(2, "No such file", "other"), OSError("in our words")):
        with pytest.raises(OSError, match=r"other|in our words") as caught, naming(tmp_path):
            raise error
        assert caught.value is error


def test_a_temporary_file_is_called_by_the_name_of_the_file(tmp_path):
    """The kind of the error stays."""
    path = tmp_path / "out"
    with pytest.raises(PermissionError) as caught, replacing(path) as temporary:
        raise PermissionError(13, "Permission denied", str(temporary))
    assert (caught.value.filename, caught.value.errno) == (str(path), 13)
    assert list(tmp_path.iterdir()) == []


# --- who may read it -------------------------------------------------------------------------


def evaluation():
    """Return a result of two queries."""
    return OfflineRetrievalEvaluator([["a"], ["b"]], [["a"], ["c"]]).evaluate(1)


#: What writes a file, by the name of the file.
WRITERS = {
    "result.json": lambda path: evaluation().to_json(path),
    "report.html": lambda path: evaluation().report(path),
    "plot.png": lambda path: save_plot(path, lambda ax: None),
    "set.jsonl": lambda path: load_dataset([{"question": "A?", "actual": ["a"]}]).save(path),
    "diagnosis.json": lambda path: evaluation().diagnose().to_json(path),
    "rows.csv": lambda path: streamed(path),
    "rows.parquet": lambda path: streamed(path),
    "shell.csv": lambda path: invoked(*ARGUMENTS, "--csv", path),
    "shell.json": lambda path: invoked(*ARGUMENTS, "--json", path),
}
ARGUMENTS = ("evaluate", "queries.jsonl", "-k", 1)


def streamed(path):
    """Evaluate a file into a file of rows."""
    return evaluate_file("queries.jsonl", 5, per_query=path, progress=False)


@on_posix
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
@pytest.mark.parametrize("name", WRITERS)
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, monkeypatch, name, mode):
    """Whatever writes it, through a link too; a new file has those that new files have."""
    monkeypatch.chdir(tmp_path)
    Path("queries.jsonl").write_text(LINE)
    before = os.umask(0o022)
    try:
        WRITERS[name](Path(name))
        assert Path(name).stat().st_mode & 0o777 == 0o644
        size = Path(name).stat().st_size
        Path(name).write_text("")
        Path(name).chmod(mode)
        link = Path("link").with_suffix(Path(name).suffix)
        link.symlink_to(name)
        WRITERS[name](link)
    finally:
        os.umask(before)
    assert Path(name).stat().st_mode & 0o777 == mode
    assert abs(Path(name).stat().st_size - size) < 200  # written anew: names and moments differ


@on_posix
def test_the_progress_of_a_run_is_its_owners_alone(tmp_path, monkeypatch):
    """The rows of a file that others may not read stand there until it appears."""
    monkeypatch.chdir(tmp_path)
    Path("queries.jsonl").write_text(LINE + "not JSON\n")
    with pytest.raises(ValueError, match="not valid JSON"):
        evaluate_file("queries.jsonl", 1, per_query="rows.csv", chunk_size=1, progress=False)
    assert Path("rows.csv.partial").stat().st_mode & 0o777 == 0o700


# --- standard output by a name ---------------------------------------------------------------


# One after the other, in a process whose standard output is a pipe or a file of its own each time.
WRITE_EACH = """
import json, os, sys
from krag_eval.cli import main

for to in ("a pipe", "a file"):
    for line in json.loads(sys.argv[1]):
        reading, writing = os.pipe()
        file = os.open("out", os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        os.dup2(writing if to == "a pipe" else file, 1)
        os.close(writing)
        main(line, standalone_mode=False)
        sys.stdout.flush()
        os.dup2(2, 1)  # closes the pipe
        text = os.read(reading, 10**6) if to == "a pipe" else os.pread(file, 10**6, 0)
        print(json.dumps([to, *line[-2:], text.decode()]), file=sys.stderr)
        os.close(reading)
        os.close(file)
"""


@on_posix
def test_a_name_of_standard_output_is_standard_output(tmp_path):
    """What ``-`` writes, and nothing else on the same stream."""
    (tmp_path / "queries.jsonl").write_text(LINE)
    names = ["-", *filter(os.path.exists, ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])]
    lines = [
        [*map(str, ARGUMENTS), option, name] for option in ("--csv", "--json") for name in names
    ]
    command = [sys.executable, "-c", WRITE_EACH, json.dumps(lines)]
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, env=ENVIRONMENT, check=True)
    written = {}
    for line in done.stderr.decode().splitlines():
        if line.startswith("["):
            to, option, name, text = json.loads(line)
            written[to, option, name] = re.sub(r'"made":.*', "", text)
    assert len(written) == 2 * len(lines)
    for (to, option, name), text in written.items():
        assert text == written[to, option, "-"] != "", (to, option, name)


@on_posix
@pytest.mark.parametrize(
    ("option", "ending"), [("--csv", ""), ("--json", ""), ("--report", ".html"), ("--plot", ".png")]
)
def test_another_pipe_is_refused(tmp_path, monkeypatch, option, ending):
    """Before anything is read: half of a text could be in it when an error comes."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo(f"pipe{ending}")
    ended = invoked("evaluate", "none.jsonl", option, f"pipe{ending}")
    assert ended.exit_code == 2
    assert f"error: {option}: pipe{ending} is not a regular file" in ended.stderr


@on_posix
def test_an_open_pipe_is_refused_by_its_name():
    """Its real path is no path."""
    read, write = os.pipe()
    try:
        with pytest.raises(OSError, match="not a regular file"):
            evaluation().to_json(f"/dev/fd/{write}")
    finally:
        os.close(read)
        os.close(write)

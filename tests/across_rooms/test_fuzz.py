"""A short run of the fuzz targets: any input is accepted, or refused with one of our errors."""

import copy
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import click
import fuzz_targets
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from krag_eval import METRICS, Conventions
from krag_eval.cli import main

bounded = settings(
    max_examples=int(os.environ.get("KRAG_EVAL_FUZZ_EXAMPLES", "120")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
pytestmark = pytest.mark.filterwarnings("ignore::krag_eval.KragEvalWarning")

# Pieces of what is valid, so that input gets past the first check, among anything at all.
fields = Conventions.allowed()
VALID = [
    *fields, *(value for values in fields.values() for value in values), *METRICS,
    *Conventions.presets(), "mrr", "micro_recall", "mean_rank", "rejection_rate",
]  # fmt: skip
ODD = [
    "=", ",", "@", "@@", " ", "\n", "\0", "all", "5", "05", "+5", "5.0", "-1", "0", "9" * 30, "٣",
    "²", "nan", "inf", "-inf", "1e400", "1_0", "0x1", "0.5", "\ud800", "None", "{}", "%s",
]  # fmt: skip
pieces = st.sampled_from(VALID) | st.sampled_from(ODD)
texts = st.lists(st.one_of(pieces, st.text(max_size=5)), max_size=8).map("".join) | st.text()
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts
    | st.sampled_from([-1, 0, 2**31, 2**62, 2**63, 2**64, 10**30, 1e308, "", "all", "nan"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@contextmanager
def folder():
    """A folder of its own for every example."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


records = st.lists(st.sampled_from([
    b'{"question": "?", "actual": ["a"], "predicted": ["b", "a"]}', b"question,actual,predicted",
    b"?,['a'],\"['b']\"", b"1 Q0 d 1 0.5 x", b"1 0 d 1", b"\x1f\x8b\x08", b"PAR1", b"\n", b"\r\n",
    b"\0", b"\xff", b"[", b"{", b'"', b"'", b"\xef\xbb\xbf", b"nan", b"1e999", b"9" * 5000,
]) | st.binary(max_size=20), max_size=8).map(b"".join)  # fmt: skip


@bounded
@given(st.sampled_from(sorted(fuzz_targets.READERS)), records)
def test_readers(kind, data):
    """A file of any kind, read or refused on one line."""
    fuzz_targets.reader(kind, data)


every_text = pytest.mark.parametrize(
    "target", [fuzz_targets.conventions, fuzz_targets.metric_name, fuzz_targets.floor]
)


@every_text
@bounded
@given(text=texts)
def test_texts(target, text):
    """Read back, in the one spelling, checked, or refused."""
    target(text)


@every_text
@pytest.mark.parametrize("text", ["x" * 10**6, "@" * 10**5, "mrr@" + "9" * 10**5, "a=" * 10**5])
def test_refusals_of_long_texts_are_short(target, text):
    """A message shows the beginning of what came."""
    target(text)
    target(f"{text}@5=0.5")


@bounded
@given(st.one_of(json_values, st.lists(json_values), st.binary()))
def test_cutoffs(value):
    """Whole numbers from 1, or refused."""
    fuzz_targets.cutoffs(value)


def places_in(content, path=()):
    """Return the way to every value in nested lists and dicts."""
    if not isinstance(content, dict | list):
        return [path]
    inner = content.items() if isinstance(content, dict) else enumerate(content)
    found = [one for key, value in inner for one in places_in(value, (*path, key))]
    return [path, *found] if path else found


with folder() as made:
    SAVED = fuzz_targets.saved_example(made)
    IN_PARTS = fuzz_targets.saved_example_in_parts(made)


def tampered(draw, example):
    """Return a saved result in which values were replaced, removed, repeated or moved."""
    content, places = copy.deepcopy(example), places_in(example)
    for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=3)):
        holder = content
        try:
            for key in place[:-1]:
                holder = holder[key]
            value = holder[place[-1]]
        except (KeyError, IndexError, TypeError):
            continue  # gone with an earlier change
        if not isinstance(holder, dict | list):
            continue  # a text, since an earlier change: it cannot be changed in place
        change = draw(st.sampled_from(["replace", "remove", "repeat", "borrow"]))
        if change == "remove":
            del holder[place[-1]]
        elif change == "repeat" and isinstance(value, list):
            holder[place[-1]] = value * 2
        elif change == "borrow":
            other = example
            for key in draw(st.sampled_from(places)):
                other = other[key]
            holder[place[-1]] = copy.deepcopy(other)
        else:
            holder[place[-1]] = draw(json_values)
    return content


@bounded
@given(data=st.data())
def test_shapes_that_somebody_changed(data):
    """Records of any tool, read or refused, with ground truth and as a run."""
    rows = tampered(data.draw, data.draw(st.sampled_from(fuzz_targets.SHAPES)))
    fuzz_targets.shape(rows if all(isinstance(one, dict) for one in rows) else [])


@pytest.mark.parametrize("example", [SAVED, IN_PARTS], ids=["whole", "rows beside it"])
@bounded
@given(data=st.data())
def test_saved_results_that_somebody_changed(example, data):
    """Even where the checksum was made to fit: whole, or refused; also without its rows."""
    with folder() as made:
        fuzz_targets.saved_content(tampered(data.draw, example), made)


@bounded
@given(st.data())
def test_saved_results_that_were_damaged(data):
    """Bytes cut out, inserted or replaced anywhere."""
    whole = json.dumps(SAVED, ensure_ascii=False).encode()
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, min(len(whole), start + 40)))
    damaged = whole[:start] + data.draw(st.binary(max_size=20)) + whole[stop:]
    with folder() as made:
        fuzz_targets.saved_bytes(damaged, made)


COMMANDS = {
    name: command for name, command in main.commands.items() if isinstance(command, click.Command)
}
# Drawing takes seconds, and has tests of its own.
DRAWING = {"--plot", "--report"}
FILES = [
    "a.jsonl", "saved.json", "other.json", "qrels.txt", "one.run", "missing.jsonl", "", ".", "-",
    "out.json", "out.csv", "out.txt", "out", "new/out.csv", "\udc80.csv", "x" * 300, "--", "-k",
    "~", "CON", "out.json/", "a.jsonl/out.csv", "한글.csv", "🙂.json",
]  # fmt: skip
names_of_files = st.sampled_from(FILES)


def values_of(parameter):
    """Draw values for a parameter: now and then one it allows, else anything."""
    allowed = getattr(parameter.type, "choices", None)
    strategies = [texts, names_of_files]
    if allowed:
        strategies.append(st.sampled_from([str(one) for one in allowed]))
    if parameter.type.name in ("float", "integer"):
        strategies.append(st.floats().map(str) | st.integers().map(str))
    return st.one_of(strategies)


@st.composite
def command_lines(draw):
    """A command with arguments and options it knows, and values it may not."""
    name = draw(st.sampled_from([*COMMANDS, "demo", "nothing"]))
    command = COMMANDS.get(name)
    line = [name]
    parameters = command.params if command else []
    options = [one for one in parameters if isinstance(one, click.Option)]
    for parameter in draw(st.lists(st.sampled_from(options), max_size=4)) if options else []:
        option = draw(st.sampled_from(parameter.opts))
        if option in DRAWING:
            continue
        if parameter.is_flag:
            line.append(option)
        else:
            value = draw(values_of(parameter))
            line += [f"{option}={value}"] if option.startswith("--") else [option, value]
    line += draw(st.lists(names_of_files, max_size=3))
    return [one for one in line if "--plot" not in one and "--report=" not in one]


@pytest.fixture(scope="module")
def inputs():
    """Files that commands can read, by name."""
    with folder() as made:
        small = fuzz_targets.small_result()
        small.to_json(made / "saved.json")
        small.to_json(made / "other.json", texts=True)
        fuzz_targets.write_sample(made / "a.jsonl")
        (made / "qrels.txt").write_text("1 0 a 1\n1 0 b 2\n2 0 c 1\n", "utf-8")
        (made / "one.run").write_text("1 Q0 a 1 0.9 x\n1 Q0 z 2 0.5 x\n2 Q0 c 1 0.1 x\n", "utf-8")
        return {path.name: path.read_bytes() for path in made.iterdir()}


@bounded
@given(command_lines())
def test_command_lines(inputs, line):
    """Exit code 0, 1 or 2, never a traceback, nothing written but what was named."""
    before = Path.cwd()
    with folder() as made:
        for name, content in inputs.items():
            (made / name).write_bytes(content)
        os.chdir(made)
        try:
            fuzz_targets.command_line(line, made)
        finally:
            os.chdir(before)

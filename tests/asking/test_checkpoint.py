"""The checkpoint: what is kept, what is asked again, and what is refused."""

import asyncio
import datetime
import json
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from killing import kill_often
from langchain_core.documents import Document
from langchain_core.runnables import RunnableParallel
from places import ROOT
from retriever_samples import (
    AsyncNumbered,
    Numbered,
    passage,
    question,
    ranks,
    rows,
    vector_retriever,
)
from trials import trials

from krag_eval import KragEvalWarning, aevaluate_retriever, evaluate_retriever
from krag_eval.asking.checkpoint import Checkpoint, purpose_of
from krag_eval.errors import DatasetError, InvalidInput, InvalidType


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.jsonl"


def kept(path, retriever=None, n=5, k=1, **options):
    """Evaluate a retriever, with a checkpoint."""
    return evaluate_retriever(
        retriever or Numbered(), options.pop("dataset", rows(n)), k, checkpoint=path, **options
    )


def lines(path):
    """Return what stands in a checkpoint: its header, and its answers by query."""
    header, *answers = map(json.loads, path.read_text("utf-8").splitlines())
    return header, {answer["query"]: answer for answer in answers}


def test_every_answer_is_a_line(path):
    """Under one header; a finished run asks nothing, whatever it is evaluated with."""
    result = kept(path)
    header, answers = lines(path)
    assert header["format"] == "krag_eval.checkpoint"
    assert sorted(answers) == [0, 1, 2, 3, 4]
    found = {"page_content": passage(3), "metadata": {"number": 3}, "id": None}
    assert answers[3]["documents"][0] == found
    assert [answers[i]["seconds"] for i in range(5)] == result.retrieval.seconds.tolist()
    retriever, dataset = Numbered(), [{**row, "actual": ["fact"]} for row in rows(5)]
    assert kept(path, retriever, k=2, dataset=dataset, matcher="contains")["hit_rate@2"] == 1
    assert retriever.asked == []


@pytest.mark.parametrize("way", ["sync", "async"])
def test_what_is_in_the_file_is_not_asked_again(path, way):
    """Result and latency are those of the first run."""
    first = kept(path, n=20)
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(content[:-4]))
    left = {json.loads(line)["query"] for line in content[-4:]}
    retriever = Numbered()
    if way == "sync":
        second = kept(path, retriever, n=20)
    else:
        second = asyncio.run(aevaluate_retriever(retriever, rows(20), 1, checkpoint=path))
    assert set(retriever.asked) == left
    assert second == first
    same = [i for i in range(20) if i not in left]
    assert (second.retrieval.seconds == first.retrieval.seconds)[same].all()


def test_a_file_torn_anywhere_is_recovered_from(path):
    """Whatever a kill left of it, down to nothing: each query once, the result the same."""
    whole = kept(path, n=3)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert kept(path, n=3) == whole
        assert sorted(lines(path)[1]) == [0, 1, 2]
        assert path.read_bytes().count(b"\n") == 4


def test_killed_runs_resume():
    """Four kills at random moments; ``killing.py`` does so as often as one likes."""
    assert kill_often(4, seed=1) >= 1


def test_an_interrupt_loses_nothing(path):
    """And says how to go on."""

    def interrupted(asked):
        if asked == question(4):
            raise KeyboardInterrupt
        return [passage(0)]

    with pytest.raises(KeyboardInterrupt) as caught:
        kept(path, interrupted, n=6, max_concurrency=1)
    n_kept = len(lines(path)[1])
    assert n_kept >= 4
    assert f"{n_kept} of 6 answers are kept in" in caught.value.__notes__[-1]
    assert "the same call resumes there" in caught.value.__notes__[-1]


def test_failed_queries_are_asked_again(path):
    """They are not in the file, whether the run went on or ended there."""
    failing = Numbered(fails_on=frozenset({3}))
    with pytest.raises(ConnectionError) as caught:
        kept(path, failing, max_concurrency=1, on_error="raise")
    assert sorted(lines(path)[1]) == [0, 1, 2]
    assert "3 of 5 answers are kept" in "".join(caught.value.__notes__)
    with pytest.warns(KragEvalWarning, match="1 of 5 queries failed"):
        kept(path, failing, on_error="record")
    retriever = Numbered()
    assert ranks(kept(path, retriever)) == [1] * 5
    assert retriever.asked == [3]


def test_a_retry_goes_into_the_checkpoint(path):
    """So do answers it lost, should the file have been deleted meanwhile."""
    retriever = Numbered(fails_on=frozenset({3}))
    with pytest.warns(KragEvalWarning, match="failed"):
        result = kept(path, retriever, on_error="record")
    retriever.fails_on = frozenset()
    path.unlink()
    assert ranks(result.retry_failed()) == [1] * 5
    assert sorted(lines(path)[1]) == [0, 1, 2, 3, 4]


def test_repeated_questions_are_kept_apart(path):
    """They are known by position."""
    with pytest.warns(KragEvalWarning, match="labelled by their positions"):
        kept(path, dataset=rows(1) * 3)
    assert sorted(lines(path)[1]) == [0, 1, 2]


# Made for something else


class Timed(Numbered):
    """A retriever with a setting that changes no answer."""

    timeout: float = 1.0


@pytest.mark.parametrize(
    ("made", "asked", "options", "message", "key_helps"),
    [
        (Numbered(), Numbered(), {"n": 4}, "questions=5, not 4", False),
        (Timed(), Timed(timeout=2.0), {"n": 4}, "questions=5, not 4", False),
        (Numbered(), Numbered(), {"dataset": rows(5)[::-1]},
         "other questions, or the same in another order", False),
        (Numbered(), Numbered(), {"output_key": "docs"}, "output_key=None, not 'docs'", False),
        (Numbered(), Numbered(), {"input_key": "query"}, "input_key=None, not 'query'", False),
        (Numbered(), AsyncNumbered(), {}, "retriever.name='Numbered', not 'AsyncNumbered'", False),
        (Numbered(), Numbered(repeats=2), {}, "retriever.repeats=1, not 2", True),
        (Timed(), Timed(timeout=60.0), {}, "retriever.timeout=1.0, not 60.0", True),
        # Among the settings of a vector store.
        (vector_retriever(["a"]), vector_retriever(["a"], k=5), {}, "search_kwargs.k=3, not 5",
         True),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:.*matched nothing")
def test_a_checkpoint_made_for_something_else_is_refused(
    path, made, asked, options, message, key_helps
):
    """Saying what differs; nothing is asked, and the file stays as it is."""
    kept(path, made)
    before = path.read_bytes()
    with pytest.raises(InvalidInput) as caught:
        kept(path, asked, **options)
    assert caught.value.argument == "checkpoint"
    assert message in caught.value.problem
    assert "name another file" in str(caught.value.fix)
    assert ("checkpoint_key" in str(caught.value.fix)) is key_helps
    assert path.read_bytes() == before
    assert getattr(asked, "asked", []) == []


@pytest.mark.parametrize(
    "content",
    [
        b"precious",
        b"precious\n",
        b'{"format": "other"}\n',
        b'["krag_eval.checkpoint"]\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"format":"krag_eval.checkpoint","format_version":2}\n',
        b'{"format":"krag_eval.checkpoint","format_version":1}',
    ],
)
def test_a_file_of_somebody_else_is_left_as_it_is(path, content):
    """Also if it has a single line without an end, as a torn header would."""
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        kept(path)
    assert (caught.value.argument, caught.value.fix) == ("checkpoint", "name another file")
    assert path.read_bytes() == content


def answer(query="1", seconds="0.1", documents="[]"):
    return f'{{"query":{query},"seconds":{seconds},"documents":{documents}}}'


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "null",
        "{}",
        answer(query="9"),
        answer(query="true"),
        answer(query="0"),  # a second time
        answer(seconds="-1.0"),
        answer(seconds="null"),
        answer(documents='[{"page_content":3,"metadata":{},"id":null}]'),
        answer(documents='[{"page_content":"","metadata":{"a":{"~":"eval","value":"1"}}}]'),
    ],
)
def test_a_damaged_line_is_refused_by_its_number(path, line):
    """It is not the end of a killed run; the file stays as it is."""
    kept(path, n=2, max_concurrency=1)
    header, first, _ = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(f"{header}{first}{line}\n", "utf-8")
    before = path.read_bytes()
    with pytest.raises(DatasetError) as caught:
        kept(path, n=2)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert "delete the line" in str(caught.value.fix)
    assert path.read_bytes() == before


HOLDING = """
import sys
from krag_eval.asking.checkpoint import Journal
from krag_eval.core.files import Purpose
held = Journal(sys.argv[1], Purpose("checkpoint", "other", 1, {}, ""))
print("held", flush=True)
sys.stdin.read()
"""


def test_two_runs_on_one_file_are_refused(path):
    """Of two processes, and of one."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [sys.executable, "-c", HOLDING, str(path)]
    with subprocess.Popen(command, **pipes, cwd=ROOT) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OSError, match="is in use by another run; wait for it"):
            kept(path)
        holder.stdin.close()
    path.unlink()
    with pytest.raises(OSError, match="in use by another run"):
        kept(path, lambda asked: kept(path, n=1), n=1)


# Documents


METADATA = {
    "number": 3,
    "share": 0.1,
    "nothing": None,
    "yes": True,
    "list": [1, [2, "three"]],
    "page": (1, 2),
    "when": datetime.datetime(2024, 2, 29, 12, 30, 1, 7, tzinfo=datetime.UTC),
    "day": datetime.date(2024, 2, 29),
    "time": datetime.time(9, 0),
    "price": Decimal("1.10"),
    "uuid": UUID(int=7),
    "raw": b"\x00\xff",
    "tags": {"a", "b"},
    "frozen": frozenset({1}),
    "infinite": float("inf"),
    "~": "a key like our tag",
    "inner": {"deep": {1: "a key that is a number", ("a", 1): 2}},
}
OLD_LINE = (
    '{"query":0,"seconds":0.25,"documents":[{"page_content":"x","metadata":{"page":{"~":"tuple",'
    '"value":[1,2]},"when":{"~":"datetime","value":"2024-02-29T12:30:01.000007+00:00"},"price":'
    '{"~":"decimal","value":"1.10"},"raw":{"~":"bytes","value":"AP8="},"infinite":{"~":"float",'
    '"value":"inf"},"inner":{"deep":{"~":"dict","value":[[1,"a key that is a number"],[{"~":'
    '"tuple","value":["a",1]},2]]}}},"id":null}]}'
)
KEYS = {"input_key": None, "output_key": None}


def through_a_file(path, metadata):
    """Return a document's metadata as a second run finds it in the checkpoint of the first."""
    document, purpose = Document("x", metadata=metadata, id="7"), purpose_of(Numbered(), KEYS, "q")
    path.unlink(missing_ok=True)
    first = Checkpoint(path, purpose)
    first.append(0, [document], 0.5)
    first.close()
    second = Checkpoint(path, purpose)
    second.close()
    (((read,), seconds),) = second.answers.values()
    assert (read.page_content, read.id, seconds) == ("x", "7", 0.5)
    return read.metadata


def test_metadata_comes_back_the_same(path):
    """Of every kind that has a spelling, by value and by type; numpy's numbers as Python's."""
    read = through_a_file(path, METADATA)
    assert read == METADATA
    assert repr(read) == repr({**METADATA, "tags": read["tags"]})
    numbers = {"score": np.float32(0.1), "rank": np.int64(3)}  # as rerankers leave them
    assert through_a_file(path, numbers) == {"score": float(np.float32(0.1)), "rank": 3}


def test_a_line_of_version_0_1_is_read(path):
    """As it was written there, letter by letter."""
    kept(path, n=1)
    header = path.read_text("utf-8").splitlines()[0]
    path.write_text(f"{header}\n{OLD_LINE}\n", "utf-8")
    checkpoint = Checkpoint(path, purpose_of(Numbered(), KEYS, [question(0)]))
    checkpoint.close()
    old = {name: METADATA[name] for name in ("page", "when", "price", "raw", "infinite", "inner")}
    assert checkpoint.answers == {0: ([Document("x", metadata=old)], 0.25)}
    assert header.startswith(
        '{"format":"krag_eval.checkpoint","format_version":1,"questions":1,"fingerprint":"'
    )
    assert header.endswith(
        '","input_key":null,"output_key":null,"retriever":{"name":"Numbered","seconds":0.0,'
        '"repeats":1}}'
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.just("~") | st.integers(), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@settings(max_examples=trials(100))
@given(st.dictionaries(st.text(max_size=3) | st.just("~"), VALUES, max_size=3))
def test_any_metadata_of_plain_values_comes_back_the_same(metadata):
    """Whatever their nesting."""
    with tempfile.TemporaryDirectory() as folder:
        assert repr(through_a_file(Path(folder, "run.jsonl"), metadata)) == repr(metadata)


class Owner:
    """Something that has no form in a file."""


class Pair(NamedTuple):
    """A tuple that would come back as another type."""

    a: int


CIRCLE: list = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("on_error", ["raise", "record"])
@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"fine": 1, "owner": [Owner()]}, r"metadata holds a .*Owner"),
        ({"pair": {"of": Pair(1)}}, r"metadata holds a .*Pair"),
        ({"loop": CIRCLE}, "nested too deeply or holds itself"),
    ],
)
def test_metadata_that_would_not_come_back_is_refused(path, metadata, message, on_error):
    """It ends the run, whatever on_error says: the query did not fail."""
    retriever = lambda q: [Document(passage(0), metadata=metadata)]  # noqa: E731
    with pytest.raises(InvalidType, match=f"document \\[0\\] cannot be kept .*{message}"):
        kept(path, retriever, n=2, on_error=on_error)
    assert ranks(evaluate_retriever(retriever, rows(1), 1)) == [1]


@pytest.mark.parametrize("text", ["한국어 문서", "half \ud83d", "line\nend\u2028\r\x00"])
def test_any_text_is_kept(path, text):
    """As a string, in a dict and in a document, and in the question."""
    dataset = [{"question": text + "?", "actual": [text]}]
    found = [text, {"page_content": text, "id": 3}, Document(text)]
    chain = RunnableParallel(context=lambda asked: found)
    for _ in range(2):
        result = kept(path, chain, dataset=dataset, output_key="context")
        assert list(result.evidence.texts.predicted(0)) == [text] * 3


# --- checkpoint_key ----------------------------------------------------------------------------


def test_settings_do_not_matter_where_a_key_identifies_the_retriever(path):
    """A mended timeout costs no answer, at either door."""
    first = kept(path, Timed(), checkpoint_key="May")
    assert lines(path)[0]["checkpoint_key"] == "May"
    retriever = Timed(timeout=60.0)
    soon = aevaluate_retriever(retriever, rows(5), 1, checkpoint=path, checkpoint_key="May")
    assert kept(path, retriever, checkpoint_key="May") == asyncio.run(soon) == first
    assert retriever.asked == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"checkpoint_key": "June"}, "checkpoint_key='May'"),
        ({}, "checkpoint_key='May'"),
        ({"checkpoint_key": "May", "n": 3}, "questions=5, not 3"),
    ],
)
def test_a_checkpoint_of_another_key_is_refused(path, options, message):
    """Of none, too, whatever the settings are; so are other questions, whatever the key."""
    kept(path, Timed(), checkpoint_key="May")
    retriever, content = Timed(), path.read_bytes()
    with pytest.raises(ValueError, match=message):
        kept(path, retriever, **options)
    assert (retriever.asked, path.read_bytes()) == ([], content)


def test_a_key_that_is_given_later_is_believed_with_a_warning(path):
    """It says what differs, and on whose word; a retriever of another name is refused."""
    first, retriever = kept(path, Timed()), Timed(timeout=60.0)
    with pytest.warns(KragEvalWarning, match=r"timeout=1.0, not 60.0.*'May'"):
        assert kept(path, retriever, checkpoint_key="May") == first
    assert retriever.asked == []
    with pytest.raises(InvalidInput, match="retriever='Timed', not 'Numbered'") as caught:
        kept(path, checkpoint_key="May")
    assert "checkpoint_key" not in str(caught.value)

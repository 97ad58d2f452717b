"""The checkpoint: what is kept, what is asked again, and what is refused."""

from __future__ import annotations

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
from retriever_samples import AsyncNumbered, Numbered, passage, question, rows, vector_retriever

from krag_eval import KragEvalWarning, aevaluate_retriever, evaluate_retriever
from krag_eval.errors import DatasetError, InvalidInput, InvalidType
from krag_eval.retrievers.asking import Call
from krag_eval.retrievers.checkpoint import Checkpoint, purpose_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.jsonl"


def lines(path):
    """Return what stands in a checkpoint: its header, and its answers by query."""
    header, *answers = map(json.loads, path.read_text("utf-8").splitlines())
    return header, {answer["query"]: answer for answer in answers}


def test_every_answer_is_a_line(path):
    """In the order they came; under one header."""
    result = evaluate_retriever(Numbered(), rows(5), 1, checkpoint=path)
    header, answers = lines(path)
    assert header["format"] == "krag_eval.checkpoint"
    assert sorted(answers) == [0, 1, 2, 3, 4]
    assert answers[3]["documents"][0] == {
        "page_content": passage(3),
        "metadata": {"number": 3},
        "id": None,
    }
    assert [answers[i]["seconds"] for i in range(5)] == result.retrieval.seconds.tolist()


@pytest.mark.parametrize("way", ["sync", "async"])
def test_what_is_in_the_file_is_not_asked_again(path, way):
    """Result and latency are those of the first run."""
    first = evaluate_retriever(Numbered(), rows(20), 1, checkpoint=path)
    content = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(content[:-4]))
    left = {json.loads(line)["query"] for line in content[-4:]}
    retriever = Numbered()
    if way == "sync":
        second = evaluate_retriever(retriever, rows(20), 1, checkpoint=path)
    else:
        second = asyncio.run(aevaluate_retriever(retriever, rows(20), 1, checkpoint=path))
    assert set(retriever.asked) == left
    assert second == first
    same = [i for i in range(20) if i not in left]
    assert (second.retrieval.seconds == first.retrieval.seconds)[same].all()


def test_a_finished_run_asks_nothing(path):
    """Other cutoffs, matchers and ground truth are evaluated from the same answers."""
    evaluate_retriever(Numbered(), rows(5), 1, checkpoint=path)
    retriever, dataset = Numbered(), [{**row, "actual": ["fact"]} for row in rows(5)]
    result = evaluate_retriever(retriever, dataset, 2, "contains", checkpoint=path)
    assert retriever.asked == []
    assert result.to_dict()["hit_rate@2"] == 1


def test_a_file_torn_anywhere_is_recovered_from(path):
    """Whatever a kill left of it, down to nothing: each query once, the result the same."""
    whole = evaluate_retriever(Numbered(), rows(3), 1, checkpoint=path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert evaluate_retriever(Numbered(), rows(3), 1, checkpoint=path) == whole
        assert sorted(lines(path)[1]) == [0, 1, 2]
        assert path.read_bytes().count(b"\n") == 4


def test_killed_runs_resume():
    """Four kills at random moments; ``killing.py`` does so as often as one likes."""
    assert kill_often(4, seed=1)[0] >= 1


def test_an_interrupt_loses_nothing(path):
    """And says how to go on."""

    def interrupted(asked):
        if asked == question(4):
            raise KeyboardInterrupt
        return [passage(0)]

    with pytest.raises(KeyboardInterrupt) as caught:
        evaluate_retriever(interrupted, rows(6), 1, checkpoint=path, max_concurrency=1)
    n_kept = len(lines(path)[1])
    assert n_kept >= 4
    assert f"{n_kept} of 6 answers are kept in" in caught.value.__notes__[-1]
    assert "the same call resumes there" in caught.value.__notes__[-1]


def test_failed_queries_are_asked_again(path):
    """They are not in the file, whether the run went on or ended there."""
    with pytest.raises(ConnectionError) as caught:
        evaluate_retriever(
            Numbered(fails_on=frozenset({3})),
            rows(5),
            1,
            checkpoint=path,
            max_concurrency=1,
            on_error="raise",
        )
    assert sorted(lines(path)[1]) == [0, 1, 2]
    assert "3 of 5 answers are kept" in "".join(caught.value.__notes__)
    with pytest.warns(KragEvalWarning, match="1 of 5 queries failed"):
        evaluate_retriever(
            Numbered(fails_on=frozenset({3})), rows(5), 1, checkpoint=path, on_error="record"
        )
    retriever = Numbered()
    assert evaluate_retriever(retriever, rows(5), 1, checkpoint=path).to_dict()["hit_rate@1"] == 1
    assert retriever.asked == [3]


def test_a_retry_goes_into_the_checkpoint(path):
    """So do answers it lost, should the file have been deleted meanwhile."""
    retriever = Numbered(fails_on=frozenset({3}))
    with pytest.warns(KragEvalWarning, match="failed"):
        result = evaluate_retriever(retriever, rows(5), 1, checkpoint=path, on_error="record")
    retriever.fails_on = frozenset()
    path.unlink()
    assert result.retry_failed().to_dict()["hit_rate@1"] == 1
    assert sorted(lines(path)[1]) == [0, 1, 2, 3, 4]


def test_repeated_questions_are_kept_apart(path):
    """They are known by position."""
    dataset = [rows(1)[0]] * 3
    with pytest.warns(KragEvalWarning, match="labelled by their positions"):
        evaluate_retriever(Numbered(), dataset, 1, checkpoint=path)
    assert sorted(lines(path)[1]) == [0, 1, 2]


# Made for something else


@pytest.mark.parametrize(
    ("retriever", "dataset", "options", "message"),
    [
        (Numbered(), rows(4), {}, "questions=5, not 4"),
        (Numbered(), rows(5)[::-1], {}, "other questions, or the same in another order"),
        (Numbered(), rows(5), {"output_key": "context"}, "output_key=None, not 'context'"),
        (Numbered(), rows(5), {"input_key": "query"}, "input_key=None, not 'query'"),
        (AsyncNumbered(), rows(5), {}, "retriever.name='Numbered', not 'AsyncNumbered'"),
        (Numbered(repeats=2), rows(5), {}, "retriever.repeats=1, not 2"),
    ],
)
def test_a_checkpoint_made_for_something_else_is_refused(
    path, retriever, dataset, options, message
):
    """Saying what differs; nothing is asked, and the file stays as it is."""
    evaluate_retriever(Numbered(), rows(5), 1, checkpoint=path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput) as caught:
        evaluate_retriever(retriever, dataset, 1, checkpoint=path, **options)
    assert caught.value.argument == "checkpoint"
    assert message in caught.value.problem
    assert "name another file" in str(caught.value.fix)
    assert path.read_bytes() == before
    if hasattr(retriever, "asked"):
        assert retriever.asked == []


def test_another_number_of_documents_is_another_retriever(path):
    """``search_kwargs`` of a vector store are among its settings."""
    texts = [passage(0), passage(1)]
    evaluate_retriever(vector_retriever(texts, k=3), rows(2), 1, checkpoint=path)
    with pytest.raises(InvalidInput, match=r"search_kwargs\.k=3, not 5"):
        evaluate_retriever(vector_retriever(texts, k=5), rows(2), 1, checkpoint=path)


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
        evaluate_retriever(Numbered(), rows(2), 1, checkpoint=path)
    assert (caught.value.argument, caught.value.fix) == ("checkpoint", "name another file")
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "null",
        "{}",
        '{"query":9,"seconds":0.1,"documents":[]}',
        '{"query":true,"seconds":0.1,"documents":[]}',
        '{"query":1,"seconds":0.1,"documents":[{"page_content":3,"metadata":{},"id":null}]}',
        '{"query":1,"seconds":-1.0,"documents":[]}',
        '{"query":1,"seconds":null,"documents":[]}',
        '{"query":0,"seconds":0.1,"documents":[]}',
        '{"query":1,"seconds":0.1,"documents":[{"page_content":"","id":null,"metadata":{"a":'
        '{"~":"eval","value":"1"}}}]}',
    ],
)
def test_a_damaged_line_is_refused_by_its_number(path, line):
    """It is not the end of a killed run; the file stays as it is."""
    evaluate_retriever(Numbered(), rows(2), 1, checkpoint=path, max_concurrency=1)
    header, first, _ = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text(f"{header}{first}{line}\n", "utf-8")
    before = path.read_bytes()
    with pytest.raises(DatasetError) as caught:
        evaluate_retriever(Numbered(), rows(2), 1, checkpoint=path)
    assert (caught.value.file, caught.value.line) == (str(path), 3)
    assert "delete the line" in str(caught.value.fix)
    assert path.read_bytes() == before


HOLDING = """
import sys
from krag_eval.retrievers.asking import Call
from krag_eval.retrievers.checkpoint import Checkpoint, purpose_of
how = {"input_key": None, "output_key": None}
held = Checkpoint(sys.argv[1], purpose_of(Call.of(print).runnable, how, ["q"]))
print("held", flush=True)
sys.stdin.read()
"""


def test_two_runs_on_one_file_are_refused(path):
    """Of two processes, and of one."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(OSError, match="is in use by another run; wait for it"):
            evaluate_retriever(Numbered(), rows(2), 1, checkpoint=path)
        holder.stdin.close()
    path.unlink()

    def nested(asked):
        return evaluate_retriever(Numbered(), rows(1), 1, checkpoint=path)

    with pytest.raises(OSError, match="in use by another run"):
        evaluate_retriever(nested, rows(1), 1, checkpoint=path)


@pytest.mark.parametrize(
    ("checkpoint", "error", "message"),
    [
        (7, InvalidType, "checkpoint must be the path of a file"),
        ("", InvalidInput, "checkpoint must be the path of a file"),
        ("missing/run.jsonl", FileNotFoundError, "missing"),
        (".", OSError, "is not a regular file"),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_before_anything_is_asked(
    checkpoint, error, message, tmp_path, monkeypatch
):
    """Not after an hour."""
    monkeypatch.chdir(tmp_path)
    retriever = Numbered()
    with pytest.raises(error, match=message):
        evaluate_retriever(retriever, rows(2), 1, checkpoint=checkpoint)
    assert retriever.asked == []


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


def through_a_file(path, document):
    """Return a document as a second run finds it in the checkpoint of the first."""
    purpose = purpose_of(Call.of(print).runnable, {"input_key": None, "output_key": None}, ["q"])
    path.unlink(missing_ok=True)
    first = Checkpoint(path, purpose)
    first.append(0, [document], 0.5)
    first.close()
    second = Checkpoint(path, purpose)
    second.close()
    (((read,), seconds),) = second.answers.values()
    assert seconds == 0.5
    return read


def test_metadata_comes_back_the_same(path):
    """Of every kind that has a spelling; by value and by type."""
    read = through_a_file(path, Document("x", metadata=METADATA, id="7"))
    assert read == Document("x", metadata=METADATA, id="7")
    assert repr(read.metadata) == repr({**METADATA, "tags": read.metadata["tags"]})


def test_a_line_of_version_0_1_is_read(path):
    """As it was written there, letter by letter."""
    evaluate_retriever(Numbered(), rows(1), 1, checkpoint=path)
    header = path.read_text("utf-8").splitlines()[0]
    path.write_text(f"{header}\n{OLD_LINE}\n", "utf-8")
    checkpoint = Checkpoint(
        path, purpose_of(Numbered(), {"input_key": None, "output_key": None}, [question(0)])
    )
    checkpoint.close()
    ((read,), seconds) = checkpoint.answers[0]
    assert seconds == 0.25
    old = {name: METADATA[name] for name in ("page", "when", "price", "raw", "infinite", "inner")}
    assert read == Document("x", metadata=old)
    assert header.startswith(
        '{"format":"krag_eval.checkpoint","format_version":1,"questions":1,"fingerprint":"'
    )
    assert header.endswith(
        '","input_key":null,"output_key":null,"retriever":{"name":"Numbered","seconds":0.0,'
        '"repeats":1}}'
    )


def test_numpy_numbers_come_back_as_numbers_of_the_same_value(path):
    """Rerankers leave float32 scores in metadata."""
    document = Document("x", metadata={"score": np.float32(0.1), "rank": np.int64(3)})
    read = through_a_file(path, document)
    assert read.metadata == {"score": float(np.float32(0.1)), "rank": 3}


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.just("~") | st.integers(), inner, max_size=3)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=3) | st.just("~"), VALUES, max_size=3))
def test_any_metadata_of_plain_values_comes_back_the_same(metadata):
    """Whatever their nesting."""
    with tempfile.TemporaryDirectory() as folder:
        read = through_a_file(Path(folder, "run.jsonl"), Document("x", metadata=metadata))
    assert repr(read.metadata) == repr(metadata)


class Owner:
    """Something that has no form in a file."""


class Pair(NamedTuple):
    """A tuple that would come back as another type."""

    a: int


def circle():
    """Return a list that holds itself."""
    inner: list = []
    inner.append(inner)
    return inner


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"fine": 1, "owner": [Owner()]}, r"metadata holds a .*Owner"),
        ({"pair": {"of": Pair(1)}}, r"metadata holds a .*Pair"),
        ({"loop": circle()}, "nested too deeply or holds itself"),
    ],
)
def test_metadata_that_would_not_come_back_is_refused(path, metadata, message):
    """It ends the run, whatever on_error says: the query did not fail."""
    for on_error in ("raise", "record"):
        with pytest.raises(InvalidType, match=f"document \\[0\\] cannot be kept .*{message}"):
            evaluate_retriever(
                lambda q: [Document("x", metadata=metadata)],
                rows(2),
                1,
                on_error=on_error,
                checkpoint=path,
            )
    with_it = evaluate_retriever(lambda q: [Document(passage(0), metadata=metadata)], rows(1), 1)
    assert with_it.to_dict()["hit_rate@1"] == 1


@pytest.mark.parametrize("text", ["한국어 문서", "half \ud83d", "line\nend\u2028\r\x00"])
def test_any_text_is_kept(path, text):
    """As a string, in a dict and in a document, and in the question."""
    dataset = [{"question": text + "?", "actual": [text]}]
    found = [text, {"page_content": text, "id": 3}, Document(text)]
    chain = RunnableParallel(context=lambda asked: found)
    for _ in range(2):
        result = evaluate_retriever(chain, dataset, 1, output_key="context", checkpoint=path)
        kept = list(result.evidence.texts.predicted(0))
        assert kept == [text] * 3


# --- checkpoint_key ----------------------------------------------------------------------------


class Timed(Numbered):
    """A retriever with a setting that changes no answer."""

    timeout: float = 1.0


def test_settings_do_not_matter_where_a_key_identifies_the_retriever(path):
    """A mended timeout costs no answer."""
    first = evaluate_retriever(Timed(), rows(4), 1, checkpoint=path, checkpoint_key="index of May")
    assert lines(path)[0]["checkpoint_key"] == "index of May"
    retriever = Timed(timeout=60.0)
    again = evaluate_retriever(
        retriever, rows(4), 1, checkpoint=path, checkpoint_key="index of May"
    )
    assert (retriever.asked, again) == ([], first)


@pytest.mark.parametrize("key", ["index of June", None])
def test_a_checkpoint_of_another_key_is_refused(path, key):
    """Of none, too; whatever the settings are."""
    evaluate_retriever(Timed(), rows(4), 1, checkpoint=path, checkpoint_key="index of May")
    retriever, content = Timed(), path.read_bytes()
    with pytest.raises(ValueError, match="checkpoint_key='index of May'"):
        evaluate_retriever(retriever, rows(4), 1, checkpoint=path, checkpoint_key=key)
    assert (retriever.asked, path.read_bytes()) == ([], content)


def test_the_refusal_of_other_settings_names_the_key(path):
    """With it the run goes on, and says on whose word; a retriever of another name is refused."""
    first = evaluate_retriever(Timed(), rows(4), 1, checkpoint=path)
    retriever = Timed(timeout=60.0)
    with pytest.raises(InvalidInput, match=r"timeout=1.0, not 60.0.*checkpoint_key="):
        evaluate_retriever(retriever, rows(4), 1, checkpoint=path)
    with pytest.warns(KragEvalWarning, match=r"timeout=1.0, not 60.0.*'index of May'"):
        again = evaluate_retriever(
            retriever, rows(4), 1, checkpoint=path, checkpoint_key="index of May"
        )
    assert (retriever.asked, again) == ([], first)
    with pytest.raises(InvalidInput, match="retriever='Timed', not 'Numbered'") as caught:
        evaluate_retriever(Numbered(), rows(4), 1, checkpoint=path, checkpoint_key="index of May")
    assert "checkpoint_key" not in str(caught.value)


def test_other_questions_are_refused_whatever_the_key(path):
    """And no key is advised."""
    evaluate_retriever(Timed(), rows(4), 1, checkpoint=path, checkpoint_key="May")
    with pytest.raises(ValueError, match="questions=4, not 3"):
        evaluate_retriever(Timed(), rows(3), 1, checkpoint=path, checkpoint_key="May")
    path.unlink()
    evaluate_retriever(Timed(), rows(4), 1, checkpoint=path)
    with pytest.raises(ValueError, match="questions=4, not 3") as caught:
        evaluate_retriever(Timed(timeout=2.0), rows(3), 1, checkpoint=path)
    assert "checkpoint_key" not in str(caught.value)


def test_a_key_serves_the_async_twin(path):
    """A file of the one goes on with the other."""
    evaluate_retriever(Timed(), rows(4), 1, checkpoint=path, checkpoint_key="May")
    retriever = Timed(timeout=60.0)
    run = aevaluate_retriever(retriever, rows(4), 1, checkpoint=path, checkpoint_key="May")
    assert asyncio.run(run).to_dict()["hit_rate@1"] == 1
    assert retriever.asked == []


@pytest.mark.parametrize(
    ("key", "error"), [(1, InvalidType), ("", InvalidInput), (["May"], InvalidType)]
)
def test_a_key_is_a_text(path, key, error):
    with pytest.raises(error) as caught:
        evaluate_retriever(Timed(), rows(4), 1, checkpoint=path, checkpoint_key=key)
    assert caught.value.argument == "checkpoint_key"
    assert not path.exists()


def test_a_key_without_a_checkpoint_is_refused():
    """It would name the retriever nowhere."""
    with pytest.raises(InvalidInput, match="there is none; pass") as caught:
        evaluate_retriever(Timed(), rows(4), 1, checkpoint_key="May")
    assert caught.value.argument == "checkpoint_key"

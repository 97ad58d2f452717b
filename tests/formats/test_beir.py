"""Reading BEIR's folders: texts and labels joined to judgements by id.

Expected values are the contents of tests/data/beir, or worked out from it by hand. Lines that are
refused are in ``golden/refused/datasets.py``.
"""

import gzip
import io
import json
import shutil
from pathlib import Path

import pytest
from places import DATA

from krag_eval import KragEvalWarning
from krag_eval.datasets import DatasetError, read_beir

FOLDER = DATA / "beir"
RESULTS = FOLDER / "results.json"


def lines(*objects: object) -> io.BytesIO:
    """Return objects as an open file of JSON lines."""
    return io.BytesIO("\n".join(map(json.dumps, objects)).encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the folder, to be changed."""
    return Path(shutil.copytree(FOLDER, tmp_path / "beir"))


class TestFolder:
    """Corpus, queries, judgements and results together."""

    def test_what_is_read(self):
        """Title and text are joined by a space, as BEIR's retrievers see them; ids and grades stay.

        Queries are labelled by their texts, only those that are judged.
        """
        dataset = read_beir(FOLDER, run=RESULTS)
        hours = "Opening hours The library opens at nine and closes at six on weekdays."
        assert dataset.actual[0] == [
            {"page_content": text, "id": one, "metadata": {"grade": grade}}
            for text, one, grade in (
                (hours, "d1", 2), ("On Sundays the library is closed.", "d2", 1),
            )
        ]  # fmt: skip
        d4 = {"page_content": "There is no parking at the library.", "id": "d4"}
        assert dataset.predicted[1][1] == d4
        assert dataset.queries == ["When is the library open?", "책은 몇 권까지 빌릴 수 있나요?"]

    def test_its_evaluator_compares_ids_as_trec_eval_does(self):
        """q1: d1 (grade 2), then d4, d2 (tied: descending). DCG = 2 + 1/2, ideal 2 + 0.6309.

        The corpus is there so that other matchers work, too.
        """
        dataset = read_beir(FOLDER, run=RESULTS)
        values = dataset.evaluator().evaluate(k=10).per_query()["ndcg"].tolist()
        assert values == pytest.approx([2.5 / 2.630930, 1.0], abs=1e-6)
        by_text = dataset.evaluator(matcher="text")
        assert by_text.calculate_recall(k=3)["macro_recall"] == 1.0

    def test_other_splits(self, folder: Path):
        """Each has a file of its own."""
        (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td4\t1\n")
        dataset = read_beir(folder, run={"q1": {"d4": 1.0}}, split="dev")
        assert [item["id"] for item in dataset.actual[0]] == ["d4"]

    def test_compressed_files_are_found(self, folder: Path):
        """With .gz after their names."""
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            plain = folder / name
            plain.with_name(f"{plain.name}.gz").write_bytes(gzip.compress(plain.read_bytes()))
            plain.unlink()
        assert read_beir(folder, run=RESULTS) == read_beir(FOLDER, run=RESULTS)

    @pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels/test.tsv"])
    def test_all_files_must_be_there(self, folder: Path, name: str):
        """A folder without texts would be compared without texts, and nobody told."""
        (folder / name).unlink()
        with pytest.raises(DatasetError, match=f"{name}: no such file"):
            read_beir(folder, run=RESULTS)

    def test_a_run_in_trec_format(self, tmp_path: Path):
        """Results may be either."""
        path = tmp_path / "run.trec"
        path.write_text("q1 Q0 d2 1 5 x\nq2 Q0 d3 1 5 x\n")
        dataset = read_beir(FOLDER, run=path)
        assert [documents[0]["id"] for documents in dataset.predicted] == ["d2", "d3"]


class TestParts:
    """Files from elsewhere, and none where ids are enough."""

    def test_judgements_alone_are_enough(self):
        """Without texts, documents are ids and queries are labelled by theirs."""
        dataset = read_beir(qrels=FOLDER / "qrels" / "test.tsv", run=RESULTS)
        assert dataset.queries == ["q1", "q2"]
        assert dataset.predicted == [["d1", "d4", "d2"], ["d3", "d4"]]

    def test_identical_ids_can_be_ignored(self):
        """As BEIR does: the query itself is in the corpus and is found first."""
        judged, found = {"a": {"b": 1}}, {"a": {"a": 9.0, "b": 1.0}}
        kept = read_beir(qrels=judged, run=found)
        assert kept.evaluator().calculate_mrr() == {"mrr": 0.5}
        ignored = read_beir(qrels=judged, run=found, ignore_identical_ids=True)
        assert ignored.evaluator().calculate_mrr() == {"mrr": 1.0}

    def test_options_of_runs_are_passed_on(self):
        """Missing queries, grades and precision are those of read_trec."""
        judged = {"a": {"b": 1, "c": 2}, "z": {"b": 1}}
        dataset = read_beir(
            qrels=judged, run={"a": {"b": 1.0}}, missing="skip", relevance_level=2, scores="double"
        )
        assert [item["id"] for item in dataset.actual[0]] == ["c"]

    def test_documents_the_corpus_lacks_keep_their_ids(self):
        """They have no text, and a warning says how many."""
        corpus = lines({"_id": "d1", "text": "one"})
        with pytest.warns(KragEvalWarning, match=r"<stream>: 2 documents are not in it .*'d2'\)"):
            dataset = read_beir(
                qrels={"q": {"d1": 1, "d2": 1}}, run={"q": {"d1": 2.0, "d9": 1.0}}, corpus=corpus
            )
        assert dataset.evaluator().calculate_recall()["macro_recall"] == 0.5

    def test_queries_with_one_text_are_labelled_by_id(self):
        """Labels that do not tell queries apart are none."""
        queries = lines({"_id": "a", "text": "same"}, {"_id": "b", "text": "same"})
        judged = {"a": {"d": 1}, "b": {"d": 1}}
        with pytest.warns(KragEvalWarning, match="2 queries have 1 different texts"):
            dataset = read_beir(
                qrels=judged, run={"a": {"d": 1.0}, "b": {"d": 1.0}}, queries=queries
            )
        assert dataset.queries == ["a", "b"]
        assert dataset.questions == ["same", "same"]

    def test_without_a_run_nothing_was_retrieved(self):
        """All judged queries are there, with their texts, for a retriever to be asked."""
        dataset = read_beir(FOLDER, run=None)
        assert dataset.predicted is None
        assert dataset.questions == read_beir(FOLDER, run=RESULTS).questions
        assert dataset.actual == read_beir(FOLDER, run=RESULTS).actual
        assert dataset.defaults["matcher"] == "id"

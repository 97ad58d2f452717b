"""Files and objects of other tools, told apart by load_dataset.

The files under tests/data/peers were written by the tools' own code (versions in the README there),
about texts of ours; expected values are those texts.
"""

import json
import shutil

import pandas as pd
import pytest
from places import DATA
from pydantic import BaseModel

from krag_eval.datasets import DatasetError, load_dataset, read_beir, read_trec
from krag_eval.errors import InvalidType

PEERS = DATA / "peers"
BEIR = DATA / "beir"
OPENS, KEPT = "The library opens at nine on weekdays.", "Books may be kept for four weeks."
WHEN, LONG = "When does the library open?", "How long may books be kept?"
CAMEL = {"retrieval_context": "retrievalContext", "expected_output": "expectedOutput",
         "tools_called": "toolsCalled", "expected_tools": "expectedTools"}  # fmt: skip


class TestLlamaIndex:
    """EmbeddingQAFinetuneDataset, which is one JSON object."""

    def test_a_file_of_its_own(self):
        """Ids and texts; nothing retrieved yet; ids are compared, as LlamaIndex does."""
        dataset = load_dataset(PEERS / "llama_index_qa.json")
        assert (dataset.questions, dataset.predicted) == ([WHEN, LONG], None)
        assert dataset.actual == [
            [{"page_content": OPENS, "id": "n0"}],
            [{"page_content": KEPT, "id": "n1"}],
        ]
        assert dataset.defaults == {"matcher": "id"}
        assert "EmbeddingQAFinetuneDataset" in dataset.notes[0]

    def test_as_a_dict_and_on_one_line(self, tmp_path):
        """As its model_dump gives it, or written without line ends."""
        path = PEERS / "llama_index_qa.json"
        content = json.loads(path.read_text("utf-8"))
        (tmp_path / "qa.json").write_text(json.dumps(content), "utf-8")
        assert load_dataset(content) == load_dataset(path) == load_dataset(tmp_path / "qa.json")

    @pytest.mark.parametrize("part", ["queries", "corpus", "relevant_docs"])
    def test_a_path_in_a_file_opens_no_other_file(self, written, part):
        other = written('{"_id": "q", "text": "Q"}\n', "other.jsonl")
        parts = {"corpus": {"q": "A"}, "queries": {"q": "Q"}, "relevant_docs": {"q": ["q"]}}
        for came in (str(other), 3):
            path = written(json.dumps({**parts, part: came}), "qa.json")
            with pytest.raises(DatasetError, match=part):
                load_dataset(path)

    def test_a_query_without_judgements_is_counted(self):
        """And left out."""
        parts = {"corpus": {"a": "A"}, "queries": {"q": "Q", "r": "R"}}
        dataset = load_dataset({**parts, "relevant_docs": {"q": ["a"]}})
        assert dataset.queries == ["Q"]
        assert any(note.startswith("1 of 2 queries") for note in dataset.notes)


class TestCollections:
    """BEIR's collections as Hugging Face and MTEB lay them out."""

    @pytest.fixture
    def tables(self):
        """Return the tables of the folder in tests/data/beir."""
        qrels = pd.read_csv(BEIR / "qrels" / "test.tsv", sep="\t", dtype={"score": int})
        return {
            "corpus": pd.read_json(BEIR / "corpus.jsonl", lines=True)[["_id", "title", "text"]],
            "queries": pd.read_json(BEIR / "queries.jsonl", lines=True)[["_id", "text"]],
            "qrels": qrels,
        }

    def test_a_folder(self):
        """As BEIR's own reader reads it, without a run."""
        dataset = load_dataset(BEIR)
        assert dataset == read_beir(BEIR, run=None)
        assert dataset.notes

    @pytest.mark.parametrize("judged", ["qrels", "data"])
    def test_parquet(self, tmp_path, tables, judged):
        """In folders, one file for each table."""
        for name, table in tables.items():
            room = judged if name == "qrels" else name
            part = "test" if name == "qrels" else name
            (tmp_path / room).mkdir()
            table.to_parquet(tmp_path / room / f"{part}-00000-of-00001.parquet")
        assert load_dataset(tmp_path) == load_dataset(BEIR)
        assert read_beir(tmp_path, run=BEIR / "results.json") == (
            read_beir(BEIR, run=BEIR / "results.json")
        )

    def test_judgements_in_json_lines(self, tmp_path, tables):
        """As MTEB keeps them."""
        folder = tmp_path / "mteb"
        shutil.copytree(BEIR, folder)
        (folder / "qrels" / "test.tsv").unlink()
        tables["qrels"].to_json(folder / "qrels" / "test.jsonl", orient="records", lines=True)
        assert load_dataset(folder) == load_dataset(BEIR)

    def test_tables_in_memory(self, tables):
        """As Hugging Face's datasets loads them; ids may be called id."""
        assert load_dataset(tables) == load_dataset(BEIR)
        renamed = {name: table.rename(columns={"_id": "id"}) for name, table in tables.items()}
        assert load_dataset(renamed) == load_dataset(BEIR)

    def test_documents_without_a_title(self, tables):
        """A cell without a title holds NaN, or None."""
        for nothing in (float("nan"), None):
            corpus = tables["corpus"].assign(title=nothing)
            dataset = load_dataset({**tables, "corpus": corpus})
            assert dataset.actual[0][0]["page_content"] == corpus["text"][0]

    def test_mtebs_dicts(self, tables):
        """Documents by id, questions by id, grades by both."""
        corpus = tables["corpus"].set_index("_id")[["title", "text"]].to_dict("index")
        queries = tables["queries"].set_index("_id")["text"].to_dict()
        judged = {}
        for row in tables["qrels"].to_dict("records"):
            judged.setdefault(row["query-id"], {})[row["corpus-id"]] = row["score"]
        content = {"corpus": corpus, "queries": queries, "relevant_docs": judged}
        assert load_dataset(content) == load_dataset(BEIR)

    def test_several_files_of_one_table(self, tmp_path, tables):
        """Are not put together in silence, nor is one of them taken."""
        for number in range(2):
            (tmp_path / "corpus").mkdir(exist_ok=True)
            path = tmp_path / "corpus" / f"corpus-{number:05}-of-00002.parquet"
            tables["corpus"].to_parquet(path)
        shutil.copytree(BEIR / "qrels", tmp_path / "qrels")
        with pytest.raises(DatasetError, match="2 Parquet files"):
            load_dataset(tmp_path)

    def test_a_document_judged_twice(self, tables):
        """Names the row."""
        twice = pd.concat([tables["qrels"], tables["qrels"]])
        with pytest.raises(DatasetError) as caught:
            load_dataset({**tables, "qrels": twice})
        assert caught.value.place is not None
        assert caught.value.place.row == len(tables["qrels"])


def goldens(kind):
    """Return the path of what deepeval saved, and its rows."""
    path = PEERS / f"deepeval_goldens.{kind}"
    if kind == "csv":
        return path, pd.read_csv(path, keep_default_na=False).to_dict("records")
    text = path.read_text("utf-8")
    return path, json.loads(text) if kind == "json" else [*map(json.loads, text.splitlines())]


class TestDeepeval:
    """Goldens, as deepeval saves and sends them."""

    @pytest.mark.parametrize("kind", ["json", "jsonl", "csv"])
    def test_a_file_of_its_own(self, kind):
        """JSON holds lists; its JSON lines and CSV join texts by a bar, and a note says so.

        The second golden alone has retrieved documents, which is not the same as none: the file is
        refused as deepeval wrote it.
        """
        path, rows = goldens(kind)
        with pytest.raises(DatasetError):
            load_dataset(path)
        assert load_dataset(rows[1:]).predicted == [["A lost card costs five euros.", KEPT]]
        dataset = load_dataset([{**row, "retrieval_context": None} for row in rows])
        assert dataset.questions == [WHEN, LONG]
        assert (dataset.actual, dataset.predicted) == ([[OPENS], [KEPT]], None)
        assert any("split at |" in note for note in dataset.notes) == (kind != "json")

    def test_names_as_they_are_sent(self):
        """In camel case, as Confident AI has them."""
        row = {CAMEL.get(name, name): value for name, value in goldens("json")[1][1].items()}
        dataset = load_dataset([row])
        assert dataset.vocabulary == "deepeval"
        assert dataset.predicted == [["A lost card costs five euros.", KEPT]]

    def test_a_golden_without_context(self):
        """Has no ground truth, which the evaluator names."""
        row = {**goldens("json")[1][0], "context": None, "retrieval_context": None}
        assert load_dataset([row]).actual == [[]]


class TestObjects:
    """Objects that the tools have in memory."""

    def test_the_way_to_a_dict_is_said(self):
        """Alone, or in a list."""

        class Golden(BaseModel):
            input: str = "When?"

        for source in (Golden(), [Golden()]):
            with pytest.raises(InvalidType, match="model_dump"):
                load_dataset(source)


class TestRagas:
    """Its data set, as it saves it."""

    @pytest.mark.parametrize("kind", ["jsonl", "csv"])
    def test_a_file_of_its_own(self, kind):
        """Both lists."""
        dataset = load_dataset(PEERS / f"ragas.{kind}")
        assert (dataset.vocabulary, dataset.questions) == ("RAGAS", [WHEN, LONG])
        assert (dataset.actual, dataset.predicted) == ([[OPENS], [KEPT]], [[KEPT, OPENS], [KEPT]])

    def test_nothing_retrieved_yet(self):
        """A column of nulls; an empty list is something: nothing came back."""
        row = {"user_input": WHEN, "reference_contexts": [OPENS]}
        for nothing in (None, "", float("nan")):
            assert load_dataset([{**row, "retrieved_contexts": nothing}]).predicted is None
        assert load_dataset([{**row, "retrieved_contexts": []}]).predicted == [[]]


class TestRanx:
    """Judgements and runs, with one another."""

    @pytest.mark.parametrize("kind", ["json", "parquet"])
    def test_judgements_and_a_run(self, kind):
        """As read_trec reads them."""
        qrels, run = PEERS / f"ranx_qrels.{kind}", PEERS / f"ranx_run.{kind}"
        dataset = load_dataset(qrels, retrieved=run)
        assert dataset == read_trec(qrels, run)
        assert dataset.predicted == [["d1", "d9"], ["d3", "d1"]]
        judged = {"q1": {"d2": 2, "d1": 1}, "q2": {"d3": 1}}
        retrieved = {"q1": {"d1": 0.9, "d9": 0.5}, "q2": {"d3": 0.7, "d1": 0.1}}
        assert dataset == read_trec(judged, retrieved)
        assert dataset.notes

    def test_as_dicts(self):
        """Ranx's to_dict()."""
        dataset = load_dataset({"q1": {"d1": 1}}, retrieved={"q1": {"d2": 0.5, "d1": 0.9}})
        assert dataset.predicted == [["d1", "d2"]]

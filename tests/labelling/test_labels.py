"""Pairs to label, and labels read back: by whatever takes labels, and by nothing else's names."""

import json

import pytest

from krag_eval import (
    AnyOf,
    KragEvalWarning,
    OfflineRetrievalEvaluator,
    agreement,
    calibrate,
    compare,
    debias,
    load_dataset,
    read_judgements,
    read_labels,
    to_label,
)
from krag_eval.comparison.judged import Judgements
from krag_eval.datasets import Dataset
from krag_eval.errors import DatasetError, InvalidInput

WANTED = ("question", "actual", "predicted")
few = pytest.mark.filterwarnings("ignore:.*(few|Fewer|fewer|same value|no more than|rests on)")


def labelled(path, page, says, labeller="anna", **more):
    """Write the file that a page makes; ``says`` decides about each pair that is shown."""
    rows = [{**row, "labeller": labeller, "time": None, **more} for row in page.rows]
    for row in rows:
        if row["predicted"] is not None:
            row["relevant"] = says(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def pairs_of(page):
    """Return question, wanted passage and text of each pair that is shown."""
    return {tuple(str(row[name]) for name in WANTED) for row in page.rows if row["predicted"]}


def library(n=40):
    """Return n questions with two chunks each: of the even ones the first is right."""
    questions = [f"What does item {i} cost?" for i in range(n)]
    right = [f"You pay {i} euros for item {i}." for i in range(n)]
    wrong = [f"Item {i} is sold out." for i in range(n)]
    lists = [[right[i] if i % 2 == 0 else wrong[i], f"Shelf {i}."] for i in range(n)]
    actual = [[f"Item {i} costs {i} euros."] for i in range(n)]
    return Dataset(questions, actual, lists, questions=questions)


def is_priced(row):
    return "euros" in row["predicted"]


class TestPairs:
    """What is asked about."""

    def test_each_item_with_each_document_within_k(self):
        """A question with two items and three documents, of which two are looked at."""
        rows = [
            {"question": "Q", "actual": ["a b", "c d"], "predicted": ["x y", "z w", "too deep"]}
        ]
        texts = {("Q", actual, found) for actual in ("a b", "c d") for found in ("x y", "z w")}
        assert pairs_of(to_label(rows, k=2)) == texts

    def test_alternatives_are_one_item(self):
        """Which any of them satisfies."""
        rows = [{"question": "Q", "actual": [{"any_of": ["a b", "c d"]}], "predicted": ["x y"]}]
        [row] = to_label(rows).rows
        assert row["actual"] == {"any_of": ["a b", "c d"]}

    def test_a_question_without_documents_is_in_the_sample(self):
        """There is nothing to show, and it counts as missed all the same."""
        rows = [
            {"question": q, "actual": ["a b"], "predicted": p}
            for q, p in (("Q", ["x y"]), ("R", []))
        ]
        page = to_label(rows)
        assert (page.n_pairs, page.n_questions) == (1, 2)
        assert [row["query"] for row in page.rows if row["predicted"] is None] == ["R"]

    def test_grade_0_is_no_ground_truth(self):
        """It was looked at, and is not wanted."""
        actual = [
            {"page_content": text, "metadata": {"grade": g}} for text, g in (("a b", 1), ("c d", 0))
        ]
        dataset = Dataset(["Q"], [actual], [["x y"]], defaults={"grade_key": "grade"})
        assert pairs_of(to_label(dataset)) == {("Q", "a b", "x y")}

    def test_a_sample_is_drawn_by_the_seed(self):
        """The same one again, and another with another seed."""
        asked = [
            {row["query"] for row in to_label(library(), k=1, sample=10, seed=seed).rows}
            for seed in (1, 1, 2)
        ]
        assert len(asked[0]) == 10
        assert asked[0] == asked[1] != asked[2]

    def test_the_order_hides_ranks_and_the_page_stays_the_same(self):
        """Pairs of a question follow one another, in another order with another seed."""
        dataset = library()
        first, again, other = (to_label(dataset, seed=seed) for seed in (0, 0, 1))
        assert first.rows == again.rows
        assert [row["pair"] for row in first.rows] != [row["pair"] for row in other.rows]
        assert first.page == other.page
        asked = [row["query"] for row in first.rows]
        assert asked[::2] == asked[1::2]
        ranks = [dataset.predicted[dataset.queries.index(row["query"])].index(row["predicted"])
                 for row in first.rows[::2]]  # fmt: skip
        assert 10 < sum(ranks) < 30  # of 40 questions the second chunk comes first

    @few
    def test_what_to_judge_returned(self, tmp_path):
        """As an object, a table and a file; ranks and weights are left out, formulas are texts."""
        actual, seen = [["A b"]], [["A b"]]
        results = {
            name: OfflineRetrievalEvaluator(actual, [some], judged=seen).evaluate(2)
            for name, some in {"old": ["A b", "=1+1 x"], "new": ["B c", "A b"]}.items()
        }
        found = compare(results, metric="recall@2", n_resamples=100)
        found = compare(results, metric="precision@2", n_resamples=100).to_judge()
        found.to_csv(tmp_path / "judge.csv")
        for source in (found, found.table, tmp_path / "judge.csv"):
            page = to_label(source)
            assert {row["predicted"] for row in page.rows} == {one.key for one in found.documents}
            assert {row["query"] for row in page.rows} == {"0"}
            assert not {"rank_a", "weight"} & {name for row in page.rows for name in row}

    @pytest.mark.parametrize("ending", ["csv", "jsonl"])
    def test_rows_of_pairs(self, ending, tmp_path):
        """As ``calibrate`` reads them; their labels are not shown."""
        path = tmp_path / f"pairs.{ending}"
        row = {"question": "Q", "actual": "a b", "predicted": "x y", "relevant": "true"}
        lines = {"csv": [",".join(row), ",".join(row.values())], "jsonl": [json.dumps(row)]}
        path.write_text("\n".join(lines[ending]) + "\n", "utf-8")
        [found] = to_label(path).rows
        assert [found[name] for name in (*WANTED, "relevant")] == ["Q", "a b", "x y", None]

    def test_the_file_of_a_page_is_the_page_again(self, tmp_path):
        """For a second labeller; answers are not among it."""
        page = to_label(library(4))
        again = to_label(labelled(tmp_path / "anna.jsonl", page, is_priced))
        assert (again.page, again.n_pairs) == (page.page, page.n_pairs)
        assert all(row["relevant"] is None for row in again.rows)

    def test_ids_without_texts_are_refused(self):
        """By the place of the question; with the chunks of the index they are read."""
        ids = Dataset(["Q", "R"], [["d1"], ["d1"]], [[], ["d1"]], defaults={"matcher": "id"})
        with pytest.raises(InvalidInput) as caught:
            to_label(ids)
        assert (caught.value.argument, caught.value.query) == ("predicted_docs", 1)
        rows = [{"question": "R", "actual": ["d1"], "predicted": ["d1"]}]
        page = to_label(rows, corpus=[{"id": "d1", "text": "nine o'clock"}])
        assert [(row["key"], row["predicted"]) for row in page.rows] == [("d1", "nine o'clock")]

    @pytest.mark.parametrize(
        ("source", "options", "argument"),
        [
            ([{"actual": "a", "predicted": "b"}], {"k": 2}, "k"),
            ([{"actual": "a", "predicted": "b"}], {"sample": 2}, "sample"),
            ([{"actual": ["a"], "predicted": ["b"]}], {"sample": 2}, "sample"),
            ([{"actual": ["a"], "predicted": ["b"]}], {"k": 0}, "k"),
            ([{"actual": ["a"], "predicted": ["b"]}], {"seed": -1}, "seed"),
            ([{"actual": ["a"], "predicted": []}], {}, "source"),
            ([{"query": "Q", "key": ""}], {}, ""),
            ([{"actual": "a", "predicted": "b"}, {"actual": ["a"], "predicted": "c"}], {},
             "actual"),
            ([{"question": "Q", "actual": ["a"]}], {}, ""),
        ],
    )  # fmt: skip
    def test_what_cannot_be_asked_is_refused(self, source, options, argument):
        """Naming the argument."""
        with pytest.raises(InvalidInput) as caught:
            to_label(source, **options)
        assert caught.value.argument == argument


class TestLabels:
    """What a file of a page is read as."""

    def test_agreement_and_calibration_take_the_pairs(self, tmp_path):
        """Of 4 questions, 2 are answered by their first chunk: 2 of 8 pairs are relevant."""
        labels = read_labels(labelled(tmp_path / "anna.jsonl", to_label(library(4)), is_priced))
        assert (labels.labeller, labels.n_pairs, labels.n_open) == ("anna", 8, 0)
        assert agreement("rouge1", labels.pairs).counts == (2, 0, 0, 6)
        assert calibrate("rouge1", labels.pairs).best_f1 == 1
        assert {pair[3] for pair in labels.pairs} == {*library(4).questions}

    def test_alternatives_come_back(self, tmp_path):
        """The matcher takes the best of them; tables show both."""
        rows = [
            {"question": "Q", "actual": [{"any_of": ["a b", "x y"]}], "predicted": ["x y z", "q r"]}
        ]
        labels = read_labels(
            labelled(tmp_path / "anna.jsonl", to_label(rows), lambda row: "x" in row["predicted"])
        )
        assert all(pair[0] == AnyOf(["a b", "x y"]) for pair in labels.pairs)
        found = (
            calibrate("contains", labels.pairs) if False else agreement("contains", labels.pairs)
        )
        assert found.kappa == 1
        assert calibrate("rouge1", labels.pairs).borderline(1)["actual"].tolist() == ["a b / x y"]

    def test_a_document_is_relevant_if_it_is_for_one_item(self, tmp_path):
        """It was looked at if it is for none and each has a label; otherwise nobody knows."""
        rows = [{"question": "Q", "actual": ["a b", "c d"], "predicted": ["x y", "z w", "u v"]}]
        said = {("a b", "x y"): True, ("c d", "x y"): None, ("a b", "z w"): False,
                ("c d", "z w"): False, ("a b", "u v"): False, ("c d", "u v"): None}  # fmt: skip
        path = labelled(tmp_path / "anna.jsonl", to_label(rows),
                        lambda row: said[row["actual"], row["predicted"]])  # fmt: skip
        with pytest.warns(KragEvalWarning, match="2 of 6"):
            found = read_judgements(path)
        assert found.relevant == {"Q": ["x y"]}
        assert {query: sorted(keys) for query, keys in found.judged.items()} == {
            "Q": ["x y", "z w"]
        }
        assert isinstance(found, Judgements)

    @few
    def test_judgements_go_into_the_next_evaluation(self, tmp_path):
        """From ``to_judge`` by a page to ``judged=``, after which nothing is open."""
        actual, seen = [["A b"]], [["A b"]]
        runs = {"old": [["A b", "U v"]], "new": [["W x", "A b"]]}

        def ranked(run, truth, looked_at):
            return OfflineRetrievalEvaluator(truth, run, judged=looked_at).evaluate(2)

        def opened(truth, looked_at):
            results = {name: ranked(run, truth, looked_at) for name, run in runs.items()}
            return compare(results, metric="precision@2", n_resamples=100).to_judge()

        page = to_label(opened(actual, seen))
        assert page.n_pairs == 2
        path = labelled(tmp_path / "anna.jsonl", page, lambda row: row["predicted"] == "W x")
        again = opened(*read_judgements(path).added_to(actual, seen))
        assert (again.documents, again.difference) == ((), 0.5)

    def test_people_beside_a_judge(self, tmp_path):
        """A sample of 30 questions, with all pairs labelled, is what debias calls human.

        People's recall is the share of even questions in the sample, by the making of the library.
        """
        dataset = library(120)
        page = to_label(dataset, k=2, sample=30, seed=5)
        labels = read_labels(labelled(tmp_path / "anna.jsonl", page, is_priced))
        human = labels.evaluate(dataset, [1, 2])
        even = [int(row["query"].split()[3]) % 2 == 0 for row in page.rows[::2]]
        assert human.to_dict()["macro_recall@1"] == sum(even) / 30
        assert "people(labeller=anna" in human.signature
        judge = dataset.evaluator(matcher="rouge1").evaluate([1, 2])
        found = debias(human=human, judge=judge, unlabelled=judge, metric="recall@1")
        assert (found.n_labelled, found.n_asked, found.compared_by) == (30, 120, "documents")
        # Here the judge and people agree, so that the value is the judge's.
        assert found.values[0].correlation == pytest.approx(1)
        assert found.values[0].value == pytest.approx(0.5, abs=0.1)

    @pytest.mark.filterwarnings("ignore:.*repeat")
    def test_people_decide_of_items_and_ranks(self, tmp_path):
        """Of two items the second is found, at rank 2; the same item twice counts once."""
        items = ["a b", "c d", "a b"]
        dataset = Dataset(["Q", "R"], [items, ["e f"]], [["x y", "z w"], []])
        says = {("c d", "z w")}
        page = to_label(dataset)
        path = labelled(tmp_path / "anna.jsonl", page,
                        lambda row: (row["actual"], row["predicted"]) in says)  # fmt: skip
        found = read_labels(path).evaluate(dataset, 2)
        per_query = found.per_query(2)
        assert per_query["recall"].tolist() == [1 / 2, 0]
        assert found.to_dict()["mrr@2"] == 1 / 4

    def test_questions_with_open_pairs_are_left_out(self, tmp_path):
        """And counted."""
        dataset = library(12)
        lacking = dataset.questions[0]

        def says(row):
            return None if row["query"] == lacking else is_priced(row)

        path = labelled(tmp_path / "anna.jsonl", to_label(dataset), says)
        with pytest.warns(KragEvalWarning, match="2 of 24"):
            labels = read_labels(path)
        with pytest.warns(KragEvalWarning, match="1 of 12"):
            found = labels.evaluate(dataset, 1)
        assert lacking not in found.labels
        assert found.n_queries == 11

    @pytest.mark.filterwarnings("ignore:.*(blank text|matched nothing)")
    def test_a_list_that_begins_blank(self, tmp_path):
        """Within the first document there is no pair then, and nothing was found."""
        dataset = Dataset(["Q"], [["a b"]], [[" ", "x y"]])
        path = labelled(tmp_path / "anna.jsonl", to_label(dataset, k=2), lambda row: True)
        found = read_labels(path).evaluate(dataset, [1, 2])
        assert [found.to_dict()[f"macro_recall@{k}"] for k in (1, 2)] == [0, 1]
        assert read_labels(path).evaluate(dataset, 1).to_dict()["macro_recall@1"] == 0

    @pytest.mark.parametrize(
        "change", ["emptied", "blanked", "shorter", "question", "actual", "predicted", "deeper"]
    )
    def test_other_questions_or_another_run_are_refused(self, change, tmp_path):
        """Labels are of the texts that were shown."""
        dataset = library(4)
        labels = read_labels(labelled(tmp_path / "anna.jsonl", to_label(dataset, k=1), is_priced))
        parts = {"questions": [*dataset.questions], "queries": [*dataset.queries],
                 "actual": [[*some] for some in dataset.actual],
                 "predicted": [[*some] for some in dataset.predicted]}  # fmt: skip
        if change == "question":
            parts["questions"][0] = parts["queries"][0] = "Another question?"
        elif change == "emptied":
            parts["predicted"][0] = []
        elif change == "blanked":
            parts["predicted"][0] = [" "]
        elif change == "shorter":
            labels = read_labels(labelled(tmp_path / "ben.jsonl", to_label(dataset), is_priced))
            del parts["predicted"][0][0]
        elif change != "deeper":
            parts[change][0][0] += " (new version)"
        with pytest.raises(InvalidInput) as caught:
            labels.evaluate(Dataset(**parts), 2 if change == "deeper" else 1)
        assert caught.value.argument == "dataset"


class TestDamage:
    """Files that are not as a page made them."""

    @pytest.fixture
    def lines(self, tmp_path):
        path = labelled(tmp_path / "anna.jsonl", to_label(library(3)), is_priced)
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]

    @pytest.mark.parametrize(
        ("damage", "line"),
        [
            (lambda rows: rows[1].update(predicted="another text"), 2),
            (lambda rows: rows[1].update(actual="another passage"), 2),
            (lambda rows: rows[1].update(labeller="ben"), 2),
            (lambda rows: [row.update(labeller=None) for row in rows], 1),
            (lambda rows: rows[1].update(page="0"), 2),
            (lambda rows: rows[1].update(relevant="perhaps"), 2),
            (lambda rows: rows[1].pop("page"), 2),
            (lambda rows: rows[1].pop("pair"), 2),
            (lambda rows: rows.append(rows[0]), 7),
            (lambda rows: rows.pop(), None),
            (lambda rows: rows.clear(), None),
        ],
    )  # fmt: skip
    def test_it_is_refused_by_its_line(self, lines, damage, line, tmp_path):
        """Edited, mixed, repeated, cut."""
        damage(lines)
        path = tmp_path / "damaged.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
        with pytest.raises(DatasetError) as caught:
            read_labels(path)
        assert (caught.value.file, caught.value.line) == (str(path), line)

    def test_judgements_of_a_damaged_page_are_refused(self, lines, tmp_path):
        """A line that lost its labeller does not make it a plain table."""
        del lines[0]["labeller"]
        path = tmp_path / "damaged.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
        with pytest.raises(DatasetError) as caught:
            read_judgements(path)
        assert caught.value.line == 1

    def test_a_label_may_be_edited(self, lines, tmp_path):
        """It is the labeller's to change; words do, too."""
        lines[0]["relevant"] = "예"
        path = tmp_path / "edited.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in lines), "utf-8")
        assert read_labels(path).rows[0]["relevant"] is True

    def test_labels_of_an_older_golden_set_do_not_pass_for_others(self, lines, tmp_path):
        """A table of pairs lacks what a page writes."""
        path = tmp_path / "pairs.csv"
        path.write_text("actual,predicted,relevant\na,b,1\n", "utf-8")
        with pytest.raises(DatasetError):
            read_labels(path)


class TestTwoLabellers:
    """How far they agree, and what they settle."""

    @pytest.fixture
    def both(self, tmp_path):
        """Anna calls 4 of 16 relevant; Ben the same but for one of those, and one more."""
        page = to_label(library(8))
        ours = labelled(tmp_path / "anna.jsonl", page, is_priced)
        changed = {"You pay 0 euros for item 0.", "Shelf 1."}

        def says(row):
            return is_priced(row) != (row["predicted"] in changed)

        theirs = labelled(tmp_path / "ben.jsonl", page, says, "ben")
        return read_labels(ours), read_labels(theirs), page

    def test_kappa_by_hand(self, both):
        """14 of 16 alike, and 10 of 16 by chance, as each says yes to 4: (14 - 10) / (16 - 10)."""
        found = both[0].agreement(both[1])
        assert found.counts == (3, 1, 1, 11)
        assert found.share == 14 / 16
        assert found.kappa == pytest.approx(4 / 6)
        assert found.interval[0] < found.kappa < found.interval[1]
        assert (found.labeller, found.matcher) == ("anna", "ben")
        rows = found.disagreements
        assert {*zip(rows["predicted"], rows["first"], rows["second"], strict=True)} == {
            ("You pay 0 euros for item 0.", True, False), ("Shelf 1.", False, True)}  # fmt: skip

    def test_one_label_for_all(self, tmp_path):
        """κ is not defined, and nothing is refused."""
        page = to_label(library(3))
        files = [
            labelled(tmp_path / name, page, lambda row: False, name) for name in ("anna", "ben")
        ]
        found = read_labels(files[0]).agreement(read_labels(files[1]))
        assert (found.share, found.kappa == found.kappa) == (1, False)
        assert "kappa is undefined" in found.summary()

    def test_what_they_disagree_on_is_settled_on_a_page_of_its_own(self, both, tmp_path):
        """Its file holds all labels, and is nobody's opinion to be compared."""
        anna, ben, page = both
        settling = anna.to_settle(ben)
        assert (settling.page, settling.n_pairs, settling.settles) == (
            page.page,
            2,
            ("anna", "ben"),
        )
        rows = [{**row, "labeller": "eva", "settles": settling.settles} for row in settling.rows]
        assert sum(row["relevant"] is None for row in rows) == 2
        rows = [{**row, "relevant": row["relevant"] is not False} for row in rows]
        path = tmp_path / "settled.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        settled = read_labels(path)
        assert settled.n_open == 0
        assert sum(row["relevant"] for row in settled.rows) == 3 + 2
        with pytest.raises(InvalidInput):
            anna.agreement(settled)

    def test_who_agrees_on_all_has_nothing_to_settle(self, both, tmp_path):
        """The page is complete as it is."""
        anna, _, page = both
        like = read_labels(labelled(tmp_path / "eva.jsonl", page, is_priced, "eva"))
        settling = anna.to_settle(like)
        assert settling.n_pairs == 0
        assert all(row["relevant"] is not None for row in settling.rows)

    def test_what_cannot_be_compared_is_refused(self, both, tmp_path):
        """Another page, the same person, nothing in common."""
        anna, _ben, page = both
        other = read_labels(labelled(tmp_path / "o.jsonl", to_label(library(9)), is_priced, "ben"))
        again = read_labels(labelled(tmp_path / "a.jsonl", page, is_priced, " Ａnna"))
        with pytest.warns(KragEvalWarning, match="16 of 16"):
            nothing = read_labels(labelled(tmp_path / "n.jsonl", page, lambda row: None, "eva"))
        for one in (other, again, nothing):
            with pytest.raises(InvalidInput) as caught:
                anna.agreement(one)
            assert caught.value.argument == "other"


def test_a_data_set_of_the_shell_is_the_same_in_python(tmp_path):
    """Ground truth and a run in two files, joined as everywhere."""
    golden, run = tmp_path / "golden.jsonl", tmp_path / "run.jsonl"
    golden.write_text('{"question": "Q", "actual": ["a b"]}\n', "utf-8")
    run.write_text('{"question": "Q", "predicted": ["x y"]}\n', "utf-8")
    page = to_label(golden, retrieved=run)
    assert pairs_of(page) == {("Q", "a b", "x y")}
    assert page.page == to_label(load_dataset(golden, retrieved=run)).page

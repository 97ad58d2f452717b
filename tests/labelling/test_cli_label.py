"""``krag-eval label`` and ``agree``: a page to label on, and what two people made of it."""

import json
from pathlib import Path

import pytest
from cli_runs import content, refusal, rows_in, run, written

from krag_eval import calibrate, read_labels, to_label

GOLDEN = [{"question": f"Q{i}?", "actual": [f"Item {i} costs {i} euros."]} for i in range(20)]
RUN = [{"question": f"Q{i}?", "predicted": [f"You pay {i} euros for item {i}.", f"Shelf {i} here."]}
       for i in range(20)]  # fmt: skip


@pytest.fixture(autouse=True)
def _files(sample):
    written("golden.jsonl", GOLDEN)
    written("run.jsonl", RUN)


def page_of(name):
    """Return what a page holds."""
    source = Path(name).read_text("utf-8")
    return json.loads(source.partition('id="data">')[2].partition("</script>")[0])


def labelled(name, says, path=None):
    """Write what the page of golden.jsonl and run.jsonl makes."""
    rows = [{**row, "labeller": name, "time": None, "relevant": says(row)}
            for row in to_label("golden.jsonl", retrieved="run.jsonl").rows]  # fmt: skip
    written(path or f"{name}.jsonl", rows)


def is_priced(row):
    return "euros" in row["predicted"]


class TestLabel:
    """Pairs in, a page out."""

    def test_two_files_make_a_page(self):
        """Of a sample of questions, each with its first documents; as Python makes it."""
        out = run("label golden.jsonl run.jsonl -o page.html -k 1 --sample 10 --seed 3").output
        made = to_label("golden.jsonl", retrieved="run.jsonl", k=1, sample=10, seed=3)
        assert page_of("page.html")["rows"] == [*made.rows]
        assert "10 pairs to label, of 10 questions" in out
        assert "page.html" in out
        found = content("label golden.jsonl run.jsonl -k 1 --sample 10 --seed 3")
        assert (found["n_pairs"], found["n_questions"], found["page"]) == (10, 10, made.page)

    def test_the_page_speaks_korean_first(self):
        """By ``--lang``; it holds both."""
        run("label golden.jsonl run.jsonl -o page.html --lang ko")
        source = Path("page.html").read_text("utf-8")
        assert '<html lang="ko">' in source
        assert "Not relevant" in source
        assert "관련 없음" in source

    def test_pairs_of_calibrate_are_labelled(self):
        """Their labels do not get onto the page."""
        pairs = [{"actual": "a b", "predicted": "x y", "relevant": True}]
        written("pairs.jsonl", pairs)
        run("label pairs.jsonl -o page.html")
        assert [row["relevant"] for row in page_of("page.html")["rows"]] == [None]

    def test_what_compare_leaves_open_is_labelled(self):
        """The documents that could change a difference, most of them unjudged here."""
        seen = [{**one, "judged": one["actual"], "predicted": [one["actual"][0]]} for one in GOLDEN]
        other = [{**one, "judged": one["actual"], "predicted": RUN[i]["predicted"]}
                 for i, one in enumerate(GOLDEN)]  # fmt: skip
        written("old.jsonl", seen)
        written("new.jsonl", other)
        run("compare old.jsonl new.jsonl --metric recall@1 -k 1 --to-judge judge.csv")
        run("label judge.csv -o page.html")
        texts = {row["predicted"] for row in page_of("page.html")["rows"]}
        assert texts == {one["predicted"][0] for one in RUN}

    def test_a_file_of_questions_without_a_run_is_refused(self):
        """With the option that names one."""
        assert "--run" in refusal("label golden.jsonl -o page.html")

    @pytest.mark.parametrize(
        "typed",
        ["label golden.jsonl run.jsonl --sample 21", "label golden.jsonl run.jsonl -k 0",
         "label golden.jsonl run.jsonl -o page.pdf", "label golden.jsonl run.jsonl -o run.jsonl",
         "label nowhere.jsonl"],
    )  # fmt: skip
    def test_what_cannot_be_done_is_refused(self, typed):
        """In one line."""
        assert refusal(typed)

    def test_the_line_of_an_id_without_a_text_is_named(self):
        """As of any document."""
        written("ids.jsonl", [{"question": "Q", "actual": [{"id": "d1", "page_content": ""}],
                               "predicted": [{"id": "d2", "page_content": ""}]}])  # fmt: skip
        assert refusal("label ids.jsonl").startswith("ids.jsonl:1:")


class TestAgree:
    """Two files in, κ out."""

    @pytest.fixture(autouse=True)
    def _labels(self, _files):
        labelled("anna", is_priced)
        labelled("ben", lambda row: is_priced(row) != (row["predicted"] == "Shelf 1 here."))

    def test_kappa_counts_and_the_list(self):
        """39 of 40 alike; Anna says yes to 20, Ben to 21, so 20 of 40 by chance: 19 of 20."""
        found = content("agree anna.jsonl ben.jsonl")
        assert found["labellers"] == ["anna", "ben"]
        assert found["kappa"] == pytest.approx(19 / 20)
        assert found["counts"] == {"found": 20, "false_alarms": 1, "missed": 0, "rejected": 19}
        [one] = found["disagreements"]
        assert (one["predicted"], one["first"], one["second"]) == ("Shelf 1 here.", False, True)
        assert found["verdict"].startswith("anna and ben give the same label to 97.5 % of 40 pairs")
        [row] = rows_in(run("agree anna.jsonl ben.jsonl --format csv").stdout)
        assert row["question"] == "Q1?"

    def test_open_pairs_are_counted(self):
        """Those of each, in a warning and in what other programs read."""
        labelled("eva", lambda row: None if row["query"] == "Q0?" else is_priced(row))
        ran = run("agree anna.jsonl eva.jsonl")
        assert "eva: 2 of 40 pairs have no label" in ran.stderr
        assert content("agree anna.jsonl eva.jsonl")["n_open"] == {"anna": 0, "eva": 2}

    def test_a_page_to_settle(self):
        """Of the one pair."""
        run("agree anna.jsonl ben.jsonl -o settle.html")
        data = page_of("settle.html")
        assert data["settles"] == ["anna", "ben"]
        assert [row["predicted"] for row in data["rows"] if row["relevant"] is None] == [
            "Shelf 1 here."
        ]

    def test_what_is_no_second_opinion_is_refused(self):
        """The same person, another page, another file."""
        labelled("Anna ", is_priced, "again.jsonl")
        assert refusal("agree anna.jsonl again.jsonl").startswith("SECOND")
        assert refusal("agree anna.jsonl run.jsonl").startswith("run.jsonl:")
        assert refusal("agree anna.jsonl nowhere.jsonl")
        rows = [json.loads(line) for line in Path("ben.jsonl").read_text("utf-8").splitlines()]
        written("cut.jsonl", rows[:-1])
        assert refusal("agree anna.jsonl cut.jsonl").startswith("cut.jsonl:")


class TestCalibrate:
    """The file of a page is one of labelled pairs."""

    def test_it_is_read(self):
        """As Python reads it."""
        labelled("anna", is_priced)
        found = content("calibrate anna.jsonl -m rouge1")
        of_python = calibrate("rouge1", read_labels("anna.jsonl").pairs)
        assert found["best_threshold"] == of_python.best_threshold
        assert found["n_pairs"] == 40

    def test_open_pairs_are_left_out_and_counted(self):
        """A label of a page may be none; that of another file must be there."""
        labelled("anna", lambda row: None if row["query"] == "Q0?" else is_priced(row))
        ran = run("calibrate anna.jsonl -m rouge1 --format json")
        assert json.loads(ran.stdout)["n_pairs"] == 38
        assert "2 of 40" in ran.stderr

    def test_standard_input_is_checked_as_a_file_is(self):
        """Cut, it is refused."""
        labelled("anna", is_priced)
        typed = Path("anna.jsonl").read_text("utf-8")
        assert run("calibrate - -m rouge1", stdin=typed).exit_code == 0
        assert run("calibrate - -m rouge1", stdin=typed.partition("\n")[2]).exit_code == 2

    def test_labels_in_korean(self):
        """As ``read_judgements`` takes them."""
        pairs = [{"actual": "a b", "predicted": text, "relevant": label}
                 for text, label in (("a b", "예"), ("c d", "아니오"))]  # fmt: skip
        written("pairs.jsonl", pairs)
        assert content("calibrate pairs.jsonl -m rouge1")["n_pairs"] == 2

    def test_labels_that_are_alike_are_refused(self):
        """By the file."""
        labelled("anna", lambda row: True)
        assert refusal("calibrate anna.jsonl -m rouge1").startswith("anna.jsonl:")

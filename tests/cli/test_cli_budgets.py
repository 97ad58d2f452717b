"""Budgets, pieces that count together, and metrics that count words, from the shell.

Both queries are small enough to be worked out by hand. The first passage has 12 words; its three
documents have 6 each, and the second and third hold one half of it each. The second passage has 6
words; its documents have 6, the passage itself, and 2. In characters they have 30, 28 and 32, and
29 and 14.
"""

import re
import shlex
from pathlib import Path

import pandas as pd
import pytest
from cli_runs import invoked, printed, refusal, run

from krag_eval import CoverageMatcher, EvaluationResult
from krag_eval.datasets import read_jsonl

OPENING = '"opening hours are nine to five", '
QUERIES = f"""\
{{"question": "Refunds?", \
"actual": ["refunds take up to five days after we receive the parcel here"], \
"predicted": [{OPENING}"refunds take up to five days", "after we receive the parcel here"]}}
{{"question": "Fees?", \
"actual": ["there are no fees for returns"], \
"predicted": ["there are no fees for returns", "something else"]}}
"""
ROOT = Path(__file__).parents[2]
# Commands of the guides that cut off by what fits.
SHOWN = {
    line
    for page in ("docs/comparing.md", "docs/gating.md")
    for line in re.findall(r"^(?:\$ )?(krag-eval .+)$", (ROOT / page).read_text("utf-8"), re.M)
    if " --budget " in line
}


@pytest.fixture
def passages(tmp_path: Path) -> Path:
    """Write the two queries."""
    path = tmp_path / "passages.jsonl"
    path.write_text(QUERIES, "utf-8")
    return path


class TestBudgets:
    """Cutoffs by what fits."""

    def test_alone_they_are_the_only_cutoffs(self, passages: Path) -> None:
        """12 words: two documents of each query. 18 words: all of them."""
        done = run("evaluate", passages, "--union", "--budget", 12, "--budget", 18)
        table = printed(done.stdout)
        assert table["metric"] == ["@12w", "@18w"]
        # The first passage takes its second and third document.
        assert table["macro_recall"] == ["0.5000", "1.0000"]
        # With them, 2 of 3 and 1 of 2 documents are relevant; before, 0 of 2 and 1 of 2.
        assert table["micro_precision"] == ["0.2500", "0.6000"]
        # 1 / log2(3 + 1) and 1.
        assert table["ndcg"] == ["0.5000", "0.7500"]
        assert done.stderr == ""

    def test_words_are_counted_where_coverage_is_the_matcher(self, passages: Path) -> None:
        """Half of the first passage and all of the second, in 12 and 8 words."""
        table = printed(run("evaluate", passages, "--matcher", "coverage", "--budget", 12).stdout)
        assert table["micro_token_recall"] == [f"{12 / 18:.4f}"]
        assert table["macro_token_recall"] == [f"{(6 / 12 + 6 / 6) / 2:.4f}"]
        assert table["macro_token_precision"] == [f"{(6 / 12 + 6 / 8) / 2:.4f}"]
        assert "token_iou" not in printed(run("evaluate", passages, "--budget", 12).stdout)

    def test_beside_other_cutoffs(self, passages: Path) -> None:
        """Those that were typed."""
        output = run("evaluate", passages, "--budget", 12, "-k", 3, "-k", "all").stdout
        assert printed(output)["metric"] == ["@3", "@all", "@12w"]
        spelled = run("evaluate", passages, "-k", 3, "-k", "all", "-k", "12w").stdout
        assert spelled == output

    def test_in_characters(self, passages: Path, tmp_path: Path) -> None:
        """Two documents of the first query have 58 together."""
        rows = tmp_path / "rows.csv"
        counted = ("--length", "characters", "--budget", 57, "--budget", 58)
        run("evaluate", passages, *counted, "--csv", rows)
        table = pd.read_csv(rows)
        assert table["k"].tolist() == ["57c", "57c", "58c", "58c"]
        assert table["retrieved"].tolist() == [1, 2, 2, 2]

    def test_in_chunks(self, passages: Path, tmp_path: Path) -> None:
        """The same output, and the same numbers in the rows and the saved result."""
        options = ("--union", "--budget", 12, "-k", 2, "-k", "58c")
        rows, saved = tmp_path / "rows.csv", tmp_path / "result.json"
        output = run("evaluate", passages, *options).stdout
        done = run("evaluate", passages, *options, "--chunk-size", 1, "--json", saved,
                   "--per-query", rows)  # fmt: skip
        assert done.stdout.startswith(output)
        evaluator = read_jsonl(passages).evaluator(matcher=CoverageMatcher(union=True))
        expected = evaluator.evaluate([2, "58c"], budget=12).to_dict()
        assert EvaluationResult.from_json(saved).to_dict() == expected
        # U of the first query, and of the second, over 12 and 6.
        assert pd.read_csv(rows)["token_recall@12w"].tolist() == [0.5, 1.0]

    @pytest.mark.parametrize(
        ("option", "name", "said"),
        [("--plot", "out.svg", "12 words"), ("--report", "out.html", "12w")],
    )
    def test_pictures_and_pages(
        self, passages: Path, tmp_path: Path, option: str, name: str, said: str
    ) -> None:
        """At the last cutoff, which is a budget."""
        output = tmp_path / name
        done = run("evaluate", passages, "--union", "-k", 2, "--budget", 12, option, output)
        assert done.exit_code == 0
        assert said in output.read_text("utf-8")


class TestUnion:
    """``--union``."""

    @pytest.mark.parametrize(
        ("options", "matcher"),
        [
            ([], "coverage(min_run=5,tokenizer=auto(words,letters),union=yes)"),
            (["coverage"], "coverage(min_run=5,tokenizer=auto(words,letters),union=yes)"),
            (
                ["coverage(min_run=3)"],
                "coverage(min_run=3,tokenizer=auto(words,letters),union=yes)",
            ),
            (
                ["coverage(union=true)"],
                "coverage(min_run=5,tokenizer=auto(words,letters),union=yes)",
            ),
        ],
    )
    def test_is_a_setting_of_coverage(
        self, passages: Path, options: list[str], matcher: str
    ) -> None:
        """Which it chooses, where no matcher is named."""
        typed = [part for one in options for part in ("--matcher", one)]
        output = run("evaluate", passages, "--union", *typed, "-k", 2).stdout
        assert f"matcher={matcher} " in output

    @pytest.mark.parametrize("matcher", ["text", "rougeL", "coverage(union=no)", "coverage("])
    def test_of_no_other_matcher(self, passages: Path, matcher: str) -> None:
        """The refusal names both."""
        refused = refusal("evaluate", passages, "--union", "--matcher", matcher)
        assert refused.startswith("--union ")
        assert refused.endswith(f"{matcher}; leave it out, or pass --matcher coverage.")


class TestVerdicts:
    """Averages at budgets, and averages that count words."""

    @pytest.mark.parametrize(
        ("floor", "code"),
        [
            ("ndcg@18w=0.75", 0),
            ("ndcg@18w=0.76", 1),
            ("macro_token_recall@12w=0.75", 0),
            ("macro_token_recall@2=0.76", 1),
            ("redundancy@12w=0", 0),  # a ceiling: nothing came back twice
        ],
    )
    def test_floors(self, passages: Path, tmp_path: Path, floor: str, code: int) -> None:
        """Of an evaluation, and of what it saved."""
        saved = tmp_path / "result.json"
        cutoffs = ("-k", 2, "--budget", 12, "--budget", 18)
        done = run("evaluate", passages, "--union", *cutoffs, "--json", saved,
                   "--fail-under", floor)  # fmt: skip
        assert done.exit_code == code
        assert run("gate", saved, "--fail-under", floor).exit_code == code

    def test_other_metrics_beside_those_of_words(self, passages: Path) -> None:
        """What is computed by default is computed with a metric that is not."""
        done = run("evaluate", passages, "--union", "--budget", 18, "--fail-under", "rbp@18w=0.1")
        assert {"rbp(p=0.8)", "macro_token_recall"} <= printed(done.stdout).keys()

    def test_words_need_coverage(self, passages: Path) -> None:
        """Before anything is read."""
        for command in (
            ("evaluate", "nowhere.jsonl", "--fail-under", "token_recall@5=0.5"),
            ("compare", "nowhere.jsonl", passages, "--metric", "token_recall@5"),
        ):
            refused = refusal(*command)
            assert refused.startswith(f"{command[-2].removesuffix('=0.5')}: ")
            assert refused.endswith("choose --matcher coverage.")

    def test_a_comparison(self, passages: Path, tmp_path: Path) -> None:
        """Of a file and a saved result: 6 more of 12 words before the budget ends, in one query."""
        better, saved = tmp_path / "better.jsonl", tmp_path / "saved.json"
        better.write_text(QUERIES.replace(OPENING, ""), "utf-8")
        options = ("--matcher", "coverage", "--budget", 12)
        run("evaluate", better, *options, "--json", saved)
        picture = tmp_path / "out.svg"
        metric = ("--metric", "macro_token_recall@12w")
        for other in (better, saved):
            output = run("compare", passages, other, *options, *metric, "--plot", picture).stdout
            assert "macro_token_recall@12w 0.7500 1.0000" in " ".join(output.split())
        assert picture.stat().st_size
        # What is compared otherwise is nDCG at the deepest cutoff that all have.
        copied = tmp_path / "copied.json"
        copied.write_bytes(saved.read_bytes())
        for files, typed in (([passages, better], options), ([saved, copied], ())):
            assert "ndcg@12w" in run("compare", *files, *typed).stdout
        refused = refusal("compare", saved, tmp_path / "other.json", *options[2:])
        assert refused.startswith("--budget says how to evaluate")


class TestRefusals:
    """What the options cannot be."""

    @pytest.mark.parametrize(
        ("options", "subject", "advice"),
        [
            (["--budget", 0], "--budget", ""),
            (["--budget", 12, "--budget", 12], "--budget", ""),
            (["--budget", 12, "-k", "12w"], "--budget", ""),
            (["--length", "characters"], "--length", "; pass --budget 1000."),
            (["--length", "characters", "-k", "12w"], "--length", "; pass --budget 1000."),
            (["-k", "12t"], "-k", ""),
            (["-k", "0w"], "-k", ""),
            (["--budget", 12, "--matcher", "id"], "--budget", ""),
        ],
    )
    def test_are_named_by_option(
        self, tmp_path: Path, options: list[object], subject: str, advice: str
    ) -> None:
        """With advice that can be typed."""
        path = tmp_path / "ids.jsonl"
        path.write_text('{"actual": [{"page_content": "", "id": "a"}], '
                        '"predicted": [{"page_content": "", "id": "a"}]}')  # fmt: skip
        refused = refusal("evaluate", path, *options)
        assert refused.startswith((f"{subject} ", f"{subject}: "))
        assert refused.endswith(advice)

    def test_a_function_cannot_be_typed(self, passages: Path) -> None:
        """Units of a function of the user's are for Python."""
        assert refusal("evaluate", passages, "--budget", 5, "--length", "len").startswith(
            "Invalid value for '--length'"
        )

    def test_trec_has_no_texts(self, tmp_path: Path) -> None:
        """Its files hold ids."""
        qrels, one = tmp_path / "qrels", tmp_path / "run"
        qrels.write_text("1 0 a 1\n")
        one.write_text("1 Q0 a 1 1.0 tag\n")
        assert refusal("trec", qrels, one, "-k", 5, "-k", "1000w").startswith("-k: 1000w is a ")


class TestShortLists:
    """What is said where no list reaches a cutoff."""

    @pytest.mark.parametrize(
        ("arguments", "times"),
        [
            (["evaluate", "-k", "5"], 1),
            (["evaluate", "-k", "5", "--chunk-size", "1"], 1),
            (["evaluate", "-k", "3"], 0),
            (["evaluate", "--budget", "12"], 0),
            (["compare", "-k", "5", "other.jsonl"], 2),  # one of each file
        ],
    )
    def test_it_is_said_once(
        self, passages: Path, arguments: list[str], times: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of each run, on standard error."""
        monkeypatch.chdir(passages.parent)
        Path("other.jsonl").write_text(QUERIES, "utf-8")
        done = invoked(*arguments, passages)
        assert done.exit_code == 0
        assert done.stderr.count("Every list has at most 3 documents") == times
        assert "Every list" not in done.stdout
        assert ("retrieved<=3" in done.stdout) == bool(times)

    @pytest.mark.parametrize("arguments", [[], ["--chunk-size", "1"]])
    def test_of_default_cutoffs_the_signature_says_it(
        self, passages: Path, arguments: list[str]
    ) -> None:
        """Nobody asked for any of them in particular."""
        done = invoked("evaluate", *arguments, passages)
        assert done.exit_code == 0
        assert "Every list" not in done.stderr
        assert "retrieved<=3" in done.stdout

    def test_of_each_run_by_name(self, tmp_path: Path) -> None:
        """Runs of different depth have one signature between them."""
        runs = [tmp_path / name for name in ("shallow", "deep")]
        qrels = tmp_path / "qrels"
        qrels.write_text("1 0 a 1\n")
        runs[0].write_text("1 Q0 a 1 1.0 tag\n")
        runs[1].write_text("1 Q0 a 1 1.0 tag\n1 Q0 b 2 0.5 tag\n")
        done = invoked("trec", qrels, *runs, "-k", "5")
        said = [line.partition(" documen")[0] for line in done.stderr.splitlines()]
        assert said == [
            f"warning: {run}: Every list has at most {n}" for n, run in enumerate(runs, 1)
        ]
        assert done.stdout.count("signature:") == 1
        assert "retrieved<=" not in done.stdout
        done = invoked("trec", qrels, runs[1], "-k", "5")
        assert "retrieved<=2" in done.stdout

    def test_budgets_that_nothing_fits_into(self, passages: Path) -> None:
        """The shortest first document has 6 words."""
        done = run("evaluate", passages, "--budget", 5)
        assert "fits into 5 words (the shortest has 6)" in done.stderr


@pytest.mark.parametrize("command", sorted(SHOWN))
def test_commands_of_the_guides(
    command: str, passages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run as they stand, on files of those names."""
    monkeypatch.chdir(passages.parent)
    program, *arguments = shlex.split(command)
    assert program == "krag-eval"
    for name in filter(re.compile(r"[a-z]+\.jsonl").fullmatch, arguments):
        Path(name).write_text(QUERIES, "utf-8")
    assert run(*arguments).exit_code in (0, 1)


def test_the_guides_show_some() -> None:
    """Of each command that evaluates."""
    assert {command.split()[1] for command in SHOWN} == {"evaluate", "compare"}

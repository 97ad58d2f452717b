"""What the action writes: the summary of a job, and one comment."""

import json
import re

import pytest
from forge import ANN, BOT, MARKER, NUMBER, REPOSITORY, TOKEN, serving

from krag_eval.integrations import github


@pytest.fixture
def forge(monkeypatch):
    """A forge that nobody waits for."""
    with serving() as forge:
        forge.waited = []
        monkeypatch.setattr(github.time, "sleep", forge.waited.append)
        yield forge


@pytest.fixture
def run(tmp_path, forge, capsys):
    """Run the program on a verdict; return what it printed and the summary of the job."""

    def run(verdict="### Retrieval gate: passed\n", event=None, **settings):
        event = {"pull_request": {"number": NUMBER}} if event is None else event
        (tmp_path / "event.json").write_text(json.dumps(event), "utf-8")
        file = tmp_path / "verdict.md"
        file.unlink(missing_ok=True)
        if verdict is not None:
            file.write_text(verdict, "utf-8")
        github.main(
            {
                "GITHUB_API_URL": forge.api,
                "GITHUB_EVENT_PATH": str(tmp_path / "event.json"),
                "GITHUB_REPOSITORY": REPOSITORY,
                "GITHUB_RUN_ID": "99",
                "GITHUB_SERVER_URL": "https://forge.example",
                "GITHUB_SHA": "5" * 40,
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                "GITHUB_TOKEN": TOKEN,
                "NAME": "retrieval",
                "VERDICT": str(file),
                **settings,
            }
        )
        return capsys.readouterr().out, (tmp_path / "summary.md").read_text("utf-8")

    return run


def test_the_first_run_adds_a_comment_and_later_ones_change_it(run, forge):
    """One comment, with the newest verdict; every run has a summary of its own."""
    printed, summary = run("### Retrieval gate: passed\n\nA table.\n")
    assert printed == f"{forge.comments[0]['html_url']}\n"
    assert summary.startswith("### Retrieval gate: passed\n\nA table.\n")
    assert forge.comments[0]["body"] == f"{MARKER}\n{summary}"
    forge.add("Thanks!", ANN)
    run("### Retrieval gate: failed\n")
    assert [one["body"].split("\n")[1] for one in forge.comments[:1]] == [
        "### Retrieval gate: failed"
    ]
    assert len(forge.comments) == 2
    assert [one.split()[0] for one in forge.asked] == ["GET", "GET", "POST", "GET", "GET", "PATCH"]


def test_where_to_read_on(run, forge):
    """The report, if there is one, the log, and the commit that was looked at."""
    event = {"pull_request": {"number": NUMBER, "head": {"sha": "3" * 40}}}
    _, summary = run(event=event, REPORT="https://forge.example/a b)c")
    assert summary.endswith(
        "\n[Report](https://forge.example/a%20b%29c) · "
        f"[Log](https://forge.example/{REPOSITORY}/actions/runs/99) · commit {'3' * 40}\n"
    )


@pytest.mark.parametrize(
    ("user", "authors", "changed"),
    [
        # The token of a workflow has no user: what a bot wrote is its own.
        (None, [ANN, BOT], 2),
        (None, [ANN], None),
        # A person's token: not what another person, or a bot, wrote.
        (ANN, [BOT, {"login": "bob", "type": "User"}, ANN], 3),
        # The account may have been deleted.
        (ANN, [None], None),
    ],
)
def test_whose_comment_is_changed(run, forge, user, authors, changed):
    """Anyone can type the marker, so it must be of the holder of the token."""
    forge.user = user
    for author in authors:
        forge.add(f"{MARKER}\nold", author)
    run()
    is_new = ["passed" in one["body"] for one in forge.comments]
    assert is_new == [place == changed for place in range(1, len(authors) + 1)] + (
        [True] if changed is None else []
    )


def test_a_comment_that_quotes_the_marker_is_another(run, forge):
    """A comment of the bot is this one only if it begins with the marker; so are other names."""
    forge.add(f"> {MARKER}", BOT)
    forge.add("<!-- krag-eval gate: other -->", BOT)
    forge.add(None, BOT)
    run()
    assert len(forge.comments) == 4


@pytest.mark.parametrize(("others", "pages"), [(99, 1), (100, 2), (250, 3)])
def test_it_is_found_on_any_page(run, forge, others, pages):
    """A page has 100 at the most, and a full one may be followed by another."""
    for _ in range(others):
        forge.add("Looks good.", ANN)
    forge.add(f"{MARKER}\nold", BOT)
    run()
    assert "passed" in forge.comments[-1]["body"]
    assert len(forge.comments) == others + 1
    assert sum("page=" in one for one in forge.asked) == pages


def test_a_name_cannot_end_the_marker(run, forge):
    """It is put into a comment of HTML."""
    run(NAME="a --> <img src=x> b")
    assert forge.comments[0]["body"].split("\n")[0] == "<!-- krag-eval gate: a - -img src-x- b -->"


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        # The token of a pull request from a fork may only read.
        ((403, {"message": "Resource not accessible by integration"}), "403"),
        ((401, {"message": "Bad credentials"}), "401"),
        ((404, {"message": "Not Found"}), "404"),
        ((410, {"message": "Issues are disabled for this repo"}), "410"),
        ((422, {"message": "Validation Failed"}), "422"),
        # A limit that ends too late.
        ((403, {"message": "rate limit"}, {"Retry-After": "3600"}), "403"),
        ((403, {"message": "rate limit"}, {"X-RateLimit-Remaining": "0"}), "403"),
        # It would carry the token to another host.
        ((301, b"{}", {"Location": "http://localhost:9/"}), "301"),
        ((200, b"<html>"), "Expecting value"),
    ],
)
def test_what_is_refused_is_in_the_summary_alone(run, forge, fault, told):
    """It is no failure of the job, which the verdict decides about, and not tried again."""
    forge.faults.extend([None, None, fault])
    printed, summary = run()
    assert re.fullmatch(
        rf"::notice title=krag-eval::No comment \([^\n]*{told}[^\n]*\); .*\n", printed
    )
    assert "Retrieval gate: passed" in summary
    assert len(forge.asked) == 3
    assert forge.waited == []
    assert forge.comments == []


def test_a_read_only_token_that_finds_its_comment(run, forge):
    """A later run from a fork: what stands there is of an older commit, and stays."""
    forge.add(f"{MARKER}\nold", BOT)
    forge.faults.extend([None, None, (403, {"message": "Resource not accessible"})])
    assert run()[0].startswith("::notice")
    assert forge.comments[0]["body"] == f"{MARKER}\nold"


@pytest.mark.parametrize(
    ("fault", "waited"),
    [
        ((502, b"<html>Bad gateway"), [1.0]),
        ((429, {"message": "slow down"}, {"Retry-After": "7"}), [7.0]),
        ((403, {"message": "secondary rate limit"}, {"Retry-After": "60"}), [60.0]),
    ],
)
def test_what_passes_is_tried_again(run, forge, fault, waited):
    """The comment is looked for anew: the first attempt may have added it after all."""
    forge.faults.extend([None, None, fault])
    run()
    assert forge.waited == waited
    assert [one["body"].split("\n")[0] for one in forge.comments] == [MARKER]
    assert len(forge.asked) == 6


def test_three_attempts_at_the_most(run, forge):
    """Then the summary is all there is."""
    forge.faults.extend([(500, b"")] * 9)
    assert "500" in run()[0]
    assert (forge.waited, len(forge.asked)) == ([1.0, 2.0], 3)


def test_no_server(run, forge):
    """Nobody listens there."""
    assert "::notice" in run(GITHUB_API_URL="http://127.0.0.1:9")[0]
    assert forge.asked == []


@pytest.mark.parametrize(
    ("event", "settings"),
    [
        ({"ref": "refs/heads/main"}, {}),
        ({"pull_request": {"number": NUMBER}}, {"GITHUB_TOKEN": ""}),
    ],
)
def test_where_there_is_nothing_to_comment_on(run, forge, event, settings):
    """A push, or a comment that was not asked for: the summary alone, and no request."""
    printed, summary = run(event=event, **settings)
    assert printed.startswith("No comment: ")
    assert f"commit {'5' * 40}" in summary
    assert forge.asked == []


def test_a_number_that_the_event_does_not_have(run, forge):
    """As where the run of another workflow starts this one; what is no number is refused."""
    run(event={"workflow_run": {}}, PULL_REQUEST=str(NUMBER))
    assert len(forge.comments) == 1
    assert run(event={}, PULL_REQUEST="7/../8")[0].startswith("::notice")
    assert len(forge.asked) == 3


def test_no_verdict_replaces_an_older_one(run, forge):
    """With the reason, which may quote a question, escaped."""
    run()
    run(verdict=None, ERRORS="krag-eval: error: @ann <b>\n\nkrag-eval: error: #1")
    assert forge.comments[0]["body"].split("\n")[1:5] == [
        "### Retrieval gate: no verdict",
        "",
        r"- krag-eval: error: @&#8203;ann \<b\>",
        "- krag-eval: error: #&#8203;1",
    ]


def test_what_is_too_long_is_cut_and_says_so(run, forge):
    """Between lines; the server takes 65,536 characters, and the summary has more."""
    verdict = "".join(f"- line {i} is not all, 한국어\n" for i in range(12_000))
    _, summary = run(verdict)
    (comment,) = forge.comments
    assert 64_000 < len(comment["body"]) < 65_536
    assert comment["body"].endswith("한국어\n\nCut here: it is longer than GitHub takes.\n")
    assert 249_000 < len(summary) < 250_100
    assert len(summary.encode()) < 2**20

"""The notebooks as they are committed. That running them gives what they show is checked in CI."""

import copy
import importlib.util
import json
import re
from typing import Any

import pytest
from places import ROOT

NOTEBOOKS = ROOT / "notebooks"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
KOREAN = [path for path in PATHS if path.name.endswith(".ko.ipynb")]


def module(name):
    """Import one of the scripts beside the notebooks."""
    spec = importlib.util.spec_from_file_location(name, NOTEBOOKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


outputs = module("outputs")


def read(path):
    """Return the JSON of a notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def markdown(notebook):
    """Return the prose of a notebook."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(cell["source"]) for cell in cells)


def test_notebooks_are_numbered_from_1():
    """Their order is the order to read them in."""
    assert {int(path.name[:2]) for path in PATHS} == set(range(1, 12))


def test_every_notebook_is_there_in_english_and_in_korean():
    """The Korean one has the name of the English one, and "ko" behind it."""
    english = {path.name for path in PATHS if path not in KOREAN}
    assert {path.name.replace(".ko.", ".") for path in KOREAN} == english


@pytest.mark.parametrize("path", KOREAN, ids=lambda path: path.name)
def test_korean_notebook_links_to_korean_notebooks(path):
    """There is one for each of the English ones."""
    links = re.findall(r"\]\((\d\d-[^)]*\.ipynb)\)", markdown(read(path)))
    assert links
    assert [link for link in links if not link.endswith(".ko.ipynb")] == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_notebook_is_tidy(path):
    """Nothing in it changes when it is run again: no times, versions or names of cells."""
    assert read(path) == outputs.tidy(read(path))


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_notebook_was_run_from_top_to_bottom(path):
    """Its cells are counted 1, 2, 3, …, and none failed or wrote to stderr."""
    cells = [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    shown = [output for cell in cells for output in cell["outputs"]]
    assert not [o for o in shown if o["output_type"] == "error" or o.get("name") == "stderr"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_notebook_is_small_and_names_no_place_on_a_machine(path):
    """At most 300 kB, pictures and all, and no path of whoever ran it."""
    assert path.stat().st_size < 300_000
    seen = "\n".join(outputs.shown(read(path)))
    assert not re.search(r"/home/|/tmp/|/Users/|/root/|[A-Z]:\\", seen)


@pytest.mark.parametrize("path", [*PATHS, NOTEBOOKS / "README.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    """Every file a notebook links to is there."""
    text = path.read_text(encoding="utf-8") if path.suffix == ".md" else markdown(read(path))
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert links
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_passage_is_in_its_handbook(language):
    """A golden passage that is not in the text could never be found."""
    small_rag = module("small_rag")
    text = " ".join(small_rag.handbook(language).split())
    rows = small_rag.questions(language)
    assert len({row["question"] for row in rows}) == len(rows) >= 30
    assert [p for row in rows for p in row["actual"] if text.count(p) != 1] == []


def test_chunks_overlap_and_cover_the_whole_text():
    """Five words, three in a chunk, one shared: words 1 to 3 and 3 to 5."""
    found = module("small_rag").chunks("one two  three\nfour five", 3, overlap=1)
    assert [chunk.page_content for chunk in found] == ["one two  three", "three\nfour five"]
    assert [chunk.metadata for chunk in found] == [
        {"start": 0, "end": 14},
        {"start": 9, "end": 24},
    ]


def test_bm25_scores_as_its_formula_says():
    """Three documents of two words; "fox" is in one of them, once: idf ln(1 + 2.5 / 1.5), tf 1."""
    small_rag = module("small_rag")
    documents = [small_rag.Document(text) for text in ("red fox", "red hen", "grey goose")]
    retriever = small_rag.BM25(documents=documents, k=2)
    assert retriever.invoke("fox") == documents[:1]
    assert retriever._score(["fox"], retriever._counts[0], 1.0) == pytest.approx(0.9808292530)
    assert retriever.invoke("red") == documents[:2]
    assert retriever.invoke("blue") == []


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_mistakes_of_the_example_are_all_that_is_planted(language):
    """A price is another, the last chapter is gone, a question is there twice, and no more."""
    small_rag = module("small_rag")
    right, wrong = (small_rag.example(language, mistakes=mistakes) for mistakes in (False, True))
    old, new = small_rag.MISTAKES[language]["price"]
    *labels, again = (row["actual"] for row in wrong["golden.jsonl"])
    changed = [
        pair
        for pair in zip((row["actual"] for row in right["golden.jsonl"]), labels, strict=True)
        if pair[0] != pair[1]
    ]
    assert [[one.replace(old, new) for one in label] for label, _ in changed] == [changed[0][1]]
    assert again in labels
    assert wrong["golden.jsonl"][-1]["question"] == small_rag.MISTAKES[language]["twice"]
    chapter = f"# {small_rag.MISTAKES[language]['chapter']}"
    texts = [" ".join(row["text"] for row in files["chunks.jsonl"]) for files in (wrong, right)]
    assert texts[1].startswith(texts[0])
    assert texts[1].removeprefix(texts[0]).lstrip().startswith(chapter)


def test_the_files_of_the_example_are_one_row_per_question_and_chunk(tmp_path, monkeypatch, capsys):
    """Ids join them; what came back is ten chunks of the index at most, as the index has them."""
    typed = ["small_rag.py", str(tmp_path / "a"), "--words", "50", "--overlap", "10"]
    monkeypatch.setattr("sys.argv", typed)
    module("small_rag").main()
    assert capsys.readouterr().out.count("golden.jsonl: 80") == 1
    golden, run, index = (
        [json.loads(line) for line in (tmp_path / "a" / name).read_text("utf-8").splitlines()]
        for name in ("golden.jsonl", "run.jsonl", "chunks.jsonl")
    )
    assert [row["id"] for row in run] == [row["id"] for row in golden]
    assert len({row["id"] for row in golden}) == 80
    assert {len(chunk["text"].split()) for chunk in index[:-1]} == {50}
    first, second = (chunk["text"].split() for chunk in index[:2])
    assert first[-10:] == second[:10]
    assert all(chunk in index for row in run for chunk in row["predicted"])
    assert max(len(row["predicted"]) for row in run) == 10


def test_an_overlap_of_whole_chunks_is_refused(tmp_path, monkeypatch, capsys):
    """It would never come to the end of the text."""
    monkeypatch.setattr("sys.argv", ["small_rag.py", str(tmp_path), "--overlap", "80"])
    with pytest.raises(SystemExit):
        module("small_rag").main()
    assert "--overlap" in capsys.readouterr().err


def test_letter_embeddings_are_of_length_1_and_see_past_particles():
    """A word with another particle is nearer than another word; equal texts are equal."""
    embeddings = module("small_rag").LetterEmbeddings()
    first, second, other = embeddings.embed_documents(["자전거를", "자전거는", "이용권을"])

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert cosine(first, first) == pytest.approx(1.0)
    assert cosine(first, second) > cosine(first, other)
    assert embeddings.embed_query("자전거를") == first


def notebook(*shown):
    """Return a notebook of one cell that shows something."""
    cell = {
        "cell_type": "code",
        "id": "a1b2c3",
        "metadata": {"execution": {"shell.execute_reply": "2020-01-01T00:00:00Z"}},
        "execution_count": 1,
        "source": ["1 + 1"],
        "outputs": list(shown),
    }
    return {"cells": [cell], "metadata": {"language_info": {"version": "3.11.7"}}}


TEXT = {"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]}
PICTURE = {
    "output_type": "display_data",
    "data": {"image/png": "aaaa", "text/plain": ["<Figure size 700x500 with 1 Axes>"]},
    "metadata": {},
}


def differences(tmp_path, before, after):
    """Write two versions of a notebook and compare them."""
    for folder, version in (("committed", before), ("executed", after)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "01.ipynb").write_text(json.dumps(version), encoding="utf-8")
    found: list[str] = outputs.differences(tmp_path / "committed", tmp_path / "executed")
    return found


def test_a_changed_output_is_a_difference(tmp_path):
    """The line that was and the line that is are named."""
    changed = TEXT | {"text": ["one\n", "three\n"]}
    found = differences(tmp_path, notebook(TEXT), notebook(changed))
    assert "-two" in found
    assert "+three" in found


@pytest.mark.parametrize("after", [notebook(), notebook(TEXT, TEXT)], ids=["gone", "new"])
def test_an_output_gone_or_new_is_a_difference(tmp_path, after):
    """It is not enough that what both show is equal."""
    assert differences(tmp_path, notebook(TEXT), after)


def test_where_printing_is_cut_makes_no_difference(tmp_path):
    """A slow kernel sends what one cell printed in several parts, wherever it happened to be."""
    parts = TEXT | {"text": ["one"]}, TEXT | {"text": ["\n", "two\n"]}
    assert differences(tmp_path, notebook(TEXT), notebook(*parts)) == []
    assert outputs.tidy(notebook(*parts)) == outputs.tidy(notebook(TEXT))
    error = TEXT | {"name": "stderr"}
    assert outputs.shown(notebook(TEXT, error)) != outputs.shown(notebook(TEXT, TEXT))


def test_pictures_may_differ_but_not_be_missing(tmp_path):
    """Another version of matplotlib draws other bytes; that there is a picture must hold."""
    other = copy.deepcopy(PICTURE)
    other["data"]["image/png"] = "bbbb"
    assert differences(tmp_path, notebook(PICTURE), notebook(other)) == []
    assert outputs.shown(notebook(PICTURE)) != outputs.shown(notebook())


def test_measured_times_may_differ_but_not_be_missing(tmp_path):
    """A cell tagged "measured" shows how long something took, which is never the same twice."""
    before, after = notebook(TEXT), notebook(TEXT | {"text": ["three\n"]})
    for version in (before, after):
        version["cells"][0]["metadata"] = {"tags": ["measured"]}
    assert differences(tmp_path, before, after) == []
    assert outputs.shown(before) != outputs.shown(notebook())


def test_tidying_keeps_what_is_shown():
    """Times, versions and the size of a figure go; text and pictures stay."""
    tidied = outputs.tidy(notebook(TEXT, PICTURE))
    assert outputs.shown(tidied) == outputs.shown(notebook(TEXT, PICTURE))
    assert "2020" not in json.dumps(tidied)
    assert "3.11" not in json.dumps(tidied)
    assert "Figure" not in json.dumps(tidied)


def test_compare_fails_when_something_differs(tmp_path, capsys):
    """The command's status is what CI goes by."""
    differences(tmp_path, notebook(TEXT), notebook())
    folders = [str(tmp_path / "committed"), str(tmp_path / "executed")]
    assert outputs.main(["compare", *folders]) == 1
    assert "-two" in capsys.readouterr().out
    assert outputs.main(["compare", folders[0], folders[0]]) == 0


def test_a_machine_without_a_korean_font_shows_the_same():
    """Its warnings of fonts are left out; any other warning is compared."""
    fonts = "x.py:3: KragEvalWarning: No installed font can show some letters.\n"
    other = "x.py:3: KragEvalWarning: There are fewer than 30 queries.\n"
    of_fonts = {"output_type": "stream", "name": "stderr", "text": [fonts, "  plot(x)\n"]}
    of_both = of_fonts | {"text": [fonts, "  plot(x)\n", other]}
    assert outputs.shown(notebook(TEXT, of_fonts)) == outputs.shown(notebook(TEXT))
    assert outputs.shown(notebook(TEXT, of_both)) != outputs.shown(notebook(TEXT))

"""Bars: where they are wanted."""

from krag_eval.core import bar_of
from krag_eval.core.files import bars


def bar(progress=None, **options):
    """Return a bar of ten."""
    return bar_of(progress, total=10, done=0, title="working", **options)


def test_a_bar_without_a_wish_of_its_own_follows_the_one_around_it():
    """And its own wish goes before that."""
    assert bar() is None  # nobody looks at a test
    with bars(True):
        assert bar() is not None
        assert bar(False) is None
        with bars(False):
            assert bar() is None
            assert bar(True) is not None
        assert bar() is not None
    assert bar() is None


def test_where_nothing_can_be_drawn_over_it_is_one_line(capsys):
    """A log has neither a terminal nor a widget."""
    shown = bar(True)
    for _ in range(10):
        shown.update()
    assert capsys.readouterr().err == ""
    shown.close()
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "\r" not in told
    assert told.startswith("working: 100%")
    assert "10/10" in told


NOTEBOOK = """
from krag_eval import evaluate_retriever
rows = [{"question": f"q {i}", "actual": [f"a {i}"]} for i in range(60)]
def slow(question):
    import time
    time.sleep(0.02)
    return [question.replace("q", "a")]
result = evaluate_retriever(slow, rows, 1, max_concurrency=1)
"""


def test_a_notebook_that_is_run_as_a_whole_has_one_line_per_run():
    """As by nbconvert and papermill, which run cells by nbclient."""
    import nbclient
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(NOTEBOOK)])
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    (output,) = notebook.cells[0].outputs
    assert (output.output_type, output.name) == ("stream", "stderr")
    assert output.text.count("\n") == 1
    assert "\r" not in output.text
    assert "60/60" in output.text

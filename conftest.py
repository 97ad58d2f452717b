"""Which tests run: by default those of the ``test`` extra; with ``--full`` all there are.

With ``--rest``, what the defaults leave out.

``WITH_DEV`` needs packages of the ``dev`` extra, ``SLOW`` takes more than half of the time. Without
``--full``, properties are tried on fewer examples. ``.ci/run`` runs the defaults, then the rest.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent
#: What needs an engine, another evaluation tool or the builder of the site.
WITH_DEV = (
    "docs/_ext",
    "docs/agents.md",
    "docs/ko/agents.md",
    "docs/ko/recipes.md",
    "docs/performance.md",
    "docs/ko/performance.md",
    "krag_eval/distributed/dask.py",
    "krag_eval/integrations/openevals.py",
    "tests/formats/test_cli_trec.py",
    "tests/formats/test_trec.py",
    "tests/formats/test_trec_parity.py",
    "tests/distributed",
    "tests/integrations/test_openevals.py",
    "tests/asking/test_agents.py",
    "tests/sweeping/test_sweep_packages.py",
    "tests/across_rooms/test_options.py",
    "tests/core/scoring/test_parity.py",
    "tests/core/scoring/test_parity_ranx.py",
    "tests/docs/test_site.py",
    "tests/labelling/test_labelling_in_a_browser.py",
    "tests/report/test_report_in_a_browser.py",
)
#: What starts processes, fills memory or goes through every character; by file or test.
SLOW = (
    "tests/across_rooms/test_determinism.py",
    "tests/asking/test_checkpoint.py::test_a_file_torn_anywhere_is_recovered_from",
    "tests/asking/test_checkpoint.py::test_killed_runs_resume",
    "tests/asking/test_typing.py::test_what_a_strict_checker_takes_and_refuses",
    "tests/cli/test_cli_exit_codes.py",
    "tests/comparison/test_gates.py::test_a_gate_fails_wherever_the_comparison_shows_a_loss",
    "tests/core/matching/test_contradictions.py::test_a_number_may_have_any_length",
    "tests/core/matching/test_contradictions.py::test_on_texts_in_versions_the_guard_reports",
    "tests/core/matching/test_contradictions.py::test_the_tables_fit_the_guides",
    "tests/core/matching/test_contradictions.py::test_the_texts_that_were_kept_aside",
    "tests/core/matching/test_parallel.py",
    "tests/core/matching/test_properties.py",
    "tests/core/matching/test_spans.py::test_many_overlapping_spans_take_no_square",
    "tests/core/matching/test_tokenizers.py::test_kiwi_batches_work_in_a_forked_child",
    "tests/core/matching/test_tokenizers.py::test_no_built_in_tokenizer_loses_a_text",
    "tests/core/matching/test_tokenizers.py::test_rouge_score_parity_on_every_character",
    "tests/core/matching/test_tokenizers.py::test_words_treat_every_character_as_defined",
    "tests/core/scoring/test_digits.py::test_other_processors_and_threads_print_the_same",
    "tests/core/test_evaluator.py::test_documents_with_alternatives_and_repeats_agree_with_loops",
    "tests/core/test_evaluator.py::test_the_order_of_queries_does_not_change_a_digit",
    "tests/loading/test_lines.py::TestBombs",
    "tests/loading/test_parquet.py::TestLimits",
    "tests/integrations/test_action.py",
    "tests/matchers/test_judge.py::test_a_killed_run_asks_only_for_the_rest",
    "tests/matchers/test_judge.py::test_ctrl_c_loses_nothing",
    "tests/matchers/test_judge.py::test_several_processes_share_a_file",
    "tests/streaming/test_evaluate_file.py::test_a_file_of_rows_cannot_fill_the_memory",
    "tests/streaming/test_killing.py",
    "tests/study/test_systems.py",
    "tests/sweeping/test_cli_sweep.py::test_an_interrupt_tells_what_is_kept",
    "tests/sweeping/test_sweep.py::test_a_killed_sweep_goes_on[50]",
    "tests/sweeping/test_sweep.py::test_the_table_of_chunk_sizes",
    # Needs LangChain's splitters, which come with `dev`.
    "tests/core/matching/test_spans.py::test_a_splitter_writes_what_is_read",
    # Needs what runs notebooks, which comes with `dev`.
    "tests/core/display/test_progress.py"
    "::test_a_notebook_that_is_run_as_a_whole_has_one_line_per_run",
    "tests/core/test_partitions.py::test_parts_give_the_numbers_of_the_whole",
)

# Nothing fails for being slow once: the machine may have been busy.
settings.register_profile("quick", max_examples=20, deadline=None)
settings.register_profile("full", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--full`` and ``--rest``."""
    parser.addoption("--full", action="store_true", help="also what needs the dev extra, or long")
    parser.addoption("--rest", action="store_true", help="what --full runs beyond the defaults")


def _all_is_collected(config: pytest.Config) -> bool:
    return bool(config.getoption("--full") or config.getoption("--rest"))


def _runs(item: pytest.Item, config: pytest.Config) -> bool:
    """Tell whether a test runs: by default the quick ones; with ``--rest`` all but these.

    Properties are among the rest too, since by default they are tried on few examples, and so are
    pictures, which look for the machine's fonts.
    """
    if config.getoption("--full"):
        return True
    quick = not item.nodeid.startswith(SLOW)
    if not config.getoption("--rest"):
        return quick
    again = getattr(getattr(item, "obj", None), "is_hypothesis_test", False)
    again = again or item.get_closest_marker("tries_fewer")
    return bool(not quick or again) or item.nodeid.startswith((*WITH_DEV, "tests/plotting"))


def pytest_configure(config: pytest.Config) -> None:
    """Try fewer examples of each property unless everything is to run."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As where a shell runs the tests in the background; what they start must be interruptible.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not os.access(os.path.expanduser("~"), os.W_OK):
        # Each process would say on standard error that matplotlib has no place of its own.
        own = tempfile.mkdtemp(prefix="krag-eval-tests-")
        config.add_cleanup(lambda: shutil.rmtree(own, ignore_errors=True))
        os.environ.setdefault("MPLCONFIGDIR", own)
    settings.load_profile("full" if _all_is_collected(config) else "quick")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the test extra does not bring packages for, unless asked for."""
    if _all_is_collected(config):
        return None
    return any(collection_path == ROOT / one for one in WITH_DEV) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is not to run, and say how much."""
    left = [item for item in items if not _runs(item, config)]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if _runs(item, config)]

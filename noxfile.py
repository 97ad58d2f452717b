"""Everything a change must pass, in sessions: ``nox -l`` lists them, ``nox -s lint docs`` runs two.

``.ci/run`` calls the same sessions in the environment that README sets up, as
``nox --no-venv --no-install -s …``.
"""

import os
import re
import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "venv"
nox.options.sessions = ["lint", "forge", "docs", "tests-3.12"]

PARALLEL = ("-n", "auto", "--dist", "loadfile")
#: What numpy computes with, held against its first version.
COMPUTED = (
    "tests/core/matching", "tests/core/scoring", "tests/core/results/test_evidence.py",
    "tests/intervals", "tests/matchers",
    "tests/comparison", "tests/diagnosis", "tests/lab", "tests/auditing", "tests/streaming",
    "tests/loading/test_parquet.py", "tests/across_rooms/test_pieces_everywhere.py",
)  # fmt: skip
#: The files of the forge, by the schema that check-jsonschema brings along for each.
SCHEMAS = {
    "github-actions": ["action.yml"],
    "github-workflows": [".github/workflows/*.yml"],
    "github-issue-forms": [".github/ISSUE_TEMPLATE/bug.yml", ".github/ISSUE_TEMPLATE/idea.yml"],
    "github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "dependabot": [".github/dependabot.yml"],
    "readthedocs": [".readthedocs.yaml"],
    "citation-file-format": ["CITATION.cff"],
}


@nox.session(python=["3.11", "3.12", "3.13"])
def tests(session: nox.Session) -> None:
    """The tests that run by default, and the examples in docstrings, README and docs."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "pytest", *PARALLEL, *session.posargs)


# numpy 1.26 has no wheels after 3.12.
@nox.session(python=os.environ.get("PYTHON_OF_NUMPY_1", "3.11"))
def numpy_1(session: nox.Session) -> None:
    """What is computed, with numpy 1.26."""
    session.install("-e", ".[test]", "numpy==1.26.*", "pyarrow<26")  # 26 needs numpy 2
    alike = ("-p", "no:cacheprovider", "--ignore", "tests/matchers/test_judge.py")
    session.run("python", "-m", "pytest", *PARALLEL, *alike, *COMPUTED)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format, types."""
    session.install("-e", ".[dev]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def forge(session: nox.Session) -> None:
    """The files that a forge alone runs, against their schemas; GitLab's job is in the docs."""
    session.install("check-jsonschema>=0.31")
    for schema, patterns in SCHEMAS.items():
        files = [str(file) for one in patterns for file in sorted(Path().glob(one))]
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)
    for page in ("docs/gating.md", "docs/ko/gating.md"):
        (job,) = re.findall(
            r"^```yaml\n(retrieval:\n.*?)^```$", Path(page).read_text("utf-8"), re.S | re.M
        )
        file = Path(session.create_tmp()) / "gitlab.yml"
        file.write_text(job, "utf-8")
        session.run("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", str(file))


@nox.session
def docs(session: nox.Session) -> None:
    """The site, warnings are errors; links and anchors within it are checked."""
    session.install("-e", ".[docs]")
    session.run(*("python", "-m", "sphinx", "-q", "-W", "--keep-going"), "-b", "html", "docs", SITE)
    session.run("python", "docs/_ext/offline.py", SITE)


SITE = "docs/_build/html"


@nox.session
def package(session: nox.Session) -> None:
    """Sdist and wheel build, and their metadata is in order; supply tests what is in them."""
    session.install("build", "twine")
    shutil.rmtree("dist", ignore_errors=True)
    session.run("python", "-m", "build", silent=True)
    session.run("twine", "check", "--strict", *map(str, Path("dist").iterdir()))


@nox.session
def fuzz(session: nox.Session) -> None:
    """Fuzz, briefly; fuzz/README.md says how to go on for hours."""
    session.install("-e", ".[dev]")
    for target in ("names", "readers", "saved", "shapes", "shell"):
        told = session.run("python", "fuzz/run.py", target, "-max_total_time=10", silent=True)
        print(str(told).rstrip().rpartition("\n")[2])


@nox.session
def rest(session: nox.Session) -> None:
    """What the defaults leave out: tests that are slow or need dev, all of each property."""
    session.run(".ci/chromium", external=True)
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "--rest", *PARALLEL, *session.posargs)


@nox.session
def notebooks(session: nox.Session) -> None:
    """Run the notebooks, and compare what they show with what is committed."""
    session.install("-e", ".[dev]")
    shutil.rmtree("executed", ignore_errors=True)
    shutil.copytree("notebooks", "executed")
    files = map(str, sorted(Path("executed").glob("*.ipynb")))
    session.run("python", "-m", "pytest", "--nbmake", "--overwrite", *files)
    session.run("python", "notebooks/outputs.py", "compare", "notebooks", "executed")


@nox.session(python=False)
@nox.parametrize("script", ["run", "oldest", "supply", "run-engines"])
def ci(session: nox.Session, script: str) -> None:
    """The scripts that set up environments of their own, in a fresh copy of the tree."""
    session.run(f".ci/{script}", *session.posargs, external=True)


@nox.session
def rooms(session: nox.Session) -> None:
    """Delete each room in turn: what does not need it imports, and the core evaluates.

    Then the tests of the core and of rooms, with no room there that they do not declare.
    """
    session.install("-e", ".[test]")
    folders = {path.parent.name for path in Path("krag_eval").glob("*/__init__.py")}
    names = sorted(folders - {"core", "datasets"})
    session.run("python", "tests/without_room.py", *names)
    session.run("python", "tests/room_alone.py", *ALONE)


#: Rooms whose tests are run without those that they do not declare. The shell has the commands of
#: all; of the others the import of what is left is tried.
ALONE = (
    "core", "asking", "auditing", "comparison", "datasets", "diagnosis", "history",
    "intervals", "lab",
)  # fmt: skip

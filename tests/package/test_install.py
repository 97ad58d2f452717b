"""The line that installs the package: right wherever it was installed from, on every page."""

import importlib.metadata
import json
import re
import shlex
import tomllib
from importlib.metadata import PackageNotFoundError, PathDistribution
from pathlib import Path
from unittest.mock import Mock

import pytest
import yaml
from packaging.requirements import Requirement
from places import ROOT

import krag_eval
from krag_eval.core import install_line, speaking


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that makes up what pip keeps of an installation."""

    def made_up(urls=(), origin=None):
        folder = tmp_path / "krag_eval-1.0.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", "Name: krag-eval", "Version: 1.0"]
        lines += [f"Project-URL: {one}" for one in urls]
        (folder / "METADATA").write_text("\n".join(lines), "utf-8")
        if origin is not None:
            (folder / "direct_url.json").write_text(json.dumps(origin), "utf-8")
        found = PathDistribution(folder)
        monkeypatch.setattr(importlib.metadata, "distribution", lambda name: found)

    return made_up


@pytest.mark.parametrize("label", ["Repository", "Source", "source code", "GitHub"])
def test_by_the_address_of_the_repository_once_there_is_one(install, label: str) -> None:
    """A direct reference of PEP 508, as ``packaging`` reads it."""
    address = "https://example.org/made/up.git"
    install(("Documentation, https://example.org/docs", f"{label}, {address}"))
    pip, verb, written = shlex.split(install_line("korean"))
    requirement = Requirement(written)
    assert (pip, verb) == ("pip", "install")
    assert (requirement.name, requirement.extras) == ("krag-eval", {"korean"})
    assert requirement.url == f"git+{address}"
    assert Requirement(shlex.split(install_line())[2]).extras == set()


@pytest.mark.parametrize(("editable", "flags"), [(False, []), (True, ["-e"])])
def test_by_the_folder_it_was_installed_from(install, tmp_path, editable, flags):
    """A folder with spaces and Hangul, as direct_url.json (PEP 610) escapes it."""
    folder = tmp_path / "내 clone"
    folder.mkdir()
    install(origin={"url": folder.as_uri(), "dir_info": {"editable": editable}})
    assert shlex.split(install_line("korean")) == ["pip", "install", *flags, f"{folder}[korean]"]
    assert shlex.split(install_line()) == ["pip", "install", *flags, str(folder)]


@pytest.mark.parametrize(
    "origin",
    [
        None,
        {"url": "file:///wheels/krag_eval-1.0-py3-none-any.whl", "archive_info": {}},
        {"url": "file:///no/longer/there", "dir_info": {}},
        PackageNotFoundError("krag-eval"),
    ],
)
def test_by_the_clone_where_nothing_says_which(install, monkeypatch, origin):
    """A wheel says nothing of it, a folder may be gone, or the clone be only on the path."""
    if isinstance(origin, Exception):
        monkeypatch.setattr(importlib.metadata, "distribution", Mock(side_effect=origin))
    else:
        install(("Homepage, https://example.org",), origin)
    assert install_line() == 'pip install "<path of the clone>"'
    assert install_line("ray") == 'pip install "<path of the clone>[ray]"'
    with speaking("ko"):
        assert install_line("ray") == 'pip install "<저장소 경로>[ray]"'


# Every line that is shown to anybody

#: What to install that is not ours; each of these is on the package index.
OTHERS = {
    "AutoRAG", "build", "continuous-eval", "haystack-ai", "jupyterlab", "krag==0.0.32",
    "langchain", "langchain-classic", "langchain-community<0.4", "langchain-huggingface[full]",
    "langchain-ollama", "langchain-openai", "llama-index-core", "mlflow", "mlflow-skinny",
    "numpy", "pandas", "pytest", "pytrec-eval-terrier", "ragas", "ranx", "rapidfuzz",
    "trulens-feedback", "twine",
}  # fmt: skip
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
SHOWN = sorted(
    path
    for pattern in (
        "*.md", "docs/**/*.md", "docs/**/*.py", "notebooks/*.md", "notebooks/*.ipynb", "fuzz/*.md",
        "krag_eval/**/*.py", "krag_eval/**/*.html", "benchmarks/**/*.py", "skills/**/*.md",
    )
    for path in ROOT.glob(pattern)
    # The site writes docs/api from docstrings, which are read here as they are.
    # What was right when it was written is history; errors makes the lines tested above.
    if path.name not in ("CHANGELOG.md", "install.py") and not {"_build", "api"} & {*path.parts}
)  # fmt: skip


def lines_in(path: Path) -> list[str]:
    """Return what stands behind every ``pip install`` that is meant to be typed."""
    text = path.read_text("utf-8").replace('\\"', '"')
    found = re.findall(r"pip install((?: (?:\"[^\"`\n]*\"|'[^'`\n]*'|[\w.\[\]=-]+))+)", text)
    return [one.strip() for one in found]


def is_right(line: str) -> bool:
    """Tell whether pip can install what a line says, for those who have a clone."""
    words = [one for one in shlex.split(line) if not one.startswith("-")]
    ours = "|".join(PROJECT["optional-dependencies"])
    clone = re.compile(rf"(\.|<path of the clone>|<저장소 경로>)(\[({ours})(,({ours}))*\])?")
    if "-r" in shlex.split(line):
        return True
    return all(one in OTHERS or clone.fullmatch(one) for one in words)


def test_no_page_or_message_gives_a_line_that_fails() -> None:
    """There is no krag-eval on the package index: its name alone installs nothing."""
    wrong = [
        f"{path.relative_to(ROOT)}: pip install {line}"
        for path in SHOWN
        for line in lines_in(path)
        if not is_right(line)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "line", ["krag-eval", '"krag-eval[korean]"', '".[koren]"', "krag_eval", "pandas krag-eval"]
)
def test_a_wrong_line_is_found(line: str) -> None:
    """What the walk above is to find."""
    assert not is_right(line)


def test_every_dependency_is_explained() -> None:
    """The section on what is installed has a row for each of them, and for nothing else."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    section = page.partition("\n## What is installed with it\n")[2]
    rows = set(re.findall(r"^\| ([a-z][\w-]+) \|", section, re.MULTILINE)) - {"package"}
    assert rows == {Requirement(one).name for one in PROJECT["dependencies"]}


def test_the_citation_is_of_this_project() -> None:
    """What CFF 1.2 requires, and no more than ``pyproject.toml`` says of the project."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert cited["cff-version"] == "1.2.0"
    assert cited["authors"] == PROJECT["authors"]
    assert cited["version"] == krag_eval.__version__
    assert (cited["license"], cited["abstract"]) == (PROJECT["license"], PROJECT["description"])


def test_the_workflow_of_a_release_builds_before_it_publishes() -> None:
    """It parses, publishes without a password, and nothing but what was built."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
    assert jobs["publish"]["needs"] == "build"
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert not any("password" in str(step) for step in jobs["publish"]["steps"])

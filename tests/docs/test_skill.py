"""The skill for agents: its head by the Agent Skills specification, and every command as it stands.

https://agentskills.io/specification
"""

import json
import re
import shlex

import pytest
import yaml
from cli_runs import finding, invoked, written
from places import ROOT

SKILL = ROOT / "skills" / "krag-eval" / "SKILL.md"
TEXT = SKILL.read_text("utf-8")
HEAD = yaml.safe_load(TEXT.split("---\n")[1])
COMMANDS = re.findall(r"^ *(krag-eval .+)$|`(krag-eval [^`\n]+--format json)`", TEXT, re.MULTILINE)


def test_its_head_is_that_of_a_skill():
    """A name like the folder's, and a description that fits into what an agent loads of all."""
    assert HEAD["name"] == SKILL.parent.name
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", HEAD["name"])
    assert 1 <= len(HEAD["description"]) <= 1024
    assert len(HEAD["compatibility"]) <= 500
    allowed = {"name", "description", "license", "compatibility", "metadata", "allowed-tools"}
    assert HEAD.keys() <= allowed


def test_it_is_short():
    """An agent reads all of it before it begins."""
    assert len(TEXT.split()) < 800


@pytest.fixture
def _files(tmp_path, monkeypatch):
    """Files of the names in the skill: 40 questions, of which 30 and 35 are found."""
    monkeypatch.chdir(tmp_path)
    rows = [{**one, "actual": [f"{one['actual'][0]} of a handbook on its shelf"],
             "predicted": [f"see {one['predicted'][0]} of a handbook on its shelf", "x"]}
            for one in finding(30)]  # fmt: skip
    better = [{**one, "predicted": one["predicted"] if at > 34 else [f"see {one['actual'][0]}"]}
              for at, one in enumerate(rows)]  # fmt: skip
    sides = {"golden": rows, "run": rows, "before": rows, "after": better}
    for name, several in sides.items():
        side = "actual" if name == "golden" else "predicted"
        written(f"{name}.jsonl", [{key: one[key] for key in ("question", side)} for one in several])
    chunks = [f"see {one['actual'][0]}" for one in rows]
    chunks += ["x", "see other of a handbook on its shelf"]
    written("chunks.jsonl", [{"page_content": text} for text in chunks])


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("typed", [one or other for one, other in COMMANDS])
def test_every_command_works_as_it_stands(typed):
    """And prints what the skill says that it prints."""
    program, *arguments = shlex.split(typed)
    ran = invoked(*arguments)
    assert program == "krag-eval"
    assert ran.exit_code == 0, ran.output
    content = json.loads(ran.stdout)
    assert content["verdict"]
    assert isinstance(content["advice"], list)
    for name in ("signature", "outcome", "classes", "intervals"):
        if f"`{name}`" in TEXT and name in content:
            assert content[name]


def test_it_has_the_five_commands():
    """Each with --format json."""
    typed = [one or other for one, other in COMMANDS]
    names = {one.split()[1] for one in typed}
    assert names == {"audit", "compare", "diagnose", "evaluate", "explain", "gate", "misses"}
    assert all(one.endswith("--format json") for one in typed)


def test_plugins_find_it():
    """The manifest and the marketplace name a folder that has skills, as Claude Code looks for."""
    folder = ROOT / ".claude-plugin"
    plugin = json.loads((folder / "plugin.json").read_text("utf-8"))
    marketplace = json.loads((folder / "marketplace.json").read_text("utf-8"))
    (listed,) = marketplace["plugins"]
    assert listed["name"] == plugin["name"] == HEAD["name"]
    assert listed["description"] == plugin["description"]
    source = ROOT / listed["source"]
    assert (source / ".claude-plugin" / "plugin.json").is_file()
    assert SKILL in (source / "skills").glob("*/SKILL.md")

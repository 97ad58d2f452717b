"""Pages with console blocks, ``$ krag-eval …``: run in order, they print what is shown."""

import os
import re
import runpy
import shlex
import sys
from doctest import ELLIPSIS, OutputChecker

import pytest
from cli_runs import run
from places import ROOT

PAGES = ["README.md", "README.ko.md", "docs/quickstart.md", "docs/ko/quickstart.md"]


def steps(page):
    """Return each command of a page's console blocks, and the lines below it up to the next."""
    blocks = re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [
        (command, shown)
        for block in blocks
        for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
    ]


def printed(command, capsys):
    """Run a command of a page; return what it prints on standard output."""
    program, *arguments = shlex.split(command)
    if program == "krag-eval":
        return run(*arguments).stdout
    assert program == "python"
    capsys.readouterr()
    sys.argv = arguments
    runpy.run_path(str(ROOT / arguments[0]), run_name="__main__")
    return capsys.readouterr().out


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_what_its_commands_print(name, capsys, monkeypatch):
    """Line by line; a lone ``…`` stands for lines left out, and Korean pages are read in Korean."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    korean = re.search(r"\bko\b", name)
    monkeypatch.setenv("KRAG_EVAL_LANG", "ko" if korean else "en")
    found = steps((ROOT / name).read_text("utf-8"))
    assert found
    for command, shown in found:
        output = printed(command, capsys).replace(os.sep, "/")
        expected = re.sub(r"^…$", "...", shown, flags=re.MULTILINE)
        assert OutputChecker().check_output(expected, output, ELLIPSIS), f"$ {command}\n{output}"

"""Fuzz one target with atheris: ``python fuzz/run.py TARGET [libFuzzer options]``."""

from __future__ import annotations

import copy
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import atheris

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shared"))
with atheris.instrument_imports(include=["krag_eval"]):
    import fuzz_targets

    import krag_eval.cli
    import krag_eval.comparison.comparison
    import krag_eval.core.results.explanation
    import krag_eval.datasets

warnings.simplefilter("ignore")
WORK = Path(tempfile.mkdtemp())
SAVED = fuzz_targets.saved_example(WORK)


def readers(data: bytes) -> None:
    """Files of every kind; the first byte says which."""
    kinds = list(fuzz_targets.READERS)
    if data:
        fuzz_targets.reader(kinds[data[0] % len(kinds)], data[1:])


def names(data: bytes) -> None:
    """Texts that name something."""
    provider = atheris.FuzzedDataProvider(data)
    target = provider.PickValueInList(
        [fuzz_targets.conventions, fuzz_targets.metric_name, fuzz_targets.floor]
    )
    target(provider.ConsumeUnicode(sys.maxsize))
    fuzz_targets.cutoffs([provider.ConsumeInt(9), provider.ConsumeFloat()])


def saved(data: bytes) -> None:
    """A saved result: its bytes, or its values with a checksum that fits."""
    provider = atheris.FuzzedDataProvider(data)
    if provider.ConsumeBool():
        fuzz_targets.saved_bytes(provider.ConsumeBytes(sys.maxsize), WORK)
        return
    content = copy.deepcopy(SAVED)
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        change_somewhere(content, provider)
    fuzz_targets.saved_content(content, WORK)


def shapes(data: bytes) -> None:
    """Records of another tool, some values of which are others."""
    provider = atheris.FuzzedDataProvider(data)
    rows = copy.deepcopy(provider.PickValueInList(fuzz_targets.SHAPES))
    for _ in range(provider.ConsumeIntInRange(1, 4)):
        change_somewhere(rows, provider)
    fuzz_targets.shape(rows)


def change_somewhere(content: Any, provider: Any) -> None:
    """Replace, remove or repeat one value, however deep it stands."""
    while True:
        keys = list(content) if isinstance(content, dict) else list(range(len(content)))
        if not keys:
            return
        key = provider.PickValueInList(keys)
        inner = content[key]
        if isinstance(inner, dict | list) and inner and provider.ConsumeIntInRange(0, 5):
            content = inner
            continue
        kind = provider.ConsumeIntInRange(0, 5)
        if kind == 0:
            del content[key]
        elif kind == 1 and isinstance(inner, list):
            content[key] = inner * 2
        elif kind == 2:
            content[key] = provider.ConsumeInt(9)
        elif kind == 3:
            content[key] = provider.ConsumeFloat()
        elif kind == 4:
            content[key] = provider.ConsumeUnicodeNoSurrogates(20)
        else:
            content[key] = provider.PickValueInList(
                [None, True, [], {}, [[]], -1, 0, 1, "1", 1e308]
            )
        return


def shell(data: bytes) -> None:
    """Options and arguments of a command."""
    provider = atheris.FuzzedDataProvider(data)
    commands = krag_eval.cli.main.commands
    line = [provider.PickValueInList([*commands, "nothing"])]
    command = commands.get(line[0])
    for _ in range(provider.ConsumeIntInRange(0, 5)):
        options = [one for part in getattr(command, "params", []) for one in part.opts]
        drawing = ("--plot", "--report")  # seconds each
        line.append(
            provider.PickValueInList([one for one in options if one not in drawing] or ["x"])
        )
        line.append(
            provider.PickValueInList([*INPUTS, "out.json", "out.csv"])
            if provider.ConsumeBool()
            else provider.ConsumeUnicodeNoSurrogates(12)
        )
    line += [provider.PickValueInList([*INPUTS]) for _ in range(provider.ConsumeIntInRange(0, 3))]
    if any(one.startswith(("--plot", "--report", "--pl", "--rep")) for one in line):
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, content in INPUTS.items():
            Path(folder, name).write_bytes(content)
        os.chdir(folder)
        fuzz_targets.command_line(line, Path(folder))
        os.chdir(WORK)


def inputs() -> dict[str, bytes]:
    """Return files that commands can read, by name."""
    result = fuzz_targets.small_result()
    result.to_json(WORK / "saved.json")
    lines = "".join(json.dumps(one) + "\n" for one in fuzz_targets.SAMPLE)
    return {
        "saved.json": (WORK / "saved.json").read_bytes(),
        "a.jsonl": lines.encode(),
        "qrels.txt": b"1 0 a 1\n1 0 b 2\n2 0 c 1\n",
        "one.run": b"1 Q0 a 1 0.9 x\n1 Q0 z 2 0.5 x\n2 Q0 c 1 0.1 x\n",
    }


INPUTS = inputs()
TARGETS = {"names": names, "readers": readers, "saved": saved, "shapes": shapes, "shell": shell}

if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] not in TARGETS:
        sys.exit(f"usage: python fuzz/run.py {'|'.join(TARGETS)} [libFuzzer options]")
    # The shell's target changes the folder it works in.
    given = [one if one.startswith("-") else str(Path(one).resolve()) for one in sys.argv[2:]]
    atheris.Setup([sys.argv[0], f"-artifact_prefix={Path.cwd()}/", *given], TARGETS[sys.argv[1]])
    atheris.Fuzz()

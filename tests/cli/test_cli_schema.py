"""``krag-eval schema``: what programs check their files by."""

from importlib.resources import files

import pytest
from cli_runs import refusal, run


@pytest.mark.parametrize("kind", ["golden", "run"])
@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_schema_is_printed_as_it_is_shipped(kind, language):
    """Byte for byte, in whatever language the rest is."""
    shipped = (files("krag_eval") / "data" / f"{kind}.schema.json").read_text("utf-8")
    assert run(f"schema {kind} --lang {language}").stdout == shipped


def test_there_are_two():
    """Another one is refused by what there is."""
    assert "'golden', 'run'" in refusal("schema results")

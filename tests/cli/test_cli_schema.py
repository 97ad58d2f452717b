"""``krag-eval schema``: what programs check by what they write, and what they read."""

import json
from importlib.resources import files

import jsonschema
import pytest
import schemas
from cli_runs import refusal, run

from krag_eval.cli import main

KINDS = ("golden", "run", *schemas.COMMANDS)
TYPED = [(command, typed) for command, several in schemas.COMMANDS.items() for typed in several]


def schema_of(kind):
    return json.loads((files("krag_eval") / "data" / f"{kind}.schema.json").read_text("utf-8"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_schema_is_printed_as_it_is_shipped(kind, language):
    """Byte for byte, in whatever language the rest is."""
    shipped = (files("krag_eval") / "data" / f"{kind}.schema.json").read_text("utf-8")
    assert run(f"schema {kind} --lang {language}").stdout == shipped


def test_another_one_is_refused():
    """By those there are."""
    assert "'golden', 'run'" in refusal("schema results")


def test_every_command_that_prints_json_has_a_schema():
    """And no other."""
    formats = {
        name: one.type.choices
        for name, command in main.commands.items()
        for one in command.params
        if one.name == "format"
    }
    assert sorted(schemas.COMMANDS) == sorted(name for name, of in formats.items() if "json" in of)


def test_the_schemas_are_those_of_what_is_printed():
    """Made anew by ``python tests/schemas.py``, and no word in it is about a field of before."""
    shipped = {kind: schema_of(kind) for kind in schemas.COMMANDS}
    assert {kind: json.loads(text) for kind, text in schemas.schemas().items()} == shipped
    told = {told for kind in shipped for told in descriptions(shipped[kind])}
    assert {*schemas.TOLD.values()} - told == set()


def descriptions(schema):
    """Yield every description within a schema."""
    if isinstance(schema, dict):
        for name, value in schema.items():
            if name == "description" and isinstance(value, str):
                yield value
            yield from descriptions(value)


@pytest.mark.parametrize("kind", schemas.COMMANDS)
def test_schemas_are_schemas(kind):
    """Of JSON Schema 2020-12, each with an id of its own."""
    jsonschema.Draft202012Validator.check_schema(schema_of(kind))
    assert schema_of(kind)["$id"] == f"urn:krag-eval:output-of-{kind}:1"


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize(("command", "typed"), TYPED)
def test_what_is_printed_is_valid(language, command, typed):
    """In every language, with a verdict, and advice that may be none."""
    content = schemas.outputs(language)[command, typed]
    jsonschema.Draft202012Validator(schema_of(command)).validate(content)
    assert content["verdict"]
    assert all(isinstance(one, str) and one for one in content["advice"])


@pytest.mark.parametrize("kind", schemas.COMMANDS)
@pytest.mark.parametrize("change", [{"verdict": None}, {"advice": "more"}, {"verdict": ...}])
def test_what_lacks_them_is_not_valid(kind, change):
    """A schema that takes anything would say nothing."""
    content = schemas.outputs()[kind, schemas.COMMANDS[kind][0]]
    wrong = {name: one for name, one in {**content, **change}.items() if one is not ...}
    assert not jsonschema.Draft202012Validator(schema_of(kind)).is_valid(wrong)


VERDICTS = {
    "evaluate some.jsonl --fail-under recall@1=0.9 -k 1":
        "failed: macro_recall@1 is 0.5000, below the floor of 0.9",
    "evaluate none.jsonl -k 1": "Over 1 query: ",
    "compare old.json new.json --metric recall@5,ndcg@5": "No difference shown between old and new",
    "gate new.json --fail-under recall@5=0.3 --fail-under ndcg@5=0.99": "failed: ndcg@5 is 0.6047",
    "diagnose run.jsonl --index chunks.jsonl -m coverage -k 3": "11 % of passages are cut apart",
    "audit run.jsonl --index chunks.jsonl": "Nothing found.",
    "audit twice.jsonl": "duplicate_questions: ",
    "misses run.jsonl -m coverage -k 3": "11 of 28 queries lost something @3",
    "explain run.jsonl 4 -m coverage -k 3": "perfect: 2 of 2 items found within the first 3",
    "plan old.json new.json --detect 0.1 --metric recall@5": "To show a difference of 0.100",
    "calibrate pairs.csv": "best threshold 0.5000",
    "reanchor labels.jsonl --old old.jsonl --new anew.jsonl": "100 % of the labels no longer",
    "sweep chosen.toml": "Chosen by macro_recall@2 on 30 questions: ",
}  # fmt: skip


def concluded(typed):
    """Return the verdict and the advice of a command."""
    command, _, behind = typed.partition(" ")
    content = schemas.outputs()[command, behind]
    return content["verdict"], content["advice"]


@pytest.mark.parametrize("typed", VERDICTS)
def test_the_verdict_is_the_sentence_that_a_table_stands_above(typed):
    """Or a gate's worst line, or how many there are."""
    verdict, _ = concluded(typed)
    assert verdict.startswith(VERDICTS[typed])


@pytest.mark.parametrize(
    ("typed", "advice"),
    [
        ("evaluate none.jsonl -k 1", "The matcher text matched nothing at all in 1 query"),
        ("diagnose run.jsonl --index chunks.jsonl -m coverage -k 3", "7 % of passages are ranked"),
        ("compare old.json new.json --metric recall@5,ndcg@5", "The intervals rest on 28 queries"),
        ("compare alike.jsonl unlike.jsonl -k 1 --metric recall@1", "Queries of the same source"),
        ("explain run.jsonl --contradicted -m text", "This matcher does not look"),
        ("reanchor labels.jsonl --old old.jsonl --new anew.jsonl", "gone: "),
        ("calibrate pairs.csv", "krag-eval evaluate results.jsonl --matcher coverage"),
        ("audit twice.jsonl", "duplicate_questions: "),
    ],
)
def test_advice_is_what_the_command_advises_and_its_warnings(typed, advice):
    """A warning without the word before it."""
    _, told = concluded(typed)
    assert any(one.startswith(advice) for one in told)

"""The contract for programs that write golden sets and runs: schemas, and cases to test against."""

import importlib.util
import json
from importlib.resources import files

import jsonschema
import pytest
from hypothesis import given, settings, strategies as st
from places import TESTS
from trials import trials

from krag_eval import AnyOf, OfflineRetrievalEvaluator, load_dataset
from krag_eval.datasets import Dataset
from krag_eval.errors import Refusal
from krag_eval.loading.vocabularies import KNOWN

CONTRACT = TESTS / "contract"
_SPEC = importlib.util.spec_from_file_location("derive", CONTRACT / "derive.py")
derive = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(derive)

DATA = files("krag_eval") / "data"
SCHEMAS = {
    kind: json.loads((DATA / f"{kind}.schema.json").read_text("utf-8"))
    for kind in ("golden", "run")
}
REFUSED = derive.lines_of(CONTRACT / "refused.jsonl")
cases = pytest.mark.parametrize("case", derive.CASES, ids=lambda case: case.name)


def is_valid(kind, line):
    return jsonschema.Draft202012Validator(SCHEMAS[kind]).is_valid(line)


def read(path, *lines, matcher=None):
    """Return what the package reads, once a matcher has looked at the ground truth."""
    texts = [one if isinstance(one, str) else json.dumps(one) for one in lines]
    path.write_text("\n".join(texts), "utf-8")
    dataset = load_dataset(path)
    if matcher:
        OfflineRetrievalEvaluator(dataset.actual, dataset.actual, matcher=matcher).evaluate(1)
    return dataset


def expected_of(case):
    return json.loads((case / "expected.json").read_text("utf-8"))


def assert_equal(found, expected):
    """Compare the metrics of each cutoff, to 1e-12."""
    for k, metrics in expected.items():
        near = pytest.approx(metrics, rel=0, abs=1e-12)
        assert {name: found[k][name] for name in metrics} == near


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_schemas(kind):
    """Of JSON Schema 2020-12; what both define is the same."""
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[kind])
    assert SCHEMAS["run"]["$defs"].items() <= SCHEMAS["golden"]["$defs"].items()


@cases
@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_case_is_valid(case, kind):
    """Each line of its files."""
    lines = derive.lines_of(case / f"{kind}.jsonl")
    assert [one for one in lines if not is_valid(kind, one)] == []


@cases
def test_expected_numbers_are_those_of_the_definitions(case):
    """By a script that uses nothing of the package."""
    expected, derived = expected_of(case), derive.derived(case)
    assert_equal(derived["metrics"], expected["metrics"])
    assert derived["first_ranks"] == expected["first_ranks"]


@cases
def test_the_package_computes_what_is_expected(case, tmp_path):
    """Of the two files joined, which are valid in one file as well."""
    expected = expected_of(case)
    dataset = load_dataset(case / "golden.jsonl", retrieved=case / "run.jsonl")
    dataset.save(tmp_path / "both.jsonl")
    both = derive.lines_of(tmp_path / "both.jsonl")
    assert [one for one in both if not is_valid("golden", one)] == []
    evaluator = dataset.evaluator(**expected["settings"])
    k = [*map(int, expected["metrics"])]
    result = evaluator.evaluate(k)
    found = {str(one): result.averages(one) for one in k}
    if "judged" in both[0]:
        judged = evaluator.evaluate(k, metrics=["judged"])
        found = {str(one): {**judged.averages(one), **found[str(one)]} for one in k}
    assert_equal(found, expected["metrics"])
    ranks = [[item.first_rank for item in result.explain(at).items] for at in range(len(both))]
    assert ranks == expected["first_ranks"]


@pytest.mark.parametrize("one", REFUSED, ids=lambda one: f"{one['file']}: {one['why']}")
def test_what_the_contract_refuses_is_refused(one, tmp_path):
    """By the package, and by the schema but for what a schema cannot say."""
    line = one["line"]
    if one["schema"]:
        assert not is_valid(one["file"], json.loads(line))
    path = tmp_path / "lines.jsonl"
    if one["file"] == "run":
        path.write_text(line, "utf-8")
        truth = Dataset(["When?"], [["At nine."]])
        with pytest.raises(Refusal):
            load_dataset(truth, retrieved=path)
    else:
        with pytest.raises(Refusal):
            read(path, line, matcher=one.get("matcher"))


ODD = st.sampled_from(
    ["", "a", None, 7, -1, 1.5, True, [], {}, ["a"], ["a", 0.5], {"a": True}, {"a": 1}]
)
GOOD = {"page_content": "a", "id": 7, "metadata": {"grade": 2}, "source": "a.md", "start": 0,
        "end": 9, "lines": [1, 2], "any_of": ["a"], "text": "a"}  # fmt: skip
KINDS = (("page_content",), ("source", "start", "end"), ("source", "lines"), ("any_of",), ("text",))


def objects(inner):
    """Draw objects that look like documents, with values or fields that may be wrong."""
    values = {name: st.just(good) | inner for name, good in GOOD.items()}
    shapes = (
        st.fixed_dictionaries(
            {name: values[name] for name in kind},
            optional={name: values[name] for name in ("id", "metadata", "end") if name not in kind},
        )
        for kind in KINDS
    )
    return st.one_of(*shapes) | st.lists(inner, max_size=2)


@settings(max_examples=trials(300))
@given(
    st.sampled_from(["actual", "unwanted", "judged", "cited", "predicted", "tag"]),
    st.lists(st.recursive(ODD, objects, max_leaves=4), max_size=2) | ODD,
)
def test_what_the_schema_accepts_is_read(field, value):
    """Whatever is put into a field."""
    line = {"question": "When?", "actual": ["At nine."], field: value}
    try:
        load_dataset([line])
        is_read = True
    except Refusal:
        is_read = False
    assert is_read or not is_valid("golden", line)


@pytest.mark.parametrize("name", sorted(KNOWN - SCHEMAS["golden"]["properties"].keys()))
def test_names_that_are_no_tags(name, tmp_path):
    """The schema refuses those that the package reads as something else."""
    line = {"question": "When?", "actual": ["At nine."], name: "x"}
    try:
        is_tag = read(tmp_path / "lines.jsonl", line).tags == {name: ["x"]}
    except Refusal:
        is_tag = False
    assert is_valid("golden", line) == is_tag


@pytest.mark.parametrize(
    "fields",
    [
        {"question": 7},
        {"question": None},
        {"actual": '["At nine."]'},
        {"topics": ["hours"]},
        {"answer": "x" * 201},
        {"judged": "by me"},
        {"actual": [{"text": "At nine."}]},
        {"actual": [{"page_content": "At nine.", "page": 3}]},
        {"actual": [{"source": "a.md", "start": 0, "end": 9, "page_content": "At nine."}]},
    ],
    ids=str,
)
def test_what_is_written_is_stricter_than_what_is_read(fields, tmp_path):
    """The package reads more, such as tables from elsewhere, than programs should write."""
    line = {"question": "When?", "actual": ["At nine."], **fields}
    assert not is_valid("golden", line)
    assert read(tmp_path / "lines.jsonl", line).n_queries == 1


@pytest.mark.parametrize(
    "line",
    [
        {"predicted": []},
        {"id": None, "question": None, "predicted": []},
        {"id": "", "predicted": []},
        {"id": "a"},
        {"id": "a", "predicted": [], "citted": ["b"]},
        {"id": "a", "predicted": [], "retrieved_contexts": "b"},
    ],
    ids=str,
)
def test_a_line_of_a_run(line):
    """It says whose it is and what came back; other fields are tags."""
    assert not is_valid("run", line)


@pytest.mark.parametrize("text", ["At nine.", {"page_content": "a", "id": 7, "metadata": {"p": 1}}])
def test_saved_data_sets_are_valid(text, tmp_path):
    """With everything that a data set can hold."""
    dataset = Dataset(
        ["q1", 2],
        [[text, AnyOf(["nine", text])], []],
        [[text], [{"page_content": "b", "metadata": {"score": 0.5}}]],
        questions=["When?", "언제?"],
        tags={"corpus": ["wiki", None], "question": [1, True]},
        defaults={"matcher": "coverage", "threshold": 0.5},
        judged=[["a"], {"b": False}],
        unwanted=[[AnyOf(["x", "y"])], None],
        cited=[None, [text]],
    )
    dataset.save(tmp_path / "qa.jsonl")
    lines = derive.lines_of(tmp_path / "qa.jsonl")
    assert all(is_valid("golden", one) for one in lines)
    assert load_dataset(tmp_path / "qa.jsonl") == dataset

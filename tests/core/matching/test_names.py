"""Names of matchers: what ``matcher="…"`` means."""

import pytest
from click.testing import CliRunner

from krag_eval import CoverageMatcher, IdMatcher, Matcher
from krag_eval.cli import main
from krag_eval.core import resolve_matcher
from krag_eval.core.matching.names import MATCHER_NAMES
from krag_eval.errors import InvalidInput, InvalidType


@pytest.mark.parametrize("name", MATCHER_NAMES)
def test_every_name_makes_a_matcher_of_that_name(name):
    """New each time, with advice; an instance is used as it is. It finds a text in itself."""
    matcher = resolve_matcher(name)
    assert isinstance(matcher, Matcher)
    assert matcher.signature.partition("(")[0] == name
    assert matcher.advice
    assert resolve_matcher(name) is not matcher
    assert resolve_matcher(matcher) is matcher
    text = "the library opens at 9 and closes at 18 on every working day"
    document, other = (
        {"page_content": one, "id": one, "metadata": {"source": one, "start_index": 0}}
        for one in (text, "???")
    )
    assert matcher.similarity(document, document) == 1.0
    assert matcher.similarity(document, other) < matcher.threshold


def test_an_installed_package_adds_a_matcher_by_name(tmp_path, monkeypatch):
    """In Python, with settings, and in the shell; an unknown name lists it."""
    info = tmp_path / "shop-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1\n", "utf-8")
    (info / "entry_points.txt").write_text("[krag_eval.matchers]\nprefix = shop:Prefix\n", "utf-8")
    (tmp_path / "shop.py").write_text(PREFIX, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    matcher = resolve_matcher("prefix(length=3)")
    assert matcher.signature == "Prefix(length=3)"
    assert matcher.similarity("abcd", "abce") == 1.0
    with pytest.raises(InvalidInput, match="'prefix'"):
        resolve_matcher("prefixes")
    (tmp_path / "data.jsonl").write_text('{"actual": ["abcdx"], "predicted": ["abcdy"]}\n', "utf-8")
    done = CliRunner().invoke(
        main, ["evaluate", str(tmp_path / "data.jsonl"), "-m", "prefix", "--format", "json"]
    )
    assert done.exit_code == 0
    assert "matcher=Prefix(length=4)" in done.output


PREFIX = """
from krag_eval import KeyMatcher
class Prefix(KeyMatcher):
    def __init__(self, length: int = 4):
        self.length = length
    def key(self, document, where="document"):
        return document[: self.length]
"""


@pytest.mark.parametrize(
    ("came", "fix"),
    [
        ("rougel", "did you mean 'rougeL'?"),
        ("contain", "did you mean 'contains'?"),
        ("bm25", ""),
        (IdMatcher, "did you forget to call it?"),
        (len, "wrap a function by Matcher.from_function"),
        (5, ""),
        *((name, "pass matcher=krag_eval.EmbeddingMatcher(embeddings, threshold=0.8)")
          for name in ("embedding", "Embeddings", "EmbeddingMatcher")),
        ("metadata", 'pass matcher=krag_eval.MetadataMatcher("source", "page")'),
        ("coverage(tokenizer=unicod)", "did you mean 'unicode'?"),
    ],
)  # fmt: skip
def test_what_is_no_matcher_is_refused_with_the_remedy(came, fix):
    """The nearest name, the call that was forgotten, or how Python makes what no name can hold."""
    with pytest.raises((InvalidInput, InvalidType)) as info:
        resolve_matcher(came)
    assert str(info.value.fix) == fix


@pytest.mark.parametrize(
    "name",
    [
        *MATCHER_NAMES,
        "coverage(min_run=15,tokenizer=character)",
        "coverage(min_run=5,tokenizer=words,guard=off,numbers=anywhere)",
        "coverage(min_run=5,tokenizer=auto(words,letters),guard=aligned,union=yes)",
        "coverage(min_run=3,tokenizer=character,guard=off,direction=either)",
        "rouge2(statistic=recall,tokenizer=whitespace,stemmer=yes)",
        "fuzzy(scorer=partial_ratio)",
        "contains(case_sensitive=no)",
        "spans(source_key=file.name+page,union=yes)",
    ],
)
def test_what_a_signature_prints_is_read_back(name):
    """One spelling: copied from a result, a matcher's fragment makes the same matcher."""
    signature = resolve_matcher(name).signature
    assert resolve_matcher(signature).signature == signature
    assert "(" not in name or signature == name or signature.startswith(name.removesuffix(")"))


def test_settings_may_be_spelled_as_in_python():
    union = CoverageMatcher(union=True, min_run=3)
    assert resolve_matcher("coverage(union=true, min_run=3)").signature == union.signature
    assert resolve_matcher("rougeL(statistic=precision)").statistic == "precision"
    assert resolve_matcher("contains(case_sensitive=false)").case_sensitive is False

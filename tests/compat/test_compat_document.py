"""KragDocument is LangChain's Document with a summary."""

from langchain_core.documents import Document

from krag_eval import OfflineRetrievalEvaluator
from krag_eval.compat.document import KragDocument


def test_it_is_a_langchain_document() -> None:
    """Arguments by position or name, metadata none if not given."""
    document = KragDocument("text", {"page": 3})
    assert isinstance(document, Document)
    assert (document.page_content, document.metadata) == ("text", {"page": 3})
    assert KragDocument(page_content="text").metadata == {}


def test_an_id_is_accepted() -> None:
    """In krag it is a TypeError: unexpected keyword argument 'id'."""
    assert KragDocument("text", id="7").id == "7"


def test_metadata_is_not_shared() -> None:
    """Changing one document's metadata changes neither another's nor the dict passed."""
    given = {"page": 3}
    first, second = KragDocument("a", given), KragDocument("b")
    first.metadata["page"] = 4
    assert (given, second.metadata, KragDocument("c").metadata) == ({"page": 3}, {}, {})


def test_the_summary_is_the_first_100_characters() -> None:
    """As in krag, with three dots if there are more."""
    assert KragDocument("a" * 100).get_summary() == "a" * 100
    assert KragDocument("a" * 101).get_summary() == "a" * 100 + "..."


def test_the_native_evaluator_takes_it() -> None:
    """Documents need not be made anew when a script moves on."""
    documents = [[KragDocument("a", id="1")]]
    evaluator = OfflineRetrievalEvaluator(documents, documents, "id")
    assert evaluator.calculate_mrr(k=1) == {"mrr": 1.0}

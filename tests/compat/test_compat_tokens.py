"""krag's tokens: lower-cased words with everything kept, by white space, Kiwi or NLTK."""

import importlib.util
import re
import unicodedata

import nltk
import pytest

from krag_eval import RougeMatcher
from krag_eval.compat.evaluators import RougeOfflineRetrievalEvaluators
from krag_eval.compat.tokens import KragTokens, TokenizerConfig, TokenizerType
from krag_eval.core import install_line

_DOCUMENTS = [["The cat sat."]]


def test_white_space_keeps_punctuation():
    """korouge-score, on which krag relies, lowers and splits, and drops nothing."""
    assert KragTokens("whitespace")("Don't  stop:\nGo!") == ["don't", "stop:", "go!"]


def test_kiwi_keeps_particles_endings_and_punctuation():
    """The forms of all morphemes, in order; krag joins them with spaces."""
    tokens = KragTokens(TokenizerType.KIWI)
    assert tokens("RAG를 평가한다.") == ["rag", "를", "평가", "하", "ᆫ다", "."]
    assert list(tokens.tokenize_all(["월요일은 쉽니다.", "RAG"])) == [
        tokens("월요일은 쉽니다."),
        ["rag"],
    ]


@pytest.mark.parametrize("tokenizer", ["whitespace", "kiwi"])
def test_decomposed_hangul_gives_the_same_tokens(tokenizer):
    """Text from macOS or PDF files often comes decomposed."""
    decomposed = unicodedata.normalize("NFD", "월요일은 쉽니다.")
    tokens = KragTokens(tokenizer)
    assert tokens(decomposed) == tokens("월요일은 쉽니다.")
    assert list(tokens.tokenize_all([decomposed])) == [tokens("월요일은 쉽니다.")]


def test_tokens_are_stemmed():
    """As by krag's RougeScorer(use_stemmer=True); short words and Korean stay."""
    matcher = RougeMatcher("rouge1", tokenizer=KragTokens("whitespace"), stemmer=True)
    assert matcher.similarity("connected retrievers", "connecting retriever") == 1.0
    assert matcher.similarity("cats", "cat") == 1.0
    assert matcher.similarity("검색을", "검색은") == 0.0


def test_the_tokenizer_is_named_in_signatures():
    """Two ROUGE scores compare only if they agree in their tokens."""
    evaluator = RougeOfflineRetrievalEvaluators(_DOCUMENTS, _DOCUMENTS, tokenizer="whitespace")
    assert "tokenizer=krag-whitespace,stemmer=yes" in evaluator.evaluate(1).signature


def test_the_evaluator_shows_its_tokenizer_as_krag_does():
    """A type, and a function that returns words with spaces between them."""
    evaluator = RougeOfflineRetrievalEvaluators(_DOCUMENTS, _DOCUMENTS, tokenizer="whitespace")
    assert isinstance(evaluator.tokenizer, TokenizerConfig)
    assert evaluator.tokenizer.type is TokenizerType.WHITESPACE
    assert evaluator.tokenizer.tokenize_fn("The  cat\nsat.") == "The cat sat."


def test_a_missing_kiwi_is_said_when_the_evaluator_is_made(monkeypatch):
    """With the line that installs it, and the way around it."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=re.escape(install_line("korean"))):
        RougeOfflineRetrievalEvaluators(_DOCUMENTS, _DOCUMENTS)


def test_nltks_missing_data_are_said_when_the_evaluator_is_made(monkeypatch):
    """In krag a download starts, of data that current NLTK does not use; then nothing works."""

    def not_found(name):
        raise LookupError(name)

    monkeypatch.setattr(nltk.data, "find", not_found)
    with pytest.raises(LookupError, match=r"run: python -m nltk\.downloader punkt_tab"):
        RougeOfflineRetrievalEvaluators(_DOCUMENTS, _DOCUMENTS, tokenizer=TokenizerType.NLTK)


def test_nltks_words_are_used(monkeypatch):
    """Its data are not here, so a stand-in splits off the full stop."""
    monkeypatch.setattr(nltk.data, "find", lambda name: name)
    monkeypatch.setattr(nltk, "word_tokenize", lambda text: text.replace(".", " .").split())
    tokens = KragTokens(TokenizerType.NLTK)
    assert tokens("The cat sat.") == ["the", "cat", "sat", "."]
    assert list(tokens.tokenize_all(["Sat."])) == [["sat", "."]]

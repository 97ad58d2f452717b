"""The matchers of the core; those that need a library or a model are in ``krag_eval.matchers``."""

from krag_eval.core import CoverageMatcher, ExactTextMatcher, Matcher, TextMatcher
from krag_eval.core.matching.base import AndMatcher, KeyMatcher, OrMatcher
from krag_eval.core.matching.coverage import NumbersMatcher
from krag_eval.core.matching.exact import ContainsMatcher, IdMatcher, MetadataMatcher
from krag_eval.core.matching.spans import SpanMatcher

__all__ = [
    "AndMatcher",
    "ContainsMatcher",
    "CoverageMatcher",
    "ExactTextMatcher",
    "IdMatcher",
    "KeyMatcher",
    "Matcher",
    "MetadataMatcher",
    "NumbersMatcher",
    "OrMatcher",
    "SpanMatcher",
    "TextMatcher",
]

"""The job itself: documents in, matched once, numbers and evidence out, told as a table.

What rooms and installed packages may use is named in ``__init__.pyi``, and loads on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

#: What the core adds by the hooks of :mod:`krag_eval.core.hooks`, as a room does.
HOOKS = {
    "krag_eval.matchers": {
        "text": "krag_eval.core.matching.exact:ExactTextMatcher",
        "contains": "krag_eval.core.matching.exact:ContainsMatcher",
        "id": "krag_eval.core.matching.exact:IdMatcher",
        "coverage": "krag_eval.core.matching.coverage:CoverageMatcher",
        "numbers": "krag_eval.core.matching.coverage:NumbersMatcher",
        "spans": "krag_eval.core.matching.spans:SpanMatcher",
    },
    "krag_eval.pages": {
        "krag_eval.core.results.explanation": "krag_eval.core.display.explanation",
        "krag_eval.core.results.facts": "krag_eval.core.display.result",
    },
}

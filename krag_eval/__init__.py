"""Measure how good retrieval is in a RAG system, and trust the answer.

Names load on first use, so that importing the package costs next to nothing; ``__init__.pyi`` lists
them.
"""

import lazy_loader

__version__ = "0.2.0.dev0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ = [*__all__, "__version__"]

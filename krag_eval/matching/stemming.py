"""English stems: nltk's Porter stemmer, asked once per distinct word and only for what it changes.

This room knows stems and how rouge-score uses them. It must not know how texts are compared. nltk
is loaded when the first word is stemmed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count

__all__ = ["STEM_STEPS", "StemNumbers", "quick_stemmer"]

# What a word must end with for a step of nltk's Porter stemmer to change it.
STEM_STEPS = {
    "_step1a": ("s",),
    "_step1b": ("ed", "ing"),
    "_step1c": ("y",),
    "_step2": ("nal", "ci", "er", "li", "ion", "tor", "ism", "ess", "iti", "ogi"),
    "_step3": ("ate", "ive", "ize", "iti", "cal", "ful", "ess"),
    "_step4": (
        *("al", "nce", "er", "ic", "ble", "nt", "ion", "ou"),
        *("ism", "ate", "iti", "ous", "ive", "ize"),
    ),
    "_step5a": ("e",),
    "_step5b": ("ll",),
}


class StemNumbers(dict[str, int]):
    """Numbers tokens by their stem, stemming each distinct token once."""

    def __init__(self) -> None:
        super().__init__()
        self._stem = quick_stemmer()
        self._numbers: dict[str, int] = defaultdict(count().__next__)

    def __missing__(self, token: str) -> int:
        # rouge-score's rule: short words are left as they are.
        stem = self._stem(token) if len(token) > 3 else token
        number = self[token] = self._numbers[stem]
        return number


def quick_stemmer() -> Callable[[str], str]:
    """Return nltk's Porter stemmer, which skips the steps that leave a word as it is.

    A step tries its suffixes one by one, having built the list of them anew for each word; asking
    for all of them at once beforehand makes stemming twice as fast. An nltk that names its steps
    differently would be as slow as it is, and no less right.
    """
    from nltk.stem.porter import PorterStemmer  # takes 1.4 s, for those who stem

    stemmer = PorterStemmer()
    for name, suffixes in STEM_STEPS.items():
        if hasattr(stemmer, name):
            setattr(stemmer, name, _only_if_it_ends(suffixes, getattr(stemmer, name)))
    stem: Callable[[str], str] = stemmer.stem
    return stem


def _only_if_it_ends(suffixes: tuple[str, ...], step: Callable[[str], str]) -> Callable[[str], str]:
    return lambda word: step(word) if word.endswith(suffixes) else word

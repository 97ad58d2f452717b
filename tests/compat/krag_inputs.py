"""Random inputs on which krag has no defect: every ground-truth document matches at most once."""

from random import Random

_STEMS = ("connect", "retriev", "measur", "rank", "match", "evaluat", "index", "chunk", "question")
_ENDINGS = ("", "ed", "ing", "s")
_SHORT = ("cat", "sun", "map", "ink", "oak", "fig", "jar", "sky", "pen", "rug", "elm", "bay")
_WORDS = 8


def random_lists(seed: int) -> tuple[list[list[str]], list[list[str]]]:
    """Return ground truth and retrieved texts of 12 queries."""
    # Only random() is promised to give the same sequence in every version of Python.
    rng = Random(seed)
    queries = [_query(rng) for _ in range(12)]
    return [actual for actual, _ in queries], [predicted for _, predicted in queries]


def _below(rng: Random, end: int) -> int:
    return int(rng.random() * end)


def _word(rng: Random) -> str:
    if rng.random() < 0.4:
        return _SHORT[_below(rng, len(_SHORT))]
    return _STEMS[_below(rng, len(_STEMS))] + _ENDINGS[_below(rng, len(_ENDINGS))]


def _query(rng: Random) -> tuple[list[str], list[str]]:
    actual = [[_word(rng) for _ in range(_WORDS)] for _ in range(1 + _below(rng, 4))]
    predicted = [_retold(rng, words) for words in actual if rng.random() < 0.7]
    for _ in range(_below(rng, 6)):
        filler = [_word(rng) for _ in range(_WORDS)]
        predicted.insert(_below(rng, len(predicted) + 1), filler)
    return [" ".join(words) for words in actual], [" ".join(words) for words in predicted]


def _retold(rng: Random, words: list[str]) -> list[str]:
    """Quote a text inside a longer one, inflect it, exchange a word, or turn two around."""
    way, place = _below(rng, 4), _below(rng, _WORDS - 1)
    retold = list(words)
    if way == 0:
        return ["so", *retold, "indeed"]
    if way == 1:
        return [word.removesuffix("s") if len(word) > 3 else word for word in retold]
    if way == 2:
        retold[place] = "other"
    else:
        retold[place], retold[place + 1] = retold[place + 1], retold[place]
    return retold

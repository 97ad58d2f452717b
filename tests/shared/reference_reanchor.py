"""Where ground truth stands in an index that was cut anew, by trying every run of words everywhere.

The specification of ``reanchor`` as code, for texts that are read by words: nothing here is fast,
and nothing of ``krag_eval`` is used. A text is a list of words. Numbers that were changed are told
apart by whoever changed them, so that no rule for contradictions is needed.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

RUN, ENOUGH = 5, 0.8

Words = Sequence[str]


@dataclass(frozen=True)
class Standing:
    """What became of a ground truth: its state, the ids chosen, and others that hold it."""

    state: str
    new: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def words_in(text: str) -> list[str]:
    """Return the words of a text; the groups of digits of a number are one word."""
    joined = re.sub(r"(?<=\d),(?=\d\d\d(?!\d))", "", unicodedata.normalize("NFC", text))
    return re.findall(r"[^\W_]+", joined.casefold())


class Index:
    """Chunks by id, how many characters each has, and in which of them each run of words stands."""

    def __init__(self, chunks: Mapping[str, Words], sizes: Mapping[str, int]) -> None:
        self.chunks, self.sizes = chunks, sizes
        self._with: dict[int, dict[tuple[str, ...], list[str]]] = {}

    def held(self, text: Words) -> dict[str, set[int]]:
        """Return the positions of a text that lie in a run of five words, for each chunk."""
        n = min(RUN, len(text))
        if n and n not in self._with:
            runs = self._with[n] = {}
            for name, chunk in self.chunks.items():
                for run in dict.fromkeys(runs_of(chunk, n)):
                    runs.setdefault(run, []).append(name)
        found: dict[str, set[int]] = {}
        for start, run in enumerate(runs_of(text, n) if n else ()):
            for name in self._with[n].get(run, ()):
                found.setdefault(name, set()).update(range(start, start + n))
        return {name: found[name] for name in self.chunks if name in found}


def runs_of(text: Words, n: int) -> list[tuple[str, ...]]:
    return [tuple(text[start : start + n]) for start in range(len(text) - n + 1)]


def standing(
    text: Words,
    homes: Mapping[str, Words],
    new: Index,
    says_otherwise: Callable[[str], bool] = lambda _name: False,
) -> Standing:
    """Return what became of a text.

    Args:
        text: What is looked for.
        homes: The old chunks that it stood in, by id: one that held it, or those of its pieces.
        new: The new index.
        says_otherwise: Whether a new chunk has another number in the place of one of the text's.
    """
    if homes and all(list(new.chunks.get(name, ())) == list(of) for name, of in homes.items()):
        chosen = tuple(homes)
        kept = [one for one in ranked(text, homes, new, says_otherwise) if one not in chosen]
        return Standing("unchanged", chosen, tuple(kept))
    held = new.held(text)
    holding = ranked(text, homes, new, says_otherwise)
    if holding:
        is_same = is_one_of(new.chunks[holding[0]], text, homes)
        return Standing("moved" if is_same else "absorbed", (holding[0],), tuple(holding[1:]))
    against = {name for name in held if says_otherwise(name)}
    together = set[int]().union(*(at for name, at in held.items() if name not in against))
    if len(together) >= ENOUGH * len(text):
        stretches = {name: at for name, at in held.items() if name not in against}
        return Standing("split", tuple(pieces(stretches, len(text))))
    if len(text) >= RUN and (over := across(text, new)):
        return Standing("split" if len(over) > 1 else "absorbed", tuple(over))
    enough = len(set[int]().union(*held.values())) >= ENOUGH * len(text)
    near = any(2 * len(held[name]) >= len(text) or enough for name in against)
    return Standing("changed" if near else "gone")


def ranked(
    text: Words, homes: Mapping[str, Words], new: Index, says_otherwise: Callable[[str], bool]
) -> list[str]:
    """Return the chunks that hold most of a text: the same, all of it, the shortest, the first."""
    order = {name: at for at, name in enumerate(new.chunks)}
    held = new.held(text)

    def place(name: str) -> tuple[bool, int, int, int]:
        chunk = new.chunks[name]
        return not is_one_of(chunk, text, homes), -len(held[name]), new.sizes[name], order[name]

    enough = [name for name, at in held.items()
              if len(at) >= ENOUGH * len(text) and not says_otherwise(name)]  # fmt: skip
    return sorted(enough, key=place)


def is_one_of(chunk: Words, text: Words, homes: Mapping[str, Words]) -> bool:
    """Tell whether a chunk is the text, or the one chunk that it stood in."""
    return list(chunk) in [list(text), *(list(one) for one in homes.values() if len(homes) == 1)]


def across(text: Words, new: Index) -> list[str]:
    """Return the chunks over whose ends a text stands letter by letter, wherever its words begin.

    A chunk may begin with words that the one before ends with.
    """
    letters, holder, before = "", list[str](), list[str]()
    for name, chunk in new.chunks.items():
        known = [n for n in range(len(chunk) + 1) if before[len(before) - n :] == [*chunk[:n]]]
        added = "".join(chunk[max(known) :])
        letters, holder, before = letters + added, holder + [name] * len(added), [*chunk]
    start = letters.find("".join(text))
    return [] if start < 0 else [*dict.fromkeys(holder[start : start + len("".join(text))])]


def pieces(held: Mapping[str, set[int]], size: int) -> list[str]:
    """Return as few chunks as it takes, in the order of the text.

    From its beginning on, the chunk is next whose stretch of words reaches furthest. What adds
    fewer words than a run is left out where the others hold enough.
    """
    stretches = [
        (min(one), max(one) + 1, name) for name, at in held.items() for one in stretches_of(at)
    ]
    added, place = list[tuple[str, int]](), 0
    while place < size:
        here = [one for one in stretches if one[0] <= place < one[1]]
        if here:
            _start, stop, name = max(here, key=lambda one: one[1])
            added.append((name, stop - place))
            place = stop
        else:
            place += 1
    runs = [(name, n) for name, n in added if n >= RUN]
    is_enough = sum(n for _name, n in runs) >= ENOUGH * size
    return [*dict.fromkeys(name for name, _n in (runs if is_enough else added))]


def stretches_of(positions: set[int]) -> list[set[int]]:
    """Return the stretches of positions that follow each other."""
    stretches: list[set[int]] = []
    for at in sorted(positions):
        if at - 1 in positions:
            stretches[-1].add(at)
        else:
            stretches.append({at})
    return stretches

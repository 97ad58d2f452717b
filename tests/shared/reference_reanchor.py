"""Where ground truth stands in an index that was cut anew, by trying every run of words everywhere.

The specification of ``reanchor`` as code: nothing here is fast, and nothing of ``krag_eval`` is
used. A text is a string, read by words or by letters. Numbers that were changed are told by whoever
changed them, so that no rule for contradictions is needed.
"""

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ENOUGH = 0.8
# Tokens that count as shared, and that are written as a piece.
RUN, PIECE = {False: 5, True: 12}, {False: 3, True: 7}


@dataclass(frozen=True)
class Standing:
    """What became of a ground truth: its state, the ids chosen, and others that hold it."""

    state: str
    new: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def words_in(text: str) -> list[str]:
    """Return the words of a text; the groups of digits of a number are one word."""
    return re.findall(r"[^\W_]+", _joined_groups(text).casefold())


def letters_in(text: str) -> list[str]:
    """Return the letters of a text; of a number, the whole number for each of its digits."""
    found = re.findall(r"\d+|[^\W\d_]", _joined_groups(text).casefold())
    return [one for one in found for _ in range(len(one) if one.isdecimal() else 1)]


def _joined_groups(text: str) -> str:
    return re.sub(r"(?<=\d),(?=\d\d\d(?!\d))", "", unicodedata.normalize("NFC", text))


class Index:
    """Chunks by id, in order, and the tokens of each."""

    def __init__(self, chunks: Mapping[str, str], *, by_letters: bool = False) -> None:
        self.texts, self.by_letters = chunks, by_letters
        self.chunks = {name: self.tokens(text) for name, text in chunks.items()}
        self._with: dict[int, dict[object, list[str]]] = {}

    def tokens(self, text: str) -> list[str]:
        return letters_in(text) if self.by_letters else words_in(text)

    def held(self, text: Sequence[str]) -> dict[str, set[int]]:
        """Return the positions of a text that lie in a run that counts, for each chunk."""
        n = min(RUN[self.by_letters], len(text))
        if n and n not in self._with:
            runs = self._with[n] = {}
            for name, chunk in self.chunks.items():
                had = {run for both in self._runs_had(chunk, n) for run in both}
                for run in had:
                    runs.setdefault(run, []).append(name)
        found: dict[str, set[int]] = {}
        for start, run in enumerate(self._runs_wanted(text, n) if n else ()):
            for name in self._with[n].get(run, ()):
                found.setdefault(name, set()).update(range(start, start + n))
        return {name: found[name] for name in self.chunks if name in found}

    def _runs_wanted(self, text: Sequence[str], n: int) -> list[object]:
        """Return the run from each position; one inside an amount stands behind the rest of it."""
        return [(_begun_amount(text, at) if self.by_letters else (), tuple(text[at : at + n]))
                for at in range(len(text) - n + 1)]  # fmt: skip

    def _runs_had(self, text: Sequence[str], n: int) -> list[tuple[object, object]]:
        return [(run, ((), run[1])) for run in self._runs_wanted(text, n)]  # type: ignore[index]


def _begun_amount(text: Sequence[str], at: int) -> tuple[str, ...]:
    """Return what stands of an amount, a number and two letters, before one of the letters."""
    for start in (at - 1, at - 2):
        if start >= 0 and text[start].isdecimal() and not text[at].isdecimal():
            return tuple(text[start:at])
    return ()


def standing(
    text: str,
    homes: Mapping[str, str],
    new: Index,
    says_otherwise: Callable[[str], bool] = lambda _name: False,
    is_changed: Callable[[str], bool] = lambda _text: False,
) -> Standing:
    """Return what became of a text.

    Args:
        text: What is looked for.
        homes: The old chunks that it stood in, by id: one that held it, or those of its pieces.
        new: The new index.
        says_otherwise: Whether a new chunk has another number in the place of one of the text's.
        is_changed: Whether the new texts have, wherever they were cut, as do chunks side by side.
    """
    tokens = new.tokens(text)
    if homes and all(new.chunks.get(name) == new.tokens(of) for name, of in homes.items()):
        chosen = tuple(homes)
        kept = [one for one in ranked(text, homes, new, says_otherwise) if one not in chosen]
        return Standing("unchanged", chosen, tuple(kept))
    held = new.held(tokens)
    holding = ranked(text, homes, new, says_otherwise)
    is_whole = holding and (len(held[holding[0]]) == len(tokens) or not is_changed(text))
    if is_whole:
        is_same = is_one_of(new.chunks[holding[0]], text, homes, new)
        return Standing("moved" if is_same else "absorbed", (holding[0],), tuple(holding[1:]))
    if over := over_ends(text, new):
        return Standing("split" if len(over) > 1 else "absorbed", tuple(over))
    if is_changed(text):
        return Standing("changed")
    against = {name for name in held if says_otherwise(name)}
    agreed = {name: at for name, at in held.items() if name not in against}
    if len(set[int]().union(*agreed.values())) >= ENOUGH * len(tokens):
        return Standing("split", tuple(pieces(tokens, agreed, new)))
    enough = len(set[int]().union(*held.values())) >= ENOUGH * len(tokens)
    near = any(2 * len(held[name]) >= len(tokens) or enough for name in against)
    return Standing("changed" if near else "gone")


def ranked(
    text: str, homes: Mapping[str, str], new: Index, says_otherwise: Callable[[str], bool]
) -> list[str]:
    """Return the chunks that hold most of a text: the same, all of it, the shortest, the first."""
    order, tokens = {name: at for at, name in enumerate(new.chunks)}, new.tokens(text)
    held = new.held(tokens)

    def place(name: str) -> tuple[bool, int, int, int]:
        is_same = is_one_of(new.chunks[name], text, homes, new)
        return not is_same, -len(held[name]), len(new.texts[name]), order[name]

    enough = [name for name, at in held.items()
              if len(at) >= ENOUGH * len(tokens) and not says_otherwise(name)]  # fmt: skip
    return sorted(enough, key=place)


def is_one_of(chunk: Sequence[str], text: str, homes: Mapping[str, str], new: Index) -> bool:
    """Tell whether a chunk is the text, or the one chunk that it stood in."""
    same = [text, *(one for one in homes.values() if len(homes) == 1)]
    return list(chunk) in [new.tokens(one) for one in same]


def over_ends(text: str, new: Index) -> list[str]:
    """Return the chunks over whose ends a text stands word for word, wherever its words begin.

    White space does not count, nor does a stop or a comma where the text was cut. From its
    beginning on, the chunk is next that reaches furthest, of equals the one behind the last.
    """
    ours, names = _solid(text), list(new.texts)
    spans = [(start, stop, at) for at, name in enumerate(names)
             for start, stop in _ending(ours, _solid(new.texts[name]))]  # fmt: skip
    begun, chosen, place = {at for start, _stop, at in spans if start}, list[int](), 0
    while place < len(ours):
        reach = place
        while chosen and reach < len(ours) and ours[reach] in " .,;:!?":
            reach += 1
        if reach == len(ours):
            break
        here = [(stop, chosen[-1:] == [at - 1], at + 1 in begun, -at)
                for start, stop, at in spans if start <= reach and stop > place]  # fmt: skip
        if not here:
            return []
        place, *_, at = max(here)
        chosen.append(-at)
    return list(dict.fromkeys(names[at] for at in chosen))


def _ending(ours: str, chunk: str) -> list[tuple[int, int]]:
    """Return where a text and a chunk agree up to an end of one of the two, on either side."""
    sizes = range(1, min(len(ours), len(chunk)) + 1)
    first = [(0, size) for size in sizes if chunk.endswith(ours[:size])][-1:]
    return first + [
        (start, min(start + len(chunk), len(ours)))
        for start in range(1, len(ours))
        if chunk and chunk.startswith(ours[start : start + len(chunk)])
    ]


def _solid(text: str) -> str:
    """Return a text without white space, but for a space that parts two numbers."""
    apart = re.sub(r"(\d[.,:/-]?)\s+(?=\d)", r"\1" + "\0", text)
    return re.sub(r"\s", "", apart).replace("\0", " ")


def joined(chunks: Sequence[Sequence[str]]) -> str:
    """Return chunks one behind the other; what one ends and the next begins with is there once."""
    words: list[str] = []
    for chunk in chunks:
        shared = [n for n in range(len(chunk) + 1) if words[len(words) - n :] == [*chunk[:n]]]
        words += chunk[max(shared) :]
    return " ".join(words)


def pieces(tokens: Sequence[str], held: Mapping[str, set[int]], new: Index) -> list[str]:
    """Return as few chunks as it takes, in the order of the text.

    From its beginning on, the chunk is next whose stretch reaches furthest. A stretch is shorter
    than a run where one chunk ends and another begins that goes on there, and one has a run there.
    """
    size, least = len(tokens), PIECE[new.by_letters]
    runs = [(start, stop, name) for name in held
            for start, stop in _stretches(tokens, new.chunks[name], least)]  # fmt: skip
    ending = [(start, stop, name) for name in held
              for start, stop in _agreeing_ends(tokens, new.chunks[name])]  # fmt: skip
    backwards = tokens[::-1]
    beginning = [(size - stop, size - start, name) for name in held
                 for start, stop in _agreeing_ends(backwards, new.chunks[name][::-1])]  # fmt: skip

    def has_run(one: tuple[int, int, str]) -> bool:
        return any(one[2] == run[2] and max(one[0], run[0]) < min(one[1], run[1]) for run in runs)

    stretches = list(runs)
    for one in ending:
        for other in beginning:
            goes_on = one[0] < other[0] <= one[1] < other[1] and one[2] != other[2]
            if goes_on and (has_run(one) or has_run(other)):
                stretches += [one, other]
    chosen, place = list[str](), 0
    while place < size:
        here = [one for one in sorted(stretches) if one[0] <= place < one[1]]
        if here:
            _start, place, name = max(here, key=lambda one: one[1])
            chosen.append(name)
        else:
            place += 1
    return list(dict.fromkeys(chosen))


def _stretches(tokens: Sequence[str], chunk: Sequence[str], least: int) -> list[tuple[int, int]]:
    """Return the longest stretches of a text that lie in runs which a chunk has."""
    had = {tuple(chunk[at : at + least]) for at in range(len(chunk) - least + 1)}
    starts = [at for at in range(len(tokens)) if tuple(tokens[at : at + least]) in had]
    found: list[tuple[int, int]] = []
    for at in starts:
        if found and at <= found[-1][1]:
            found[-1] = found[-1][0], at + least
        else:
            found.append((at, at + least))
    return found


def _agreeing_ends(tokens: Sequence[str], chunk: Sequence[str]) -> list[tuple[int, int]]:
    """Return from where to where a text has the end of a chunk."""
    found = []
    for stop in range(1, len(tokens) + 1):
        sizes = range(1, min(stop, len(chunk)) + 1)
        same = [n for n in sizes if list(tokens[stop - n : stop]) == list(chunk[-n:])]
        if same:
            found.append((stop - max(same), stop))
    return found

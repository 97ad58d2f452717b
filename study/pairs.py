"""The pairs that are decided about, and what is true of them; section 3 of the protocol."""

from __future__ import annotations

import hashlib
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks import contradictions
from study import sources
from study.bm25 import BM25, Read, letters, words
from study.sources import Folder, Question, Span, holds, part, windows

SOURCES = {"clapnq": "ClapNQ", "korquad": "KorQuAD"}
_ELSEWHERE = "windows of other texts in which the wanted text stands"
N_OTHERS = 10  # windows of other texts per question
N_KORQUAD = 400  # sentences of each part
N_SETS = 3  # of a claim
AS_IT_IS = "as it is"
#: Language -> the damage that changes nothing about what a chunk says.
DAMAGE = {
    "en": ("case and punctuation", "line breaks, hyphens", "Markdown"),
    "ko": (
        "a third of the spaces lost",
        "all spaces lost",
        "breaks inside words",
        "tables",
        "a mix, as from PDF files",
    ),
}


class Pair(NamedTuple):
    """A wanted text, a chunk, and whether the chunk holds it.

    Attributes:
        id: Unique; it names source, wanted text, chunk, by its place, and variant.
        kind: Of truth.
        language: Of both texts.
        source: Where they are from.
        document: What intervals are clustered by.
        part: ``open``, ``held`` or ``later``.
        question: What was asked; empty where nothing was.
        wanted: What should come back.
        chunk: What came back.
        right: Whether the chunk holds it.
        variant: What was done to the chunk, or what people said.
        share: How much of the wanted text is in the chunk, by places.
        answer: Whether the chunk holds the answer that a person marked.
        second: Whether the chunk holds what a second person selected.
        window: The chunk, by its place, and the question: what several wanted texts share.
    """

    id: str
    kind: str
    language: str
    source: str
    document: str
    part: str
    question: str
    wanted: str
    chunk: str
    right: bool
    variant: str = ""
    share: float | None = None
    answer: bool | None = None
    second: bool | None = None
    window: str = ""


@dataclass
class Pairs:
    """All pairs, and how much was left out, by the reason."""

    pairs: list[Pair] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def all_pairs(folder: Folder) -> Pairs:
    """Return every pair of the study."""
    all_ = Pairs()
    for make in (of_clapnq, of_korquad, of_wice, of_expertqa):
        all_.pairs += make(folder, all_.left_out)
    all_.pairs += of_texts()
    ids = Counter(pair.id for pair in all_.pairs)
    assert len(ids) == len(all_.pairs), ids.most_common(3)
    return all_


def seeded(*names: str) -> random.Random:
    """Return draws that depend on names alone."""
    return random.Random("/".join(names))


# --- passages ---


@dataclass(frozen=True)
class Pool:
    """The windows of all texts of a source, and which are the best for a question."""

    texts: list[str]
    windows: list[tuple[int, Span]]
    ranking: BM25

    @classmethod
    def of(cls, texts: Sequence[str], n: int, step: int, read: Read) -> Pool:
        """Cut texts into windows of n words."""
        cut = [(at, span) for at, text in enumerate(texts) for span in windows(text, n, step)]
        return cls([*texts], cut, BM25([texts[at][slice(*span)] for at, span in cut], read))

    def around(self, question: Question) -> list[tuple[int, Span]]:
        """Return all windows of the question's own text, and the best of other texts."""
        own = self.texts.index(question.text)
        ranked = self.ranking.best(question.question, len(self.windows))
        others = [self.windows[at] for at in ranked if self.windows[at][0] != own][:N_OTHERS]
        return [window for window in self.windows if window[0] == own] + others


def of_clapnq(folder: Folder, left_out: Counter[str]) -> Iterator[Pair]:
    """Yield the pairs of ClapNQ: each run of selected sentences, and all of them together."""
    questions, passages = sources.clapnq(folder)
    texts = [text for _, text in passages]
    verbatim, apart = Pool.of(texts, 100, 50, words), Pool.of(texts, 200, 100, words)
    for question in questions:
        if not question.spans:
            left_out["ClapNQ questions whose first annotator selected nothing"] += 1
            continue
        belongs = part("clapnq", question.document)
        for span in question.spans:
            found = [*of_passage("clapnq", "en", belongs, verbatim, question, (span,), left_out)]
            yield from found
            yield from damaged(found)
            yield from changed(found, question.text[slice(*span)])
        if len(question.spans) > 1:
            spans = question.spans
            yield from of_passage("clapnq", "en", belongs, apart, question, spans, left_out)


def of_korquad(folder: Folder, left_out: Counter[str]) -> Iterator[Pair]:
    """Yield the pairs of KorQuAD: the sentences around the answers."""
    questions, passages = sources.korquad(folder)
    pool = Pool.of([text for _, text in passages], 60, 30, letters(2))
    usable = [one for one in questions if 5 <= len(one.text[slice(*one.spans[0])].split()) <= 60]
    left_out["KorQuAD sentences of fewer than 5 or more than 60 words"] += len(questions) - len(
        usable
    )
    for belongs in ("open", "held"):
        of_part = [one for one in usable if part("korquad", one.document) == belongs]
        drawn = set(random.Random(0).sample(range(len(of_part)), N_KORQUAD))
        for at, question in enumerate(of_part):
            name = belongs if at in drawn else "later"
            spans = question.spans
            found = [*of_passage("korquad", "ko", name, pool, question, spans, left_out)]
            yield from found
            if at in drawn:
                yield from damaged(found)
            yield from changed(found, question.text[slice(*spans[0])])


def of_passage(
    source: str,
    language: str,
    belongs: str,
    pool: Pool,
    question: Question,
    spans: Sequence[Span],
    left_out: Counter[str],
) -> Iterator[Pair]:
    """Yield a wanted passage, of one or several spans, with each window around the question."""
    wanted = " ".join(question.text[slice(*span)] for span in spans)
    place = "+".join(f"{start}-{stop}" for start, stop in spans)
    kind = "verbatim" if len(spans) == 1 else "apart"
    own = pool.texts.index(question.text)
    whole = sum(map(n_letters, (question.text[slice(*span)] for span in spans)))
    for at, window in pool.around(question):
        chunk = pool.texts[at][slice(*window)]
        if at != own and joined(wanted) in joined(chunk):
            left_out[
                f"{SOURCES[source]}: windows of other texts in which the wanted text stands"
            ] += 1
            continue
        held = sum(n_letters(question.text[slice(*shared(window, span))]) for span in spans)
        window_id = f"{source}/{question.id}@{at}:{window[0]}-{window[1]}"
        second = question.others and (at == own and any(holds(window, o) for o in question.others))
        yield Pair(
            f"{kind}/{source}/{question.id}:{place}@{at}:{window[0]}-{window[1]}",
            kind,
            language,
            source,
            question.document,
            belongs,
            question.question,
            wanted,
            chunk,
            right=at == own and all(holds(window, span) for span in spans),
            share=held / whole if at == own else 0.0,
            answer=question.answer and at == own and holds(window, question.answer),
            second=second,
            window=window_id,
        )


def shared(one: Span, other: Span) -> Span:
    """Return where two spans overlap; an empty span where they do not."""
    start = max(one[0], other[0])
    return start, max(start, min(one[1], other[1]))


def n_letters(text: str) -> int:
    """Return the number of letters and digits."""
    return sum(map(str.isalnum, text))


def joined(text: str) -> str:
    """Return the letters and digits alone, in lower case.

    >>> joined("Is it 3.5?")
    'isit35'
    """
    return "".join(words(text))


def damaged(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Yield pairs with each kind of damage to the chunk."""
    for one in pairs:
        changes = contradictions.damage(one.language)
        for name in DAMAGE[one.language]:
            chunk = changes[name](seeded(one.id, name), one.chunk)
            yield one._replace(
                id=f"{one.id}#{name.replace(',', '')}",
                kind="damaged",
                chunk=chunk,
                variant=name,
                second=None,
            )


# --- changed in one thing ---


def a_year(draw: random.Random, text: str) -> str | None:
    """Say one or two years earlier in the place of a year from 1000 to 2099.

    >>> a_year(random.Random(0), "In 1989, 3 of 12345.")
    'In 1987, 3 of 12345.'
    """
    found = [*re.finditer(r"(?<![\d.,])(1\d|20)\d\d(?![\d]|[.,]\d)", text)]
    if not found:
        return None
    one = draw.choice(found)
    return text[: one.start()] + str(int(one[0]) - draw.choice([1, 2])) + text[one.end() :]


def changes(language: str) -> dict[str, contradictions.Other]:
    """Return what is changed, and how."""
    known = contradictions.contradictions(language)
    return {"one digit": known["one digit"], "a year": a_year, "a negation": known["a negation"]}


def changed(pairs: Iterable[Pair], wanted: str) -> Iterator[Pair]:
    """Yield each right pair as it is, and with one thing changed in the wanted stretch."""
    for one in pairs:
        if not one.right or one.chunk.count(wanted) != 1:
            continue
        base = one._replace(kind="contradicted", second=None, answer=None)
        yield base._replace(id=f"{one.id}!{AS_IT_IS}", variant=AS_IT_IS)
        for name, change in changes(one.language).items():
            other = change(seeded(one.id, name), wanted)
            if other and joined(other) != joined(wanted):
                chunk = one.chunk.replace(wanted, other)
                yield base._replace(
                    id=f"{one.id}!{name}", chunk=chunk, variant=name, right=False, share=None
                )


def of_texts() -> Iterator[Pair]:
    """Yield excerpts of the project's own texts, in chunks that say the same or another thing."""
    for folder, belongs in (("dev", "open"), ("held", "held")):
        for language in contradictions.LANGUAGES:
            for n, corpus in enumerate(contradictions.corpora(folder, language)):
                document = f"{folder}/{language}/{n}"
                for at, excerpt in enumerate(dict.fromkeys(corpus.excerpts)):
                    found = [
                        Pair(
                            f"contradicted/texts/{document}:{at}@{place}",
                            "contradicted",
                            language,
                            "texts",
                            document,
                            belongs,
                            "",
                            excerpt,
                            chunk,
                            right=True,
                        )
                        for place, chunk in enumerate(corpus.chunks)
                        if excerpt in chunk
                    ]
                    yield from changed(found, excerpt)


# --- claims ---


def of_wice(folder: Folder, left_out: Counter[str]) -> Iterator[Pair]:
    """Yield the claims of WiCE with sets of sentences, and with chunks of their page."""
    for claim in sources.wice(folder):
        if not claim.sets:
            left_out["WiCE claims that nothing supports"] += 1
            continue
        if claim.label != "supported":
            left_out["WiCE claims that are partially supported (shown apart)"] += 1
        yield from of_claim(claim, part("wice", claim.document))


def of_claim(claim: sources.Claim, belongs: str) -> Iterator[Pair]:
    """Yield a claim with its supporting sets, as many other sentences, and chunks of the page."""
    partly = "" if claim.label == "supported" else "partially supported"

    def pair(kind: str, place: Sequence[int], *, right: bool) -> Pair:
        at = f"{place[0]}-{place[-1]}" if is_run(place) else "+".join(map(str, place))
        return Pair(
            f"{kind.replace(', ', '-')}/wice/{claim.id}@{at}",
            kind,
            "en",
            "wice",
            claim.document,
            belongs,
            "",
            claim.claim,
            " ".join(claim.sentences[one] for one in place),
            right,
            partly,
        )

    touched = {one for chosen in claim.sets for one in chosen}
    for chosen in claim.sets[:N_SETS]:
        yield pair("claim", chosen, right=True)
    taken = set()
    for n, chosen in enumerate(claim.sets[:N_SETS]):
        length = len(chosen)
        firsts = [
            first
            for first in range(len(claim.sentences) - length + 1)
            if touched.isdisjoint(range(first, first + length)) and (first, length) not in taken
        ]
        if firsts:
            first = seeded(claim.id, str(n)).choice(firsts)
            taken.add((first, length))
            yield pair("claim", range(first, first + length), right=False)
    for chunk in packed(claim.sentences, 100):
        yield pair("claim, cut", chunk, right=any(set(one) <= set(chunk) for one in claim.sets))


def is_run(places: Sequence[int]) -> bool:
    """Tell whether numbers follow each other."""
    return [*places] == [*range(places[0], places[0] + len(places))]


def packed(sentences: Sequence[str], n: int) -> list[range]:
    """Return neighbouring sentences of up to n words together; a longer one stands alone.

    >>> packed(["a b", "c", "d e f g", "h"], 3)
    [range(0, 2), range(2, 3), range(3, 4)]
    """
    chunks, first, total = [], 0, 0
    for at, sentence in enumerate(sentences):
        length = len(sentence.split())
        if total and total + length > n:
            chunks.append(range(first, at))
            first, total = at, 0
        total += length
    return [*chunks, range(first, len(sentences))]


def of_expertqa(folder: Folder, left_out: Counter[str]) -> Iterator[Pair]:
    """Yield the claims of ExpertQA with their only piece of evidence."""
    for one in sources.expertqa(folder):
        if len(one.evidence) != 1:
            left_out["ExpertQA claims with several or no pieces of evidence"] += 1
        elif len(one.evidence[0].split()) < 20:
            left_out["ExpertQA claims with evidence of fewer than 20 words"] += 1
        elif one.support not in ("Complete", "Incomplete", "Partial"):
            left_out["ExpertQA claims with support N/A or none"] += 1
        else:
            partly = one.support == "Partial"
            left_out["ExpertQA claims with support Partial (shown apart)"] += partly
            yield Pair(
                f"claim-experts/expertqa/{one.id}",
                "claim, experts",
                "en",
                "expertqa",
                hashlib.sha256(one.question.encode()).hexdigest()[:12],
                part("expertqa", one.question),
                "",
                one.claim,
                one.evidence[0],
                one.support == "Complete",
                "Partial" if partly else "",
            )


def is_main(pair: Pair) -> bool:
    """Tell whether a pair counts in the main figures: what is shown apart does not."""
    return pair.variant not in ("partially supported", "Partial")

"""The texts of the study: which files, where to get them, and what people said in them.

Files are known by what they hold: a file anywhere in the folder, whatever its name, packed by gzip
or not, is taken for what its SHA-256 sum says. So nothing that was edited or cut off is measured.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

_LARGEST = 50_000_000  # bytes; no file of the study has as many
_CHROMA = (
    "github.com/brandonstarxel/chunking_evaluation, evaluation_framework/general_evaluation_data"
)


class File(NamedTuple):
    """A file of the study: the SHA-256 sum of what it holds unpacked, and where to get it."""

    sum: str
    source: str


FILES = {
    "clapnq answerable": File(
        "3eefef4a3d4e34c0f7d2c2eceb9bde263bf43ee8edac1b4fe8d74f8b6a0bdfbe",
        "github.com/primeqa/clapnq, annotated_data/dev/clapnq_dev_answerable.jsonl",
    ),
    "clapnq unanswerable": File(
        "a04f4fd625a68a521663d4c0e2b54c74c8067459adcb973a6111602fa54faaac",
        "github.com/primeqa/clapnq, annotated_data/dev/clapnq_dev_unanswerable.jsonl",
    ),
    "korquad": File(
        "25ffeb51e6c51ec02c071b60a10188e10005c144110f0d876b26079d80a35bdf",
        "github.com/korquad/korquad.github.io, dataset/KorQuAD_v1.0_dev.json",
    ),
    "wice": File(
        "67531ca79bde4c81d3752fb69d9cb0d3d6763de5c3028f548b83ef053a6f8042",
        "github.com/ryokamoi/wice, data/entailment_retrieval/claim/dev.jsonl",
    ),
    "expertqa rand_val": File(
        "4da2b2e637104fb816716eaa4c60898c6892395d596c03b7d1f9a72c6327069c",
        "github.com/chaitanyamalaviya/ExpertQA, data/lfqa/rand_val.jsonl",
    ),
    "expertqa rand_test": File(
        "022d6c19bdd91fb33c3185ef59f9c18510655c15598061e631c434487aa07b28",
        "github.com/chaitanyamalaviya/ExpertQA, data/lfqa/rand_test.jsonl",
    ),
    "expertqa domain_val": File(
        "876fac217bbee9c33b50105e6a62feb60344e66c7e1998b99dcc4a45f8433f0b",
        "github.com/chaitanyamalaviya/ExpertQA, data/lfqa/domain_val.jsonl",
    ),
    "chroma questions": File(
        "3ab3901889b8900f43775537bf12d36bd6614255fc59124faca31bede1dda7a3",
        f"{_CHROMA}/questions_df.csv",
    ),
    # The questions of the three corpora below, as {"question", "corpus", "excerpts"} per line.
    "chroma questions, as lines": File(
        "ff7a3497ae8f05a4b795b18de4615d35f98c6e08fbfdad485091dda4b1a44501",
        "the file above, rewritten",
    ),
    "chatlogs": File(
        "543a98f82b2a6a492349fd7f8c9d6c3e78d1a4af81d13c79a7fd513c3f65bda6",
        f"{_CHROMA}/corpora/chatlogs.md",
    ),
    "state_of_the_union": File(
        "6fc21d560d31eb2421e337596feea0f83f1fa9ca02c6c4e47bc26959d7531b37",
        f"{_CHROMA}/corpora/state_of_the_union.md",
    ),
    "wikitexts": File(
        "74cafcdb771185ecb9f22cc41b73e2e44477e0636ecf9cf1f96fd6ee0f4b86c0",
        f"{_CHROMA}/corpora/wikitexts.md",
    ),
}
CORPORA = ("chatlogs", "state_of_the_union", "wikitexts")
#: Either of two forms is enough.
_EITHER = {"chroma questions", "chroma questions, as lines"}

Span = tuple[int, int]


@dataclass(frozen=True)
class Question:
    """A question, the text that answers it, and the places in it that people chose.

    Attributes:
        id: Unique in its source.
        question: What was asked.
        document: What intervals are clustered by.
        text: The whole text.
        spans: From where to where people's choice stands in the text, in order.
        others: The same of a second person; ``None`` without one.
        answer: Where a short answer stands.
    """

    id: str
    question: str
    document: str
    text: str
    spans: tuple[Span, ...]
    others: tuple[Span, ...] | None = None
    answer: Span | None = None


class Claim(NamedTuple):
    """A claim of an article, the sentences of a page, and which sets of them support it."""

    id: str
    document: str
    claim: str
    label: str
    sentences: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]


class Attributed(NamedTuple):
    """A claim of an answer, what experts said of its evidence, and that evidence."""

    id: str
    question: str
    claim: str
    support: str | None
    evidence: tuple[str, ...]


class Folder:
    """The files of the study, found below a folder by what they hold."""

    def __init__(self, folder: Path) -> None:
        names = {file.sum: name for name, file in FILES.items()}
        self._found: dict[str, bytes] = {}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size < _LARGEST:
                content = path.read_bytes()
                if content[:2] == b"\x1f\x8b":
                    content = gzip.decompress(content)
                name = names.get(hashlib.sha256(content).hexdigest())
                if name:
                    self._found[name] = content
        missing = FILES.keys() - self._found.keys()
        missing -= _EITHER if _EITHER - missing else {max(_EITHER)}
        if missing:
            wanted = [
                f"\n  {file.source}\n    SHA-256 {file.sum}"
                for name, file in FILES.items()
                if name in missing
            ]
            raise SystemExit(
                f"{folder} lacks files of the study, or has others. Get, under any "
                f"name, unpacked or packed by gzip:{''.join(wanted)}"
            )

    def __contains__(self, name: str) -> bool:
        return name in self._found

    def text(self, name: str) -> str:
        """Return what a file holds."""
        return self._found[name].decode("utf-8")

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the JSON objects of a file, one per line."""
        return [json.loads(line) for line in self._found[name].splitlines() if line.strip()]


def clapnq(folder: Folder) -> tuple[list[Question], list[tuple[str, str]]]:
    """Return the answerable questions, and all passages as (title, text)."""
    questions, passages = [], {}
    for row in folder.rows("clapnq answerable"):
        passage = row["passages"][0]
        title, text = passage["title"], passage["text"]
        passages[text] = title
        people = [
            runs(text, passage["sentences"], one["selected_sentences"]) for one in row["output"]
        ]
        chose = [spans for spans in people[1:] if spans]
        second = chose[0] if people[0] and chose else None
        questions.append(Question(row["id"], row["input"], title, text, people[0], second))
    for row in folder.rows("clapnq unanswerable"):
        for passage in row["passages"]:
            passages.setdefault(passage["text"], passage["title"])
    return questions, [(title, text) for text, title in passages.items()]


def runs(text: str, sentences: Sequence[str], selected: Sequence[str]) -> tuple[Span, ...]:
    """Return where selected sentences stand, neighbouring ones as one.

    >>> runs("One. Two. Three. No.", ["One.", "Two.", "Three.", "No."], ["No.", "One.", "Two."])
    ((0, 9), (17, 20))
    """
    chosen, found, at = {one.strip() for one in selected}, [], 0
    for sentence in map(str.strip, sentences):
        start = text.index(sentence, at)
        at = start + len(sentence)
        found.append((start, at, sentence in chosen))
    spans: list[Span] = []
    previous = False
    for start, stop, is_chosen in found:
        if is_chosen:
            spans = [*spans[:-1], (spans[-1][0], stop)] if previous else [*spans, (start, stop)]
        previous = is_chosen
    return tuple(spans)


def korquad(folder: Folder) -> tuple[list[Question], list[tuple[str, str]]]:
    """Return one question per sentence with an answer, and all paragraphs as (title, text)."""
    questions, passages = [], []
    for article in json.loads(folder.text("korquad"))["data"]:
        for paragraph in article["paragraphs"]:
            text = paragraph["context"]
            passages.append((article["title"], text))
            seen = set()
            for asked in paragraph["qas"]:
                answer = asked["answers"][0]
                start = answer["answer_start"]
                stop = start + len(answer["text"])
                sentence = around(text, start, stop)
                if text[start:stop] == answer["text"] and sentence not in seen:
                    seen.add(sentence)
                    place = article["title"], text, (sentence,), None, (start, stop)
                    questions.append(Question(asked["id"], asked["question"], *place))
    return questions, passages


def around(text: str, start: int, stop: int) -> Span:
    """Return the sentence, or sentences, around a place.

    >>> text = "하나다. 둘은 3.5이다. 셋이다."
    >>> text[slice(*around(text, 9, 11))]
    '둘은 3.5이다.'
    """
    ends = [found.end() for found in re.finditer(r"[.?!…][\"'”’)\]]*(?=\s)|\n", text)]
    ends = [0, *ends, len(text)]
    begin = max(end for end in ends if end <= start)
    end = min(end for end in ends if end >= stop)
    return begin + len(text[begin:end]) - len(text[begin:end].lstrip()), len(text[:end].rstrip())


def wice(folder: Folder) -> list[Claim]:
    """Return the claims of WiCE."""
    claims = []
    for row in folder.rows("wice"):
        meta, sets = row["meta"], [sorted(set(one)) for one in row["supporting_sentences"] if one]
        claims.append(
            Claim(
                meta["id"],
                meta["claim_title"],
                row["claim"],
                row["label"],
                tuple(row["evidence"]),
                tuple(dict.fromkeys(map(tuple, sets))),
            )
        )
    return claims


def expertqa(folder: Folder) -> list[Attributed]:
    """Return the claims of the first time that each question stands in the files."""
    claims, seen = [], set()
    for name in ("rand_val", "rand_test", "domain_val"):
        for row in folder.rows(f"expertqa {name}"):
            question = row["question"].strip()
            if question in seen:
                continue
            seen.add(question)
            key = hashlib.sha256(question.encode()).hexdigest()[:12]
            for system, answer in row["answers"].items():
                claims += [
                    Attributed(
                        f"{key}/{system}/{at}",
                        question,
                        without_marks(one["claim_string"]),
                        one["support"],
                        tuple(without_address(text) for text in one["evidence"]),
                    )
                    for at, one in enumerate(answer["claims"])
                ]
    return claims


def without_marks(claim: str) -> str:
    """Return a claim without its references.

    >>> without_marks("It is so [1][2], they say [3].")
    'It is so, they say.'
    """
    return re.sub(r"\s*\[\d+\]", "", claim).strip()


def without_address(evidence: str) -> str:
    r"""Return a piece of evidence without its number and address.

    >>> without_address("[2] https://example.org/a\n\nWhat it says.")
    'What it says.'
    """
    return re.sub(r"^\s*(\[\d+\])?\s*(https?://\S+)?\s*", "", evidence).strip()


def chroma(folder: Folder) -> Iterator[Question]:
    """Yield the questions about the three corpora."""
    if "chroma questions" in folder:
        # As in the file that they are published in.
        rows = [
            {
                "question": row["question"],
                "corpus": row["corpus_id"],
                "excerpts": [
                    {"start": one["start_index"], "end": one["end_index"]}
                    for one in json.loads(row["references"])
                ],
            }
            for row in csv.DictReader(io.StringIO(folder.text("chroma questions")))
            if row["corpus_id"] in CORPORA
        ]
    else:
        rows = folder.rows("chroma questions, as lines")
    texts = {name: folder.text(name) for name in CORPORA}
    for at, row in enumerate(rows):
        spans = tuple((one["start"], one["end"]) for one in row["excerpts"])
        yield Question(str(at), row["question"], row["corpus"], texts[row["corpus"]], spans)


def part(source: str, document: str) -> str:
    """Return to which part a document belongs."""
    first = hashlib.sha256(f"{source}/{document}".encode()).digest()[0]
    return "held" if first % 2 else "open"


def windows(text: str, n: int, step: int) -> list[Span]:
    """Return from where to where the windows of n words stand; the last one ends with the text.

    >>> [("a b c d e"[start:stop]) for start, stop in windows("a b c d e", 3, 2)]
    ['a b c', 'c d e']
    >>> windows("a b", 3, 2)
    [(0, 3)]
    """
    words = [found.span() for found in re.finditer(r"\S+", text)]
    firsts = [*range(0, max(len(words) - n, 0), step), max(len(words) - n, 0)]
    return [(words[at][0], words[min(at + n, len(words)) - 1][1]) for at in dict.fromkeys(firsts)]


def holds(window: Span, span: Span) -> bool:
    """Tell whether a window holds a span."""
    return window[0] <= span[0] and span[1] <= window[1]

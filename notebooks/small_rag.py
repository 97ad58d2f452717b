"""The small retrieval system the notebooks measure: two handbooks, a splitter, BM25, an embedding.

Everything is real, runs without network or key, and gives the same digits on every run. The texts
in ``data/`` were written for krag_eval: the handbook of a library, in English, and the guide to a
bicycle hire, in Korean, with 84 questions and the passages that answer them.

As a command it writes the files of the quick start: questions of a ferry company's handbook (with
``--lang ko`` of a clinic's) and their passages, what BM25 retrieves, and the chunks of its index:

    python notebooks/small_rag.py FOLDER [--words N] [--overlap N] [--lang ko] [--mistakes]
"""

import argparse
import json
import re
import unicodedata
from collections import Counter
from functools import cache
from math import log, sqrt
from pathlib import Path
from zlib import crc32

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from nltk.stem import PorterStemmer
from pydantic import PrivateAttr

DATA = Path(__file__).with_name("data")
HANDBOOKS = {"en": "library.txt", "ko": "bicycles.ko.txt"}
# What --mistakes does to a golden set and its index: a label that still has last year's price, a
# chapter that was never ingested, and a question that was labelled twice.
MISTAKES = {
    "en": {
        "price": ("a penalty of 40 crowns", "a penalty of 35 crowns"),
        "chapter": "Cameras and personal data",
        "twice": "How early must I be there with a car?",
    },
    "ko": {
        "price": ("한 장에 5천 원", "한 장에 4천 원"),
        "chapter": "장례식장",
        "twice": "예약 시간에 늦으면 어떻게 되나요?",
    },
}
STOP_WORDS = set(
    "a an and are as at be but by can do does for from has have how i if in is it its may me my "
    "not of on or our so that the their them then there they this to up us was we what when where "
    "which who will with would you your".split()
)
stem = cache(PorterStemmer().stem)


def handbook(language):
    """Return one of the two handbooks as it is in its file, line breaks and all."""
    return (DATA / HANDBOOKS[language]).read_text(encoding="utf-8")


def questions(language=None):
    """Return the questions, each a dict with "question", "actual" (passages) and "language"."""
    lines = (DATA / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row for row in rows if language in (None, row["language"])]


def chunks(text, n_words, overlap=0):
    """Cut a text into documents of so many words; ``start`` and ``end`` are places in the text."""
    words = list(re.finditer(r"\S+", text))
    cut = []
    for first in range(0, max(len(words) - overlap, 1), n_words - overlap):
        window = words[first : first + n_words]
        start, end = window[0].start(), window[-1].end()
        cut.append(Document(text[start:end], metadata={"start": start, "end": end}))
    return cut


def located(passage, text):
    """Return a passage as a document that knows its place in the text, as chunks do."""
    match = re.search(r"\s+".join(map(re.escape, passage.split())), text)
    return Document(passage, metadata={"start": match.start(), "end": match.end()})


def words_of(text):
    """Return the words of a text, lower-cased."""
    return re.findall(r"\w+", unicodedata.normalize("NFC", text).lower())


def terms(text):
    """Return English stems without stop words; Korean words stay as they are, particles and all."""
    return [stem(word) for word in words_of(text) if word not in STOP_WORDS]


class BM25(BaseRetriever):
    """Okapi BM25 over documents: words that are rare in the collection count most."""

    documents: list[Document]
    k: int = 5
    _counts: list[Counter] = PrivateAttr()
    _idf: dict[str, float] = PrivateAttr()

    def model_post_init(self, context):
        """Count the words of every document once."""
        self._counts = [Counter(terms(document.page_content)) for document in self.documents]
        n, found = len(self.documents), Counter(term for c in self._counts for term in c)
        self._idf = {term: log(1 + (n - df + 0.5) / (df + 0.5)) for term, df in found.items()}

    def _get_relevant_documents(self, query, *, run_manager):
        mean = sum(c.total() for c in self._counts) / len(self._counts)
        scores = [self._score(terms(query), c, c.total() / mean) for c in self._counts]
        ranked = sorted(range(len(scores)), key=lambda i: -scores[i])[: self.k]
        return [self.documents[i] for i in ranked if scores[i] > 0]

    def _score(self, query, counts, length, k1=1.5, b=0.75):
        found = [(self._idf[term], counts[term]) for term in query if term in counts]
        return sum(idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length)) for idf, tf in found)


def bm25(documents, k=200):
    """Return BM25 over documents, for krag-eval sweep, which makes a retriever of chunks."""
    return BM25(documents=documents, k=k)


class LetterEmbeddings(Embeddings):
    """Embeds a text as its runs of letters, hashed into a vector: no model, no download.

    Words that share a stem share most of their runs, whatever ending or particle they carry.
    Hangul is taken apart into its letters first.
    """

    def __init__(self, size=4096, runs=(3, 4, 5)):
        self.size, self.runs = size, runs

    def embed_query(self, text):
        """Return the vector of one text, of length 1."""
        vector = [0.0] * self.size
        for run, count in Counter(self._runs(text)).items():
            hashed = crc32(run.encode())
            vector[hashed % self.size] += (1 if hashed & 1 << 20 else -1) * sqrt(count)
        length = sqrt(sum(x * x for x in vector)) or 1.0
        return [x / length for x in vector]

    def embed_documents(self, texts):
        """Return the vector of each text."""
        return [self.embed_query(text) for text in texts]

    def _runs(self, text):
        for word in words_of(text):
            letters = f"<{unicodedata.normalize('NFD', word)}>"
            for n in self.runs:
                yield from (letters[i : i + n] for i in range(max(len(letters) - n + 1, 1)))


def example(language="en", n_words=80, overlap=0, mistakes=False):
    """Return the rows of the files of the quick start: file name -> dicts.

    Each question has an ``id``; BM25 retrieves its first ten chunks, so that a diagnosis at k = 5
    sees what was ranked just below. ``mistakes`` plants three, of which ``MISTAKES`` tells.
    """
    ending = {"en": "", "ko": ".ko"}[language]
    text = (DATA / f"handbook{ending}.txt").read_text(encoding="utf-8")
    lines = (DATA / f"handbook_questions{ending}.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [(row["question"], row["excerpts"]) for row in map(json.loads, lines)]
    if mistakes:
        planted = MISTAKES[language]
        text = re.sub(rf"^# {planted['chapter']}\n.*?(?=^# |\Z)", "", text, flags=re.M | re.S)
        labels = [(q, [one.replace(*planted["price"]) for one in found]) for q, found in labels]
        labels += [label for label in labels if label[0] == planted["twice"]]
    documents = chunks(text, n_words, overlap)
    index = [{"id": f"c{n:03}", "text": d.page_content} for n, d in enumerate(documents, start=1)]
    rows = {document.page_content: row for document, row in zip(documents, index, strict=True)}
    retriever = BM25(documents=documents, k=10)
    files = {"golden.jsonl": [], "run.jsonl": [], "chunks.jsonl": index}
    for n, (question, excerpts) in enumerate(labels, start=1):
        asked = {"id": f"q{n:02}", "question": question}
        predicted = [rows[document.page_content] for document in retriever.invoke(question)]
        files["golden.jsonl"].append(asked | {"actual": excerpts})
        files["run.jsonl"].append(asked | {"predicted": predicted})
    return files


def main():
    """Write the files of the quick start into a folder."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", type=int, default=80, help="words in a chunk (80)")
    parser.add_argument("--overlap", type=int, default=0, help="words that chunks share (0)")
    parser.add_argument("--lang", choices=["en", "ko"], default="en", help="of the handbook (en)")
    parser.add_argument("--mistakes", action="store_true", help="plant three mistakes")
    asked = parser.parse_args()
    if not 0 <= asked.overlap < asked.words:
        parser.error("--overlap: at least 0 and fewer than --words")
    files = example(asked.lang, asked.words, asked.overlap, asked.mistakes)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in files.items():
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        (asked.folder / name).write_text("".join(lines), encoding="utf-8")
    print(", ".join(f"{asked.folder / name}: {len(rows)}" for name, rows in files.items()))


if __name__ == "__main__":
    main()

"""How often a chunk that says something else counts as the passage that was looked for.

    python -m benchmarks.contradictions [--texts {dev,held}] [--quick] [--markdown {en,ko}]

Twelve texts in Korean, in English and in the mix that Korean developers write, all written for this
purpose, are cut into overlapping chunks, and excerpts of them are looked for by every matcher that
decides by text without a model. Each language has three tables:

- the share of chunks that a matcher accepts although they contradict the excerpt: all of it, but
  for one digit, a year, a unit, a negation, a bound or a name;
- the F1 of its decisions over all pairs of excerpt and chunk of one text, as they stand and after
  damage that changes nothing about what a chunk says;
- what it reports about a retriever on a corpus in three yearly versions, in which a question asks
  for one of them, beside the truth, which is known as the versions are made here.

``--quick`` takes one text of each language and few excerpts, ``--markdown`` prints the tables as
the guides have them, with few matchers and all languages side by side. Rules are set on the texts
in ``texts/dev``; ``texts/held`` are for looking at once.
"""

from __future__ import annotations

import argparse
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from warnings import catch_warnings

import numpy as np

from benchmarks import korean_spaces
from benchmarks.chunk_sizes import small_rag
from benchmarks.korean_spaces import (
    AROUND,
    CHUNK,
    EXCERPT,
    RIGHT,
    STEP,
    Corpus,
    corpus,
    header,
    row,
)
from krag_eval import (
    AnyOf,
    CoverageMatcher,
    FuzzyMatcher,
    KragEvalWarning,
    Matcher,
    OfflineRetrievalEvaluator,
)
from krag_eval.core.documents import DocumentLike, QuerySet
from krag_eval.core.matching.names import resolve_matcher

TEXTS = Path(__file__).parent / "texts"
LANGUAGES = ("ko", "en", "mix")
N_EXCERPTS = 80  # of each text
DEPTH = 10
#: What they are called -> where a result has them.
METRICS = {"hit@1": "hit_rate@1", "recall@5": "macro_recall@5", "MRR@10": f"mrr@{DEPTH}"}
#: What a line is about -> its cells; the first line is the head.
Table = dict[str, list[str]]
Change = Callable[[random.Random, str], str]
Other = Callable[[random.Random, str], str | None]

#: Every matcher that decides by text without a model, at the threshold it comes with.
MATCHERS: dict[str, Callable[[], Matcher]] = {
    "exact": lambda: resolve_matcher("text"),
    "contains": lambda: resolve_matcher("contains"),
    "ROUGE-1": lambda: resolve_matcher("rouge1"),
    "ROUGE-2": lambda: resolve_matcher("rouge2"),
    "ROUGE-L": lambda: resolve_matcher("rougeL"),
    "ROUGE-1 recall": lambda: resolve_matcher("rouge1(statistic=recall)"),
    "ROUGE-2 recall": lambda: resolve_matcher("rouge2(statistic=recall)"),
    "ROUGE-L recall": lambda: resolve_matcher("rougeL(statistic=recall)"),
    "fuzzy": FuzzyMatcher,
    "fuzzy partial": lambda: FuzzyMatcher("partial_ratio"),
    "no guard": lambda: CoverageMatcher(guard="off"),
    "anywhere": lambda: CoverageMatcher(numbers="anywhere", polarity=False),
    "coverage": CoverageMatcher,
    "letters": lambda: CoverageMatcher(tokenizer="letters"),
    "tolerant": lambda: CoverageMatcher(tolerant=True),
}
#: Whose decisions the guides show on damaged texts.
IN_GUIDES = ("coverage", "contains", "ROUGE-L recall", "fuzzy partial")


@cache
def texts(part: str, language: str, quick: bool = False) -> tuple[str, ...]:
    files = sorted((TEXTS / part).glob(f"{language}_*.txt"))
    return tuple(one.read_text("utf-8") for one in files[: 1 if quick else None])


@cache
def corpora(part: str, language: str, quick: bool = False) -> tuple[Corpus, ...]:
    draw = random.Random(5)
    return tuple(corpus(text, n_excerpts(quick), draw) for text in texts(part, language, quick))


def n_excerpts(quick: bool) -> int:
    return N_EXCERPTS // 4 if quick else N_EXCERPTS


# --- damage: what a chunk says stays the same ---


def other_case(draw: random.Random, text: str) -> str:
    """Write in capitals, with other marks and without the commas between words."""
    return re.sub(r"[,;:](?=\s)", "", korean_spaces.other_marks(draw, text).upper())


def hyphenated(_: random.Random, text: str) -> str:
    """Break lines after some forty letters, at a space or within an English word."""
    return re.sub(
        r"(.{36,44}?)(?: |(?<=[a-z]{2})(?=[a-z]{2}))",
        lambda line: f"{line[1]}\n" if line[0].endswith(" ") else f"{line[1]}-\n",
        " ".join(text.split()),
    )


def markup(draw: random.Random, text: str) -> str:
    """Mark up a tenth of the words, and put sentences on lines of their own."""
    marks = ["**{}**", "*{}*", "`{}`", "[{}](https://example.org/more)"]
    marked = re.sub(
        r"\S+",
        lambda word: draw.choice(marks).format(word[0]) if draw.random() < 0.1 else word[0],
        text,
    )
    begin = ["\n- ", "\n\n## ", "\n\n> ", "\n\n"]
    # A point behind a digit may be one of a date.
    return re.sub(r"(?<=[^\W\d]\.)\s+", lambda _: draw.choice(begin), marked)


def other_characters(_: random.Random, text: str) -> str:
    """Write ASCII in full width, and Hangul as the letters that each syllable is made of."""
    wide = re.sub("[!-~]", lambda one: chr(ord(one[0]) + 0xFEE0), text)
    return unicodedata.normalize("NFD", wide)


def misread(draw: random.Random, text: str) -> str:
    """Misread one letter in fifty; digits stay, as another number says something else."""
    return re.sub(
        "[a-z]",
        lambda one: draw.choice("aceimnorstu") if draw.random() < 0.02 else one[0],
        korean_spaces.misread(0.02)(draw, text),
    )


_DAMAGE: dict[str, Change] = {
    "clean": korean_spaces.CHANGES["clean"],
    "case and punctuation": other_case,
    "a third of the spaces lost": korean_spaces.CHANGES["a third of the spaces lost"],
    "all spaces lost": korean_spaces.CHANGES["all spaces lost"],
    "breaks inside words": korean_spaces.broken,
    "line breaks, hyphens": hyphenated,
    "tables": korean_spaces.tables,
    "Markdown": markup,
    "full width, NFD": other_characters,
    "2 % of letters misread": misread,
    "30 % of particles changed": korean_spaces.CHANGES["30 % of particles changed"],
    "all endings changed": korean_spaces.CHANGES["all endings changed"],
    "page footers": korean_spaces.footers,
    "a mix, as from PDF files": korean_spaces.pdf,
}
_OF_KOREAN = ("30 % of particles changed", "all endings changed")


def damage(language: str) -> dict[str, Change]:
    left_out = _OF_KOREAN if language == "en" else ()
    return {name: change for name, change in _DAMAGE.items() if name not in left_out}


# --- contradictions: one thing is another ---


def one_digit(draw: random.Random, text: str) -> str | None:
    at = [match.start() for match in re.finditer(r"\d", text)]
    if not at:
        return None
    place = draw.choice(at)
    others = "123456789".replace(text[place], "")
    return text[:place] + draw.choice(others) + text[place + 1 :]


def year(draw: random.Random, text: str) -> str | None:
    found = [*re.finditer(r"(?<!\d)20\d\d(?!\d)", text)]
    if not found:
        return None
    one = draw.choice(found)
    return text[: one.start()] + str(int(one[0]) - draw.choice([1, 2])) + text[one.end() :]


def swapped(pairs: dict[str, str]) -> Other:
    """Say another word in the place of one; the keys are patterns, tried in order."""
    patterns = [(re.compile(said), other) for said, other in pairs.items()]

    def change(draw: random.Random, text: str) -> str | None:
        found = [(match, other) for one, other in patterns for match in one.finditer(text)]
        if not found:
            return None
        match, other = draw.choice(found)
        return text[: match.start()] + match.expand(other) + text[match.end() :]

    return change


_KO_UNITS = {
    r"(?<=\d)(\s?)만 ?원": r"\1억 원",
    r"(?<=\d)(\s?)억": r"\1만",
    r"(?<=\d)(\s?)개월": r"\1년",
    r"(?<=\d)(\s?)년(?! ?\d)": r"\1개월",
    r"(?<=\d)(\s?)시간": r"\1분",
    r"(?<=\d)(\s?)분(?!기)": r"\1시간",
    r"(?<=\d)(\s?)km": r"\1m",
    r"(?<=\d)(\s?)%(?!p)": r"\1%p",
    r"(?<=\d)(\s?)GB": r"\1MB",
    r"(?<=\d)(\s?)ms": r"\1s",
    r"(?<=\d)(\s?)kg": r"\1g",
    r"(?<=\d)(\s?)명": r"\1가구",
    r"(?<=\d)(\s?)일(?= |간|동안|이내)": r"\1주",
}
_EN_UNITS = {
    r"(?<=\d )million": "billion",
    r"(?<=\d )billion": "million",
    r"(?<=\d )days": "weeks",
    r"(?<=\d )weeks": "days",
    r"(?<=\d )months": "years",
    r"(?<=\d )years": "months",
    r"(?<=\d )hours": "minutes",
    r"(?<=\d )minutes": "hours",
    r"(?<=\d )miles": "kilometers",
    r"(?<=\d )percent": "percentage points",
    r"(?<=\d)%(?!p)": " percentage points",
    r"(?<=\d )mg": "g",
    r"(?<=\d )MB": "GB",
    r"(?<=\d )seconds": "milliseconds",
    r"(?<=\d )gallons": "barrels",
}
_KO_NEGATIONS = {
    "수 있": "수 없",
    "수 없": "수 있",
    "지 않는다": "ㄴ다",
    "합니다": "하지 않습니다",
    "됩니다": "되지 않습니다",
    "한다": "하지 않는다",
    "된다": "되지 않는다",
    "있습니다": "없습니다",
    "없습니다": "있습니다",
    "받습니다": "받지 않습니다",
    "하지 않": "하",
    "되지 않": "되",
}
_EN_NEGATIONS = {
    r"\b(is|are|was|were|will|must|may|can|has|have|do|does|should|could)\b(?! not)": r"\1 not",
    r"\bcannot\b": "can",
    r" not\b": "",
    r"\bno\b": "a",
    r"\bnever\b": "always",
    r"\bwithout\b": "with",
}
_KO_BOUNDS = {
    "이상": "이하",
    "이하": "이상",
    "미만": "초과",
    "초과": "미만",
    "이내": "이후",
    "이전": "이후",
    "이후": "이전",
    "포함": "제외",
    "제외": "포함",
}
_EN_BOUNDS = {
    r"\bbefore\b": "after",
    r"\bafter\b": "before",
    r"\babove\b": "below",
    r"\bbelow\b": "above",
    r"\bat least\b": "at most",
    r"\bat most\b": "at least",
    r"\bmore than\b": "less than",
    r"\bless than\b": "more than",
    r"\bover\b": "under",
    r"\bunder\b": "over",
    r"\bexcept\b": "including",
    r"\bunless\b": "if",
    r"\buntil\b": "after",
}
_NAMES = {
    r"\b(?!The|This|That|These|Those|If|In|On|At|For|When|No|An?\b)[A-Z][a-z]{3,}\b": "Orlen",
    "신청": "접수",
    "서류": "장비",
    "학생": "직원",
    "계약": "예약",
}


_KO_ANTONYMS = """
증가 감소, 허용 금지, 승인 거부, 최대 최소, 오전 오후, 높 낮, 많 적, 길 짧, 빠르 느리,
크 작, 입학 졸업, 수입 수출, 찬성 반대, 성공 실패, 이익 손실, 유료 무료, 상승 하락,
확대 축소, 시작 종료, 가입 탈퇴, 공개 비공개, 의무 선택, 실내 실외, 국내 해외, 평일 주말,
매일 매주, 처음 마지막, 가장 조금, 먼저 나중에, 개인 단체, 신규 기존, 임대 매매, 구매 판매,
지급 회수, 합격 불합격, 남성 여성, 어른 어린이, 위 아래, 안 밖, 앞 뒤, 직접 대리,
전부 일부, 모두 일부, 반드시 가급적, 초과 미만, 이상 이하, 이전 이후, 이내 이후, 포함 제외,
연장 단축, 설치 철거, 추가 삭제, 신청 취소, 인상 인하, 강화 완화, 온라인 현장, 낮 밤,
늘 줄, 열 닫, 사 팔, 빌리 돌려주, 켜 끄"""
_EN_ANTONYMS = """
increase decrease, increased decreased, allowed forbidden, maximum minimum, approved
rejected, open closed, opens closes, high low, higher lower, large small, long short, fast slow,
early late, first last, before after, above below, more fewer, most least, always never, public
private, import export, internal external, success failure, profit loss, rise fall, rose fell, win
lose, add remove, added removed, enable disable, enabled disabled, start end, begins ends, buy sell,
paid unpaid, free paid, new old, adult child, adults children, men women, north south, east west,
left right, inside outside, upper lower, hot cold, wet dry, light dark, full empty, same different,
with without, include exclude, includes excludes, required optional, mandatory voluntary, monthly
yearly, daily weekly, morning evening, summer winter, day night, weekdays weekends, accept refuse,
accepts refuses, borrow lend, may must, all none, every no, both neither, or and, over under, up
down, in out, on off, together separately, safe dangerous, strong weak, easy hard, cheap expensive,
permanent temporary, minimum maximum, upgrade downgrade, increase cut, gains losses, longer shorter,
larger smaller, older younger, inner outer, direct indirect, visible hidden, single several"""
_KO_INSERTED = [
    "제외 대상인 ",
    "불가능한 ",
    "해당하지 않는 ",
    "인정되지 않는 ",
    "예외적으로 ",
    "없는 ",
]
_EN_INSERTED = ["not ", "never ", "except for ", "without ", "no "]
_PARTICLE = "(?:은|는|이|가|을|를|의|에|에서|에게|로|으로|와|과|도|만|까지|부터)"
_STEM = re.compile(rf"(?<![가-힣])([가-힣]{{2,}}?)(?={_PARTICLE}(?![가-힣]))")
_WORD = re.compile(r"(?<![A-Za-z])[a-z]{4,}(?![A-Za-z])")
_ANY = re.compile(r"(?<![가-힣])[가-힣]{2,}(?![가-힣])|(?<![A-Za-z])[A-Za-z]{3,}(?![A-Za-z])")


def opposite(language: str) -> Other:
    """Say the opposite of one word: either of a pair in the place of the other."""
    lists = [_KO_ANTONYMS] * (language != "en") + [_EN_ANTONYMS] * (language != "ko")
    pairs = [tuple(pair.split()) for one in lists for pair in " ".join(one.split()).split(", ")]
    other = {word: words for one, two in pairs for word, words in ((one, two), (two, one))}
    # One syllable is a stem where an ending follows it.
    ends = r"(?:(?<=[가-힣]{2})|(?=[은는게아어고지거]))(?=[^가-힣]|[가-힣]{1,3}(?![가-힣]))"
    words = "|".join(sorted(other, key=len, reverse=True))
    found = re.compile(rf"(?<![가-힣A-Za-z])({words})(?:(?<=[a-z])(?![A-Za-z])|(?<=[가-힣]){ends})")
    return replacing(found, lambda _draw, word: other[word])


def replacing(found: re.Pattern[str], other: Callable[[random.Random, str], str | None]) -> Other:
    """Say another word in the place of one that a pattern finds."""

    def change(draw: random.Random, text: str) -> str | None:
        places = [*found.finditer(text)]
        if not places:
            return None
        place = draw.choice(places)
        word = other(draw, place[0])
        return word and text[: place.start()] + word + text[place.end() :]

    return change


def another_of(words: Sequence[str]) -> Callable[[random.Random, str], str | None]:
    """Return one of other words: no beginning of it, nor it of them."""

    def other(draw: random.Random, word: str) -> str | None:
        for _ in range(20):
            another = draw.choice(words)
            if another[:2].lower() != word[:2].lower():
                return another
        return None

    return other


def another_noun(text: str) -> Other:
    """Say another noun of the text: of Korean, the stem before a particle."""
    kinds = [one for one in (_STEM, _WORD) if len(one.findall(text)) > 20]
    changes = [replacing(one, another_of(one.findall(text))) for one in kinds]
    return lambda draw, excerpt: draw.choice(changes)(draw, excerpt)


def random_word(words: Sequence[str]) -> Other:
    return replacing(_ANY, another_of(words))


def words_swapped(draw: random.Random, text: str) -> str | None:
    """Exchange two words, at least one of them away from the other."""
    words = text.split(" ")
    if len(words) < 6:
        return None
    i = draw.randrange(len(words) - 2)
    j = draw.randrange(i + 2, len(words))
    if words[i].strip(".,").lower() == words[j].strip(".,").lower():
        return None
    words[i], words[j] = words[j], words[i]
    return " ".join(words)


def inserted(language: str) -> Other:
    """Put a negation or an exception before a word inside."""
    extra = _KO_INSERTED * (language != "en") + _EN_INSERTED * (language != "ko")

    def change(draw: random.Random, text: str) -> str | None:
        places = [one.start() for one in re.finditer(r"(?<=[a-z가-힣] )[a-z가-힣]", text)][2:-2]
        if not places:
            return None
        place = draw.choice(places)
        is_korean = "가" <= text[place] <= "힣"
        said = draw.choice([one for one in extra if (one[0] >= "가") == is_korean] or extra)
        return text[:place] + said + text[place:]

    return change


def contradictions(language: str) -> dict[str, Other]:
    """Return the kinds of change that need nothing but the excerpt."""
    korean, english = language != "en", language != "ko"

    def both(ko: dict[str, str], en: dict[str, str]) -> Other:
        return swapped({**(ko if korean else {}), **(en if english else {})})

    return {
        "one digit": one_digit,
        "a year": year,
        "a unit": both(_KO_UNITS, _EN_UNITS),
        "a negation": both(_KO_NEGATIONS, _EN_NEGATIONS),
        "a bound": both(_KO_BOUNDS, _EN_BOUNDS),
        "a name": swapped(_NAMES),
        "an antonym": opposite(language),
        "two words exchanged": words_swapped,
        "a negation put in": inserted(language),
    }


def changes_of(text: str, part: str, language: str) -> dict[str, Other]:
    """Return all kinds of change, also those that need words from elsewhere in the texts."""
    words = _ANY.findall(" ".join(texts(part, language)))
    return {
        **contradictions(language),
        "another noun": another_noun(text),
        "a random word": random_word(words),
    }


KINDS = (*contradictions("ko"), "another noun", "a random word")


# --- a corpus in versions ---


@dataclass(frozen=True)
class Passage:
    """Words of one version of a text, from the first to before the last.

    Attributes:
        text: The text as it stands, of whichever version.
        version: Its words in this version, as many as in each other.
        start: Number of the first word.
        stop: Number of the one behind the last.
    """

    text: str
    version: tuple[str, ...]
    start: int
    stop: int

    def __str__(self) -> str:
        return " ".join(self.version[self.start : self.stop])

    def holds(self, excerpt: Passage) -> bool:
        """Tell whether it has all words of an excerpt, or of its place enough and nothing else.

        What ends in "is" also stands where another version goes on with "not".
        """
        shared = slice(max(self.start, excerpt.start), min(self.stop, excerpt.stop))
        said = excerpt.version[shared]
        return f" {excerpt} " in f" {self} " or (
            self.text == excerpt.text
            and self.version[shared] == said
            and n_letters(" ".join(said)) >= RIGHT * n_letters(str(excerpt))
        )


def n_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


def earlier(draw: random.Random, word: str, years: int, language: str) -> str:
    """Return a word as it stood some years ago: other years, numbers and negations, or the same."""
    moved = re.sub(r"(?<!\d)20\d\d(?!\d)", lambda one: str(int(one[0]) - years), word)
    if moved != word:
        return moved
    has_digits = any(map(str.isdigit, word))
    change = one_digit if has_digits else contradictions(language)["a negation"]
    changed = draw.random() < (0.5 if has_digits else 0.1)
    return (change(draw, word) if changed else None) or word


def versions(draw: random.Random, text: str, language: str) -> list[tuple[str, ...]]:
    """Return the words of a text as it stands, and as it stood one and two years ago."""
    words = text.split()
    before = [tuple(earlier(draw, one, years, language) for one in words) for years in (1, 2)]
    return [tuple(words), *before]


def in_versions(
    originals: Sequence[str], language: str, n_each: int, draw: random.Random
) -> Corpus:
    """Cut all versions of the texts into chunks, and draw excerpts, each of a version drawn too."""
    chunks, excerpts = [], []
    for text in originals:
        all_versions = versions(draw, text, language)
        n = len(all_versions[0])
        firsts = range(0, n - CHUNK // 2, STEP)
        chunks += [Passage(text, one, at, at + CHUNK) for one in all_versions for at in firsts]
        for _ in range(n_each):
            at = draw.randrange(n - EXCERPT[1])
            wanted, stop = draw.choice(all_versions), at + draw.randint(*EXCERPT)
            excerpts.append(Passage(text, wanted, at, stop))
    # A retriever that cannot tell the versions apart leaves them in the order they come in.
    draw.shuffle(chunks)
    right = np.array([[chunk.holds(excerpt) for chunk in chunks] for excerpt in excerpts])
    return Corpus([*map(str, excerpts)], [*map(str, chunks)], right)


def question(excerpt: str) -> str:
    """Return the words of an excerpt without its numbers, which whoever asks does not know."""
    return " ".join(word for word in excerpt.split() if not re.search(r"\d", word))


@dataclass(frozen=True)
class Asked:
    """A corpus in versions, and what a retriever returned.

    Attributes:
        truth: Per question, the chunks that are right.
        excerpts: Per question, the excerpt it asks for.
        found: Per question, the chunks that were retrieved, best first.
    """

    truth: list[list[AnyOf]]
    excerpts: list[list[DocumentLike]]
    found: list[list[DocumentLike]]


@cache
def asked(part: str, language: str, quick: bool = False) -> Asked:
    whole = in_versions(texts(part, language, quick), language, n_excerpts(quick), random.Random(7))
    chunks = [{"page_content": text, "id": str(at)} for at, text in enumerate(whole.chunks)]
    rag = small_rag()
    documents = [rag.Document(one["page_content"], id=one["id"]) for one in chunks]
    bm25 = rag.BM25(documents=documents, k=DEPTH)
    return Asked(
        truth=[[AnyOf([chunks[at] for at in np.flatnonzero(one)])] for one in whole.right],
        excerpts=[[one] for one in whole.excerpts],
        found=[bm25.invoke(question(one)) for one in whole.excerpts],
    )


def reported(
    matcher: Matcher | None, part: str, language: str, quick: bool = False
) -> dict[str, float]:
    """Return the metrics of the retriever by a matcher, or by the truth if there is none."""
    of = asked(part, language, quick)
    actual = of.truth if matcher is None else of.excerpts
    with catch_warnings(action="ignore", category=KragEvalWarning):  # some find nothing at all
        result = OfflineRetrievalEvaluator(actual, of.found, matcher=matcher or "id").evaluate(
            [1, 5, DEPTH]
        )
    return {name: result[key] for name, key in METRICS.items()}


# --- what is measured ---


def decided(
    matcher: Matcher, part: str, language: str, change: str, quick: bool = False
) -> tuple[int, int, int]:
    """Return how many pairs are right and found, found, and right, all texts together."""
    counts = np.zeros(3, np.int64)
    for one in corpora(part, language, quick):
        draw = random.Random(change)
        chunks = [damage(language)[change](draw, chunk) for chunk in one.chunks]
        queries = QuerySet.from_lists([[e] for e in one.excerpts], [chunks] * len(one.excerpts))
        matches = matcher.match(queries)
        chosen = matches.similarity >= matcher.threshold
        found = np.zeros(one.right.shape, np.bool_)
        found[matches.item[chosen], matches.rank[chosen] - 1] = True
        counts += (found & one.right).sum(), found.sum(), one.right.sum()
    both, matched, right = counts.tolist()
    return both, matched, right


def f1(counts: Iterable[int]) -> float:
    both, matched, right = counts
    return 2 * both / (matched + right)


@cache
def contradicted(part: str, language: str, kind: str, quick: bool = False) -> list[tuple[str, str]]:
    """Return excerpts, and what stands around each with something else in its place."""
    draw = random.Random(3)
    pairs = []
    for text in texts(part, language, quick):
        change = changes_of(text, part, language)[kind]
        words = [match.span() for match in re.finditer(r"\S+", text)]
        for _ in range(len(words) // 2):
            at, n = draw.randrange(len(words) - EXCERPT[1]), draw.randint(*EXCERPT)
            start, stop = words[at][0], words[at + n - 1][1]
            other = change(draw, text[start:stop])
            # What begins or ends with the excerpt has it word for word.
            if other is not None and text[start:stop] not in other:
                around = text[max(0, start - AROUND) : start], text[stop : stop + AROUND]
                pairs.append((text[start:stop], other.join(around)))
    return pairs


def accepted(matcher: Matcher, part: str, language: str, kind: str, quick: bool = False) -> float:
    """Return the share of chunks that match although they say something else."""
    excerpts, chunks = zip(*contradicted(part, language, kind, quick), strict=True)
    matches = matcher.match(QuerySet.from_lists([[e] for e in excerpts], [[c] for c in chunks]))
    return float((matches.similarity >= matcher.threshold).sum() / len(excerpts))


# --- tables ---

ENGLISH = {
    "contains": "`contains`", "coverage": "`coverage`", "letters": '`tokenizer="letters"`',
    "no guard": "without the guard", "en": "English", "ko": "Korean", "mix": "both mixed",
}  # fmt: skip
KOREAN = {
    **korean_spaces.KOREAN, **ENGLISH, "en": "영어", "ko": "한국어", "mix": "섞은 글",
    "changed": "바꾼 것", "pairs": "쌍", "one digit": "숫자 하나", "a year": "연도",
    "a unit": "단위", "a negation": "부정", "a bound": "이상, 이하 등", "a name": "이름",
    "an antonym": "반대말", "two words exchanged": "두 단어를 맞바꿈",
    "a negation put in": "부정이나 예외를 넣음", "another noun": "다른 명사",
    "a random word": "아무 단어", "code operators": "코드의 연산자", "spellings": "표기만 다름",
    "kinds of numbers": "여러 종류의 수",
    "F1": "판정의 F1", "case and punctuation": "대소문자와 문장 부호",
    "line breaks, hyphens": "줄바꿈과 하이픈", "Markdown": "마크다운",
    "full width, NFD": "전각 문자와 NFD", "2 % of letters misread": "OCR 오류 2%",
    "by year": "해마다 바뀐 글", "truth": "실제", "no guard": "검사 없음", "anywhere": "어디든",
    "ROUGE-L recall": "ROUGE-L 재현율", "fuzzy partial": "fuzzy, partial",
}  # fmt: skip


def wrong(part: str, language: str, columns: Sequence[str], quick: bool = False) -> Table:
    """Return the share of contradictions that each matcher accepts, a line for each kind."""
    table: Table = {"changed": ["pairs", *columns]}
    for kind in KINDS:
        n = len(contradicted(part, language, kind, quick))
        shares = [accepted(MATCHERS[one](), part, language, kind, quick) for one in columns]
        table[kind] = [str(n), *(f"{share:.0%}" for share in shares)]
    return table


def right(part: str, language: str, columns: Sequence[str], quick: bool = False) -> Table:
    """Return F1 of the decisions, a line for each kind of damage."""
    table: Table = {"F1": [*columns]}
    for change in damage(language):
        counts = [decided(MATCHERS[one](), part, language, change, quick) for one in columns]
        table[change] = [f"{f1(one):.3f}" for one in counts]
    return table


def by_year(part: str, language: str, columns: Sequence[str], quick: bool = False) -> Table:
    """Return what is true of the retriever, and what each matcher reports, a line for a metric."""
    makers = [MATCHERS[one]() for one in columns]
    found = [reported(one, part, language, quick) for one in (None, *makers)]
    lines: Table = {name: [f"{one[name]:.2f}" for one in found] for name in METRICS}
    return {"by year": ["truth", *columns], **lines}


def of_all_languages(part: str, quick: bool = False) -> list[Table]:
    """Return what the guard changes, languages side by side: contradictions, and a first hit."""
    guard = ("no guard", "coverage")
    wrongs = [wrong(part, language, guard, quick) for language in LANGUAGES]
    changed: Table = {"changed": [*LANGUAGES]}
    for kind in KINDS:
        changed[kind] = [" → ".join(one[kind][1:]) for one in wrongs]
    hits = {one: by_year(part, one, guard, quick)["hit@1"] for one in LANGUAGES}
    return [changed, {"hit@1": ["truth", *guard], **hits}]


def in_guides(part: str, quick: bool = False) -> list[Table]:
    """Return the tables of the guides: of all languages, and of each the damage."""
    damaged = [
        right(part, language, (*IN_GUIDES, *["letters"] * (language == "en")), quick)
        for language in LANGUAGES
    ]
    return [*of_all_languages(part, quick), *damaged]


def markdown(table: Table, words: Mapping[str, str]) -> str:
    """Return a table, the first line as its head, in other words where there are any."""
    head, *lines = (
        [words.get(cell, cell) for cell in (name, *cells)] for name, cells in table.items()
    )
    return "\n".join([header(head), *map(row, lines)])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--texts", choices=["dev", "held"], default="dev")
    parser.add_argument("--quick", action="store_true", help="one text of each language")
    parser.add_argument(
        "--markdown", choices=["en", "ko"], help="the tables as the guides have them"
    )
    options = parser.parse_args()
    part, quick = options.texts, options.quick
    if options.markdown:
        words = {"en": ENGLISH, "ko": KOREAN}[options.markdown]
        for table in in_guides(part, quick):
            print(f"\n{markdown(table, words)}")
        return
    for language in LANGUAGES:
        print(f"\n{language}")
        for made in (wrong, right, by_year):
            print(f"\n{markdown(made(part, language, tuple(MATCHERS), quick), {})}")


if __name__ == "__main__":
    main()

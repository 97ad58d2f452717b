"""How well each matcher decides on Korean text that was changed on its way into the index.

    python -m benchmarks.korean_spaces [--quick] [--markdown {en,ko}] [--write]

Text from PDF files loses spaces, breaks inside words and brings page footers; a parser makes tables
of lists; other passages are rewritten. Three Korean texts, written for this purpose, are cut into
overlapping chunks, and excerpts of them are looked for. Right are the chunks that hold four fifths
of an excerpt's letters or more, by its place in the text; what happens to the letters afterwards
changes nothing about that. Compared is the decision of each matcher at its default threshold, or at
0.8 where it has none for passages: F1 over all pairs of excerpt and chunk of one text.

The second table counts chunks that must not match: all of the excerpt, but for one digit, or for a
negation. ``--write`` puts what was found into docs/measured/korean_spaces.json, from which the
guides have their tables.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measuring import Goal, Row, is_installed, machine, table
from krag_eval import CoverageMatcher, FuzzyMatcher, Matcher, RougeMatcher
from krag_eval.core.documents import QuerySet
from krag_eval.core.matching.names import resolve_matcher

ROOT = Path(__file__).parents[1]
FILE = ROOT / "docs" / "measured" / "korean_spaces.json"

MATCHERS: dict[str, Callable[[], Matcher]] = {
    "coverage": CoverageMatcher,
    "coverage, words": lambda: CoverageMatcher(tokenizer="words"),
    "coverage, character": lambda: CoverageMatcher(tokenizer="character"),
    "coverage, kiwi": lambda: CoverageMatcher(tokenizer="kiwi"),
    "contains": lambda: resolve_matcher("contains"),
    "ROUGE-2 recall": lambda: RougeMatcher("rouge2", 0.8, statistic="recall"),
    "ROUGE-L recall": lambda: RougeMatcher("rougeL", 0.8, statistic="recall"),
    "fuzzy, partial": lambda: FuzzyMatcher("partial_ratio", 0.8),
}
#: The default, but for its guard against other numbers and negations.
UNGUARDED = "no guard"

LIBRARY = """
구청은 올해 삼월부터 동네 도서관의 운영 시간을 바꾼다. 평일에는 오전 아홉 시에 문을 열고 저녁
여덟 시에 닫으며, 주말에는 한 시간 일찍 닫는다. 공휴일에는 열람실만 이용할 수 있고 책을 빌릴
수는 없다. 책은 한 사람이 한 번에 일곱 권까지 두 주일 동안 빌릴 수 있으며, 예약한 사람이 없으면
한 차례 일주일을 늘릴 수 있다. 돌려줄 날을 넘기면 늦은 날만큼 빌릴 수 없고, 책을 잃어버린 사람은
같은 책을 사서 돌려주어야 한다. 회원이 되려면 사는 곳을 확인할 수 있는 서류와 신분증을 가지고 일
층 안내대에서 신청하면 된다. 열네 살이 되지 않은 어린이는 보호자와 함께 와야 하며, 보호자의
동의서를 내야 한다. 다른 구에 사는 사람도 직장이나 학교가 우리 구에 있으면 재직 증명서나 재학
증명서를 내고 회원이 될 수 있다. 회원증은 신청한 날에 바로 나오고, 다시 만들 때에는 이천 원을
낸다. 모임방은 다섯 사람이 넘는 모임에 빌려주며, 쓰려는 날의 열흘 전부터 누리집에서 신청한다. 한
모임은 한 달에 네 번까지 쓸 수 있고, 물건을 팔거나 돈을 받는 모임에는 빌려주지 않는다. 쓴
다음에는 책상과 의자를 제자리에 두고 창문을 닫아야 하며, 이를 두 번 어긴 모임은 석 달 동안
신청할 수 없다. 아이를 데려온 부모를 위하여 이 층에 수유실과 놀이방을 새로 두었다. 놀이방에는
돌보는 사람이 없으므로 부모가 함께 있어야 하고, 음식은 물만 가지고 들어갈 수 있다. 토요일
오전에는 자원봉사자가 그림책을 읽어 주며, 미리 신청하지 않아도 들을 수 있지만 자리는 서른
명까지이다. 눈이 잘 보이지 않는 사람에게는 글자를 크게 보여 주는 기계와 소리로 듣는 책을
빌려준다. 움직이기 어려운 사람은 전화로 신청하면 집에서 책을 받을 수 있고, 보내고 돌려받는 값은
구청이 낸다. 이 일은 지난해에 백이십 가구가 이용하였으며, 올해는 이백 가구로 늘릴 계획이다.
주차장은 도서관을 이용하는 사람에게 두 시간까지 무료이고, 그다음부터는 십 분에 오백 원을 받는다.
자전거를 타고 온 사람은 정문 옆 보관대를 쓸 수 있다. 바뀐 내용에 대하여 궁금한 것이 있으면
안내대에 묻거나 구청 문화과로 전화하면 된다. 이 안내문은 누리집에서도 읽을 수 있다.
"""


SUPPORT = """
ㅇ 신청 기간: 2025. 3. 4.(화) 09:00 ~ 3. 21.(금) 18:00
ㅇ 지원 대상: 공고일 현재 한들시에 주소를 둔 만 19세 이상 39세 이하 청년 가운데 무주택자
ㅇ 지원 금액: 한 사람에 월 200,000원씩 최대 12개월, 모두 2,400,000원까지
ㅇ 선발 인원: 1차 350명, 2차 150명이며, 신청자가 적으면 다음 차수로 넘깁니다
ㅁ 소득 기준은 가구원 수에 따라 다릅니다. 혼자 사는 청년은 월 소득 3,350,000원 이하, 두 사람
가구는 5,520,000원 이하여야 하고, 부모와 따로 살더라도 30세가 되지 않았다면 부모의 소득을 함께
봅니다. 소득은 건강보험료로 확인하며, 지난해 10월부터 12월까지 낸 보험료의 평균을 씁니다.
ㅁ 신청은 누리집에서만 받고, 마감일에는 접속이 몰리므로 3월 19일까지 마치는 것이 좋습니다.
서류는 공고일인 2월 24일 뒤에 뗀 것만 인정하며, 주민등록등본ㆍ임대차계약서ㆍ월세 이체 내역을
한 파일에 10MB 이하로 묶어 올립니다. 내용이 다르거나 빠진 서류는 한 번에 한하여 7일 안에
보완할 수 있습니다.
ㅁ 선정 결과는 4월 25일 오후 2시에 누리집에 올리고 문자로도 알려 드립니다. 동점이면 소득이
적은 사람, 한들시에 오래 산 사람의 순서로 뽑으며, 결과에 이의가 있으면 5월 2일까지 신청할 수
있습니다. 이의 신청의 결과는 15일 안에 알려 드립니다.
ㅁ 지원금은 매월 25일에 본인 계좌로 보냅니다. 첫 달에는 5월과 6월 몫인 400,000원을 한꺼번에
드립니다. 월세를 두 달 넘게 내지 않았거나 다른 시로 이사하면 다음 달부터 지급을 멈추고,
거짓으로 신청한 사실이 드러나면 받은 돈을 모두 돌려받습니다. 군 입대나 질병으로 쉬어야 할 때는
6개월까지 미룰 수 있습니다.
ㄱ. 청년 교육ㆍ문화 강좌는 4월 7일부터 6월 27일까지 12주 동안 열며, 강좌마다 24명을 받습니다.
수강료는 30,000원이지만 지원금을 받는 청년은 내지 않습니다. 출석이 70%에 못 미치면 다음 학기에
신청할 수 없습니다.
ㄴ. 창업 공간은 1인실 8㎡와 4인실 21㎡가 있고, 사용료는 각각 월 50,000원과 120,000원입니다.
계약은 1년이며 한 번 연장할 수 있습니다. 회의실은 하루 2시간까지 무료이고, 그 뒤로는 30분에
3,000원을 받습니다. 주말에는 오전 10시부터 오후 5시까지만 쓸 수 있습니다.
ㄷ. 면접 정장은 한 해에 5번, 한 번에 3박 4일 동안 빌려 드립니다. 예약은 7일 전부터 받으며,
세탁비는 시에서 냅니다. 늦게 돌려주면 하루에 5,000원을 내야 하고, 두 번 늦으면 6개월 동안 빌릴
수 없습니다.
ㅇ 문의: 청년정책과 041-550-2217, 평일 09:00 ~ 18:00(점심시간 12:00 ~ 13:00 제외)
"""

CHUNK, STEP = 60, 25  # words
EXCERPT = (8, 20)
RIGHT = 0.8
N_EXCERPTS = 240
AROUND = 80  # letters on either side of a contradiction


@dataclass(frozen=True)
class Corpus:
    """Excerpts and chunks of one text.

    Attributes:
        excerpts: What is looked for.
        chunks: Where.
        right: Whether each chunk (column) holds enough of each excerpt (row).
    """

    excerpts: list[str]
    chunks: list[str]
    right: np.ndarray


@cache
def texts() -> tuple[str, ...]:
    """Return a manual, a notice in sentences and one in lists."""
    manual = ROOT / "notebooks" / "data" / "handbook.ko.txt"
    return manual.read_text("utf-8"), LIBRARY, SUPPORT


@cache
def corpora(quick: bool) -> tuple[Corpus, ...]:
    total = sum(len(text.split()) for text in texts())
    n = N_EXCERPTS // 4 if quick else N_EXCERPTS
    draw = random.Random(11)
    return tuple(corpus(text, round(n * len(text.split()) / total), draw) for text in texts())


def corpus(text: str, n_excerpts: int, draw: random.Random) -> Corpus:
    """Cut a text into chunks, and draw excerpts of it."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    letters = np.cumsum([0, *(one.isalnum() for one in text)])

    def span(at: int, n: int) -> tuple[int, int]:
        return words[at][0], words[min(at + n, len(words)) - 1][1]

    chunks = [span(at, CHUNK) for at in range(0, len(words) - CHUNK // 2, STEP)]
    starts = [draw.randrange(len(words) - EXCERPT[1]) for _ in range(n_excerpts)]
    excerpts = [span(at, draw.randint(*EXCERPT)) for at in starts]

    def share(excerpt: tuple[int, int], chunk: tuple[int, int]) -> float:
        start, stop = max(excerpt[0], chunk[0]), min(excerpt[1], chunk[1])
        both = letters[stop] - letters[start] if start < stop else 0
        return float(both / (letters[excerpt[1]] - letters[excerpt[0]]))

    right = np.array([[share(one, chunk) >= RIGHT for chunk in chunks] for one in excerpts])
    cut = [[text[start:stop] for start, stop in spans] for spans in (excerpts, chunks)]
    return Corpus(*cut, right)


# --- what happens to a chunk ---


def spaces_lost(share: float) -> Callable[[random.Random, str], str]:
    return lambda draw, text: re.sub(
        r"\s+", lambda space: "" if draw.random() < share else space[0], text
    )


def broken(draw: random.Random, text: str) -> str:
    """Break lines after so many letters, also inside words, and put spaces inside some."""
    spaced = re.sub(r"(?<=\w)(?=\w)", lambda _: " " if draw.random() < 0.02 else "", text)
    flat = " ".join(spaced.split())
    first = draw.randrange(1, 38)
    lines = [flat[:first], *(flat[at : at + 37] for at in range(first, len(flat), 37))]
    return "\n".join(lines)


def misread(share: float) -> Callable[[random.Random, str], str]:
    """Read some syllables with another final consonant."""

    def one(draw: random.Random, syllable: str) -> str:
        code = ord(syllable) - 0xAC00
        return chr(0xAC00 + code - code % 28 + (code % 28 + draw.randrange(1, 28)) % 28)

    return lambda draw, text: re.sub(
        "[가-힣]", lambda found: one(draw, found[0]) if draw.random() < share else found[0], text
    )


PARTICLES = {"은": "이", "는": "가", "이": "은", "가": "는", "을": "도", "를": "도", "에": "에는",
             "에서": "에서는", "의": "에", "도": "은", "와": "랑", "과": "이랑",
             "로": "로는"}  # fmt: skip
ENDINGS = {"합니다": "한다", "습니다": "다", "됩니다": "된다", "입니다": "이다", "하며": "하고",
           "하고": "하며", "이며": "이고", "다": "습니다"}  # fmt: skip


def at_ends(changes: dict[str, str], share: float) -> Callable[[random.Random, str], str]:
    """Change the ends of some words of three letters or more."""
    ends = "|".join(sorted(changes, key=len, reverse=True))
    return lambda draw, text: re.sub(
        rf"(?<=[가-힣]{{2}})({ends})(?![가-힣])",
        lambda end: changes[end[0]] if draw.random() < share else end[0],
        text,
    )


def bullets(draw: random.Random, text: str) -> str:
    """Set sentences on lines of their own, behind bullets."""
    marks = ["ㅇ ", "ㅁ ", "- ", "○ ", "① ", "ㄱ. "]
    return re.sub(r"(?<=다\.)\s+|\n+", lambda _: "\n" + draw.choice(marks), text)


def tables(draw: random.Random, text: str) -> str:
    """Set clauses in cells."""
    cells = re.sub(r"(?<=[,.:])\s+", lambda _: draw.choice([" | ", " |\n| ", "\t"]), text)
    return f"| {cells} |\n|---|---|"


def footers(draw: random.Random, text: str) -> str:
    """Put the foot of a page and the head of the next one into the middle."""
    words = text.split(" ")
    at = draw.randrange(len(words))
    foot = f"\n\n- {draw.randrange(2, 90)} -\n한들시 생활 안내\n\n"
    return " ".join(words[:at]) + foot + " ".join(words[at:])


def other_marks(_: random.Random, text: str) -> str:
    """Write other quotes, dots and brackets."""
    return text.translate(str.maketrans("“”‘’\"'·ㆍ()~", "「」『』“’ㆍ·（）∼"))


def pdf(draw: random.Random, text: str) -> str:
    for change in (other_marks, spaces_lost(1 / 3), misread(0.005), footers, broken):
        text = change(draw, text)
    return text


CHANGES: dict[str, Callable[[random.Random, str], str]] = {
    "clean": lambda _, text: text,
    "a third of the spaces lost": spaces_lost(1 / 3),
    "all spaces lost": spaces_lost(1),
    "breaks inside words": broken,
    "other quotes and dots": other_marks,
    "bullets": bullets,
    "tables": tables,
    "page footers": footers,
    "2 % of syllables misread": misread(0.02),
    "a mix, as from PDF files": pdf,
    "30 % of particles changed": at_ends(PARTICLES, 0.3),
    "all endings changed": at_ends(ENDINGS, 1),
}
KOREAN = {
    "clean": "그대로",
    "a third of the spaces lost": "띄어쓰기 3분의 1이 없어짐",
    "all spaces lost": "띄어쓰기가 모두 없어짐",
    "breaks inside words": "단어 안에서 줄이 바뀜",
    "other quotes and dots": "따옴표와 점이 다름",
    "bullets": "글머리표",
    "tables": "표",
    "page footers": "쪽 머리글과 바닥글",
    "2 % of syllables misread": "OCR 오류 2%",
    "a mix, as from PDF files": "PDF에서 추출한 것처럼 섞음",
    "30 % of particles changed": "조사 30%를 바꿈",
    "all endings changed": "어미를 모두 바꿈",
    "one digit changed": "숫자 하나를 바꿈",
    "a negation": "부정으로 바꿈",
    UNGUARDED: "검사 없음",
}
#: What the default is held to, by a test.
HELD = ("clean", "a third of the spaces lost", "all spaces lost", "breaks inside words",
        "other quotes and dots", "tables")  # fmt: skip


# --- what is measured ---


def decided(name: str, change: str, quick: bool = False) -> dict[str, float]:
    """Return precision, recall and F1 of a matcher's decisions, all corpora together."""
    counts = sum(of_corpus(MATCHERS[name](), one, change) for one in corpora(quick))
    both, matched, right = (int(one) for one in counts)
    return {
        "precision": both / matched if matched else 0.0,
        "recall": both / right,
        "f1": 2 * both / (matched + right),
    }


def of_corpus(matcher: Matcher, one: Corpus, change: str) -> np.ndarray:
    draw = random.Random(change)
    chunks = [CHANGES[change](draw, chunk) for chunk in one.chunks]
    queries = QuerySet.from_lists([[one] for one in one.excerpts], [chunks] * len(one.excerpts))
    matches = matcher.match(queries)
    chosen = matches.similarity >= matcher.threshold
    found = np.zeros(one.right.shape, np.bool_)
    found[matches.item[chosen], matches.rank[chosen] - 1] = True
    return np.array([(found & one.right).sum(), found.sum(), one.right.sum()])


def one_digit(draw: random.Random, text: str) -> str | None:
    """Change one digit."""
    digits = [match.start() for match in re.finditer(r"\d", text)]
    if not digits:
        return None
    at = draw.choice(digits)
    return text[:at] + draw.choice("0123456789".replace(text[at], "")) + text[at + 1 :]


def negated(_: random.Random, text: str) -> str | None:
    """Say the opposite of one clause."""
    pairs = (("수 있", "수 없"), ("수 없", "수 있"), ("받습니다", "받지 않습니다"),
             ("해야 합니다", "하지 않아도 됩니다"), ("하지 않", "하"))  # fmt: skip
    for said, opposite in pairs:
        if said in text:
            return text.replace(said, opposite, 1)
    return None


WRONG = {"one digit changed": one_digit, "a negation": negated}


@cache
def contradicted(change: str) -> list[tuple[str, str]]:
    """Return excerpts, and what stands around each with something else in its place."""
    draw = random.Random(3)
    pairs = []
    for text in texts():
        words = [match.span() for match in re.finditer(r"\S+", text)]
        for _ in range(len(words) // 3):
            at, n = draw.randrange(len(words) - EXCERPT[1]), draw.randint(*EXCERPT)
            start, stop = words[at][0], words[at + n - 1][1]
            other = WRONG[change](draw, text[start:stop])
            if other is not None:
                around = text[max(0, start - AROUND) : start], text[stop : stop + AROUND]
                pairs.append((text[start:stop], other.join(around)))
    return pairs


def accepted(matcher: Matcher, change: str) -> float:
    """Return the share of chunks that match although they say something else."""
    excerpts, chunks = zip(*contradicted(change), strict=True)
    matches = matcher.match(QuerySet.from_lists([[e] for e in excerpts], [[c] for c in chunks]))
    return float((matches.similarity >= matcher.threshold).sum() / len(excerpts))


def measured() -> dict[str, Any]:
    names = [name for name in MATCHERS if name != "coverage, kiwi" or is_installed("kiwipiepy")]
    wrong: dict[str, Callable[[], Matcher]] = {
        **{name: MATCHERS[name] for name in names},
        UNGUARDED: lambda: CoverageMatcher(numbers="ignore", polarity=False)
    }  # fmt: skip
    return {
        "pairs": sum(one.right.size for one in corpora(False)),
        "right": sum(int(one.right.sum()) for one in corpora(False)),
        "decided": {c: {n: decided(n, c) for n in names} for c in CHANGES},
        "accepted": {c: {n: accepted(make(), c) for n, make in wrong.items()} for c in WRONG},
    }


def markdown(found: dict[str, Any], language: str = "en") -> str:
    """Return both tables, the best of each line in bold."""
    say = KOREAN.get if language == "ko" else (lambda name: name)
    head = "F1" if language == "en" else "판정의 F1"
    names = list(found["decided"]["clean"])
    lines = [header([head, *map(code, names)])]
    for change, of in found["decided"].items():
        best = max(one["f1"] for one in of.values())
        cells = [f"{one['f1']:.2f}" for one in of.values()]
        bold = [f"**{c}**" if c == f"{best:.2f}" else c for c in cells]
        lines.append(row([str(say(change)), *bold]))
    wrong = "accepted" if language == "en" else "일치로 잘못 판정"
    names = list(found["accepted"]["a negation"])
    columns = [str(say(name)) if name == UNGUARDED else code(name) for name in names]
    lines += ["", header([wrong, *columns])]
    for change, shares in found["accepted"].items():
        lines.append(row([str(say(change)), *(f"{share:.0%}" for share in shares.values())]))
    return "\n".join(lines)


def code(name: str) -> str:
    spelled = {
        "coverage": "`coverage`",
        "coverage, words": '`tokenizer="words"`',
        "coverage, character": '`"character"`',
        "coverage, kiwi": '`"kiwi"`',
        "contains": "`contains`",
    }
    return spelled.get(name, name)


def header(cells: Sequence[str]) -> str:
    return f"{row(cells)}\n|{'---|' * len(cells)}"


def row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def rows(quick: bool) -> list[Row]:
    n_right = sum(int(one.right.sum()) for one in corpora(quick))
    return [
        Row(
            f"{name}, Korean, {change}",
            decided(name, change, quick)["f1"],
            unit="F1",
            goal=Goal("at least", 0.95) if name == "coverage" and change in HELD else None,
            note=f"{n_right:,} pairs are right",
        )
        for change in CHANGES
        for name in ("coverage", "coverage, words", "coverage, character")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer excerpts, coverage alone")
    parser.add_argument(
        "--markdown", choices=["en", "ko"], help="the tables as the guides have them"
    )
    parser.add_argument("--write", action="store_true", help=f"keep what is found in {FILE.name}")
    asked = parser.parse_args()
    if asked.quick:
        print(f"{machine()}\n\n{table(rows(True))}")
        return
    found = measured()
    if asked.write:
        FILE.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(markdown(found, asked.markdown or "en"))


if __name__ == "__main__":
    main()

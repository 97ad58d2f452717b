"""Korean text whose spaces cannot be trusted: coverage by words and by characters.

    python -m benchmarks.korean_spaces [--quick]

Text from PDF files loses spaces at line ends and gets them inside words. A notice, written for this
purpose, is cut into overlapping chunks, and excerpts of it are looked for in them; of either side
some spaces are lost and some added, at random. A chunk is right if it holds the excerpt, white
space apart. Compared is how well each matcher decides: F1 over all pairs of excerpt and chunk.
"""

from __future__ import annotations

import argparse
import random

import numpy as np

from benchmarks.measuring import Row, machine, table
from krag_eval import CoverageMatcher, Matcher
from krag_eval.documents import QuerySet

#: Share of the spaces that are lost, and of the places inside words that get one.
NOISE = ((0.0, 0.0), (0.1, 0.02), (0.3, 0.05))

MATCHERS: dict[str, Matcher] = {
    "5 words": CoverageMatcher(min_run=5),
    "15 characters": CoverageMatcher(tokenizer="character", min_run=15),
}

NOTICE = """
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

CHUNK, STEP = 60, 25  # words
EXCERPT = (8, 20)


def rows(quick: bool) -> list[Row]:
    found = []
    for lost, added in NOISE:
        queries, truth = queries_of(60 if quick else 400, lost, added)
        found += [
            Row(
                f"coverage, Korean, {lost:.0%} of spaces lost, {added:.0%} added, runs of {runs}",
                f1(matcher, queries, truth),
                unit="F1",
                note=f"{int(truth.sum()):,} of {truth.size:,} pairs are right",
            )
            for runs, matcher in MATCHERS.items()
        ]
    return found


def queries_of(n_queries: int, lost: float, added: float) -> tuple[QuerySet, np.ndarray]:
    """Return queries, and whether each chunk (column) holds the excerpt of each query (row)."""
    draw = random.Random(11)
    words = NOTICE.split()
    chunks = [" ".join(words[at : at + CHUNK]) for at in range(0, len(words) - CHUNK // 2, STEP)]
    excerpts = []
    for _ in range(n_queries):
        at = draw.randrange(len(words) - EXCERPT[1])
        excerpts.append(" ".join(words[at : at + draw.randint(*EXCERPT)]))
    truth = np.array(
        [[bare(excerpt) in bare(chunk) for chunk in chunks] for excerpt in excerpts], np.bool_
    )
    noisy = [[disturbed(draw, chunk, lost, added) for chunk in chunks] for _ in excerpts]
    golden = [[disturbed(draw, excerpt, lost, added)] for excerpt in excerpts]
    return QuerySet.from_lists(golden, noisy), truth


def bare(text: str) -> str:
    return "".join(text.split())


def disturbed(draw: random.Random, text: str, lost: float, added: float) -> str:
    """Lose some spaces, and add some between the letters of words."""
    kept = []
    for letter, following in zip(text, text[1:] + " ", strict=True):
        if letter == " " and draw.random() < lost:
            continue
        kept.append(letter)
        if letter != " " and following != " " and draw.random() < added:
            kept.append(" ")
    return "".join(kept)


def f1(matcher: Matcher, queries: QuerySet, truth: np.ndarray) -> float:
    matches = matcher.match(queries)
    decided = np.zeros(truth.shape, np.bool_)
    chosen = matches.similarity >= matcher.threshold
    decided[matches.item[chosen], matches.rank[chosen] - 1] = True
    return float(2 * np.count_nonzero(decided & truth) / (decided.sum() + truth.sum()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer excerpts")
    print(f"{machine()}\n\n{table(rows(parser.parse_args().quick))}")


if __name__ == "__main__":
    main()

"""Pairs that say one thing in two spellings, and pairs of numbers that are two things.

Written for this purpose. :mod:`benchmarks.contradictions` sets each into a sentence of a chunk.
"""

from __future__ import annotations

#: Sentences around what is spelled, with enough words on either side.
AROUND = {
    "en": "According to the notice on the door of the house the committee noted {} in the last "
    "report that was sent to all members of the club",
    "ko": "현관에 붙은 안내문에 따르면 위원회는 이번 보고서에서 {} 모든 회원에게 빠짐없이 "
    "알리기로 하였다",
}
#: What stands before and behind these in a chunk.
CHUNK = {
    "en": "Before that nothing was said. {}. After this the members went home and slept.",
    "ko": "그 전에는 말이 없었다. {}. 그 뒤에는 모두 집으로 돌아갔다.",
}


def _pairs(text: str) -> list[tuple[str, str]]:
    """Return pairs that are separated by semicolons, both sides by bars."""
    sides = (pair.split("|") for pair in text.split(";"))
    return [(one.strip(), other.strip()) for one, other in sides]


#: One thing in two spellings.
SAME: dict[str, list[tuple[str, str]]] = {
    "en": _pairs(
        """
€20 per day | 20 euros per day ;  $1.2B | $1.2 billion ;  $1.2bn | $1.2 billion ;
$3M | 3 million dollars ;  5 kg | 5kg ;  9 am | 9am ;  9 a.m. | 9 am ;  18:30 | 6:30 pm ;
09:00 | 9:00 ;  one hundred | 100 ;  21st | twenty-first ;  No. 5 | number 5 ;
March 3, 2024 | 3 March 2024 ;  2024-03-03 | March 3, 2024 ;  230V | 230 V ;
1 577 | 1577 ;  nine[3] | nine ;  1990s | 1990's ;  5% | 5 percent ;
5 km | 5 kilometers ;  30 min | 30 minutes ;  1,250 | 1250 ;  twenty people | 20 people ;
the 3rd | the third ;  don't | do not ;  cannot | can not ;  colour | color ;
organise | organize ;  Sept. | September ;  e-mail | email ;  Dr. Miller | Doctor Miller ;
2.50 | 2.5 ;  3 hrs | 3 hours ;  1.5 million | 1,500,000 ;  ½ | 1/2 ;  10 GB | 10GB ;
twelve | 12 ;  A & B | A and B ;  centre | center ;  £4 | 4 pounds ;  it's | it is ;
Jan 5 | January 5 ;  7 days | seven days ;  co-operate | cooperate ;  4 per cent | 4% ;
10:30 AM | 10.30 am ;  2 ft | 2 feet ;  5 m² | 5 m2 ;  100 m | 100 metres ;
the U.S. | the US
"""
    ),
    "ko": _pairs(
        """
₩20,000 | 20,000원 ;  1.2억 원 | 1억 2천만 원 ;  '24년 | 2024년 ;  '23. 1월 | 2023년 1월 ;
오후 3시 | 15:00 ;  09:00 | 오전 9시 ;  오후 2시 30분 | 14:30 ;  85㎡ | 85제곱미터 ;
다섯 권 | 5권 ;  삼백만 원 | 300만 원 ;  300만 원 | 3,000,000원 ;  3만 5천 원 | 35,000원 ;
2024. 3. 1. | 2024년 3월 1일 ;  2024-03-01 | 2024.3.1 ;  3월 1일 | 3. 1. ;
10퍼센트 | 10% ;  5킬로미터 | 5km ;  제3조 | 제 3 조 ;  50명 | 50인 ;  세 번 | 3번 ;
스무 살 | 20살 ;  첫 번째 | 1번째 ;  5 kg | 5kg ;  12개월 | 12 개월 ;  $100 | 100달러 ;
7천만 원 | 70,000,000원 ;  오전 10시 30분 | 10:30 ;  두 달 | 2달 ;  1만 명 | 10,000명 ;
해지(解止)를 | 해지를 ;  24시간 | 24 시간 ;  홈페이지(누리집)를 | 홈페이지를 ;
5천 원 | 5,000원 ;  2시간 | 두 시간 ;  24. 3. 1. | 2024. 3. 1. ;  열 명 | 10명 ;
1,200명 | 1200명 ;  하였습니다 | 했습니다 ;  않습니다 | 아니합니다 ;  100만 원 | 백만 원 ;
2.5배 | 2.50배 ;  월·수·금 | 월, 수, 금 ;  10㎞ | 10km ;  30분 | 30 분 ;  1차 | 제1차 ;
3억 원 | 3억원 ;  오후 6시까지 | 18시까지 ;  팔십 명 | 80명 ;  20일간 | 20일 동안 ;
①접수 | 접수
"""
    ),
}
#: Two things that differ in a number, a unit, a sign or a word that counts.
OTHER: dict[str, list[tuple[str, str]]] = {
    "en": _pairs(
        """
5.5 percent | 4.5 percent ;  2.2 million | 3.2 million ;  10:10 | 11:10 ;
3.3.2024 | 4.3.2024 ;  2024-03-03 | 2024-04-03 ;  1.2 | 2.1 ;  12:21 | 21:12 ;
March 5 | April 5 ;  June 3 | July 3 ;  on Monday | on Sunday ;  -5 degrees | 5 degrees ;
€20 | $20 ;  9 am | 9 pm ;  Chapter IV | Chapter VI ;  Q3 | Q4 ;  five rooms | six rooms ;
the first floor | the third floor ;  9 to 17 | 17 to 9 ;  1.2.3 | 1.3.2 ;  2/3 | 3/2 ;
5 kg | 5 g ;  5 km | 5 m ;  5% | 5 percentage points ;  8.2% | 82% ;
version 2.10 | version 2.1 ;  15 May | 16 May ;  Jan 5 | Jun 5 ;  3 million | 3 billion ;
10 minutes | 10 hours ;  seven | seventy ;  fourth | fourteenth ;  $3M | $3B ;
5:00 | 5:30 ;  10 mg | 10 ml ;  twenty-one | twenty-two
"""
    ),
    "ko": _pairs(
        """
8.2퍼센트 | 8.0퍼센트 ;  5.5배 | 4.5배 ;  10:10 | 11:10 ;  2024. 3. 1. | 2024. 4. 1. ;
3월 5일 | 4월 5일 ;  월요일 | 화요일 ;  오전 9시 | 오후 9시 ;  다섯 명 | 여섯 명 ;
첫째 줄 | 둘째 줄 ;  3분기 | 4분기 ;  3분기 | 3분 ;  5km | 5m ;  5kg | 5g ;  5%p | 5% ;
5% | 5%p ;  3만 원 | 3억 원 ;  3억 원 | 3억 5천만 원 ;  두 번 | 세 번 ;  3개월 | 3년 ;
30명 | 30가구 ;  -5도 | 5도 ;  1.2.3 | 1.3.2 ;  2/3 | 3/2 ;  9시에서 17시 | 17시에서 9시 ;
2시간 | 2분 ;  제3조 | 제4조 ;  3층 | 4층 ;  10일 | 10주 ;  1학기 | 2학기 ;
서른 명 | 마흔 명 ;  5g | 5kg ;  5m | 5km ;  3분 | 3분기 ;  토요일 | 일요일 ;
둘째 | 셋째
"""
    ),
}

#: Two operators, and lines of code that differ in one.
OPERATORS = [
    ("<", ">"), ("<=", "<"), (">=", ">"), ("==", "!="), ("&&", "||"), ("<", "<="), ("!=", "=="),
]  # fmt: skip
CODE = [
    "def is_open(hour, limit): return True if hour {} limit and door.state is not None else False",
    "if user.age {} minimum_age then grant access to the archive else send a request to the desk",
    "while retries {} max_retries do sleep for the delay and then call the server once more",
]

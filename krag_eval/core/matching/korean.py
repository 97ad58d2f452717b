"""How Korean writes numbers, dates, times and units: all that coverage knows of it."""

from __future__ import annotations

import re

from krag_eval.core.matching.english import Rewriting, clock, shifted

#: What Korean counts in -> its zeros.
MYRIADS = {"만": 4, "억": 8, "조": 12}
#: Those below.
TENS = {"십": 1, "백": 2, "천": 3}
_DIGITS = {letter: value for value, letter in enumerate("영일이삼사오육칠팔구")} | {"공": 0}
_NATIVE = dict(
    zip(
        "하나 한 둘 두 셋 세 석 넷 네 넉 다섯 여섯 일곱 여덟 아홉 열".split(),  # noqa: SIM905
        (1, 1, 2, 2, 3, 3, 3, 4, 4, 4, 5, 6, 7, 8, 9, 10),
        strict=True,
    )
)
_NATIVE_TENS = {"열": 10, "스물": 20, "스무": 20, "서른": 30, "마흔": 40, "쉰": 50, "예순": 60,
                "일흔": 70, "여든": 80, "아흔": 90}  # fmt: skip
_COUNTERS = (
    "개월|시간|주일|가지|차례|사람|군데|가구|마리|켤레|그루|송이|개|명|번|권|살|시|달|주|곳|대|배|장"
    "|째|건|채|분|병|잔|쪽|줄|해|층|회|년|일|월|원|초|호|인|점|세|학기|학년|박|등|위|종|편"
)
_NATIVE_NUMBER = (
    f"(?:{'|'.join(_NATIVE_TENS)})?(?:{'|'.join(sorted(_NATIVE, key=len, reverse=True))})"
    f"|{'|'.join(_NATIVE_TENS)}"
)
#: Words that count, beside numbers.
COUNTED = r"[월화수목금토일](?=요일)"

#: Unit -> how it is written behind a number.
UNITS = {
    "%p": r"%p|%포인트|퍼센트 ?포인트|포인트",
    "%": r"퍼센트|프로(?![가-힣])|%",
    "km": r"킬로미터",
    "cm": r"센티미터|센티",
    "mm": r"밀리미터",
    "m2": r"㎡|제곱미터|평방미터",
    "m": r"미터",
    "kg": r"킬로그램",
    "g": r"그램",
    "l": r"리터",
    "t": r"톤",
    "h": r"시간",
    "min": r"분(?!기)",
    "quarter": r"분기",
    "s": r"초(?!과)",
    "w": r"주일|주(?=[ 간를의에이]|$)",
    "mo": r"개월|달(?!러)",
    "y": r"년",
    "kb": r"킬로바이트",
    "mb": r"메가바이트",
    "gb": r"기가바이트",
    "person": r"명|인(?=[ 이을은의에과]|$)",
    "household": r"가구",
    "만": r"만",
    "억": r"억",
    "조": r"조(?= ?원)",
    "krw": r"원",
    "usd": r"달러|불(?![가-힣])",
    "eur": r"유로",
    "jpy": r"엔(?![가-힣])",
    "gbp": r"파운드",
}


def _value(text: str) -> int | None:
    """Return the value of a number in native words: 스물네."""
    tens = next((word for word in _NATIVE_TENS if text.startswith(word) and word != "열"), "")
    tens = tens or ("열" if text.startswith("열") else "")
    rest = text.removeprefix(tens)
    if rest and rest not in _NATIVE:
        return None
    return _NATIVE_TENS.get(tens, 0) + _NATIVE.get(rest, 0)


_MIXED = re.compile(
    r"(?<![\d.])(?=[\d.영일이삼사오육칠팔구십백천만]*\s?[십백천만억조])"
    r"(?:(?:\d+(?:\.\d+)?|[일이삼사오육칠팔구])?\s?[십백천만억조]*\s?)+"
    r"(?:\d+|[일이삼사오육칠팔구](?![가-힣]{2}))?"
)


def _amount(found: re.Match[str]) -> str:
    """Return an amount in Hangul, or in Hangul and digits, in digits."""
    total = part = 0
    digits = ""
    for piece in re.findall(r"\d+(?:\.\d+)?|[가-힣]", found[0]):
        if piece[0].isdecimal():
            digits = piece
        elif piece in _DIGITS:
            digits = str(_DIGITS[piece])
        elif piece in TENS:
            value = shifted(digits or "1", TENS[piece])
            if "." in value:
                return found[0]
            part, digits = part + int(value), ""
        else:
            zeros = MYRIADS[piece]
            value = shifted(digits or ("0" if part else "1"), zeros)
            if "." in value or len(value) > 30:
                return found[0]
            total, part, digits = total + part * 10**zeros + int(value), 0, ""
    if "." in digits or len(digits) > 30:
        return found[0]
    space = " " if found[0].endswith(" ") else ""
    return f"{total + part + int(digits or 0)}{space}"


def _time(found: re.Match[str]) -> str:
    parts = found.groupdict()
    minute = 30 if parts["m"] == "반" else int(parts["m"] or 0)
    half = {"오후": "p", "오전": "a", "저녁": "p", "밤": "p", "새벽": "a", "아침": "a"}
    return f" {clock(int(parts['h']), minute, half.get(parts['half'] or '', ''))} "


def _native(found: re.Match[str]) -> str:
    value = _value(found[0])
    return found[0] if value is None else str(value)


_MONTH_AND_DAY = (
    r"\s?(?P<m>0?[1-9]|1[0-2])(?:월|[.\-/])(?:\s?(?P<d>0?[1-9]|[12]\d|3[01])(?:일|\.(?!\d)|(?!\d)))"
)
_DAYS = [
    re.compile(
        rf"(?<![\d.])(?P<year>(?:19|20)\d\d|['’]\d\d|\d\d(?=년))(?:년|[.\-/]){_MONTH_AND_DAY}?"
    ),
    re.compile(rf"(?<![\d.])(?P<year>\d\d)[.\-/]{_MONTH_AND_DAY}"),
]


def _date(found: re.Match[str]) -> str:
    year = found["year"].lstrip("'’")
    year = year if len(year) == 4 else "20" + year
    day = found["d"]
    return f" {year}.{int(found['m'])}{'.' + str(int(day)) if day else ''} "


#: What there is in all that is rewritten.
SPELLED = re.compile(r"[가-힣]|\d[.\-/:]")
REWRITINGS: list[Rewriting] = [
    (re.compile(r"(?<![\d.])['’](\d\d)(?=\s?(?:년|학년도|학번))"), r"20\1"),
    *((pattern, _date) for pattern in _DAYS),
    (re.compile(r"(?<!\d)(0?[1-9]|1[0-2])월 ?(0?[1-9]|[12]\d|3[01])일"),
     lambda found: f" {int(found[1])}.{int(found[2])} "),
    (re.compile(r"(?<!\d)(0?[1-9]|1[0-2])\. ?(0?[1-9]|[12]\d|3[01])\.(?!\d)"),
     lambda found: f" {int(found[1])}.{int(found[2])} "),
    (re.compile(rf"(?<![가-힣])(?:{_NATIVE_NUMBER})(?=\s?(?:{_COUNTERS}))"), _native),
    (re.compile(r"(?<![가-힣])(?:하나|둘|셋|넷|다섯|여섯|일곱|여덟|아홉|열)(?![가-힣])"), _native),
    (re.compile(r"(?<![가-힣])첫\s?(?=째|번)"), "1"),
    (re.compile(r"(?:(?P<half>오전|오후|저녁|밤|새벽|아침)\s*)?(?<!\d)(?P<h>[01]?\d|2[0-4])(?:시(?!간)|:)"
                r"(?:\s?(?P<m>반(?![가-힣])|[0-5]?\d)분?)?(?!\d)"), _time),
    (_MIXED, _amount),
    (re.compile(rf"(?<![가-힣\d])[일이삼사오육칠팔구](?=\s?(?:{_COUNTERS})(?![가-힣]{{3}}))"),
     lambda found: str(_DIGITS[found[0]])),
    (re.compile(r"제 ?(?=\d)"), ""),
    (re.compile(r"(?<=[일월년간분주])\s?동안"), "간"),
    (re.compile("아니한"), "않는"),
    (re.compile("아니합"), "않습"),
    (re.compile("아니[하할함]"), "않"),
]  # fmt: skip

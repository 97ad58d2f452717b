"""Text to tokens (words, characters or morphemes), in English, Korean and everything else.

=================  =============================================================================
name               tokens
=================  =============================================================================
``"words"``        words as a reader sees them: without markup, hyphens at line ends and case
``"letters"``      the letters and digits of those words, whatever the spaces between them
``"unicode"``      lower-cased words of any script, ``"rouge_score"`` on ASCII text
``"rouge_score"``  those of the rouge-score package without stemming: ASCII letters and digits
``"whitespace"``   what stands between spaces, case and punctuation kept
``"character"``    every character but white space, lower-cased
``"kiwi"``         Korean morphemes without particles and endings; ``krag-eval[korean]``
=================  =============================================================================

:class:`~krag_eval.CoverageMatcher` also knows ``"auto"``: words or letters, as the script of the
ground truth asks for. Any callable ``str -> list[str]`` serves as well. An object may add two
things to its ``__call__``: a ``name`` for result signatures, and ``tokenize_all(texts)``, which
yields one list per text in order, where working in batches is faster.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import itertools
import math
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, ClassVar, TypeAlias, cast

from krag_eval.core import errors
from krag_eval.core.errors import InvalidInput, InvalidType, clipped
from krag_eval.core.files import ForkLock
from krag_eval.core.install import install_line
from krag_eval.core.matching.identity import function_name
from krag_eval.core.matching.plaintext import plain

#: A word of the user's own for Kiwi: with its tag and score, if need be.
UserWord: TypeAlias = str | tuple[str, str] | tuple[str, str, float]
#: Anything that turns one text into its tokens, in reading order.
Tokenizer: TypeAlias = Callable[[str], list[str]]

# Lowers ASCII letters, keeps digits, blanks the rest of ASCII. The bytes of longer UTF-8 sequences
# stay, so it serves any text. Encode, translate, decode and split is two to six times faster than
# a regular expression.
_ASCII_WORDS = bytes(
    byte if byte > 127 else ord(chr(byte).lower()) if chr(byte).isalnum() else ord(" ")
    for byte in range(256)
)

# What shows nothing and sits inside words: soft hyphen, zero-width joiners, word joiner, byte order
# mark, variation selectors. Web pages and PDF extractions are full of them.
_INVISIBLE = re.compile("[\u00ad\u200c\u200d\u2060\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]")

# The characters beyond ASCII for which the byte table is right as it is: letters that normalising
# and lower-casing leave alone (lower-case Latin-1 and Greek, kana, Han, Hangul syllables). Most
# English and Korean texts hold no other.
_NOT_PLAIN = re.compile(
    "[^\u0000-\u007f\u00df-\u00f6\u00f8-\u00ff\u03b1-\u03c9"
    "\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fef\uac00-\ud7a3]"
)

# Separators common in texts that are plain otherwise: quotes, dashes, bullets, currencies, arrows,
# CJK brackets. Holds for text in NFKC, where superscripts and circled digits are digits already.
_TYPOGRAPHY = re.compile(
    "[\u00a1-\u00bf\u00d7\u00f7\u2010-\u2027\u2030-\u205e\u20a0-\u20bf"
    "\u2190-\u23ff\u2500-\u26ff\u3001-\u3003\u3008-\u3020]"
)

_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_SURROGATE = re.compile("[\ud800-\udfff]")

# Vowel points, accents of cantillation and Koranic signs: all marks of the Hebrew and Arabic blocks
# but hamza and madda, which are part of a letter.
_POINTS = re.compile(
    "[\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u0652\u0656-\u065f"
    "\u0670\u06d6-\u06dc\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0898-\u089f\u08ca-\u08e1"
    "\u08e3-\u08ff\ufb1e]"
)

# The same for words whose case is folded and that have no points: without ß, final sigma, kana and
# Han. It stands for most English and Korean texts.
_NOT_FOLDED = re.compile(
    "[^\u0000-\u007f\u00e0-\u00f6\u00f8-\u00ff\u03b1-\u03c1\u03c3-\u03c9\uac00-\ud7a3]"
)

# The same once case is folded and letters without spaces stand apart.
_NOT_LETTERS = re.compile(
    "[^\u0000-\u007f\u00df-\u00f6\u00f8-\u02af\u03ac-\u03ce\u0430-\u0481\u048a-\u052f"
    "\u3041-\u3096\u30a1-\u30fa\u30fc\u4e00-\u9fef\uac00-\ud7a3]"
)

# Letters of scripts written without spaces: Thai, Lao, Myanmar, Khmer, kana and Han. Digits are
# left out, as they make numbers.
_UNSPACED = (
    "[\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
    "\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf"
    "\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e"
    "\ua9e0-\ua9e4\ua9e6-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa76\uaa7a\uaa7e\uaa7f"
    "\u1780-\u17b3\u17d7\u17dc"
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]"
)
_UNSPACED_LETTER = re.compile(_UNSPACED)

# Letters of Hangul, and those above: where a passage is mostly made of these, spaces say little.
_SPACELESS = re.compile(
    "[\u1100-\u11ff\u3131-\u318c\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb\uff66-\uff9d\uffa1-\uffdc"
    + _UNSPACED[1:]
    + "+"
)
# Superscripts, fractions and numbers in circles are no letters of any script.
_LETTERS = re.compile(
    r"[^\W\d_\u00b2\u00b3\u00b9\u00bc-\u00be\u2070\u2074-\u2079\u2080-\u2089\u2150-\u215f"
    r"\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3251-\u325f\u32b1-\u32bf]+"
)

# Korean notices write the vowel ㆍ for a middle dot. In old Hangul it follows a consonant.
_MIDDLE_DOT = re.compile("\u318d|(?<![\u1100-\u115f\ua960-\ua97c])\u119e")
# They begin lines with ㅇ, ㅁ or ㄱ. for a bullet. More than one, as in ㅋㅋ, is a word.
_LONE_JAMO = re.compile(r"(?<![^\W_])[\u3131-\u3163](?![^\W_])")
# The same where spaces may be lost: beside no other of its kind.
_SINGLE_JAMO = re.compile("(?<![\u3131-\u3163])[\u3131-\u3163](?![\u3131-\u3163])")
_JAMO = re.compile("[\u119e\u3131-\u3163\u318d]")
# Numbers in circles: they number lists.
_CIRCLED = re.compile("[\u2460-\u2473\u24ea\u3251-\u325f\u32b1-\u32bf]")
_NUMBER_OR_LETTER = re.compile(r"\d+|\D")

_NOT_LONE_JAMO = re.compile("[^\u3131-\u318e]+")


def word_tokens(text: str) -> list[str]:
    r"""Return the words of a text as its reader sees them (``"words"``, default of coverage).

    Those of :func:`unicode_tokens` with these differences, each decided from the text alone:

    - HTML, Markdown, entities, hyphens at line ends and digit groups are read as
      ``krag_eval.core.matching.plaintext.plain`` does.
    - Case is folded, not lowered: ß is ss, a final sigma a sigma, İ an i.
    - Points of Arabic and Hebrew are dropped. Marks that belong to a letter stay: é, hamza, the
      vowel signs of Devanagari.
    - Each letter of a script written without spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese)
      is a word, together with its marks.

    Where nothing is left, as of a lone tag, the words of the text as it stands are kept.

    >>> word_tokens("<b>Fußg&auml;nger</b>: [1,234,567](https://example.org) per-\nsons")
    ['fussgänger', '1234567', 'persons']
    >>> word_tokens("東京都 snake_case")
    ['東', '京', '都', 'snake', 'case']
    """
    return _folded_words(plain(text), apart=True) or unicode_tokens(text)


def letter_tokens(text: str) -> list[str]:
    """Return the letters, marks and digits of a text, without white space and punctuation.

    ``"letters"``, for text whose spaces cannot be trusted, such as Korean from PDF files, and for
    scripts without spaces. Markup, case and digit groups are read as by :func:`word_tokens`. A
    token is one character, and of a number, a run of digits, each digit stands for the whole:
    another number has no token in common with it, and no run of tokens begins or ends inside one.

    A single jamo that is no part of a word is a bullet, also where the space after it is lost.

    >>> letter_tokens("서울 은, RAG")
    ['서', '울', '은', 'r', 'a', 'g']
    >>> letter_tokens("1,000원"), letter_tokens("ㅇ 교육ㆍ문화")
    (['1000', '1000', '1000', '1000', '원'], ['교', '육', '문', '화'])
    """
    words = _folded_words(plain(text), apart=False) or unicode_tokens(text)
    if (letters := "".join(words)).isalpha():
        return [*letters]
    tokens: list[str] = []
    for word in words:
        if word.isalpha():
            tokens += word
            continue
        for part in _NUMBER_OR_LETTER.findall(word):
            tokens += [part] * len(part)
    return tokens


def readable(text: str) -> str:
    """Return a text in NFKC, without what shows nothing and without bullets that look like letters.

    A square metre stays in one word, and a number in a circle is none.

    >>> readable("\u3141 85\u33a1\u318d①\uff12층")
    '  85m2   2층'
    """
    if text.isascii():
        return text
    text = _CIRCLED.sub(" ", _without_bullets(_INVISIBLE.sub("", text), _SINGLE_JAMO))
    return unicodedata.normalize("NFKC", text)


def unicode_tokens(text: str) -> list[str]:
    """Return the lower-cased words of a text in any script (``"unicode"``, the default of ROUGE).

    The text is brought to NFKC, so that composed and decomposed Hangul, full-width and ordinary
    letters, ligatures and their letters are the same; then to lower case. A word is a letter or
    digit and the letters, digits and combining marks that follow; everything else, the underscore
    included, separates words. So do the vowel ㆍ where Korean writes it for a middle dot, and a
    jamo that stands alone, as the bullet ㅇ does, unless the text has no other letter. Characters
    that show nothing (soft hyphen, zero-width joiner, variation selector) are dropped. On ASCII
    text this equals :func:`rouge_score_tokens`.

    Scripts written without spaces (Chinese, Japanese, Thai) give a whole clause as one word: use
    ``"letters"`` there.

    >>> unicode_tokens("The U.S. economy grew 2.5% -- snake_case")
    ['the', 'u', 's', 'economy', 'grew', '2', '5', 'snake', 'case']
    >>> unicode_tokens("RAG 시스템을 평가한다.")
    ['rag', '시스템을', '평가한다']
    """
    if not text.isascii() and _NOT_PLAIN.search(text):
        text = unicodedata.normalize("NFKC", _without_bullets(_INVISIBLE.sub("", text)))
        spaced = _TYPOGRAPHY.sub(" ", text)
        if _NOT_PLAIN.search(spaced):
            return _words_of_any_script(text.lower())
        text = spaced
    return text.encode().translate(_ASCII_WORDS).decode().split()


def rouge_score_tokens(text: str) -> list[str]:
    """Return exactly the tokens of the rouge-score package without stemming (``"rouge_score"``).

    Runs of a-z and 0-9 in the lower-cased text: for reproducing published English numbers. All
    that is not ASCII is lost. A Korean text has no token at all, which :func:`tokenize_all`
    refuses; of a mixed text the English remains, and nothing can notice what went. Use
    ``"unicode"`` or ``"kiwi"`` for Korean.

    >>> rouge_score_tokens("Don't panic: naïve café!")
    ['don', 't', 'panic', 'na', 've', 'caf']
    >>> rouge_score_tokens("RAG 시스템")
    ['rag']
    """
    from rouge_score.tokenize import tokenize

    tokens: list[str] = tokenize(text, None)
    return tokens


def whitespace_tokens(text: str) -> list[str]:
    """Return what stands between white space, case and punctuation kept (``"whitespace"``).

    The text is brought to NFC and nothing more, so "Seoul", "seoul" and "Seoul." are three
    different tokens: for text that was tokenised beforehand.

    >>> whitespace_tokens("Seoul, seoul  서울은")
    ['Seoul,', 'seoul', '서울은']
    """
    return unicodedata.normalize("NFC", text).split()


def character_tokens(text: str) -> list[str]:
    """Return every character of a text but its white space, lower-cased (``"character"``).

    For text whose spaces cannot be trusted, such as Korean PDF extractions, and for scripts without
    spaces. The text is brought to NFKC and characters that show nothing are dropped, as for
    ``"unicode"``. A token is one code point: a Hangul syllable or an accented letter is one token
    however it was typed, a mark that has no composed form with its letter is one of its own.
    Punctuation is kept, which tables and other quotes change: ``"letters"`` leaves it out.

    >>> character_tokens("서울 은 RAG")
    ['서', '울', '은', 'r', 'a', 'g']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", _without_bullets(_without_zero_width(text)))
    return list("".join(text.lower().split()))


_FUNCTIONS: dict[str, Tokenizer] = {
    "words": word_tokens,
    "letters": letter_tokens,
    "unicode": unicode_tokens,
    "rouge_score": rouge_score_tokens,
    "whitespace": whitespace_tokens,
    "character": character_tokens,
}

#: Every name that ``tokenizer=`` accepts.
TOKENIZER_NAMES: tuple[str, ...] = (*_FUNCTIONS, "kiwi")

# Kiwi's parts of speech: https://github.com/bab2min/kiwipiepy#품사-태그
_KIWI_TAGS = (  # noqa: SIM905 - a list literal would take one line for each
    "NNG NNP NNB NR NP VV VA VX VCP VCN MM MAG MAJ IC "
    "JKS JKC JKG JKO JKB JKV JKQ JX JC EP EF EC ETN ETM XPN XSN XSV XSA XSM XR "
    "SF SP SS SSO SSC SE SO SW SL SH SN SB UN "
    "W_URL W_EMAIL W_MENTION W_HASHTAG W_SERIAL W_EMOJI Z_CODA Z_SIOT"
).split()

# Particles, endings, derivational suffixes, the copula 이다 (a particle to school grammar), stray
# final consonants and list bullets. With them the mean ROUGE-1 F of two unrelated facts of
# Data_StrategyQA is 0.147, without them 0.014.
_GRAMMAR = ("J", "E", "XS", "VCP", "Z_", "SB")


_LONGEST_LIST = 40  # characters of user words that a signature shows


@dataclass(frozen=True)
class KiwiTokenizer:
    """Korean morphemes by Kiwi (``"kiwi"``; ``pip install "<path of the clone>[korean]"``).

    Particles, endings, derivational suffixes and the copula are left out, because they make
    unrelated sentences alike. Nouns, stems, numbers and foreign words stay, lower-cased. Symbols
    and punctuation are never tokens. Where this leaves nothing, as of a lone particle, all words of
    the text are kept. The text is brought to NFKC first, but for letters standing alone (as in
    ㅋㅋ), which Kiwi reads only as they are typed.

    One Kiwi (2 to 3 seconds, 0.5 GB) is loaded at the first text and shared by all tokenizers of
    the process. A tokenizer holds its options only: copies and pickles are small, and a process
    that receives one loads its own Kiwi.

    Right where sentences were rewritten with other particles and endings. Where spaces are lost or
    stand inside words, morphemes come out differently: use ``"letters"`` there.

    Args:
        keep: Tags of Kiwi, or their beginnings, to keep and nothing else: ``("NN", "SL")`` keeps
            nouns and foreign words.
        particles: True keeps all words, particles, endings and suffixes too. Not with ``keep``.
        stop_tags: Tags, or their beginnings, to leave out in place of the default, ``("J", "E",
            "XS", "VCP", "Z_", "SB")``. Not with ``keep`` or ``particles``.
        user_words: Names and terms that Kiwi is not to take apart: each a word, which counts as a
            proper noun (``NNP``), or ``(word, tag)`` or ``(word, tag, score)`` as Kiwi's own
            ``add_user_word`` takes them; a higher score makes the word likelier. They take a Kiwi
            of their own.

    Raises:
        MissingPackage: When kiwipiepy is not installed; the message says how to.
        InvalidInput: For an unknown tag, a blank word, or options that exclude each other.
        InvalidType: For tags or words that are none.

    >>> KiwiTokenizer()("나는 밥을 먹었다.")
    ['나', '밥', '먹']
    >>> KiwiTokenizer(particles=True)("나는 밥을 먹었다.")
    ['나', '는', '밥', '을', '먹', '었', '다']
    >>> KiwiTokenizer(keep=("NN", "SL"))("RAG 시스템이 문서를 찾는다.")
    ['rag', '시스템', '문서']
    >>> KiwiTokenizer()("청년월세를 받는다."), KiwiTokenizer(user_words=["청년월세"])("청년월세를")
    (['청년', '월세', '받'], ['청년월세'])
    """

    keep: Iterable[str] | None = None
    particles: bool = False
    _: KW_ONLY
    stop_tags: Iterable[str] | None = None
    user_words: Iterable[UserWord] = ()

    def __post_init__(self) -> None:
        errors.boolean("particles", self.particles)
        given = [name for name in ("keep", "stop_tags") if getattr(self, name) is not None]
        if self.particles and given:
            fix = f"leave out {given[0]}, or particles"
            raise InvalidInput("particles", "keeps all words", fix)
        if len(given) == 2:
            raise InvalidInput("stop_tags", "and keep both say which words to keep", "choose one")
        for name in given:
            object.__setattr__(self, name, _checked_tags(name, getattr(self, name)))
        object.__setattr__(self, "user_words", _checked_words(self.user_words))
        _check_kiwipiepy()

    @property
    def name(self) -> str:
        """Name in signatures: ``kiwi``, its versions, and the options that differ from the default.

        >>> KiwiTokenizer(keep=["NN"]).name  # doctest: +ELLIPSIS
        'kiwi(version=...,model=...,keep=NN)'
        """
        options = {
            **kiwi_versions(),
            "keep": self.keep and "+".join(self.keep),
            "stop_tags": None if self.stop_tags is None else "+".join(self.stop_tags) or "none",
            "particles": "yes" if self.particles else None,
            "user_words": _words_for_signature(_checked_words(self.user_words)),
        }
        return f"kiwi({','.join(f'{name}={value}' for name, value in options.items() if value)})"

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of one text."""
        return self._tokens(self._kiwi.analyse(_readable_by_kiwi(text)))

    @property
    def _kiwi(self) -> _SharedKiwi:
        words: Any = self.user_words  # checked, and a tuple of tuples
        return _kiwi_with(words) if words else shared_kiwi

    def tokenize_all(self, texts: Iterable[str]) -> Iterator[list[str]]:
        """Yield the tokens of each text in order; Kiwi works on all cores.

        >>> list(KiwiTokenizer().tokenize_all(["밥을 먹었다.", "집을 지었다."]))
        [['밥', '먹'], ['집', '짓']]
        """
        return map(self._tokens, self._kiwi.analyse_all(map(_readable_by_kiwi, texts)))

    def _tokens(self, morphemes: Iterable[Any]) -> list[str]:
        words = [(m.form.lower(), m.tag) for m in morphemes if _LETTER_OR_DIGIT.search(m.form)]
        kept = words
        if self.keep is not None:
            kept = [one for one in words if one[1].startswith(tuple(self.keep))]
        elif not self.particles:
            stopped = _GRAMMAR if self.stop_tags is None else tuple(self.stop_tags)
            kept = [one for one in words if not one[1].startswith(stopped)]
        return [form for form, _ in kept or words]


def has_words(text: str) -> bool:
    """Return whether a text holds a letter or a digit of any script.

    Where it holds none, it is blank, punctuation or symbols: a tokenizer that yields no token has
    lost nothing, and a caller treats the text like a blank one.

    >>> has_words("나는 3"), has_words("— !!! 🙂"), has_words("  ")
    (True, False, False)
    """
    # Asked of the normalised text too: a few letters, such as the stand-alone voicing mark U+FF9E,
    # are other spellings of a combining mark, which is not a word.
    return bool(
        _LETTER_OR_DIGIT.search(text := _MIDDLE_DOT.sub(" ", text))
        and _LETTER_OR_DIGIT.search(unicodedata.normalize("NFKC", text))
    )


@dataclass(frozen=True)
class ByScript:
    """Words, or letters where a ground truth is mostly of a script whose spaces say little.

    That is: more than 15 % of the letters of all its texts together are Hangul, Han, kana, Thai,
    Lao, Khmer or Burmese, as in sentences of Korean developers that are half English. Markup does
    not count.

    >>> ByScript()("RAG 서울"), ByScript()("The capital is 서울")
    (['r', 'a', 'g', '서', '울'], ['the', 'capital', 'is', '서울'])
    """

    name: ClassVar[str] = "auto(words,letters)"
    #: More than this share of its letters must be of those scripts.
    share: ClassVar[float] = 0.15

    def __call__(self, text: str) -> list[str]:
        """Return the tokens of a text that is compared with none."""
        return (letter_tokens if self.by_letters([text]) else word_tokens)(text)

    def by_letters(self, texts: Iterable[str]) -> bool:
        """Tell whether a ground truth is read by letters."""
        texts = list(texts)
        if not any(map(self.may_need_letters, texts)):
            return False
        counts = [self.counts(text) for text in texts]
        return self.decided(sum(ours for ours, _ in counts), sum(letters for _, letters in counts))

    @classmethod
    def decided(cls, spaceless: int, letters: int) -> bool:
        """Decide for a ground truth with so many letters, of which so many are of those scripts.

        This is the one place: whatever reads texts by words or by letters comes here.
        """
        return spaceless > cls.share * letters

    @staticmethod
    def may_need_letters(text: str) -> bool:
        """Tell whether a text has any letter of those scripts, or entities that may be one."""
        return "&#" in text or (not text.isascii() and _SPACELESS.search(text) is not None)

    @staticmethod
    def counts(text: str) -> tuple[int, int]:
        """Return how many letters of a text are of those scripts, and how many there are."""
        text = plain(text)
        if "\u318d" in text or "\u119e" in text:
            text = _MIDDLE_DOT.sub(" ", text)
        return sum(map(len, _SPACELESS.findall(text))), sum(map(len, _LETTERS.findall(text)))


def resolve_tokenizer(tokenizer: str | Tokenizer) -> Tokenizer:
    """Return the tokenizer that a ``tokenizer=`` argument means; a callable is returned as it is.

    Nothing is loaded, but a missing optional package is reported now.

    Args:
        tokenizer: A name of :data:`TOKENIZER_NAMES` or a callable ``str -> list[str]``.

    Raises:
        InvalidInput: For an unknown name; the message lists the names and the nearest one.
        InvalidType: For anything that is neither a name nor callable.
        MissingPackage: For ``"kiwi"`` when kiwipiepy is not installed.

    >>> resolve_tokenizer("unicode")("Seoul, 서울")
    ['seoul', '서울']
    >>> resolve_tokenizer(str.split)("Seoul, 서울")
    ['Seoul,', '서울']
    """
    method = getattr(tokenizer, "tokenize", None)
    if not callable(tokenizer) and callable(method):  # as rouge_score.tokenizers.Tokenizer has it
        return cast(Tokenizer, method)
    if isinstance(tokenizer, str):
        if tokenizer.partition("(")[0] == "kiwi":
            kiwi = KiwiTokenizer()
            if tokenizer not in ("kiwi", kiwi.name):
                be = f"be 'kiwi', which is {kiwi.name} here"
                raise errors.must(
                    "tokenizer", be, tokenizer, "pass a KiwiTokenizer for its options"
                )
            return kiwi
        if tokenizer in _FUNCTIONS:
            return _FUNCTIONS[tokenizer]
        raise errors.unknown("tokenizer", tokenizer, TOKENIZER_NAMES)
    if not callable(tokenizer):
        be = f"be a name ({', '.join(TOKENIZER_NAMES)}) or a callable str -> list[str]"
        raise errors.must("tokenizer", be, tokenizer, kind=InvalidType)
    return tokenizer


def tokenizer_name(tokenizer: str | Tokenizer, *, marked: bool = True) -> str:
    """Return the name of a tokenizer for a result's signature, the same in every process.

    A built-in tokenizer has its short name, a callable its ``name`` attribute, if it has one, or
    else its module and qualified name (an instance those of its class) and a digest of its source
    and of what it holds, ``#unknown`` where that cannot be told; without ``marked``, none.

    >>> tokenizer_name("letters"), tokenizer_name(unicode_tokens), tokenizer_name(str.split)
    ('letters', 'unicode', 'builtins.str.split')
    """
    resolved = resolve_tokenizer(tokenizer)
    known = (name for name, one in _FUNCTIONS.items() if one is resolved)
    return next(known, None) or function_name(resolved, marked=marked)


def tokenize_all(tokenizer: str | Tokenizer, texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the tokens of each text in order, and refuse a tokenizer that loses one.

    A blank text has no token, whatever the tokenizer says. A text without a letter or digit (see
    :func:`has_words`) may have none. Any other text without a token is an error, because the
    tokenizer cannot read its language and a silent 0 would look like bad retrieval.

    Args:
        tokenizer: A name or a callable; one that offers ``tokenize_all`` is asked once for all.
        texts: The texts. Each is tokenised as often as it occurs.

    Raises:
        InvalidInput: When a text with letters or digits has no token, or a batch has not one
            answer per text.
        InvalidType: When an answer is not a list of str, or ``texts`` is a single str.

    >>> list(tokenize_all("unicode", ["Hello, world", " ", "!!!"]))
    [['hello', 'world'], [], []]
    >>> list(tokenize_all("rouge_score", ["나는 밥을 먹었다."]))
    Traceback (most recent call last):
        ...
    krag_eval.errors.InvalidInput: tokenizer 'rouge_score' yields no token for '나는 밥을 ...
    """
    if isinstance(texts, str):
        raise errors.must("texts", "be a sequence of str", texts, kind=InvalidType)
    tokenize = resolve_tokenizer(tokenizer)
    batch = getattr(tokenize, "tokenize_all", None)
    # A user's tokenizer need not be ready for blank texts.
    answers = ([] if _is_blank(text) else tokenize(text) for text in texts)
    ours = type(tokenize) is KiwiTokenizer or tokenize in _FUNCTIONS.values()
    name = repr(tokenizer_name(tokenize, marked=False))
    return _checked(name, batch(texts) if callable(batch) else answers, texts, ours)


_MISSING: Any = object()


def _checked(
    name: str, answers: Iterable[Any], texts: Sequence[str], ours: bool
) -> Iterator[list[str]]:
    """Yield the answers of a tokenizer, refusing what are no tokens, or none of a text."""
    pairs: Iterable[tuple[Any, Any]] = itertools.zip_longest(answers, texts, fillvalue=_MISSING)
    for tokens, text in pairs:
        if tokens is _MISSING or text is _MISSING:
            be = f"tokenize_all must give one list of tokens for each of {len(texts)} texts"
            raise InvalidInput("tokenizer", f"{name}: {be}")
        if not ours:
            listed = isinstance(tokens, Sequence) and not isinstance(tokens, (str, bytes))
            if not listed or not all(isinstance(token, str) for token in tokens):
                problem = f"{name} must return a list of str, got {clipped(tokens)}"
                raise InvalidType("tokenizer", f"{problem} for {clipped(text)}")
            # Nothing but "", as re.split leaves it of a text it cannot read, is no token: it would
            # equal that of every other such text.
            tokens = list(tokens) if any(tokens) and not _is_blank(text) else []
        if not tokens and has_words(text):
            lost = f"{clipped(text)}, which holds letters or digits, so the text could never match"
            fix = "use the tokenizer 'unicode', or 'kiwi' for Korean morphemes, or 'letters'"
            raise InvalidInput("tokenizer", f"{name} yields no token for {lost}", fix)
        yield tokens


def _is_blank(text: str) -> bool:
    return not text or text.isspace()


def _without_zero_width(text: str) -> str:
    """Drop what shows nothing inside words, and turn the zero-width space into one split sees."""
    return _INVISIBLE.sub("", text).replace("\u200b", " ")


def _without_bullets(text: str, bullet: re.Pattern[str] = _LONE_JAMO) -> str:
    """Blank what looks like a letter of Hangul and is a middle dot or a bullet."""
    if not _JAMO.search(text):
        return text
    text = _MIDDLE_DOT.sub(" ", text)
    without = bullet.sub(" ", text)
    # Where nothing else is left, the text speaks of the letter.
    return without if _LETTER_OR_DIGIT.search(without) else text


def _folded_words(text: str, *, apart: bool) -> list[str]:
    """Return the words of a text without case and points.

    Args:
        text: The text.
        apart: Whether each letter is a word where words have no spaces. If not, letters are all
            that is asked for, and spaces may be lost.
    """
    if text.isascii():
        return text.encode().translate(_ASCII_WORDS).decode().split()
    if _NOT_FOLDED.search(text):
        bullet = _LONE_JAMO if apart else _SINGLE_JAMO
        text = _without_bullets(_INVISIBLE.sub("", text), bullet)
        text = _TYPOGRAPHY.sub(" ", unicodedata.normalize("NFKC", text))
    if _NOT_FOLDED.search(text):
        # Folding may take a letter apart: of "ΐ" it leaves the marks beside the letter.
        text = unicodedata.normalize("NFKC", text.casefold()).replace("i\u0307", "i")
        text = _POINTS.sub("", text)
        if apart:
            text = _with_letters_apart(text)
        if _NOT_LETTERS.search(text):
            return _words_of_any_script(text)
    return text.encode().translate(_ASCII_WORDS).decode().split()


def _with_letters_apart(text: str) -> str:
    """Put spaces around each letter, with its marks, of a script written without them."""
    if not _UNSPACED_LETTER.search(text):
        return text
    return _finders(bool(_ASTRAL.search(text)))[1].sub(r" \g<0> ", text)


def _words_of_any_script(text: str) -> list[str]:
    """Return the words of a lower-case text in NFKC by the full rule, marks included."""
    return _finders(bool(_ASTRAL.search(text)))[0].findall(text.replace("_", " "))


@cache
def _finders(beyond_bmp: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return what finds words, and letters of scripts without spaces, with the marks that follow.

    For texts of the basic multilingual plane, or for all texts.

    ``re`` has no name for combining marks, so they are listed, or words in Devanagari, Thai and
    Arabic would fall apart. That takes 15 ms, spent at the first text that needs it. There are two
    because ``re`` tries the ranges beyond the basic plane one by one: each space of a Russian text
    would pay for Brahmi.
    """
    codes = range(0x20000 if beyond_bmp else 0x10000)
    marks = _as_class(code for code in codes if unicodedata.category(chr(code))[0] == "M")
    return re.compile(rf"\w[\w{marks}]*"), re.compile(f"{_UNSPACED}[{marks}]*+")


def _as_class(codes: Iterable[int]) -> str:
    """Spell increasing code points as the ranges of a regular expression's character class."""
    runs = itertools.groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0])
    spans = ([code for _, code in run] for _, run in runs)
    return "".join(f"{chr(span[0])}-{chr(span[-1])}" for span in spans)


def _readable_by_kiwi(text: str) -> str:
    """Normalise a text for Kiwi and take out what derails it."""
    if text.isascii():
        return text
    # Half a surrogate pair, left by broken JSON, has no UTF-16, which is what Kiwi works on.
    text = _SURROGATE.sub(" ", _without_bullets(_without_zero_width(text)))
    return _NOT_LONE_JAMO.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


class _SharedKiwi:
    """The one Kiwi of this process, or with some words, loaded at the first text."""

    def __init__(self, words: tuple[tuple[str, str, float], ...] = ()) -> None:
        self._words = words
        self._lock = ForkLock()
        self._kiwi: Any = None
        self._loaded_by = 0

    def analyse(self, text: str) -> Iterable[Any]:
        """Return the morphemes of one text."""
        return self._get().tokenize(text)  # type: ignore[no-any-return]

    def analyse_all(self, texts: Iterable[str]) -> Iterable[Iterable[Any]]:
        """Return the morphemes of each text."""
        kiwi = self._get()
        # Kiwi's threads do not survive a fork, and a batch would wait for them for ever. One by one
        # the inherited model works, and the child is spared loading its own.
        one_by_one = self._loaded_by != os.getpid()
        return map(self.analyse, texts) if one_by_one else kiwi.tokenize(texts)

    def _get(self) -> Any:
        with self._lock:
            if self._kiwi is None:
                _check_kiwipiepy()
                # By name, so that type checkers need not have the optional package.
                kiwi = importlib.import_module("kiwipiepy").Kiwi()
                for word in self._words:
                    kiwi.add_user_word(*word)
                # Kiwi finishes loading at its first text; let it, while no other thread can ask.
                kiwi.tokenize("")
                self._kiwi, self._loaded_by = kiwi, os.getpid()
            return self._kiwi


#: The model takes some 500 MB, so all that need morphemes share this one.
shared_kiwi = _SharedKiwi()
# The Kiwi that knows some words, the same one for the same words.
_kiwi_with = cache(_SharedKiwi)


def kiwi_versions() -> dict[str, str]:
    """Return the versions of Kiwi and of its model, as signatures name them.

    Another version may take other morphemes from the same text.
    """
    return {
        "version": installed_version("kiwipiepy"),
        "model": installed_version("kiwipiepy_model"),
    }


@cache
def installed_version(package: str) -> str:
    """Return the version of an installed package; ``unknown`` if it says none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def _check_kiwipiepy() -> None:
    with suppress(ValueError):  # imported already, but without a spec, as stand-ins in tests are
        if importlib.util.find_spec("kiwipiepy") is None:
            fix = f"run: {install_line('korean')} (or use the tokenizer 'unicode')"
            problem = "'kiwi' needs kiwipiepy, which is not installed"
            raise errors.MissingPackage("tokenizer", problem, fix)


def _checked_tags(argument: str, given: Iterable[str]) -> tuple[str, ...]:
    """Return tags, sorted, so that equal choices have equal names."""
    if isinstance(given, str):
        raise errors.must(argument, "be a collection of tags", given, kind=InvalidType)
    tags = {*given}
    if not tags and argument == "keep":
        raise errors.must("keep", "hold at least one tag", given, "leave it out for the default")
    for tag in tags:
        if not isinstance(tag, str):
            raise errors.must(argument, "hold tags as str", tag, kind=InvalidType)
        if not tag or not any(known.startswith(tag) for known in _KIWI_TAGS):
            raise errors.unknown(argument, tag, _KIWI_TAGS, "each tag, or its beginning,")
    return tuple(sorted(tags))


def _checked_words(given: Iterable[UserWord]) -> tuple[tuple[str, str, float], ...]:
    """Return words with tags and scores, sorted, so that equal lists have equal names."""
    if isinstance(given, str):
        raise errors.must("user_words", "be a collection of words", given, kind=InvalidType)
    return tuple(sorted({_checked_word(one) for one in given}))


def _checked_word(given: UserWord) -> tuple[str, str, float]:
    parts: list[Any] = [*given] if isinstance(given, (tuple, list)) else [given]
    defaults: list[Any] = ["", "NNP", 0.0]
    word, tag, score, *more = parts + defaults[len(parts) :]
    if more or not isinstance(word, str) or not isinstance(tag, str):
        be = "hold words as str, (word, tag) or (word, tag, score)"
        raise errors.must("user_words", be, given, kind=InvalidType)
    # As texts reach Kiwi.
    word = _readable_by_kiwi(word).strip()
    if not has_words(word):
        raise errors.must("user_words", "hold words with letters", given)
    if tag not in _KIWI_TAGS:
        raise errors.unknown("user_words", tag, _KIWI_TAGS, "the tag of a word")
    return word, tag, errors.number("user_words", score, -math.inf, math.inf)


def _words_for_signature(words: Sequence[tuple[str, str, float]]) -> str:
    """Return the words, or a hash of many."""
    said = "+".join(
        f"{word}/{tag}/{score:g}" if score else word if tag == "NNP" else f"{word}/{tag}"
        for word, tag, score in words
    )
    if len(said) <= _LONGEST_LIST and not set(said) & set("(),="):
        return said
    return f"sha256:{hashlib.sha256(said.encode()).hexdigest()[:12]}"

"""Tokenizers: their tokens, what is refused, and what must not be loaded."""

import copy
import functools
import os
import pickle
import re
import subprocess
import sys
import time
import types
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kiwipiepy
import kiwipiepy_model
import pytest
from hypothesis import example, given, settings, strategies as st
from rouge_score.tokenizers import DefaultTokenizer
from trials import trials

from krag_eval import (
    CoverageMatcher,
    KiwiTokenizer,
    OfflineRetrievalEvaluator,
    RougeMatcher,
    compare,
)
from krag_eval.compat.tokens import KragTokens
from krag_eval.core import install_line, letter_tokens
from krag_eval.core.matching import tokenizers
from krag_eval.core.matching.tokenizers import (
    TOKENIZER_NAMES,
    character_tokens,
    has_words,
    resolve_tokenizer,
    rouge_score_tokens,
    tokenize_all,
    tokenizer_name,
    unicode_tokens,
    whitespace_tokens,
    word_tokens,
)
from krag_eval.errors import InvalidInput

ROOT = Path(tokenizers.__file__).parents[2]

ROUGE_SCORE = DefaultTokenizer(use_stemmer=False)

INVISIBLE = {0xAD, 0x200C, 0x200D, 0x2060, 0xFEFF, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}

# Any character, surrogates included, and often enough those that tokenizers trip over: the two that
# lower into ASCII, lone jamo, marks, a final sigma, quotes, spaces that are not ASCII.
ANY_TEXT = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "aZ9_ .\n'\u0130\u212aé가각ㅋ\u1100\u1161\u11a8\u0301\u093fΣς’…·\u00a0\u200b\u00ad"
        ),
    ),
    max_size=40,
)
KOREAN_TEXT = st.text(st.sampled_from("나는 밥을 먹었다. 그 집 학교에서 RAG2 ㅋㅠ!"), max_size=40)


def words_by_definition(text):
    """Words as the docstring of unicode_tokens defines them, one character at a time."""
    text = "".join(character for character in text if ord(character) not in INVISIBLE)
    text = without_bullets(text)
    words, word = [], ""
    for character in unicodedata.normalize("NFKC", text).lower() + " ":
        kind = unicodedata.category(character)[0]
        if kind in "LN" or (kind == "M" and word):
            word += character
        elif word:
            words.append(word)
            word = ""
    return words


def without_bullets(text):
    """Blank the middle dot and lone jamo as the docstring of unicode_tokens has it."""
    around = f" {text} "
    is_dot = [
        one == "\u318d"
        or (one == "\u119e" and not re.match("[\u1100-\u115f\ua960-\ua97c]", before))
        for before, one in zip(around, text, strict=False)
    ]
    text = "".join(" " if dot else one for dot, one in zip(is_dot, text, strict=True))
    around = f" {text} "
    without = "".join(
        " " if "ㄱ" <= one <= "ㅣ" and not before.isalnum() and not after.isalnum() else one
        for before, one, after in zip(around, text, around[2:], strict=False)
    )
    return without if any(map(str.isalnum, without)) else text


class FakeKiwi:
    """Stands in for kiwipiepy.Kiwi: counts how often it is built, slowly."""

    built = 0

    def __init__(self):
        time.sleep(0.02)
        type(self).built += 1

    def tokenize(self, text):
        """Return a noun for each word."""
        return [types.SimpleNamespace(form=word, tag="NNG") for word in text.split()]


@pytest.fixture
def fake_kiwi(monkeypatch):
    """Replace Kiwi, in a process that has not loaded one."""
    FakeKiwi.built = 0
    package = types.ModuleType("kiwipiepy")
    package.Kiwi = FakeKiwi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "kiwipiepy", package)
    monkeypatch.setattr(tokenizers, "shared_kiwi", tokenizers._SharedKiwi())
    return FakeKiwi


def folded_words_by_definition(text):
    """Words as the docstring of word_tokens defines them, of a text without markup."""
    text = "".join(character for character in text if ord(character) not in INVISIBLE)
    text = without_bullets(text)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words, word = [], ""
    for character in text.replace("i\u0307", "i") + " ":
        kind = unicodedata.category(character)[0]
        if is_point(character):
            continue
        joins = kind == "M" or (
            kind in "LN" and not is_unspaced(character) and not is_unspaced(word[:1] or "x")
        )
        if word and joins:
            word += character
        else:
            words += [word] if word else []
            word = character if kind in "LN" else ""
    return words


UNSPACED_NAMES = (
    "CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HENTAIGANA", "HIRAGANA", "IDEOGRAPHIC",
    "KATAKANA", "KHMER", "LAO", "MYANMAR", "THAI",
)  # fmt: skip


def is_unspaced(character):
    """By the name that Unicode gives it. 〇 is a number to Unicode, and a letter to its readers."""
    named = unicodedata.name(character, "").startswith(UNSPACED_NAMES)
    return named and unicodedata.category(character) in ("Lo", "Lm", "Nl")


def is_point(character):
    """A mark of Hebrew or Arabic, but for hamza and madda, which are part of a letter."""
    name = unicodedata.name(character, "")
    return (
        unicodedata.category(character)[0] == "M"
        and name.startswith(("HEBREW", "ARABIC"))
        and not name.startswith(("ARABIC HAMZA", "ARABIC MADDAH"))
    )


KIWI, PUPILS = KiwiTokenizer(), "학생들이 밥을 먹었다."


@pytest.mark.parametrize(
    ("tokenizer", "text", "tokens"),
    [
        # Each rule of the table of what changed, with the words of the other spelling.
        (word_tokens, "<tr><td>Total</td><td><b>5</b></td></tr>", "total 5"),
        (word_tokens, "R&amp;D&nbsp;costs", "r d costs"),
        (word_tokens, "a < b", "a b"),
        (word_tokens, "see [the **text**](https://example.org/a)", "see the text"),
        (word_tokens, "**서울**은", "서울은"),
        (word_tokens, "snake_case", "snake case"),
        (word_tokens, "inter-\nnational", "international"),
        (word_tokens, "1,234,567", "1234567"),
        (word_tokens, "2.5%, 1,234.50", "2 5 1234 50"),
        (word_tokens, "STRASSE Straße STRAẞE", "strasse strasse strasse"),
        (word_tokens, "ΟΔΟΣ οδος οδοσ", "οδοσ οδοσ οδοσ"),
        (word_tokens, "İstanbul istanbul ISTANBUL", "istanbul istanbul istanbul"),
        (word_tokens, "السَّلَامُ السلام", "السلام السلام"),
        (word_tokens, "שָׁלוֹם שלום", "שלום שלום"),
        (word_tokens, "آمَن أمن", "آمن أمن"),  # hamza and madda are part of the letter
        (word_tokens, "é हिन्दी", "é हिन्दी"),
        (word_tokens, "東京都、日本", "東 京 都 日 本"),
        (word_tokens, "AIによる2024年", "ai に よ る 2024 年"),
        (word_tokens, "ภาษาที่", "ภ า ษ า ที่"),
        (word_tokens, "ພາສາ ភាសា ဘာသာ", "ພ າ ສ າ ភា សា ဘာ သာ"),
        (word_tokens, "๒๕๖๗", "๒๕๖๗"),
        (word_tokens, "나는 밥을 먹었다.", "나는 밥을 먹었다"),
        # Words of several scripts keep their marks, lose their case and what shows nothing.
        (unicode_tokens, "나는 밥을 먹었다.", "나는 밥을 먹었다"),
        (unicode_tokens, "RAG 시스템의 nDCG@10", "rag 시스템의 ndcg 10"),
        (unicode_tokens, "हिन्दी में", "हिन्दी में"),
        (unicode_tokens, "Привет, МИР", "привет мир"),
        (unicode_tokens, "ＲＡＧ ﬁne ①", "rag fine 1"),
        (unicode_tokens, "“smart”—quotes… naïve", "smart quotes naïve"),
        (unicode_tokens, "co\u00adoperate می\u200cخواهم", "cooperate میخواهم"),
        (unicode_tokens, "\u0301 !?", ""),
        (rouge_score_tokens, "RAG 시스템", "rag"),  # a partial loss is no error
        # Only spaces separate, and only NFC is applied.
        (whitespace_tokens, " Seoul,\tＲＡＧ\u3000서울은\n", "Seoul, ＲＡＧ 서울은"),
        # White space goes, punctuation stays; a token is a code point after NFKC.
        (character_tokens, "서 울, Ｒﬁ", "서 울 , r f i"),
        (character_tokens, "밥을\u200b 먹\u00ad었\ufeff다\u3000", "밥 을 먹 었 다"),
        (character_tokens, "e\u0301x\u0301", "é x \u0301"),
        # A number is whole in each of its digits.
        (letter_tokens, "13억원", "13 13 억 원"),
        (letter_tokens, "1,000원", "1000 1000 1000 1000 원"),
        (letter_tokens, "１０００원", "1000 1000 1000 1000 원"),
        (letter_tokens, "2.5 %", "2 5"),
        (letter_tokens, "10 20", "10 10 20 20"),
        (letter_tokens, "①2024년", "1 2024 2024 2024 2024 년"),
        (letter_tokens, "제3조②30일", "제 3 조 2 30 30 일"),
        (letter_tokens, "A4용지", "a 4 용 지"),
        (letter_tokens, "Straße", "s t r a s s e"),
        (letter_tokens, "東京は ABC", "東 京 は a b c"),
        (letter_tokens, "ภาษาไทย", "ภ า ษ า ไ ท ย"),
        (letter_tokens, "न\u093f", "न \u093f"),
        (letter_tokens, "<br>", "b r"),
        (letter_tokens, "— !!!", ""),
        # Kiwi leaves particles, endings, suffixes, the copula and the numbers of lists out.
        (KIWI, "나는 밥을 먹었다.", "나 밥 먹"),
        (KIWI, "그는 집을 지었다.", "그 집 짓"),
        (KIWI, "먹지 않았다", "먹 않"),
        (KIWI, "1. 학생들은 공부한다. 2. 학생이다.", "학생 공부 학생"),
        (KIWI, "RAG 시스템을 ＧＰＴ-4로 Evaluation하는 ﬁne 방법, 2024년",
         "rag 시스템 gpt 4 evaluation fine 방법 2024 년"),
        (KIWI, "\ufeff나는\u200b 밥을\ud83d 먹\u00ad었다.", "나 밥 먹"),
        (KIWI, "… ※ 🙂 ★ !!!", ""),
        # Where it would leave everything out, the text could not be matched.
        (KIWI, "에서", "에서"),
        (KIWI, "께서는", "께서 는"),
        (KIWI, "까지", "까지"),
        (KiwiTokenizer(keep=["SL", "NN"]), "RAG 시스템이 문서를 빨리 찾는다.", "rag 시스템 문서"),
        (KIWI, PUPILS, "학생 밥 먹"),
        (KiwiTokenizer(stop_tags=["J"]), PUPILS, "학생 들 밥 먹 었 다"),
        (KiwiTokenizer(stop_tags=()), PUPILS, "학생 들 이 밥 을 먹 었 다"),
        (KiwiTokenizer(particles=True), PUPILS, "학생 들 이 밥 을 먹 었 다"),
    ],
)  # fmt: skip
def test_the_tokens_of_a_text(tokenizer, text, tokens):
    assert tokenizer(text) == tokens.split()
    assert list(tokenize_all(tokenizer, [text])) == [tokens.split()]


@pytest.mark.parametrize("text", ["<br>", "&nbsp;", "[](https://example.org)", "<!-- image -->"])
def test_words_of_markup_alone_are_those_of_the_text_as_it_stands(text):
    """A chunk of nothing else must not stop an evaluation."""
    assert word_tokens(text) == unicode_tokens(text) != []


@given(ANY_TEXT.filter(lambda text: not set("<&*`~[-\u00ad'.,’\u00a0") & set(text)))
@settings(max_examples=trials(300))
@example("ΐ Ϊ\u0301 ᾳ ΑΙ ß ς İ i\u0307 ﬁ ８ ℌ ཱི 가 ｶﾞ 々〇 ที่า \u0e34a か\u3099 x\u0e31")
def test_words_equal_their_definition(text):
    """The fast paths change nothing."""
    assert word_tokens(text) == folded_words_by_definition(text)


def test_words_treat_every_character_as_defined():
    """Each character of the planes that hold letters, marks and emoji, inside a text."""
    texts = [f"x{chr(code)}y" for code in range(0x32400) if chr(code) not in "*`~"]
    assert [one for one in texts if word_tokens(one) != folded_words_by_definition(one)] == []


# Brackets and points may close what numbers a line.
@given(st.text(st.characters(max_codepoint=127, exclude_characters="<&*`~[]-,.')")))
@settings(max_examples=trials(200))
def test_words_of_ascii_text_without_markup_are_those_of_unicode(text):
    assert word_tokens(text) == unicode_tokens(text)


@given(st.text(st.characters(max_codepoint=127)))
@settings(max_examples=trials(200))
@example("snake_case don't U.S. 3.14\x00\x1f\x7f")
def test_unicode_equals_rouge_score_on_ascii_text(text):
    """English results are those of rouge-score."""
    assert unicode_tokens(text) == ROUGE_SCORE.tokenize(text)


@given(ANY_TEXT)
@settings(max_examples=trials(200))
@example("e\u0301 ΟΔΟΣ’Α \U00011000a \u2764\ufe0f 1\ufe0f\u20e3 ２０２４年 ™ ｶﾞ")
def test_unicode_equals_its_definition(text):
    """The fast paths change nothing: words are what the definition says, in any text."""
    assert unicode_tokens(text) == words_by_definition(text)


def test_unicode_treats_every_character_as_defined():
    """Each character of the planes that hold punctuation, marks and emoji, inside a text."""
    texts = [f"x{chr(code)}y" for code in range(0x20000)]
    assert [one for one in texts if unicode_tokens(one) != words_by_definition(one)] == []


@given(ANY_TEXT)
@settings(max_examples=trials(200))
@example("\u0130\u212a\u0130b \u212aelvin a\u0130 가\u0130")
def test_rouge_score_parity_on_any_text(text):
    """The tokens are rouge-score's on every text."""
    assert rouge_score_tokens(text) == ROUGE_SCORE.tokenize(text)


def test_rouge_score_parity_on_every_character():
    """No character but the two that are handled lowers into an ASCII letter."""
    text = " ".join(f"x{chr(code)}y" for code in range(sys.maxunicode + 1))
    assert rouge_score_tokens(text) == ROUGE_SCORE.tokenize(text)


KEEP_KOREAN = sorted(set(TOKENIZER_NAMES) - {"rouge_score"})


@pytest.mark.parametrize("name", KEEP_KOREAN)
@given(text=ANY_TEXT | KOREAN_TEXT)
@settings(max_examples=trials(200))
@example(text="나는 학교에서 밥을 먹었다. RAG 시스템, 값")
def test_nfc_and_nfd_have_equal_tokens(name, text):
    """How a keyboard or a PDF composes Hangul makes no difference."""
    spellings = [text, *(unicodedata.normalize(form, text) for form in ("NFC", "NFD"))]
    tokens = list(tokenize_all(name, spellings))
    assert tokens[0] == tokens[1] == tokens[2]


@pytest.mark.parametrize("name", KEEP_KOREAN)
@given(text=ANY_TEXT | KOREAN_TEXT)
@settings(max_examples=trials(200))
@example(text="\uff9e")
@example(text="\u037a")
@example(text="에서")
@example(text="①")
@example(text="㈜")
def test_no_built_in_tokenizer_loses_a_text(name, text):
    """A text with a letter or digit has tokens, none of them empty, from all but rouge_score."""
    (tokens,) = tokenize_all(name, [text])
    assert all(tokens)
    assert bool(tokens) >= has_words(text)


@pytest.mark.parametrize("text", ["가", "3", "Ⅳ", "...a", "\u1112\u119e"])
def test_letters_and_numbers_of_any_script_are_words(text):
    assert has_words(text)


@pytest.mark.parametrize("text", ["", " \n", "!!! — ※ 🙂", "\u0301", "_", "ㆍㆍㆍ"])
def test_punctuation_symbols_and_lone_marks_are_no_words(text):
    assert not has_words(text)


def test_kiwi_keeps_the_words_it_is_told_whole():
    """In one text and in batches; a Kiwi without them takes the word apart as before."""
    kiwi = KiwiTokenizer(user_words=["청년월세", ("새벽이음", "NNG", 1.0)])
    text, tokens = "새벽이음에서 청년월세를 받는다", ["새벽이음", "청년월세", "받"]
    assert kiwi(text) == pickle.loads(pickle.dumps(kiwi))(text) == tokens
    assert list(kiwi.tokenize_all([text, text])) == [tokens] * 2
    assert "청년월세" not in KIWI(text)


def test_kiwi_batch_equals_one_by_one():
    """A text has the same tokens alone and in a batch, in order."""
    texts = [f"{number}번 학생은 학교에서 {number}개의 문제를 풀었다." for number in range(50)]
    texts[7] = ""
    kiwi = KiwiTokenizer()
    assert list(tokenize_all(kiwi, texts)) == [kiwi(text) for text in texts]


def test_kiwi_is_not_loaded_before_the_first_text(fake_kiwi):
    """Naming, building, naming in a signature and copying a tokenizer cost nothing."""
    kiwi = resolve_tokenizer("kiwi")
    tokenizer_name(kiwi)
    pickle.loads(pickle.dumps(kiwi))
    assert fake_kiwi.built == 0
    assert kiwi("밥") == ["밥"]
    assert fake_kiwi.built == 1


def test_kiwi_is_loaded_once_for_all_tokenizers_and_threads(fake_kiwi):
    """Half a gigabyte is not loaded twice, not even when threads ask at the same time."""
    with ThreadPoolExecutor(8) as pool:
        for number in range(8):
            pool.submit(KiwiTokenizer(particles=number % 2 == 0), "밥")
    assert fake_kiwi.built == 1


def test_kiwi_without_kiwipiepy_names_the_extra(monkeypatch):
    """Where the tokenizer is named, and at the first text of one unpickled on another machine."""
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    monkeypatch.setattr(tokenizers, "shared_kiwi", tokenizers._SharedKiwi())
    for ask in (lambda: resolve_tokenizer("kiwi"), lambda: KIWI("밥")):
        with pytest.raises(ImportError, match=re.escape(install_line("korean"))):
            ask()


def test_kiwi_copies_hold_options_only():
    """A copy or pickle of a used tokenizer equals it and does not carry the model."""
    kiwi = KiwiTokenizer(keep=["NN", "SL"])
    kiwi("밥")
    dumped = pickle.dumps(kiwi)
    assert len(dumped) < 300
    assert pickle.loads(dumped) == copy.deepcopy(kiwi) == kiwi


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_kiwi_batches_work_in_a_forked_child():
    """Kiwi's threads do not survive a fork; a batch in the child must not wait for them."""
    code = """
import multiprocessing
from krag_eval.core.matching.tokenizers import tokenize_all

def tokens(text):
    return list(tokenize_all("kiwi", [text, text]))

if __name__ == "__main__":
    assert tokens("밥을 먹었다.") == [["밥", "먹"]] * 2
    with multiprocessing.get_context("fork").Pool(1) as pool:
        asked = pool.apply_async(tokens, ["집을 지었다."])
        assert asked.get(timeout=60) == [["집", "짓"]] * 2
"""
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=120, check=True)


def test_an_object_with_a_tokenize_method_is_a_tokenizer():
    """Those of rouge-score and of other libraries are such objects; its class names it."""
    assert resolve_tokenizer(ROUGE_SCORE)("Don't panic") == ["don", "t", "panic"]
    name = tokenizer_name(ROUGE_SCORE)
    assert name.startswith("rouge_score.tokenizers.DefaultTokenizer.tokenize#")


class Stemmer:
    """A user's tokenizer with state."""

    def __call__(self, text):
        return [word[:3] for word in text.split()]

    def words(self, text):
        return self(text)


class Named(Stemmer):
    """A user's tokenizer that names itself."""

    name = "stem-3"


#: What signatures say of the packages that are installed.
VERSIONS = f"version={kiwipiepy.__version__},model={kiwipiepy_model.__version__}"


@pytest.mark.parametrize(
    ("tokenizer", "name"),
    [
        (words_by_definition, f"{__name__}.words_by_definition#"),
        (lambda text: text.split(), f"{__name__}.<lambda>#"),
        (str.split, "builtins.str.split"),
        ("a b".split, "builtins.str.split#"),
        (Stemmer(), f"{__name__}.Stemmer#"),
        (Stemmer().words, f"{__name__}.Stemmer.words#"),
        (functools.partial(words_by_definition), f"{__name__}.words_by_definition(partial)#"),
        (Named(), "stem-3#"),
        (KiwiTokenizer(), f"kiwi({VERSIONS})"),
        (KiwiTokenizer(particles=True), f"kiwi({VERSIONS},particles=yes)"),
        (KiwiTokenizer(keep={"SL", "NNP", "NNG"}), f"kiwi({VERSIONS},keep=NNG+NNP+SL)"),
        (KiwiTokenizer(stop_tags=["J", "E"]), f"kiwi({VERSIONS},stop_tags=E+J)"),
        (KiwiTokenizer(stop_tags=[]), f"kiwi({VERSIONS},stop_tags=none)"),
        (
            KiwiTokenizer(user_words=["행복주택", ("나라", "NNG"), ("새벽", "NNG", -1)]),
            f"kiwi({VERSIONS},user_words=나라/NNG+새벽/NNG/-1+행복주택)",
        ),
    ],
)
def test_names_are_stable(tokenizer, name):
    """No memory address and no order of a set gets into a signature."""
    told = tokenizer_name(tokenizer)
    assert re.sub("#[0-9a-f]{12}$", "#", told) == name
    assert tokenizer_name(tokenizer, marked=False) == name.removesuffix("#")


#: What compares by Kiwi's morphemes, as a process makes it anew.
BY_KIWI = {
    "coverage": lambda: "coverage(tokenizer=kiwi)",
    "rouge": lambda: "rougeL(tokenizer=kiwi)",
    "options": lambda: CoverageMatcher(tokenizer=KiwiTokenizer(particles=True)),
    "krag": lambda: RougeMatcher("rouge1", tokenizer=KragTokens("kiwi")),
    "together": lambda: CoverageMatcher(tokenizer="kiwi") & RougeMatcher("rouge1"),
}


@pytest.mark.needs("matchers")
@pytest.mark.parametrize("package", ["kiwipiepy", "kiwipiepy_model"])
@pytest.mark.parametrize("matcher", BY_KIWI.values(), ids=BY_KIWI)
def test_two_versions_of_kiwi_are_two_matchers(monkeypatch, package, matcher):
    """Of the program or of its model: results of both are not compared."""

    def evaluated():
        lists = [["나는 밥을 먹었다."]] * 2
        return OfflineRetrievalEvaluator(lists, lists, matcher=matcher()).evaluate(1)

    before = evaluated()
    assert evaluated().signature == before.signature
    real = tokenizers.installed_version
    monkeypatch.setattr(
        tokenizers, "installed_version", lambda name: "0.1" if name == package else real(name)
    )
    after = evaluated()
    assert after.signature != before.signature
    with pytest.raises(InvalidInput):
        compare({"before": before, "after": after})


def test_a_signature_of_another_kiwi_is_refused():
    """What is typed from a result must be what is installed."""
    with pytest.raises(InvalidInput) as caught:
        resolve_tokenizer("kiwi(version=0.1,model=0.1)")
    assert caught.value.argument == "tokenizer"


OURS = (word_tokens, unicode_tokens, character_tokens, letter_tokens)


@pytest.mark.parametrize("dot", ["\u318d", "\u119e", "\u00b7", "\u30fb", "\u2027"])
def test_letters_and_words_read_every_middle_dot_as_one(dot):
    """Also the vowel that Korean keyboards offer for it, in either of its spellings."""
    text = f"교육{dot}문화"
    assert letter_tokens(text) == list("교육문화")
    assert word_tokens(text) == unicode_tokens(text) == ["교육", "문화"]


@pytest.mark.parametrize("tokenizer", OURS)
@pytest.mark.parametrize("bullet", ["ㅇ ", "ㅁ ", "ㄱ. ", "ㄴ) ", "(ㄷ) ", "\n\tㅇ\t"])
def test_a_jamo_that_stands_alone_is_a_bullet(tokenizer, bullet):
    kept = [one for one in tokenizer(f"{bullet}신청 기간") if one not in ".()"]
    assert kept == tokenizer("신청 기간")


@pytest.mark.parametrize("tokenizer", OURS)
def test_jamo_in_words_are_letters(tokenizer):
    """Laughter, tears, and the letter that a sentence speaks of."""
    text = "ㅋㅋ 좋다 ㅠㅠ"
    assert "".join(tokenizer(text)) == unicodedata.normalize("NFKC", text).replace(" ", "")
    assert tokenizer("ㅇ") == ["\u110b"]


def test_old_hangul_keeps_its_vowel():
    """After a leading consonant U+119E is a vowel, as in the old spelling of 한."""
    old = "\u1112\u119e\u11ab"
    assert unicode_tokens(old) == [old]


def test_letters_are_the_same_however_they_are_spaced():
    """Lost spaces, broken words, tables, other quotes and bullets leave the letters as they are."""
    typed = "ㅇ “참가 신청”은 5월 3일(금) | 누리집"
    for other in (
        "ㅇ“참가신청”은5월3일(금)|누리집",
        "ㅇ '참 가\n신청' 은 5월 3일 [금]\t누 리 집",
        "<td>참가 신청은 5월 3일(금)</td><td>누리집</td>",
        unicodedata.normalize("NFD", typed),
    ):
        assert letter_tokens(other) == letter_tokens(typed)


@pytest.mark.parametrize(
    "texts",
    [
        ["서울은 수도다"], ["東京は首都です"], ["กรุงเทพเป็นเมืองหลวง"], ["ភ្នំពេញ"],
        ["ວຽງຈັນ"], ["ရန်ကုန်"], ["서울 a"],
        ["① 서울 ②"],  # a number, whatever its shape, is of no script
        ["서울 10㎡ 2½"], ["<td class='wide column'>서울</td>"], ["&#49436;&#50872;"],
        ["서울은 대한민국의 수도이다", "The capital"],
        ["서울 abcdefghijk"],  # 2 of 13, 15.4 %
        ["서울은 수도다", "The capital of the country"],  # 6 of 28
    ],
)  # fmt: skip
def test_a_ground_truth_is_read_by_letters_for_its_script(texts):
    assert tokenizers.ByScript().by_letters(texts)


@pytest.mark.parametrize(
    "texts",
    [
        ["Seoul is the capital"], ["Москва — столица"], ["2024"], [""],
        ["서울시 abcdefghijklmnopq"],  # 3 of 20 are not more than 15 %
        ["서울", "The capital of the country"],  # 2 of 24
    ],
)  # fmt: skip
def test_any_other_ground_truth_is_read_by_words(texts):
    assert not tokenizers.ByScript().by_letters(texts)


@pytest.mark.parametrize("name", KEEP_KOREAN)
def test_tokenize_all_keeps_order_and_blanks(name):
    """One list per text, in order; a blank text has no token, and one of symbols need have none."""
    texts = ["밥 rag", "", " \u3000\n", "집"]
    rag = ["r", "a", "g"] if name in ("character", "letters") else ["rag"]
    assert list(tokenize_all(name, texts)) == [["밥", *rag], [], [], ["집"]]
    named = tokenizer_name(resolve_tokenizer(name))
    assert named == (f"kiwi({VERSIONS})" if name == "kiwi" else name)
    assert tokenizer_name(named) == named  # a signature can be typed as it is


@pytest.mark.parametrize("name", ["unicode", "rouge_score", "kiwi"])
def test_a_text_without_words_is_no_error(name):
    """Punctuation cannot match by words; it is not the tokenizer's failure."""
    assert list(tokenize_all(name, ["!!!", "—", "🙂"])) == [[], [], []]


def test_a_users_tokenizer_is_not_asked_about_blank_texts():
    """It need not be ready for them, and what it said would match other blanks."""
    asked = []

    def words(text):
        asked.append(text)
        return ("<s>", *text.split())  # any sequence will do

    assert resolve_tokenizer(words) is words
    assert list(tokenize_all(words, ["", "a", " "])) == [[], ["<s>", "a"], []]
    assert asked == ["a"]


class Batched:
    """A user's tokenizer that is asked once for all texts."""

    def __call__(self, text):
        raise AssertionError("one text at a time although there is a batch")

    batches = 0

    def tokenize_all(self, texts):
        self.batches += 1
        return iter([["<s>", *text.split()] for text in texts])


def test_a_batch_is_asked_once():
    """All texts in one call, and blank texts stay without a token."""
    batched, told = Batched(), [["<s>", "a", "b"], [], ["<s>", "c"]]
    assert list(tokenize_all(batched, ["a b", " ", "c"])) == told
    assert batched.batches == 1


def test_a_lost_text_is_named_and_clipped():
    """The message names the tokenizer, the text and the remedy, and does not fill the screen."""
    told = r"'rouge_score' yields no token for '가.*'unicode'"
    with pytest.raises(InvalidInput, match=told) as info:
        list(tokenize_all("rouge_score", ["가" * 1000]))
    assert len(str(info.value)) < 300

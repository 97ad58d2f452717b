"""Tokenizers: their tokens, what is refused, and what must not be loaded."""

from __future__ import annotations

import copy
import functools
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import types
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from krag_eval._install import install_line
from krag_eval.errors import InvalidInput, InvalidType, Refusal
from krag_eval.matching import tokenizers
from krag_eval.matching.tokenizers import (
    TOKENIZER_NAMES,
    KiwiTokenizer,
    character_tokens,
    has_words,
    letter_tokens,
    resolve_tokenizer,
    rouge_score_tokens,
    tokenize_all,
    tokenizer_name,
    unicode_tokens,
    whitespace_tokens,
    word_tokens,
)

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


def rouge1_f(actual, predicted, tokenizer):
    """ROUGE-1 F by rouge-score itself."""
    adapter = types.SimpleNamespace(tokenize=tokenizer)
    scores = RougeScorer(["rouge1"], tokenizer=adapter).score(actual, predicted)
    return float(scores["rouge1"].fmeasure)


def run_python(code, *arguments):
    """Run code in a fresh interpreter and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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


# --- words ---


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


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        # Each rule of the table of what changed, with the words of the other spelling.
        ("<tr><td>Total</td><td><b>5</b></td></tr>", ["total", "5"]),
        ("R&amp;D&nbsp;costs", ["r", "d", "costs"]),
        ("a < b", ["a", "b"]),
        ("see [the **text**](https://example.org/a)", ["see", "the", "text"]),
        ("**서울**은", ["서울은"]),
        ("snake_case", ["snake", "case"]),
        ("inter-\nnational", ["international"]),
        ("1,234,567", ["1234567"]),
        ("2.5%, 1,234.50", ["2", "5", "1234", "50"]),
        ("STRASSE Straße STRAẞE", ["strasse"] * 3),
        ("ΟΔΟΣ οδος οδοσ", ["οδοσ"] * 3),
        ("İstanbul istanbul ISTANBUL", ["istanbul"] * 3),
        ("السَّلَامُ السلام", ["السلام"] * 2),
        ("שָׁלוֹם שלום", ["שלום"] * 2),
        ("آمَن أمن", ["آمن", "أمن"]),  # hamza and madda are part of the letter
        ("é हिन्दी", ["é", "हिन्दी"]),
        ("東京都、日本", ["東", "京", "都", "日", "本"]),
        ("AIによる2024年", ["ai", "に", "よ", "る", "2024", "年"]),
        ("ภาษาที่", ["ภ", "า", "ษ", "า", "ที่"]),
        ("ພາສາ ភាសា ဘာသာ", ["ພ", "າ", "ສ", "າ", "ភា", "សា", "ဘာ", "သာ"]),
        ("๒๕๖๗", ["๒๕๖๗"]),
        ("나는 밥을 먹었다.", ["나는", "밥을", "먹었다"]),
    ],
)
def test_words_are_what_a_reader_sees(text, tokens):
    assert word_tokens(text) == tokens


@pytest.mark.parametrize("text", ["<br>", "&nbsp;", "[](https://example.org)", "<!-- image -->"])
def test_words_of_markup_alone_are_those_of_the_text_as_it_stands(text):
    """A chunk of nothing else must not stop an evaluation."""
    assert word_tokens(text) == unicode_tokens(text) != []


@given(ANY_TEXT.filter(lambda text: not set("<&*`~[-\u00ad'.,’\u00a0") & set(text)))
@settings(max_examples=300, deadline=None)
@example("ΐ Ϊ\u0301 ᾳ ΑΙ ß ς İ i\u0307 ﬁ ８ ℌ ཱི 가 ｶﾞ 々〇 ที่า \u0e34a か\u3099 x\u0e31")
def test_words_equal_their_definition(text):
    """The fast paths change nothing."""
    assert word_tokens(text) == folded_words_by_definition(text)


def test_words_treat_every_character_as_defined():
    """Each character of the planes that hold letters, marks and emoji, inside a text."""
    wrong = [
        hex(code)
        for code in range(0x32400)
        if chr(code) not in "*`~"
        and word_tokens(f"x{chr(code)}y") != folded_words_by_definition(f"x{chr(code)}y")
    ]
    assert wrong == []


@given(st.text(st.characters(max_codepoint=127, exclude_characters="<&*`~[]-,.'")))
@settings(max_examples=200, deadline=None)
def test_words_of_ascii_text_without_markup_are_those_of_unicode(text):
    assert word_tokens(text) == unicode_tokens(text)


# --- unicode ---


@given(st.text(st.characters(max_codepoint=127)))
@settings(max_examples=200, deadline=None)
@example("snake_case don't U.S. 3.14\x00\x1f\x7f")
def test_unicode_equals_rouge_score_on_ascii_text(text):
    """English results are those of rouge-score."""
    assert unicode_tokens(text) == ROUGE_SCORE.tokenize(text)


@given(ANY_TEXT)
@settings(max_examples=200, deadline=None)
@example("e\u0301 ΟΔΟΣ’Α \U00011000a \u2764\ufe0f 1\ufe0f\u20e3 ２０２４年 ™ ｶﾞ")
def test_unicode_equals_its_definition(text):
    """The fast paths change nothing: words are what the definition says, in any text."""
    assert unicode_tokens(text) == words_by_definition(text)


def test_unicode_treats_every_character_as_defined():
    """Each character of the planes that hold punctuation, marks and emoji, inside a text."""
    wrong = [
        hex(code)
        for code in range(0x20000)
        if unicode_tokens(f"x{chr(code)}y") != words_by_definition(f"x{chr(code)}y")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("나는 밥을 먹었다.", ["나는", "밥을", "먹었다"]),
        ("RAG 시스템의 nDCG@10", ["rag", "시스템의", "ndcg", "10"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("Привет, МИР", ["привет", "мир"]),
        ("ＲＡＧ ﬁne ①", ["rag", "fine", "1"]),
        ("“smart”—quotes… naïve", ["smart", "quotes", "naïve"]),
        ("co\u00adoperate می\u200cخواهم", ["cooperate", "میخواهم"]),
        ("\u0301 !?", []),
    ],
)
def test_unicode_words(text, tokens):
    """Words of several scripts keep their marks, lose their case and what shows nothing."""
    assert unicode_tokens(text) == tokens


# --- rouge_score ---


@given(ANY_TEXT)
@settings(max_examples=200, deadline=None)
@example("\u0130\u212a\u0130b \u212aelvin a\u0130 가\u0130")
def test_rouge_score_parity_on_any_text(text):
    """The tokens are rouge-score's on every text."""
    assert rouge_score_tokens(text) == ROUGE_SCORE.tokenize(text)


def test_rouge_score_parity_on_every_character():
    """No character but the two that are handled lowers into an ASCII letter."""
    text = " ".join(f"x{chr(code)}y" for code in range(sys.maxunicode + 1))
    assert rouge_score_tokens(text) == ROUGE_SCORE.tokenize(text)


# --- whitespace, character ---


def test_whitespace_keeps_case_and_punctuation():
    """Only spaces separate, and only NFC is applied."""
    assert whitespace_tokens(" Seoul,\tＲＡＧ\u3000서울은\n") == ["Seoul,", "ＲＡＧ", "서울은"]


def test_character_gives_one_token_per_character():
    """White space goes, punctuation stays, letters are lower-cased and normalised."""
    assert character_tokens("서 울, Ｒﬁ") == ["서", "울", ",", "r", "f", "i"]


def test_character_ignores_spaces_and_what_shows_nothing():
    """The same sentence with other spaces, as PDF extractions give it, has the same tokens."""
    assert character_tokens("밥을\u200b 먹\u00ad었\ufeff다\u3000") == character_tokens("밥을먹었다")


def test_character_keeps_a_mark_without_composed_form_as_a_token():
    """A token is a code point after NFKC."""
    assert character_tokens("e\u0301x\u0301") == ["é", "x", "\u0301"]


# --- all that keep Korean ---


@pytest.mark.parametrize("name", sorted(set(TOKENIZER_NAMES) - {"rouge_score"}))
@given(text=st.one_of(ANY_TEXT, KOREAN_TEXT))
@settings(max_examples=200, deadline=None)
@example(text="나는 학교에서 밥을 먹었다. RAG 시스템, 값")
def test_nfc_and_nfd_have_equal_tokens(name, text):
    """How a keyboard or a PDF composes Hangul makes no difference."""
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    tokens = list(tokenize_all(name, [text, composed, decomposed]))
    assert tokens[0] == tokens[1] == tokens[2]


@pytest.mark.parametrize("name", sorted(set(TOKENIZER_NAMES) - {"rouge_score"}))
@given(text=st.one_of(ANY_TEXT, KOREAN_TEXT))
@settings(max_examples=200, deadline=None)
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


# --- kiwi ---


def test_kiwi_leaves_particles_and_endings_out():
    """Unrelated sentences of the same grammar share no token."""
    kiwi = resolve_tokenizer("kiwi")
    assert kiwi("나는 밥을 먹었다.") == ["나", "밥", "먹"]
    assert kiwi("그는 집을 지었다.") == ["그", "집", "짓"]


def test_kiwi_keeps_unrelated_sentences_apart():
    """Particles and endings alone would bring them past a ROUGE-1 F of 0.5."""
    pair = ("나는 밥을 먹었다.", "그는 집을 지었다.")
    assert rouge1_f(*pair, KiwiTokenizer(particles=True)) == pytest.approx(4 / 7)
    assert rouge1_f(*pair, KiwiTokenizer()) == 0.0


def test_kiwi_leaves_suffixes_copula_and_bullets_out():
    """Plural, verb-making suffix and 이다 are grammar, list numbers are punctuation."""
    assert KiwiTokenizer()("1. 학생들은 공부한다. 2. 학생이다.") == ["학생", "공부", "학생"]


def test_kiwi_keeps_negation():
    """To eat and not to eat differ."""
    kiwi = KiwiTokenizer()
    assert set(kiwi("먹지 않았다")) - set(kiwi("먹었다")) == {"않"}


def test_kiwi_keeps_english_words_lower_cased():
    """Foreign words and numbers survive inside Korean, full-width and ligature spellings too."""
    text = "RAG 시스템을 ＧＰＴ-4로 Evaluation하는 ﬁne 방법, 2024년"
    tokens = KiwiTokenizer()(text)
    assert tokens == ["rag", "시스템", "gpt", "4", "evaluation", "fine", "방법", "2024", "년"]


@pytest.mark.parametrize("text", ["에서", "께서는", "까지"])
def test_kiwi_keeps_the_words_of_a_text_of_particles_only(text):
    """Leaving everything out would make a text unmatchable."""
    assert "".join(KiwiTokenizer()(text)) == text


def test_kiwi_has_no_token_for_symbols():
    """Punctuation, symbols and emoji are no words, not even where there is nothing else."""
    assert KiwiTokenizer()("… ※ 🙂 ★ !!!") == []


def test_kiwi_reads_what_pdfs_and_broken_json_leave():
    """Zero-width characters and half surrogates do not change the words around them."""
    assert KiwiTokenizer()("\ufeff나는\u200b 밥을\ud83d 먹\u00ad었다.") == ["나", "밥", "먹"]


def test_kiwi_keep_selects_tags():
    """Nouns and foreign words only."""
    kiwi = KiwiTokenizer(keep=["SL", "NN"])
    assert kiwi("RAG 시스템이 문서를 빨리 찾는다.") == ["rag", "시스템", "문서"]


@pytest.mark.parametrize(
    ("options", "error", "named"),
    [
        ({"keep": "NN"}, InvalidType, "'NN'"),
        ({"keep": []}, InvalidInput, "at least one tag"),
        ({"keep": ["nng"]}, InvalidInput, "got 'nng'; did you mean 'NNG'"),
        ({"keep": [""]}, InvalidInput, "'NNG'"),
        ({"keep": [1]}, InvalidType, "got 1"),
        ({"particles": True, "keep": ["NN"]}, InvalidInput, "leave out keep, or particles"),
        ({"particles": "J"}, InvalidType, "got 'J'"),
    ],
)
def test_kiwi_refuses_wrong_options(options, error, named):
    """A tag that does not exist would silently keep nothing."""
    with pytest.raises(error) as info:
        KiwiTokenizer(**options)
    assert info.value.argument == next(iter(options))
    assert named in str(info.value)


def test_kiwi_drops_the_tags_it_is_told_to():
    """Of 학생+들+이 밥+을 먹+었+다 only particles; by default the suffix 들 and endings too."""
    text = "학생들이 밥을 먹었다."
    assert KiwiTokenizer()(text) == ["학생", "밥", "먹"]
    assert KiwiTokenizer(stop_tags=["J"])(text) == ["학생", "들", "밥", "먹", "었", "다"]
    assert KiwiTokenizer(stop_tags=())(text) == KiwiTokenizer(particles=True)(text)


def test_kiwi_keeps_the_words_it_is_told_whole():
    """In one text and in batches; a Kiwi without them takes the word apart as before."""
    kiwi = KiwiTokenizer(user_words=["청년월세", ("새벽이음", "NNG", 1.0)])
    text = "새벽이음에서 청년월세를 받는다"
    assert kiwi(text) == ["새벽이음", "청년월세", "받"]
    assert list(kiwi.tokenize_all([text, text])) == [kiwi(text)] * 2
    assert pickle.loads(pickle.dumps(kiwi))(text) == kiwi(text)
    assert "청년월세" not in KiwiTokenizer()(text)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"keep": ["NN"], "stop_tags": ["J"]}, "stop_tags"),
        ({"particles": True, "stop_tags": ["J"]}, "particles"),
        ({"stop_tags": "J"}, "stop_tags"),
        ({"stop_tags": ["Q"]}, "stop_tags"),
        ({"user_words": "청년월세"}, "user_words"),
        ({"user_words": [" "]}, "user_words"),
        ({"user_words": [("청년월세", "N")]}, "user_words"),
        ({"user_words": [("청년월세", "NNP", "high")]}, "user_words"),
        ({"user_words": [("청년월세", "NNP", float("nan"))]}, "user_words"),
        ({"user_words": [()]}, "user_words"),
        ({"user_words": [3]}, "user_words"),
    ],
    ids=str,
)
def test_kiwi_refuses_other_words_and_tags(options, argument):
    with pytest.raises(Refusal) as refused:
        KiwiTokenizer(**options)
    assert refused.value.argument == argument


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
    workers = [
        threading.Thread(target=KiwiTokenizer(particles=number % 2 == 0), args=("밥",))
        for number in range(8)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert fake_kiwi.built == 1


def test_kiwi_without_kiwipiepy_names_the_extra(monkeypatch):
    """The missing package is reported where the tokenizer is named, with the line to run."""
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    with pytest.raises(ImportError, match=re.escape(install_line("korean"))):
        resolve_tokenizer("kiwi")


def test_kiwi_received_where_kiwipiepy_is_missing_names_the_extra(monkeypatch):
    """A tokenizer unpickled on a machine without the package says the same at its first text."""
    kiwi = KiwiTokenizer()
    monkeypatch.setitem(sys.modules, "kiwipiepy", None)
    monkeypatch.setattr(tokenizers, "shared_kiwi", tokenizers._SharedKiwi())
    with pytest.raises(ImportError, match=re.escape(install_line("korean"))):
        kiwi("밥")


def test_kiwi_copies_hold_options_only():
    """A copy or pickle of a used tokenizer equals it and does not carry the model."""
    kiwi = KiwiTokenizer(keep=["NN", "SL"])
    kiwi("밥")
    dumped = pickle.dumps(kiwi)
    assert len(dumped) < 300
    assert pickle.loads(dumped) == copy.deepcopy(kiwi) == kiwi


def test_kiwi_works_in_another_process():
    """An unpickled tokenizer loads a Kiwi of its own."""
    code = "import pickle, sys; print(pickle.loads(bytes.fromhex(sys.argv[1]))('밥을 먹었다.'))"
    assert run_python(code, pickle.dumps(KiwiTokenizer()).hex()) == "['밥', '먹']\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform does not fork")
def test_kiwi_batches_work_in_a_forked_child():
    """Kiwi's threads do not survive a fork; a batch in the child must not wait for them."""
    code = """
import multiprocessing
from krag_eval.matching.tokenizers import tokenize_all

def tokens(text):
    return list(tokenize_all("kiwi", [text, text]))

if __name__ == "__main__":
    print(tokens("밥을 먹었다."))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(pool.apply_async(tokens, ["집을 지었다."]).get(timeout=60))
"""
    assert run_python(code) == "[['밥', '먹'], ['밥', '먹']]\n[['집', '짓'], ['집', '짓']]\n"


# --- has_words ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("가", True),
        ("3", True),
        ("Ⅳ", True),
        ("...a", True),
        ("", False),
        (" \n", False),
        ("!!! — ※ 🙂", False),
        ("\u0301", False),
        ("_", False),
    ],
)
def test_has_words(text, expected):
    """Letters and numbers of any script count; punctuation, symbols and lone marks do not."""
    assert has_words(text) is expected


# --- resolve_tokenizer, tokenizer_name ---


def test_every_name_resolves_to_a_tokenizer_of_that_name():
    """Names go there and back."""
    assert [tokenizer_name(resolve_tokenizer(name)) for name in TOKENIZER_NAMES] == list(
        TOKENIZER_NAMES
    )


@pytest.mark.parametrize(
    ("wrong", "meant"), [("Kiwi", "kiwi"), ("Unicode", "unicode"), ("rouge-score", "rouge_score")]
)
def test_unknown_name_is_refused_with_the_nearest(wrong, meant):
    """The message lists what is allowed and what was probably meant."""
    with pytest.raises(ValueError, match=f"'unicode', .*'kiwi'.*'{wrong}'.*mean '{meant}'"):
        resolve_tokenizer(wrong)


@pytest.mark.parametrize("wrong", [None, 3, ["unicode"]])
def test_neither_name_nor_callable_is_refused(wrong):
    """The message says what is allowed and what came."""
    with pytest.raises(TypeError, match="callable str -> list"):
        resolve_tokenizer(wrong)


def test_an_object_with_a_tokenize_method_is_a_tokenizer():
    """Those of rouge-score and of other libraries are such objects; its class names it."""
    assert resolve_tokenizer(ROUGE_SCORE)("Don't panic") == ["don", "t", "panic"]
    name = tokenizer_name(ROUGE_SCORE)
    assert name.startswith("rouge_score.tokenizers.DefaultTokenizer.tokenize#")


def test_a_callable_is_returned_as_it_is():
    """A user's tokenizer is not wrapped."""
    assert resolve_tokenizer(str.split) is str.split


class Stemmer:
    """A user's tokenizer with state."""

    def __call__(self, text):
        """Return the beginnings of words."""
        return [word[:3] for word in text.split()]

    def words(self, text):
        """Return the same, as a method."""
        return self(text)


class Named(Stemmer):
    """A user's tokenizer that names itself."""

    name = "stem-3"


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
        (Named(), "stem-3"),
        (KiwiTokenizer(), "kiwi"),
        (KiwiTokenizer(particles=True), "kiwi(particles=yes)"),
        (KiwiTokenizer(keep={"SL", "NNP", "NNG"}), "kiwi(keep=NNG+NNP+SL)"),
        (KiwiTokenizer(stop_tags=["J", "E"]), "kiwi(stop_tags=E+J)"),
        (KiwiTokenizer(stop_tags=[]), "kiwi(stop_tags=none)"),
        (
            KiwiTokenizer(user_words=["행복주택", ("나라", "NNG"), ("새벽", "NNG", -1)]),
            "kiwi(user_words=나라/NNG+새벽/NNG/-1+행복주택)",
        ),
    ],
)
def test_names_are_stable(tokenizer, name):
    """No memory address and no order of a set gets into a signature."""
    told = tokenizer_name(tokenizer)
    assert re.sub("#[0-9a-f]{12}$", "#", told) == name
    assert tokenizer_name(tokenizer, marked=False) == name.removesuffix("#")


def test_the_name_of_an_unknown_name_is_refused():
    """A signature cannot name what does not exist."""
    with pytest.raises(ValueError, match="did you mean 'kiwi'"):
        tokenizer_name("kiwis")


# --- letters, middle dots and bullets ---

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
    assert has_words("\u1112\u119e")
    assert not has_words("ㆍㆍㆍ")


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
    ("text", "tokens"),
    [
        ("13억원", ["13", "13", "억", "원"]),
        ("1,000원", ["1000"] * 4 + ["원"]),
        ("１０００원", ["1000"] * 4 + ["원"]),
        ("2.5 %", ["2", "5"]),
        ("10 20", ["10", "10", "20", "20"]),
        ("①2024년", ["1", *["2024"] * 4, "년"]),
        ("제3조②30일", ["제", "3", "조", "2", "30", "30", "일"]),
        ("A4용지", ["a", "4", "용", "지"]),
    ],
)
def test_a_number_is_whole_in_each_of_its_digits(text, tokens):
    assert letter_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Straße", list("strasse")),
        ("東京は ABC", [*"東京は", *"abc"]),
        ("ภาษาไทย", list("ภาษาไทย")),
        ("न\u093f", ["न", "\u093f"]),
        ("<br>", ["b", "r"]),
        ("— !!!", []),
    ],
)
def test_letters_are_letters_marks_and_digits(text, tokens):
    assert letter_tokens(text) == tokens


@pytest.mark.parametrize(
    ("texts", "by_letters"),
    [
        (["서울은 수도다"], True),
        (["東京は首都です"], True),
        (["กรุงเทพเป็นเมืองหลวง"], True),
        (["ភ្នំពេញ"], True),
        (["ວຽງຈັນ"], True),
        (["ရန်ကုန်"], True),
        (["Seoul is the capital"], False),
        (["Москва — столица"], False),
        (["2024"], False),
        ([""], False),
        (["서울 ab"], False),  # two of four are not more than half
        (["서울 a"], True),
        (["① 서울 ②"], True),  # a number, whatever its shape, is of no script
        (["서울 10㎡ 2½"], True),
        (["<td class='wide column'>서울</td>"], True),
        (["서울은 수도다", "The capital of the country"], False),
        (["서울은 대한민국의 수도이다", "The capital"], True),
        (["&#49436;&#50872;"], True),
    ],
)
def test_a_ground_truth_is_read_by_its_script(texts, by_letters):
    assert tokenizers.ByScript().by_letters(texts) is by_letters


# --- tokenize_all ---


@pytest.mark.parametrize("name", sorted(set(TOKENIZER_NAMES) - {"rouge_score"}))
def test_tokenize_all_keeps_order_and_blanks(name):
    """One list per text, in order; a blank text has no token."""
    texts = ["밥 rag", "", " \u3000\n", "집"]
    single = [["밥", "r", "a", "g"], [], [], ["집"]]
    expected = {"character": single, "letters": single}
    assert list(tokenize_all(name, texts)) == expected.get(name, [["밥", "rag"], [], [], ["집"]])


@pytest.mark.parametrize("name", ["unicode", "rouge_score", "kiwi"])
def test_a_text_without_words_is_no_error(name):
    """Punctuation cannot match by words; it is not the tokenizer's failure."""
    assert list(tokenize_all(name, ["!!!", "—", "🙂"])) == [[], [], []]


def test_a_tokenizer_that_loses_a_text_is_refused():
    """rouge-score has no token for Korean; the message names it, the text and the remedy."""
    with pytest.raises(
        ValueError,
        match=r"""'rouge_score' yields no token for '나는 밥을 먹었다\.'.*'unicode'.*'kiwi""",
    ):
        list(tokenize_all("rouge_score", ["rag", "나는 밥을 먹었다."]))


def test_the_excerpt_of_a_lost_text_is_clipped():
    """A chunk of a thousand words does not fill the screen."""
    with pytest.raises(InvalidInput) as info:
        list(tokenize_all("rouge_score", ["가" * 1000]))
    assert len(str(info.value)) < 300


def test_a_partial_loss_is_not_an_error():
    """rouge-score drops the Korean of a mixed text, as its docstring warns."""
    assert list(tokenize_all("rouge_score", ["RAG 시스템"])) == [["rag"]]


def test_empty_tokens_alone_count_as_none():
    """A tokenizer that leaves "" of every Korean text would make them all alike."""

    def ascii_only(text):
        return text.encode("ascii", "ignore").decode().split(" ")

    with pytest.raises(ValueError, match="ascii_only' yields no token for '밥'"):
        list(tokenize_all(ascii_only, ["밥"]))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("a b", r"must return a list of str, got 'a b' for 'a b c'"),
        (None, r"must return a list of str, got None for 'a b c'"),
        (["a", 1], r"must return a list of str, got \['a', 1\] for 'a b c'"),
        ({"a": 1}, r"must return a list of str, got \{'a': 1\}"),
    ],
)
def test_an_answer_that_is_no_list_of_str_is_refused(answer, message):
    """A str would be taken for a list of its characters, silently."""

    def wrong(text):
        return answer

    with pytest.raises(TypeError, match=rf"<locals>\.wrong' {message}"):
        list(tokenize_all(wrong, ["a b c"]))


def test_a_tuple_of_tokens_becomes_a_list():
    """Any sequence of str will do."""
    tuple_of_words: Any = lambda text: tuple(text.split())  # noqa: E731 - a name with its type
    assert list(tokenize_all(tuple_of_words, ["a b"])) == [["a", "b"]]


def test_a_users_tokenizer_is_not_asked_about_blank_texts():
    """It need not be ready for them, and what it said would match other blanks."""
    asked: list[str] = []

    def words(text):
        asked.append(text)
        return ["<s>", *text.split()]

    assert list(tokenize_all(words, ["", "a", " "])) == [[], ["<s>", "a"], []]
    assert asked == ["a"]


class Batched:
    """A user's tokenizer with a batch of its own, which may return too much or too little."""

    def __init__(self, surplus=0):
        self.surplus = surplus
        self.batches = 0

    def __call__(self, text):
        """Fail, because the batch should have been asked."""
        raise AssertionError("one text at a time although there is a batch")

    def tokenize_all(self, texts):
        """Give each text a start token, and too many answers or too few."""
        self.batches += 1
        answers = [["<s>", *text.split()] for text in texts]
        return iter(answers[: len(answers) + self.surplus] + [["more"]] * self.surplus)


def test_a_batch_is_asked_once():
    """All texts in one call, and blank texts stay without a token."""
    batched = Batched()
    assert list(tokenize_all(batched, ["a b", " ", "c"])) == [["<s>", "a", "b"], [], ["<s>", "c"]]
    assert batched.batches == 1


@pytest.mark.parametrize("surplus", [-1, 1])
def test_a_batch_of_another_length_is_refused(surplus):
    """Tokens would belong to the wrong text."""
    with pytest.raises(ValueError, match=r"Batched': tokenize_all must.* 3 texts"):
        list(tokenize_all(Batched(surplus), ["a", "b", "c"]))


def test_one_str_instead_of_texts_is_refused_at_once():
    """It would be taken for a sequence of one-character texts."""
    with pytest.raises(TypeError, match="texts must be a sequence of str, got 'rag'"):
        tokenize_all("unicode", "rag")


def test_a_wrong_name_is_refused_at_once():
    """Not only when the first token is asked for."""
    with pytest.raises(ValueError, match="did you mean 'kiwi'"):
        tokenize_all("Kiwi", ["밥"])


# --- the module ---


def test_importing_loads_nothing_heavy():
    """Neither Kiwi nor rouge-score, nltk or numpy is needed to name a tokenizer."""
    code = """
import importlib.util, sys
before = set(sys.modules)
spec = importlib.util.spec_from_file_location("tokenizers_alone", sys.argv[1])
module = sys.modules["tokenizers_alone"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.resolve_tokenizer("kiwi")
heavy = {"kiwipiepy", "rouge_score", "nltk", "numpy", "rapidfuzz", "langchain_core", "pandas"}
print(sorted(heavy & set(sys.modules) - before))
"""
    assert run_python(code, str(tokenizers.__file__)) == "[]\n"

"""The pairs of the study: what is true of them is worked out here by hand."""

import hashlib
from collections import Counter

import pytest
from study_texts import KOREAN, PASSAGE, SENTENCES, TEXTS

from study import pairs, sources


@pytest.fixture
def made(folder, monkeypatch):
    monkeypatch.setattr(pairs, "of_texts", list)  # many, and the same for all tests
    return pairs.all_pairs(sources.Folder(folder))


def of(made, kind, source):
    return [one for one in made.pairs if one.kind == kind and one.source == source]


def test_a_file_that_was_edited_is_missing_by_its_source_and_sum(folder):
    edited = next(path for path in folder.rglob("*") if path.is_file())
    edited.write_bytes(edited.read_bytes() + b" ")
    with pytest.raises(SystemExit) as error:
        sources.Folder(folder)
    lost = [name for name, file in sources.FILES.items() if file.sum in str(error.value)]
    assert len(lost) == 1
    assert sources.FILES[lost[0]].source in str(error.value)


def test_files_are_found_packed_or_not_whatever_their_name(folder):
    found = sources.Folder(folder)
    assert {name: found.text(name) for name in TEXTS} == TEXTS
    assert "chroma questions" not in found  # the other form is there


def test_neighbouring_sentences_are_one_run(folder):
    questions, passages = sources.clapnq(sources.Folder(folder))
    first, empty = questions
    # Each sentence has 30 words of "s0w0" to "s0w9" and "s0w10" to "s0w28", and a full stop.
    length = len(SENTENCES[0])
    assert length == 10 * 4 + 19 * 5 + 6 + 29
    assert first.spans == ((0, 2 * length + 1), (3 * (length + 1), 4 * length + 3))
    assert first.others == ((length + 1, 2 * length + 1),)
    assert empty.spans == ()
    assert empty.others is None
    assert [title for title, _ in passages] == ["P", "F", "G"]


def test_a_window_is_right_if_it_holds_the_whole_run(made):
    found = {one.id.partition(":")[2]: one for one in of(made, "verbatim", "clapnq")}
    start = {word: PASSAGE.index(f"s{word}") for word in ("0w0", "1w20", "3w0")}
    stop = {"100": PASSAGE.index("s3w9") + 4, "150": len(PASSAGE)}
    windows = [f"{start['0w0']}-{stop['100']}", f"{start['1w20']}-{stop['150']}"]
    runs = ["0-341", "513-683"]  # 2 * 170 + 1; 3 * 171, and 170 more
    right = {place: one.right for place, one in found.items() if "@0:" in place}
    # Words 0 to 99 hold the first run, words 0 to 59, and 10 of the 30 words of the second; words
    # 50 to 149 hold the second.
    assert right == {
        f"{runs[0]}@0:{windows[0]}": True,
        f"{runs[0]}@0:{windows[1]}": False,
        f"{runs[1]}@0:{windows[0]}": False,
        f"{runs[1]}@0:{windows[1]}": True,
    }
    # "s3w0" to "s3w9" are 40 letters and digits of 10 * 4 + 20 * 5.
    assert found[f"{runs[1]}@0:{windows[0]}"].share == pytest.approx(40 / 140)
    assert {one.second for one in found.values() if one.chunk.startswith("s0")} == {True}
    assert {one.second for one in found.values() if one.chunk.startswith("s1w20")} == {False}
    # The passage "G" has the sentence of the second run, so that only the first meets it.
    assert Counter(place.partition("@")[2][0] for place in found) == {"0": 4, "1": 2, "2": 1}
    assert not any(one.right for place, one in found.items() if "@0:" not in place)
    name = "ClapNQ: windows of other texts in which the wanted text stands"
    assert made.left_out[name] == 1


def test_all_selected_sentences_count_together_in_larger_windows(made):
    (own,) = (one for one in of(made, "apart", "clapnq") if "@0:" in one.id)
    assert own.wanted == f"{SENTENCES[0]} {SENTENCES[1]} {SENTENCES[3]}"
    assert own.chunk == PASSAGE
    assert own.right


def test_one_question_per_sentence_is_drawn_for_each_part(made):
    found = of(made, "verbatim", "korquad")
    sentences = [f"{one}." for one in KOREAN.removesuffix(".").split(". ")]
    wanted = {one.wanted.replace("푸른", "한들") for one in found}
    assert wanted == {*sentences[:2]}
    # Two articles, of one part each; one sentence of each is drawn, and "k2" is about the same
    # sentence as "k1". Nobody asks about the third one.
    parts = Counter(one.part for one in found)
    belongs = {title: sources.part("korquad", title) for title in ("도서관", "산")}
    assert set(parts) - {"later"} == set(belongs.values())
    assert not any(one.id.split(":")[0].endswith(("k2", "m2")) for one in found)
    own = [one for one in found if one.right]
    assert all(one.answer for one in own)
    # The other article has the second sentence as well, letter for letter.
    assert made.left_out["KorQuAD: windows of other texts in which the wanted text stands"] == 2


def test_damage_changes_the_chunk_and_not_the_truth(made):
    for source, language in (("clapnq", "en"), ("korquad", "ko")):
        whole = {
            one.id: one for one in of(made, "verbatim", source) if one.part in ("open", "held")
        }
        found = of(made, "damaged", source)
        assert len(found) == len(whole) * len(pairs.DAMAGE[language])
        for one in found:
            origin = whole[one.id.rpartition("#")[0]]
            assert (one.right, one.wanted) == (origin.right, origin.wanted)
        lost = [one.chunk for one in found if one.variant == "all spaces lost"]
        assert all(" " not in chunk for chunk in lost)


def test_one_thing_is_changed_in_the_wanted_stretch_alone(made):
    found = of(made, "contradicted", "korquad")
    original = {one.id.rpartition("!")[0]: one for one in found if one.variant == pairs.AS_IT_IS}
    assert original
    assert all(one.right for one in original.values())
    years = [one for one in found if one.variant == "a year"]
    for one in years:
        before = original[one.id.rpartition("!")[0]]
        assert not one.right
        assert one.chunk in (
            before.chunk.replace("1998", "1997"),
            before.chunk.replace("1998", "1996"),
        )
    negated = [one for one in found if one.variant == "a negation"]
    assert all("수 없다" in one.chunk for one in negated)
    assert len(years) + len(negated) >= len(original)


def test_the_projects_own_texts_are_open_in_dev_and_held_in_held():
    found = [*pairs.of_texts()]
    assert {(one.id.split("/")[2], one.part) for one in found} == {
        ("dev", "open"),
        ("held", "held"),
    }
    assert all(one.wanted in one.chunk for one in found if one.right)


def test_claims_meet_their_sets_and_as_many_other_sentences(made):
    found = of(made, "claim", "wice")
    by = {one.id: (one.right, one.variant) for one in found}
    # The sets {0, 1} (twice) and {4} of the first claim; 2, 3 and 5 are touched by none, so the
    # only pair of neighbours among them is 2 and 3.
    assert by.pop("claim/wice/w1@0-1") == (True, "")
    assert by.pop("claim/wice/w1@4-4") == (True, "")
    assert by.pop("claim/wice/w1@2-3") == (False, "")
    assert by.pop("claim/wice/w2@2-2") == (True, "partially supported")
    left = {name.partition("@")[0]: place for name, place in by.items()}
    assert left == {
        "claim/wice/w1": (False, ""),
        "claim/wice/w2": (False, "partially supported"),
    }
    assert not [one for one in found if not one.right and pairs.is_main(one) and "@4" in one.id]


def test_chunks_of_a_page_are_right_if_they_hold_a_whole_set(made):
    # Sentences of 60 words each stand alone in chunks of 100.
    right = {one.id: one.right for one in of(made, "claim, cut", "wice") if pairs.is_main(one)}
    assert right == {f"claim-cut/wice/w1@{at}-{at}": at == 4 for at in range(6)}


def test_experts_judge_one_piece_of_evidence(made):
    found = of(made, "claim, experts", "expertqa")
    assert [(one.right, one.variant) for one in found] == [
        (True, ""),
        (False, ""),
        (False, "Partial"),
    ]
    assert {one.wanted for one in found} == {"It is so."}
    assert found[0].chunk == ("word " * 20).strip()
    assert made.left_out["ExpertQA claims with several or no pieces of evidence"] == 1
    assert made.left_out["ExpertQA claims with evidence of fewer than 20 words"] == 1
    assert made.left_out["ExpertQA claims with support N/A or none"] == 1


@pytest.mark.parametrize("document", ["x", "도서관", "Roger Hedgecock"])
def test_the_part_is_the_first_bit_but_seven_of_the_sum(document):
    # The first two hexadecimal digits, as sha256sum prints them.
    first = hashlib.sha256(f"wice/{document}".encode()).hexdigest()[:2]
    assert sources.part("wice", document) == ("open" if first[1] in "02468ace" else "held")

"""A folder of the study's texts in miniature, written by hand."""

import json

#: 150 words in five sentences of 30: s0w0 … s4w29.
SENTENCES = [" ".join([*(f"s{at}w{word}" for word in range(29)), f"s{at}w29."]) for at in range(5)]
PASSAGE = " ".join(SENTENCES)
KOREAN = (
    "한들 도서관은 1998년에 문을 열었다. 책은 한 번에 일곱 권까지 두 주일 동안 빌릴 수 있다. "
    "회원증은 신청한 날에 바로 나온다."
)
_OTHER = "An entirely different text about ferries, harbours and tides."


def as_lines(rows):
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n"


def output(*selected):
    return {"answer": "", "selected_sentences": [SENTENCES[at] for at in selected], "meta": {}}


def passage(title, text, sentences=()):
    return {"title": title, "text": text, "sentences": [*sentences]}


def question(key, asked, text, context):
    answer = {"text": text, "answer_start": context.index(text)}
    return {"id": key, "question": asked, "answers": [answer]}


def article(title, name, key):
    """An article of one paragraph, with two questions about its first sentence."""
    text = KOREAN.replace("한들", name)
    asked = [
        question(f"{key}1", "언제 열었나?", "1998년", text),
        question(f"{key}2", "무엇이 열었나?", f"{name} 도서관", text),
        question(f"{key}3", "몇 권까지?", "일곱 권", text),
    ]
    return {"title": title, "paragraphs": [{"context": text, "qas": asked}]}


TEXTS = {
    "clapnq answerable": as_lines(
        [
            {
                "id": "q1",
                "input": "s0w0 s3w3",
                "passages": [passage("P", PASSAGE, SENTENCES)],
                # The first person: sentences 0, 1 and 3; the second: 1.
                "output": [output(3, 0, 1), output(), output(1)],
            },
            {
                "id": "q2",
                "input": "ferries",
                "passages": [passage("F", _OTHER, [_OTHER])],
                "output": [{"answer": "", "selected_sentences": [], "meta": {}}],
            },
        ]
    ),
    "clapnq unanswerable": as_lines(
        [{"id": "q3", "input": "?", "passages": [passage("G", f"Tides. {SENTENCES[3]}")]}]
    ),
    "korquad": json.dumps(
        {"data": [article("도서관", "한들", "k"), article("산", "푸른", "m")]}, ensure_ascii=False
    ),
    "wice": as_lines(
        [
            {
                "label": label,
                "supporting_sentences": sets,
                "claim": f"claim {name}",
                "evidence": [f"e{at}" + " x" * 59 for at in range(6)],
                "meta": {"id": name, "claim_title": "T"},
            }
            for name, label, sets in (
                ("w1", "supported", [[1, 0], [0, 1], [4]]),
                ("w2", "partially_supported", [[2]]),
                ("w3", "not_supported", [[]]),
            )
        ]
    ),
    "expertqa rand_val": as_lines(
        [
            {
                "question": " What? ",
                "answers": {
                    "bot": {
                        "claims": [
                            {"claim_string": "It is so [1].", "support": support, "evidence": given}
                            for support, given in (
                                ("Complete", ["[1] https://x.org/a\n\n" + "word " * 20]),
                                ("Incomplete", ["word " * 25]),
                                ("Partial", ["word " * 25]),
                                ("N/A", ["word " * 25]),
                                ("Complete", ["[1] https://x.org/a too short"]),
                                ("Complete", []),
                            )
                        ]
                    }
                },
            }
        ]
    ),
    "chroma questions, as lines": as_lines(
        [{"question": "?", "corpus": "chatlogs", "excerpts": [{"start": 0, "end": 3}]}]
    ),
    "chatlogs": "One two three.",
    "state_of_the_union": "Four five six.",
    "wikitexts": "Seven eight nine.",
}
# The same question once more, which is left out, and a third file.
TEXTS["expertqa rand_test"] = TEXTS["expertqa rand_val"] + "\n"
TEXTS["expertqa domain_val"] = TEXTS["expertqa rand_val"] + "\n\n"

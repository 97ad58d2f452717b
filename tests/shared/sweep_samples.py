"""What is swept in the tests: forty rules, two splitters, and retrievers that count questions."""

import os
import re
import time
from collections import Counter
from functools import partial

from retriever_samples import number_in

from krag_eval import sweep

CORPUS = [f"Rule {i} is about numbers. Rule {i} ends here and now." for i in range(40)]
QUESTIONS = [
    {"question": f"rule {i}?", "actual": [f"Rule {i} is about numbers."], "part": i // 10}
    for i in range(40)
]
ASKED: Counter[str] = Counter()
MADE: Counter[int] = Counter()


def whole(text):
    return [text]


def sentences(text):
    return re.findall(r"[^.]+\.", text)


BOTH = {"whole": whole, "sentences": sentences}


def right(chunks):
    """Make a retriever that finds the chunks of the rule asked for."""
    MADE[len(chunks)] += 1

    def found(question):
        ASKED[question] += 1
        start = f"Rule {number_in(question)} "
        return [one for one in chunks if one.page_content.strip().startswith(start)]

    return found


def until(n, chunks):
    """Make a retriever that is right about the first n rules."""
    ask = right(chunks)
    return lambda question: ask(question if number_in(question) < n else "rule 0?")


HALF = {"all": right, "half": partial(until, 20)}


def slow(chunks):
    """Make a retriever that takes its time, and writes down what it is asked."""
    ask = right(chunks)

    def found(question):
        with open(os.environ["KRAG_EVAL_TEST_LOG"], "a", encoding="utf-8") as file:
            file.write(f"{len(chunks)} {question}\n")
        time.sleep(0.012)
        return ask(question)

    return found


def swept(**changes):
    arguments = {
        "corpus": CORPUS, "questions": QUESTIONS, "splitters": {"whole": whole},
        "retrievers": {"right": right}, "k": 1, "budget": None, "progress": False,
        "n_resamples": 100,
    }  # fmt: skip
    return sweep(**{**arguments, **changes})

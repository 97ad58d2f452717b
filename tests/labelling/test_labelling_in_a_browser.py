"""The labelling page in a real browser: keys, buttons, its file, and what texts cannot do."""

import json
import re
import time
from dataclasses import replace

import pytest
from browser import COLOURS, SHOUTS, contrast
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from krag_eval import (
    agreement,
    debias,
    read_judgements,
    read_labels,
    to_label,
)
from krag_eval.datasets import Dataset

WIDE, PHONE = 1280, 390
YES, NO, NOT_SURE = "1", "0", "s"


def library(n=40):
    """Return n questions, of whose two chunks the first is right for every even one."""
    questions = [f"What does item {i} cost?" for i in range(n)]
    lists = [[f"You pay {i} euros for item {i}." if i % 2 == 0 else f"Item {i} is sold out.",
              f"Shelf {i}."] for i in range(n)]  # fmt: skip
    actual = [[f"Item {i} costs {i} euros."] for i in range(n)]
    return Dataset(questions, actual, lists, questions=questions)


@pytest.fixture
def folder(browser, tmp_path):
    """Return where the browser saves files."""
    browser.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    return tmp_path


@pytest.fixture
def opened(browser, folder):
    """Return a function that opens the page of some pairs, as if for the first time."""

    def open_(page, name="Anna", **how):
        path = folder / "page.html"
        page.report(path)
        browser.open(path)
        browser.ask("localStorage.clear(); sessionStorage.clear()")
        browser.open(path, **how)
        if name:
            browser.driver.find_element("id", "name").send_keys(name + Keys.ENTER)
        return path

    return open_


def press(browser, *keys):
    for key in keys:
        browser.driver.switch_to.active_element.send_keys(key)


def shown(browser, where="found"):
    """Return the text that is shown on one side."""
    return browser.ask("return document.getElementById(arguments[0]).lastChild.textContent", where)


def question(browser):
    return browser.ask("return document.getElementById('question').textContent")


def count(browser):
    return browser.ask("return document.getElementById('n').textContent")


def said(browser, action):
    """Tell whether a button is pressed in."""
    found = browser.driver.find_element("css selector", f"[data-do={action}]")
    return found.get_attribute("aria-pressed") == "true"


def downloaded(browser, folder, name="labels-Anna.jsonl"):
    """Return the file that the page makes."""
    press(browser, "d")
    path = folder / name
    WebDriverWait(browser.driver, 20).until(lambda _: path.exists() and path.stat().st_size)
    return path


class TestLoop:
    """From pairs to labels, and on to whatever takes labels."""

    def test_keys_make_a_file_that_everything_reads(self, browser, opened, folder):
        """60 pairs of 30 questions are labelled by key, by what is shown alone."""
        dataset = library(60)
        page = to_label(dataset, k=2, sample=30, seed=2)
        opened(page)
        browser.requests()
        for _ in range(page.n_pairs):
            press(browser, YES if "euros" in shown(browser) else NO)
        assert (count(browser), page.n_pairs) == ("60", 60)
        labels = read_labels(downloaded(browser, folder))
        assert (labels.labeller, labels.page, labels.n_open) == ("Anna", page.page, 0)
        assert all(re.match(r"\d{4}-\d\d-\d\dT", row["time"]) for row in labels.rows)
        found = agreement("rouge1", labels.pairs)
        n_even = sum(int(row["query"].split()[3]) % 2 == 0 for row in page.rows) // 2
        assert (found.kappa, found.counts) == (1, (n_even, 0, 0, 60 - n_even))
        judged = read_judgements(folder / "labels-Anna.jsonl")
        assert {key for keys in judged.relevant.values() for key in keys} == {
            row["predicted"] for row in page.rows if "euros" in row["predicted"]}  # fmt: skip
        _, seen = judged.added_to(dataset.actual, [[]] * 60, dataset.queries)
        assert sum(map(len, seen)) == 60
        dataset = replace(dataset, judged=seen)
        judge = dataset.evaluator(matcher="rouge1").evaluate(2)
        human = labels.evaluate(dataset, 2)
        estimated = debias(human=human, judge=judge, unlabelled=judge, metric="recall@2")
        assert (estimated.n_labelled, estimated.values[0].human) == (30, n_even / 30)
        assert browser.ask("return window.noticed") == []
        assert [one for one in browser.requests() if not one.startswith(("file:", "blob:"))] == []
        assert [one for one in browser.driver.get_log("browser") if one["level"] == "SEVERE"] == []

    def test_two_labellers_settle(self, browser, opened, folder):
        """A page of what they disagree on alone, whose file has every label."""
        page = to_label(library(3))
        files = []
        for name, wrong in (("Anna", None), ("Ben", "Shelf 1.")):
            opened(page, name)
            for _ in range(page.n_pairs):
                text = shown(browser)
                press(browser, YES if ("euros" in text) != (text == wrong) else NO)
            files.append(read_labels(downloaded(browser, folder, f"labels-{name}.jsonl")))
        opened(files[0].to_settle(files[1]), "Eva")
        assert shown(browser) == "Shelf 1."
        press(browser, NO)
        settled = read_labels(downloaded(browser, folder, "labels-Eva.jsonl"))
        assert [row["relevant"] for row in settled.rows] == [
            "euros" in row["predicted"] for row in settled.rows
        ]
        assert all(row["settles"] == ["Anna", "Ben"] for row in settled.rows)

    def test_what_is_not_sure_has_no_label(self, browser, opened, folder):
        """Nor has what was not seen; they differ by the time."""
        opened(to_label(library(2)))
        press(browser, NOT_SURE, " ")
        path = downloaded(browser, folder)
        rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        assert [row["relevant"] for row in rows] == [None] * 4
        assert [row["time"] is None for row in rows] == [False, False, True, True]


class TestKeys:
    """What they do, and what stays."""

    def test_back_next_undo(self, browser, opened):
        """An answer is seen where one comes back, can be changed, and undone."""
        opened(to_label(library(2)))
        first = shown(browser)
        press(browser, YES, Keys.ARROW_LEFT)
        assert (shown(browser), said(browser, "yes"), said(browser, "no")) == (first, True, False)
        press(browser, NO, Keys.BACKSPACE)
        assert (said(browser, "yes"), said(browser, "no")) == (False, True)
        press(browser, "u")
        assert (said(browser, "yes"), count(browser)) == (True, "1")
        press(browser, "u")
        assert (shown(browser), said(browser, "yes"), count(browser)) == (first, False, "0")
        press(browser, Keys.ARROW_RIGHT)
        assert shown(browser) != first

    @pytest.mark.parametrize(("key", "action"), [("y", "yes"), ("n", "no"), ("Y", "yes")])
    def test_letters(self, browser, opened, key, action):
        """As well as digits, in either case."""
        opened(to_label(library(2)))
        press(browser, key, Keys.ARROW_LEFT)
        assert said(browser, action)

    @pytest.mark.parametrize(
        ("jamo", "code", "action"), [("ㅛ", "KeyY", "yes"), ("Process", "KeyN", "no")]
    )
    def test_a_korean_keyboard(self, browser, opened, jamo, code, action):
        """Writes a jamo in the place of the letter, or composes a syllable."""
        opened(to_label(library(2)))
        browser.ask(
            "document.body.dispatchEvent(new KeyboardEvent('keydown', "
            "{key: arguments[0], code: arguments[1], bubbles: true}))", jamo, code,
        )  # fmt: skip
        press(browser, Keys.ARROW_LEFT)
        assert said(browser, action)

    def test_a_space_does_not_press_a_button_again(self, browser, opened):
        """After a click the question has the focus; on a button that was tabbed to, it presses."""
        opened(to_label(library(2)))
        browser.driver.find_element("css selector", "[data-do=yes]").click()
        assert browser.ask("return document.activeElement.id") == "question"
        press(browser, " ", Keys.ARROW_LEFT)
        assert (said(browser, "skip"), count(browser)) == (True, "2")
        browser.ask("document.querySelector('[data-do=no]').focus()")
        press(browser, " ")
        press(browser, Keys.ARROW_LEFT)
        assert said(browser, "no")

    def test_marks_are_toggled(self, browser, opened):
        """What both texts share is marked, until it is not to be."""
        rows = [{"question": "Q", "actual": ["it opens at nine on weekdays 😀"],
                 "predicted": ["😀 Hours: it opens at nine on weekdays, not at ten"]}]  # fmt: skip
        opened(to_label(rows))
        marks = "return [...document.querySelectorAll('mark')].map((one) => one.textContent)"
        assert browser.ask(marks) == ["it opens at nine on weekdays"] * 2
        colour = "return getComputedStyle(document.querySelector('mark')).backgroundColor"
        before = browser.ask(colour)
        press(browser, "m")
        assert browser.ask(colour) != before
        press(browser, "m")
        assert browser.ask(colour) == before

    def test_at_the_end_nothing_is_answered(self, browser, opened):
        """What was skipped over comes before the end; then there is only the file."""
        opened(to_label(library(2)))
        press(browser, Keys.ARROW_RIGHT)
        second = shown(browser)
        press(browser, YES, YES, YES)  # the last three; then the first
        assert shown(browser) != second
        press(browser, YES)
        assert browser.driver.find_element("id", "end").is_displayed()
        press(browser, NO, YES)
        assert count(browser) == "4"


class TestKept:
    """What stays in the browser, and what a file brings back."""

    def test_answers_and_name_stay(self, browser, opened, folder):
        """Until somebody starts anew, whose answers are his own."""
        path = opened(to_label(library(2)))
        press(browser, YES, NO)
        browser.open(path)
        assert count(browser) == "2"
        assert browser.ask("return document.getElementById('who').textContent") == "Anna"
        browser.ask("window.confirm = () => true")
        browser.driver.find_element("css selector", "[data-do=anew]").click()
        browser.driver.find_element("id", "name").send_keys("Ben" + Keys.ENTER)
        assert count(browser) == "0"
        assert read_rows(downloaded(browser, folder, "labels-Ben.jsonl"))[0]["relevant"] is None

    def test_a_file_is_gone_on_with(self, browser, opened, folder):
        """In another browser; one of another page is refused."""
        page = to_label(library(2))
        path = opened(page)
        press(browser, YES, NOT_SURE)
        kept = downloaded(browser, folder)
        lines = kept.read_text("utf-8")
        other = folder / "other.jsonl"
        other.write_text(lines.replace(page.page, "0" * 16), "utf-8")
        browser.ask("localStorage.clear()")
        browser.open(path)
        box = browser.driver.find_element("id", "file")
        for strange in (other, path):
            box.send_keys(str(strange))
            WebDriverWait(browser.driver, 20).until(
                lambda _: browser.driver.find_element("id", "strange").is_displayed()
            )
        box.send_keys(str(kept))
        WebDriverWait(browser.driver, 20).until(lambda _: count(browser) == "2")
        assert browser.ask("return document.getElementById('who').textContent") == "Anna"
        assert not browser.driver.find_element("id", "strange").is_displayed()

    def test_a_browser_that_keeps_nothing_says_so(self, browser, opened):
        """And asks before it forgets answers; after the download it does not."""
        opened(to_label(library(2)))
        leaves = (
            "const event = new Event('beforeunload', {cancelable: true});"
            "dispatchEvent(event); return event.defaultPrevented"
        )
        assert not browser.ask(leaves)
        browser.ask("Storage.prototype.setItem = () => { throw new Error('full'); }")
        assert not browser.driver.find_element("id", "unkept").is_displayed()
        press(browser, YES)
        assert browser.driver.find_element("id", "unkept").is_displayed()
        assert browser.ask(leaves)
        press(browser, "d")
        assert not browser.ask(leaves)


@pytest.fixture
def tabs(browser):
    """Return a function that goes to one of several tabs by its number, and opens them."""
    first = browser.driver.current_window_handle

    def go_to(number, path=None):
        while len(browser.driver.window_handles) <= number:
            browser.driver.switch_to.new_window("tab")
        browser.driver.switch_to.window(browser.driver.window_handles[number])
        if path:
            browser.driver.get(path.as_uri())

    yield go_to
    for handle in browser.driver.window_handles:
        if handle != first:
            browser.driver.switch_to.window(handle)
            browser.driver.close()
    browser.driver.switch_to.window(first)


def stored_answers(browser):
    """Return what the browser keeps of the page, by labeller."""
    (entry,) = browser.ask("return Object.values({...localStorage})")
    return json.loads(entry)["answers"]


class TestTabs:
    """The page is open more than once; no answer of any tab is lost."""

    def test_answers_of_two_tabs_are_joined(self, browser, opened, folder, tabs):
        """Given by turns, and in each tab on a pair of its own; either tab's file has all."""
        page = to_label(library(6))
        path = opened(page)
        tabs(1, path)
        for turn in range(6):
            for tab, step in ((0, 0), (1, 6)):
                tabs(tab)
                if turn == 0:
                    press(browser, *[Keys.ARROW_RIGHT] * step)
                press(browser, YES if "euros" in shown(browser) else NO)
        for tab in (0, 1):
            tabs(tab)
            WebDriverWait(browser.driver, 20).until(lambda _: count(browser) == "12")
        rows = read_rows(downloaded(browser, folder))
        assert [row["relevant"] for row in rows] == ["euros" in row["predicted"] for row in rows]
        tabs(0, path)
        assert count(browser) == "12"

    def test_the_last_answer_of_a_pair_counts(self, browser, opened, folder, tabs):
        """Whichever tab gives it, and also where it is taken back."""
        path = opened(to_label(library(2)))
        press(browser, YES, YES)
        tabs(1, path)
        press(browser, Keys.ARROW_LEFT, NO)  # the second pair
        tabs(0)
        WebDriverWait(browser.driver, 20).until(
            lambda _: [one[0] for one in stored_answers(browser)["Anna"].values()].count(False) == 1
        )
        press(browser, "u", "u")  # both of this tab
        assert count(browser) == "0"
        tabs(1, path)
        assert count(browser) == "0"

    def test_two_labellers_of_one_browser(self, browser, opened, folder, tabs):
        """Each tab stays with its own, also when it is opened anew."""
        path = opened(to_label(library(2)))
        press(browser, YES)
        tabs(1, path)
        browser.ask("sessionStorage.clear()")
        browser.ask("const entry = Object.keys(localStorage)[0];"
                    "const kept = JSON.parse(localStorage[entry]); kept.name = '';"
                    "localStorage[entry] = JSON.stringify(kept)")  # fmt: skip
        browser.driver.get(path.as_uri())
        browser.driver.find_element("id", "name").send_keys("Ben" + Keys.ENTER)
        press(browser, NO, NO)
        for tab, name, n in ((0, "Anna", "1"), (1, "Ben", "2")):
            tabs(tab, path)
            assert browser.ask("return document.getElementById('who').textContent") == name
            assert count(browser) == n
        assert {name: len(said) for name, said in stored_answers(browser).items()} == {
            "Anna": 1, "Ben": 2,
        }  # fmt: skip

    def test_a_start_anew_is_one_for_all_tabs(self, browser, opened, tabs):
        """The other tab does not bring back what was forgotten."""
        path = opened(to_label(library(2)))
        press(browser, YES, YES)
        tabs(1, path)
        browser.ask("window.confirm = () => true")
        browser.driver.find_element("css selector", "[data-do=anew]").click()
        tabs(0)
        WebDriverWait(browser.driver, 20).until(lambda _: count(browser) == "0")
        press(browser, NO)
        assert [one[0] for one in stored_answers(browser)["Anna"].values()] == [False]


class TestDamaged:
    """What a browser keeps may be cut off, or written by something else."""

    @pytest.mark.parametrize(
        "entry",
        [
            *("", "{", "5", "null", "[]", '"a"', "{}", '{"name": "Anna"}', '{"name": 5}'),
            '{"name": "Anna", "language": "en", "answers": null}',
            '{"name": "Anna", "language": "en", "answers": {"Anna": {"x": "yes"}}}',
            '{"name": "Anna", "language": "en", "answers": {"Anna": {"x": [true]}}}',
            '{"name": "Anna", "language": "en", "answers": {"Anna": {"x": ["t", "2026"]}}}',
            '{"name": null, "language": "en", "answers": {}}',
            '{"name": "Anna", "language": 3, "answers": {}}',
        ],
    )
    def test_it_starts_anew_and_says_so(self, browser, opened, entry):
        """With what was kept put aside; answers are kept again."""
        path = opened(to_label(library(2)))
        press(browser, YES)
        browser.ask("const [key] = Object.keys(localStorage); localStorage[key] = arguments[0];"
                    "sessionStorage.clear()", entry)  # fmt: skip
        browser.open(path)
        assert browser.driver.find_element("id", "damaged").is_displayed()
        assert browser.ask("return Object.values({...localStorage})") == [entry]
        browser.driver.find_element("id", "name").send_keys("Anna" + Keys.ENTER)
        press(browser, YES, NO)
        browser.open(path)
        assert count(browser) == "2"
        assert not browser.driver.find_element("id", "damaged").is_displayed()

    def test_what_an_earlier_version_kept_is_read(self, browser, opened):
        """One labeller's answers, as they were."""
        path = opened(to_label(library(2)))
        press(browser, YES, NO)
        browser.ask(
            "const [key] = Object.keys(localStorage);"
            "const {name, language, marks, answers} = JSON.parse(localStorage[key]);"
            "localStorage[key] = JSON.stringify({name, said: answers.Anna, language, marks});"
        )
        browser.open(path)
        assert count(browser) == "2"
        assert not browser.driver.find_element("id", "damaged").is_displayed()


def read_rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class TestLooks:
    """Screens of any size, light and dark, in both languages."""

    ROWS = (
        {"question": "W" * 400, "actual": ["word " * 400, "w" * 300],
         "predicted": ["x" * 400, "word " * 4000]},
        {"question": "도서관은 언제 여나요?", "actual": ["평일 9시에 엽니다."],
         "predicted": ["도서관은 평일 9시에 엽니다."]},
    )  # fmt: skip

    @pytest.mark.parametrize("wide", [WIDE, PHONE, 320])
    @pytest.mark.parametrize("language", ["en", "ko"])
    def test_nothing_is_wider_than_the_window(self, browser, opened, wide, language):
        """Nor do long texts push the buttons away: they scroll within."""
        opened(to_label([*self.ROWS]), None, width=wide)
        browser.driver.find_element("css selector", f"[data-language={language}]").click()
        fits = "return document.documentElement.scrollWidth <= innerWidth"
        assert browser.ask(fits)
        browser.driver.find_element("id", "name").send_keys("Anna" + Keys.ENTER)
        for _ in range(6):
            assert browser.ask(fits)
            yes = browser.driver.find_element("css selector", "[data-do=yes]")
            assert 0 < browser.ask("return arguments[0].getBoundingClientRect().bottom", yes) <= 900
            press(browser, YES)

    @pytest.mark.parametrize("dark", [False, True])
    def test_texts_stand_out(self, browser, opened, dark):
        """At least 4.5 to 1, as WCAG 2.1 (1.4.3) asks of text."""
        opened(to_label(library(2)), dark=dark)
        found = browser.ask(COLOURS, "h1, h2, h3, p, mark, button:not(:disabled), .signature")
        assert len(found) > 10
        assert min(contrast(ink, paper) for ink, paper in found) >= 4.5

    def test_one_language_at_a_time(self, browser, opened):
        """Buttons and the question that is put; the choice stays."""
        path = opened(to_label(library(2)))
        words = (
            "return [...document.querySelectorAll('.answers button')].map((one) => one.innerText)"
        )
        assert any(text.startswith("Not relevant") for text in browser.ask(words))
        browser.driver.find_element("css selector", "[data-language=ko]").click()
        for _ in range(2):
            seen = browser.ask(words)
            assert seen[0].startswith("관련 있음")
            assert not any("elevant" in text for text in seen)
            assert browser.ask("return document.documentElement.lang") == "ko"
            browser.open(path)

    def test_nothing_tells_the_rank(self, browser, opened):
        """There is no rank, score or system on the page."""
        path = opened(to_label(library(40)))
        source = path.read_text("utf-8")
        data = json.loads(re.search(r'id="data">(.*?)</script>', source, re.DOTALL)[1])
        assert {name for row in data["rows"] for name in row} == {
            "page", "pair", "query", "key", "question", "actual", "predicted", "relevant",
        }  # fmt: skip

    def test_without_a_passage_another_question_is_put(self, browser, opened):
        """Whether the text helps; there is nothing on the left."""
        opened(to_label([{"query": "When?", "key": "d1", "text": "At nine."}]))
        assert (question(browser), shown(browser)) == ("When?", "At nine.")
        displayed = {one: browser.driver.find_element("id", one).is_displayed()
                     for one in ("wanted", "ask-passage", "ask-question")}  # fmt: skip
        assert displayed == {"wanted": False, "ask-passage": False, "ask-question": True}

    def test_screen_readers_are_told(self, browser, opened):
        """Of the count as it changes, and of both texts by name."""
        opened(to_label(library(2)))
        live = browser.driver.find_element("css selector", "[aria-live=polite]")
        press(browser, YES)
        assert live.text.startswith("1 / 4")
        names = browser.ask(
            "return [...document.querySelectorAll('[aria-labelledby]')].map((one) => "
            "document.getElementById(one.getAttribute('aria-labelledby')).innerText)"
        )
        assert names == ["Wanted passage", "Text found"]


class TestHostileTexts:
    """Questions, passages and texts that try to act."""

    def test_nothing_happens(self, browser, opened, folder):
        """No call, no error, no request, no element; each text is shown and comes back as it is."""
        odd = ["\u2028 and \u2029", "\u202e backwards", "\x00 nul", "café 한글", "tab\there"]
        texts = [*SHOUTS, *odd]
        rows = [{"question": one, "actual": [one, {"any_of": [one, "b"]}],
                 "predicted": [f"{one} {one}"]} for one in texts]  # fmt: skip
        page = to_label(rows)
        opened(page, '<b>"Anna"</b>')
        browser.requests()
        elements = "return document.querySelectorAll('*:not(mark)').length"
        harmless = browser.ask(elements)
        seen = set()
        for _ in range(page.n_pairs):
            seen.add(question(browser))
            press(browser, YES)
        assert {one for one in SHOUTS if one not in seen} == set()
        assert {"\\u202e backwards", "\\u0000 nul", "tab\there"} <= seen
        assert browser.ask("return window.noticed") == []
        assert browser.ask(
            "return document.querySelectorAll('a, img, iframe, base, link, object, svg').length"
        ) == 0  # fmt: skip
        assert abs(browser.ask(elements) - harmless) < 3  # the passage's alternatives
        found = read_labels(downloaded(browser, folder, "labels--b-Anna-b-.jsonl"))
        assert found.labeller == '<b>"Anna"</b>'
        assert [row["predicted"] for row in found.rows] == [row["predicted"] for row in page.rows]
        assert [one for one in browser.requests() if not one.startswith(("file:", "blob:"))] == []

    def test_a_text_of_a_megabyte(self, browser, opened):
        """Is shown in a moment, within its pane."""
        rows = [{"question": "Q", "actual": ["word " * 9], "predicted": ["word " * 200_000]}]
        opened(to_label(rows))
        start = time.monotonic()
        press(browser, YES, Keys.ARROW_LEFT)
        assert len(shown(browser)) == 1_000_000
        assert time.monotonic() - start < 20

    def test_the_policy_refuses_what_is_not_ours(self, browser, opened):
        """A script that had got in would not run."""
        opened(to_label(library(2)))
        browser.ask(
            "const script = document.createElement('script');"
            "script.textContent = 'window.ran = 1'; document.body.append(script);"
        )
        assert browser.ask("return window.ran ?? null") is None
        assert "refused script-src-elem" in browser.ask("return window.noticed")

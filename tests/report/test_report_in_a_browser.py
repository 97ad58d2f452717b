"""The page of a result in a real browser: what people see, what the script does, what texts cannot.

What must be shown is computed here, from the texts and from the tables of the result.
"""

import random
import re
import warnings

import matplotlib
import pytest
from browser import COLOURS, SHOUTS, contrast

matplotlib.use("Agg")

from langchain_core.documents import Document

from krag_eval import OfflineRetrievalEvaluator

WIDE, PHONE = 1280, 390
N_LARGE, DEPTH, WORDS = 2_000, 10, 200


def evaluated(actual, predicted, k=(1, 3), **options):
    with warnings.catch_warnings(action="ignore"):
        return OfflineRetrievalEvaluator(actual, predicted, **options).evaluate(list(k))


def small():
    """Return 12 queries: four found, four half found, three missed, one with nothing retrieved.

    Item i is ``"passage i …"``; other documents are ``"other i …"``.
    """
    ways = ["g", "og", "oog", "g", "g-", "og-", "g-", "oog-", "o", "oo", "ooo", ""]
    actual, predicted = [], []
    for number, way in enumerate(ways):
        wanted = [f"passage {number} of the library"]
        if way.endswith("-"):
            wanted.append(f"second passage {number} of the archive")
        actual.append(wanted)
        others = [f"other {number} {rank} leaflet" for rank in range(3)]
        predicted.append([wanted[0] if one == "g" else others.pop() for one in way.rstrip("-")])
    return evaluated(
        actual, predicted, queries=[f"What is in passage number {n}?" for n in range(12)],
        tags={"corpus": ["wiki", "chat", None] * 4},
    )  # fmt: skip


@pytest.fixture(scope="module")
def result():
    return small()


@pytest.fixture(scope="module")
def page(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "report.html"
    result.report(path, intervals=False, diagnosis=result.diagnose(k=3))
    return path


@pytest.fixture(scope="module")
def korean(result, tmp_path_factory):
    path = tmp_path_factory.mktemp("korean") / "report.html"
    result.report(path, intervals=False, language="ko")
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Write 2,000 queries with ten chunks of 200 words each, of which half are found."""
    draw = random.Random(0)
    vowels = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    words = ["".join(draw.choices(vowels, k=draw.randint(1, 4))) for _ in range(3_000)]
    chunks = [" ".join(draw.choices(words, k=WORDS)) for _ in range(N_LARGE)]
    actual = [[" ".join(chunk.split()[50:80])] for chunk in chunks]
    predicted = [[chunks[draw.randrange(N_LARGE)] for _ in range(DEPTH)] for _ in chunks]
    for number in range(0, N_LARGE, 2):
        predicted[number][draw.randrange(DEPTH)] = chunks[number]
    made = evaluated(
        actual, predicted, (10,), matcher="coverage",
        queries=[f"Question {n} about {words[n]}?" for n in range(N_LARGE)],
        tags={"corpus": [f"corpus {n % 5}" for n in range(N_LARGE)]},
    )  # fmt: skip
    path = tmp_path_factory.mktemp("large") / "report.html"
    made.report(path, intervals=False)
    return path


def width(browser):
    needed, there = browser.ask("return [document.documentElement.scrollWidth, innerWidth]")
    return needed, there


class TestList:
    """Search, filters, sorting: what is shown, in which order."""

    def test_hardest_first(self, browser, page, result):
        """Misses in their order, then the others by nDCG, and the first of them is open."""
        browser.open(page)
        lost = list(result.misses(3).index)
        scores = result.per_query(3)["ndcg"]
        found = [label for label in result.labels if label not in lost]
        assert browser.shown() == lost + sorted(found, key=lambda label: scores[label])
        assert browser.ask("return document.querySelectorAll('.query[open]').length") == 1
        assert "12 of 12 queries shown" in browser.ask(
            "return document.querySelector('output').textContent"
        )

    def test_the_numbers_are_those_of_the_api(self, browser, page, result):
        """To the last digit, behind what is shown."""
        browser.open(page)
        lines = browser.ask(
            "return [...document.querySelectorAll('.query')].map((query) => "
            "[query.querySelector('.question').textContent,"
            " ...[...query.querySelectorAll('summary data')].map((one) => one.value)])"
        )
        table = result.per_query(3)
        assert {line[0]: [float(line[1]), float(line[2])] for line in lines} == {
            label: [table["recall"][label], table["ndcg"][label]] for label in table.index
        }
        ranks = {line[0]: line[3] for line in lines}
        # By the order of `ways` above: the place of the g.
        assert [ranks[label] for label in result.labels] == [
            "1.0", "2.0", "3.0", "1.0", "1.0", "2.0", "1.0", "3.0", "", "", "", ""
        ]  # fmt: skip

    @pytest.mark.parametrize("outcome", ["perfect", "partial", "missed", "nothing retrieved"])
    def test_filter_by_outcome(self, browser, page, result, outcome):
        """Those that ``statuses`` tells."""
        browser.open(page)
        browser.choose("Outcome", outcome)
        statuses = result.statuses(3)
        assert set(browser.shown()) == set(statuses.index[statuses == outcome])

    def test_filter_by_tag_and_outcome(self, browser, page, result):
        """Both must fit; a query may have no value."""
        browser.open(page)
        browser.choose("corpus", "wiki")
        wiki = {label for n, label in enumerate(result.labels) if n % 3 == 0}
        assert set(browser.shown()) == wiki
        browser.choose("Outcome", "missed")
        statuses = result.statuses(3)
        assert set(browser.shown()) == wiki & set(statuses.index[statuses == "missed"])
        browser.press("Show all")
        assert len(browser.shown()) == 12
        browser.choose("corpus", "(none)")
        assert set(browser.shown()) == {
            label for n, label in enumerate(result.labels) if n % 3 == 2
        }

    def test_filter_by_diagnosis(self, browser, page, result):
        """The class of the query's item that is furthest behind: one half found is not found."""
        browser.open(page)
        browser.choose("Diagnosis", "found")
        statuses = result.statuses(3)
        assert set(browser.shown()) == set(statuses.index[statuses == "perfect"])

    @pytest.mark.parametrize(
        ("typed", "numbers"),
        [
            ("number 11?", {11}),  # in the question
            ("ARCHIVE", {4, 5, 6, 7}),  # in a passage, whatever the case
            ("leaflet wiki", {9}),  # in a document and a tag: of 0, 3, 6 and 9 one has leaflets
            ("nowhere", set()),
        ],
    )
    def test_search(self, browser, page, result, typed, numbers):
        """Every word must be there."""
        browser.open(page)
        browser.type(typed)
        assert set(browser.shown()) == {result.labels[number] for number in numbers}
        nothing = "No query matches." in browser.ask(
            "return document.querySelector('output').textContent"
        )
        assert nothing == (not numbers)

    @pytest.mark.parametrize(("name", "column"), [("Recall", "recall"), ("nDCG", "ndcg")])
    def test_sort_both_ways(self, browser, page, result, name, column):
        """Ascending, descending; equals stay hardest first."""
        browser.open(page)
        order, scores = browser.shown(), result.per_query(3)[column]
        browser.press(name)
        assert browser.shown() == sorted(order, key=lambda label: scores[label])
        browser.press(name)
        assert browser.shown() == sorted(order, key=lambda label: -scores[label])

    def test_sort_by_rank_and_question(self, browser, page, result):
        """What has no rank is last, whichever way; 9 comes before 10."""
        browser.open(page)
        browser.press("First rank")
        assert set(browser.shown()[-4:]) == set(result.labels[8:])
        browser.press("First rank")
        assert set(browser.shown()[-4:]) == set(result.labels[8:])
        assert set(browser.shown()[:2]) == {result.labels[2], result.labels[7]}
        browser.press("Query")
        assert browser.shown() == result.labels

    def test_the_address_leads_back(self, browser, page, result):
        """Search, filters and order stand behind the #."""
        browser.open(page)
        browser.type("number")
        browser.choose("Outcome", "missed")
        browser.press("Query")
        shown, fragment = browser.shown(), browser.ask("return location.hash")
        browser.open(page, fragment=fragment)
        assert browser.shown() == shown == result.labels[8:11]

    def test_from_miss_to_miss(self, browser, page, result):
        """By key or button; what is gone to is opened. Keys that are typed stay letters."""
        browser.open(page)
        active = (
            "return document.activeElement.closest('.query').querySelector('.question').textContent"
        )
        lost = list(result.misses(3).index)
        body = browser.driver.find_element("css selector", "body")
        body.send_keys("n")
        assert browser.ask(active) == lost[0]
        browser.driver.switch_to.active_element.send_keys("n")
        assert browser.ask(active) == lost[1]
        assert browser.ask("return document.activeElement.parentElement.open")
        browser.driver.switch_to.active_element.send_keys("p")
        assert browser.ask(active) == lost[0]
        browser.type("np")
        assert browser.ask("return document.querySelector('.controls input').value") == "np"


class TestLooks:
    """Screens of any size, light and dark, and paper."""

    @pytest.mark.parametrize("written", ["page", "korean", "large"])
    @pytest.mark.parametrize("wide", [WIDE, PHONE, 320])
    def test_nothing_is_wider_than_the_window(self, browser, request, written, wide):
        """With the first query open, and with more."""
        browser.open(request.getfixturevalue(written), width=wide)
        needed, there = width(browser)
        assert needed <= there
        browser.ask(
            "[...document.querySelectorAll('.query')].slice(0, 20).forEach((q) => q.open = true)"
        )
        needed, there = width(browser)
        assert needed <= there

    def test_columns_have_their_names_on_a_phone(self, browser, page):
        """Beside each number, where there is no room for a head line."""
        for wide, is_seen in ((PHONE, True), (WIDE, False)):
            browser.open(page, width=wide)
            size = browser.ask("return document.querySelector('.cell .name').offsetWidth")
            assert (size > 10) == is_seen

    @pytest.mark.parametrize("dark", [False, True])
    def test_texts_stand_out(self, browser, page, dark):
        """At least 4.5 to 1, as WCAG 2.1 (1.4.3) asks of text."""
        browser.open(page, dark=dark)
        found = browser.ask(COLOURS, "body, .remark, .question, .badge, .tag, .told p, .told div, "
                            "mark, output, select, .controls button, .columns button")  # fmt: skip
        assert len(found) > 20
        assert min(contrast(ink, paper) for ink, paper in found) >= 4.5

    def test_print_opens_everything(self, browser, page):
        """And folds it again afterwards."""
        browser.open(page)
        browser.ask(
            "addEventListener('beforeprint', () => {"
            " window.folded = document.querySelectorAll('details:not([open])').length; })"
        )
        browser.driver.execute_cdp_cmd("Page.printToPDF", {})
        assert browser.ask("return window.folded") == 0
        assert browser.ask("return document.querySelectorAll('.query[open]').length") == 1

    def test_without_script(self, browser, page, result):
        """Everything is there; what would do nothing is not."""
        browser.open(page, script=False)
        details = browser.driver.find_elements("css selector", ".query")
        assert len(details) == 12
        assert not browser.driver.find_element("css selector", ".controls").is_displayed()
        assert not browser.driver.find_elements("css selector", ".columns button")
        texts = "return [...document.querySelectorAll('.query')].map((one) => one.textContent)"
        for label, text in zip(browser.shown(), browser.ask(texts), strict=True):
            wanted = f"passage {label.split()[-1].rstrip('?')} of the library"
            assert wanted in text
        second = details[1].find_element("css selector", "ol")
        assert not second.is_displayed()
        # By key: while lines come into view, what a pointer is over may move.
        details[1].find_element("css selector", "summary").send_keys("\n")
        assert second.is_displayed()


class TestLarge:
    """2,000 queries with ten chunks of 200 words each."""

    def test_all_are_there_in_under_6_mb(self, browser, large):
        """Clipped, none left out."""
        assert large.stat().st_size < 6_000_000
        browser.open(large)
        assert len(browser.shown()) == N_LARGE

    def test_a_filter_takes_under_a_second(self, browser, large):
        """A search, which looks at every text, and a choice; until the page is laid out."""
        browser.open(large)
        seconds, shown = browser.ask(
            """
            const start = performance.now();
            const search = document.querySelector(".controls input");
            search.value = "question 17";
            search.dispatchEvent(new Event("input"));
            const select = document.querySelector(".controls select");
            select.value = "0";
            select.dispatchEvent(new Event("change"));
            document.body.getBoundingClientRect();
            return [(performance.now() - start) / 1000,
                    document.querySelector("output").textContent];
            """
        )
        assert seconds < 1
        assert re.match(r"\d+ of 2,000 queries shown", shown)
        assert all("17" in question for question in browser.shown())


class TestHostileTexts:
    """Texts, ids, tags and metadata that try to act, with the script on."""

    @pytest.fixture(scope="class")
    @staticmethod
    def hostile(tmp_path_factory):
        made = evaluated(
            [[Document(page_content=f"wanted {one}", id=one, metadata={"source": one})]
             for one in SHOUTS],
            [[Document(page_content=f"{other} came", id=f"{other} {n}", metadata={"source": other})
              for n, other in enumerate(SHOUTS)] for _ in SHOUTS],
            queries=list(SHOUTS),
            tags={one: [*SHOUTS[1:], SHOUTS[0]] for one in SHOUTS[:4]},
        )  # fmt: skip
        path = tmp_path_factory.mktemp("hostile") / "report.html"
        made.report(path, intervals=False, title=SHOUTS[1], date=SHOUTS[2])
        return path

    def test_nothing_happens(self, browser, hostile, page):
        """No call, no error, no request, no element, no style, wherever one clicks."""
        counted = (
            "return ['style', 'script', 'body'].map((tag) => document.querySelectorAll(tag).length)"
        )
        browser.open(page)
        harmless = browser.ask(counted)
        style = browser.ask("const s = getComputedStyle(document.body); return [s.display, s.font]")
        browser.open(hostile)
        browser.ask("document.querySelectorAll('.query').forEach((query) => query.open = true)")
        for select in range(browser.ask("return document.querySelectorAll('select').length")):
            browser.ask(
                "const select = document.querySelectorAll('select')[arguments[0]];"
                "select.value = '1'; select.dispatchEvent(new Event('change'));",
                select,
            )
        browser.press("Show all")
        browser.type("<script>")
        browser.press("Query")
        browser.driver.find_element("css selector", "body").send_keys("n")
        assert browser.ask("return window.noticed") == []
        assert browser.ask(counted) == harmless
        assert style == browser.ask(
            "const s = getComputedStyle(document.body); return [s.display, s.font]"
        )
        assert browser.ask(
            "return document.querySelectorAll('a:not([href=\"#queries\"]), img, iframe, base, "
            "link, object, embed, form, main svg script, .queries input, .queries svg').length"
        ) == 0  # fmt: skip
        handlers = (
            "return [...document.querySelectorAll('*')].flatMap((one) => [...one.attributes])"
        )
        assert browser.ask(f"{handlers}.filter((one) => one.name.startsWith('on')).length") == 0
        assert [one for one in browser.requests() if not one.startswith(("file:", "data:"))] == []

    def test_texts_are_read_as_they_are(self, browser, hostile):
        """All of them, as text."""
        browser.open(hostile)
        assert set(browser.shown()) == set(SHOUTS)

    def test_the_policy_refuses_what_is_not_ours(self, browser, page):
        """Neither a script, a handler nor an image, even if one had got in."""
        browser.open(page)
        browser.ask(
            """
            const script = document.createElement("script");
            script.textContent = "window.ran = 1";
            document.body.append(script);
            const image = document.createElement("img");
            image.setAttribute("onerror", "window.ran = 2");
            image.src = "https://example.org/x.png";
            document.body.append(image);
            """
        )
        browser.driver.set_script_timeout(5)
        browser.driver.execute_async_script("setTimeout(arguments[0], 300)")
        assert browser.ask("return window.ran ?? null") is None
        noticed = browser.ask("return window.noticed")
        assert {"refused script-src-elem", "refused img-src"} <= set(noticed)

"""A real browser: Debian's Chromium, steered by the driver beside it. Nothing is downloaded."""

import json
import re
import shutil

import pytest

_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
# Before any page: what a text might do is taken note of.
_WATCH = """
window.noticed = [];
for (const name of ["alert", "confirm", "prompt", "open", "fetch"]) {
  window[name] = () => { window.noticed.push(name); };
}
addEventListener("error", (event) => window.noticed.push(`error ${event.message}`));
addEventListener("securitypolicyviolation", (event) =>
  window.noticed.push(`refused ${event.violatedDirective}`));
"""


_READY = "return document.readyState === 'complete' && !document.querySelector('.controls[hidden]')"
# Of what a selector finds: ink and paper.
COLOURS = """
const opaque = (one) => {
  for (; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!colour.endsWith(", 0)")) return colour;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll(arguments[0])]
  .map((one) => [getComputedStyle(one).color, opaque(one)]);
"""
# Texts that try to do something to a page.
SHOUTS = [
    "<script>alert(1)</script>",
    "</script><script>alert(2)</script>",
    "</style><style>body { display: none }</style>",
    "<img src=x onerror=alert(3)>",
    "<a href='javascript:alert(4)'>a</a>",
    "<svg/onload=alert(5)><iframe src=https://example.org>",
    '"><input autofocus onfocus=alert(6)>',
    "' onmouseover='alert(7)' style='position:fixed;inset:0",
    "</details></summary></main><base href=https://example.org>",
    "<link rel=stylesheet href=https://example.org/x.css>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "} body { display: none } /* </title>",
    "{{ 7 * 7 }} ${alert(8)} <!-- ]]>",
]


def contrast(ink, paper):
    """Return the contrast of two colours by WCAG 2.1."""

    def luminance(colour):
        channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(
            weight * one for weight, one in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
        )

    light, dark = sorted((luminance(ink), luminance(paper)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class Browser:
    """Chromium with a page open.

    Attributes:
        driver: What steers it.
    """

    def __init__(self, driver):
        self.driver = driver
        self._watching: str | None = None

    def open(self, path, *, fragment="", width=1280, height=900, dark=False, script=True):
        """Open a page as it looks on a screen of such a size, in light or dark."""
        ask = self.driver.execute_cdp_cmd
        ask("Emulation.setScriptExecutionDisabled", {"value": not script})
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        ask("Emulation.setDeviceMetricsOverride", screen)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        ask("Emulation.setEmulatedMedia", {"media": "screen", "features": [scheme]})
        if self._watching is None:
            known = ask("Page.addScriptToEvaluateOnNewDocument", {"source": _WATCH})
            self._watching = known["identifier"]
        self.driver.get("about:blank")  # a new fragment alone would not load the page anew
        for log in ("performance", "browser"):  # what other pages left there
            self.driver.get_log(log)
        self.driver.get(path.as_uri() + fragment)
        from selenium.webdriver.support.ui import WebDriverWait

        if script:  # a busy machine may answer before the script has run
            wait = WebDriverWait(self.driver, 60)
            wait.until(lambda _: self.ask(_READY))

    def ask(self, script, *arguments):
        """Return what a script returns in the page."""
        return self.driver.execute_script(script, *arguments)

    def requests(self):
        """Return the addresses that were asked for since the page was opened."""
        messages = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]

    def shown(self):
        """Return the queries that are shown, from top to bottom."""
        questions: list[str] = self.ask(
            "return [...document.querySelectorAll('.query')]"
            ".filter((query) => getComputedStyle(query).display !== 'none')"
            ".map((query) => query.querySelector('.question').textContent)"
        )
        return questions

    def type(self, text):
        """Type into the search, replacing what stands there."""
        box = self.driver.find_element("css selector", ".controls input")
        box.clear()
        box.send_keys(text)

    def choose(self, facet, value):
        """Choose a value of a filter, by the words that are seen."""
        self.ask(
            "const all = [...document.querySelectorAll('.controls select')];"
            "const select = all.find((one) => one.ariaLabel === arguments[0]);"
            "const options = [...select.options];"
            "select.value = options.find((one) => one.text.startsWith(arguments[1])).value;"
            "select.dispatchEvent(new Event('change'));",
            facet,
            value,
        )

    def press(self, text):
        """Press the button that begins with these words."""
        buttons = self.driver.find_elements("css selector", "button")
        next(button for button in buttons if button.text.startswith(text)).click()


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Start Chromium once for all tests."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.fail(
            "These tests need Chromium and its driver: apt-get install chromium chromium-driver"
        )
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in _FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    yield Browser(driver)
    driver.quit()

"""Reports in a real browser: content, silence, no network, sorting and finding, light and dark, phones, paper, ill will."""

import base64
import re

import pytest
from conftest import PAGES, pages
from selenium.webdriver.support.ui import Select

EVERY = pytest.mark.parametrize("name", pages())


def luminance(colour):
    """Of an rgb(…) text, 0 to 1."""
    parts = [int(c) / 255 for c in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def background(browser):
    return luminance(browser.js("return getComputedStyle(document.body).backgroundColor"))


@EVERY
def test_pages_are_silent_and_ask_for_nothing(browser, name):
    browser.open(PAGES / f"{name}.html")
    assert browser.console() == []
    elsewhere = [url for url in browser.requests() if not url.startswith(("file:", "data:"))]
    assert elsewhere == []
    assert browser.js("return document.documentElement.classList.contains('js')"), "the script ran"


@EVERY
@pytest.mark.parametrize("width", [320, 390, 820, 1600])
def test_nothing_sticks_out(browser, name, width):
    browser.open(PAGES / f"{name}.html", width=width)
    assert browser.js("return document.documentElement.scrollWidth") <= width
    # Figures may scroll inside of themselves, but no text of the page may be cut off.
    cut = browser.js(
        "return [...document.querySelectorAll('h1, h2, .card, .lead, .lede, figcaption, dd, li')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 1).map(e => e.textContent.slice(0, 60))"
    )
    assert cut == []


def test_the_demo_is_understood(browser, demo):
    browser.open(demo)
    assert browser.console() == []
    text = browser.find("main").text
    assert re.search(r"10 classes told apart, 9\d\.\d % right on samples never seen in training", text)
    for part in [
        "24 kernels in 4 groups",
        "from the optimum",
        "upper_right",
        "all kernels with equal weights",
        "multikernel demo",
    ]:
        assert part in text, part
    for section in ["weights", "quality", "alignments", "convergence", "again", "glossary"]:
        assert browser.find(f"#{section} h2").is_displayed()
    assert browser.js("return document.querySelectorAll('#convergence svg path.line').length") >= 3


def test_everything_is_drawn(browser):
    browser.open(PAGES / "everything.html")
    count = lambda css: browser.js("return document.querySelectorAll(arguments[0]).length", css)  # noqa: E731
    assert count("#quality svg.heat .cell") == 100, "a confusion matrix of ten classes"
    assert count("#tuning svg.heat .cell") == 63 and count("#tuning .frame") == 1
    assert count("#kernels tbody tr") == 18 and count("#kernels .whisker") == 3 * 18
    assert count("#alignments svg") == 2 and count("#convergence svg") == 2
    # Pictures can be read by those who do not see them.
    assert count("svg[role=img]:not([aria-label])") == 0
    # A word of the command is broken only where there is no room for it.
    assert "multikernel tune --features layers.npz --labels 'tumour types.csv'" in browser.find("#command").get_property(
        "textContent"
    )


def test_kernels_are_sorted(browser):
    browser.open(PAGES / "everything.html")
    by_share = browser.rows()
    shares = browser.js("return [...document.querySelectorAll('#kernels td[data-label=share]')].map(c => Number(c.dataset.n))")
    assert shares == sorted(shares, reverse=True)

    Select(browser.find("#sort")).select_by_value("name")
    assert browser.rows() == sorted(by_share)
    button = browser.find("#kernels th[data-key=name] button")
    button.click()
    assert browser.rows() == sorted(by_share, reverse=True)
    assert browser.find("#kernels th[data-key=name]").get_attribute("aria-sort") == "descending"
    Select(browser.find("#sort")).select_by_value("group")
    groups = browser.js("return [...document.querySelectorAll('#kernels td.group')].map(c => c.textContent)")
    assert groups == sorted(groups) and len(set(groups)) == 3
    # What is unknown stands last, whichever way.
    for _ in range(2):
        browser.find("#kernels th[data-key=alignment] button").click()
        values = browser.js("return [...document.querySelectorAll('#kernels td[data-label=alignment]')].map(c => c.dataset.n)")
        assert "" in values and all(v == "" for v in values[values.index("") :])
    browser.find("#kernels th[data-key=share] button").click()
    assert browser.rows() == by_share


def test_a_thousand_kernels_are_quick_and_found(browser):
    browser.open(PAGES / "thousand.html")
    timing = browser.js("const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd - t.startTime")
    assert timing < 5000, f"{timing} ms until it was drawn"
    assert len(browser.rows()) == 25
    took = browser.js(
        "const start = performance.now(); document.querySelector('#kernels th[data-key=name] button').click();"
        "document.body.offsetHeight; return performance.now() - start"
    )
    assert took < 2000, f"{took} ms to sort"

    field = browser.find("#filter")
    field.send_keys(" KERNEL 004")
    assert browser.rows() == [f"kernel 004{k}" for k in range(10)]
    assert browser.find("#shown").text == "10 of 1000 kernels"
    field.clear()
    field.send_keys("layer 7")
    assert len(browser.rows()) == 50, "groups are found, too"
    field.clear()
    field.send_keys("x")
    field.send_keys("\b")
    assert len(browser.rows()) == 25

    button = browser.find("#all")
    assert button.text == "show all 1000 kernels"
    button.click()
    assert len(browser.rows()) == 1000
    button.click()
    assert len(browser.rows()) == 25


def test_light_and_dark(browser):
    browser.open(PAGES / "everything.html", scheme="light")
    assert background(browser) > 0.8
    browser.find("#theme").click()
    assert background(browser) < 0.05
    browser.find("#theme").click()
    assert background(browser) > 0.8
    browser.open(PAGES / "everything.html", scheme="dark")
    assert background(browser) < 0.05
    browser.find("#theme").click()
    assert background(browser) > 0.8


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, scheme):
    browser.open(PAGES / "everything.html", scheme=scheme)
    behind = {
        "body": background(browser),
        "card": luminance(browser.js("return getComputedStyle(document.querySelector('figure')).backgroundColor")),
    }
    for css, place in [
        ("body", "body"),
        (".lead", "body"),
        (".card p", "card"),
        (".card .big", "card"),
        ("figcaption", "card"),
        (".few", "card"),
        (".warnings h2", "card"),
    ]:
        text = luminance(browser.js("return getComputedStyle(document.querySelector(arguments[0])).color", css))
        low, high = sorted([text, behind[place]])
        assert (high + 0.05) / (low + 0.05) >= 4.5, css


def test_points_say_what_they_are(browser):
    browser.open(PAGES / "everything.html")
    point = browser.find("#alignments svg.chart circle")
    browser.point_at(point)
    assert re.search(r"alignment 0\.\d\d, share", browser.find("#tip").text)
    browser.point_at(browser.find("#alignments h2"))
    assert not browser.find("#tip").is_displayed()


def test_paper(browser):
    browser.open(PAGES / "everything.html", scheme="dark", media="print")
    assert background(browser) > 0.95
    for css in ["nav", ".tools", "#copy"]:
        assert browser.js("return getComputedStyle(document.querySelector(arguments[0])).display", css) == "none", css
    pdf = base64.b64decode(browser.cdp("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"])
    sheets = len(re.findall(rb"/Type\s*/Page\b", pdf))
    assert pdf.startswith(b"%PDF") and 3 <= sheets <= 12, f"{sheets} sheets"


@EVERY
def test_without_its_script_a_page_can_be_read(browser, name):
    browser.open(PAGES / f"{name}.html", scripts=False)
    shown = browser.js(
        "return [...document.querySelectorAll('#kernels tbody tr')].every(r => r.getBoundingClientRect().height > 0)"
    )
    assert shown, "all kernels are listed"
    assert browser.js("return getComputedStyle(document.querySelector('#theme')).display") == "none"


def test_names_that_mean_ill_do_nothing(browser):
    browser.open(PAGES / "hostile.html")
    assert browser.js("return window.hacked") is None
    assert browser.js("return document.querySelectorAll('script').length") == 1
    assert browser.js("return document.querySelectorAll('img, iframe, object, embed').length") == 0
    assert "<script>window.hacked=1</script>" in browser.rows()[0], "it is shown as text"
    for button in ["#kernels th[data-key=name] button", "#theme", "#copy"]:
        browser.find(button).click()
    browser.find("#filter").send_keys("<script>")
    assert len(browser.rows()) == 18
    # A hint, too, is text.
    point = browser.find("#alignments svg.chart circle")
    browser.point_at(point)
    assert "<script>" in browser.find("#tip").text
    assert browser.js("return window.hacked") is None

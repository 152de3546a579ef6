"""Chromium without a window, and the pages it looks at."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains

ROOT = Path(__file__).parents[1]
#: Pages that the library's tests leave behind (crates/multikernel-report/tests/report.rs).
PAGES = ROOT / "target" / "tmp" / "report-pages"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)


def program(variable, names):
    """The file of a program: what the environment says, or the first of the names in PATH."""
    for name in [os.environ.get(variable), *names]:
        found = name and shutil.which(name)
        if found:
            return found
    pytest.exit(f"none of {', '.join(names)} was found; install Debian's chromium and chromium-driver, or set {variable}", 1)


class Browser:
    """A browser that remembers what pages asked for."""

    def __init__(self, folder):
        options = webdriver.ChromeOptions()
        options.binary_location = program("CHROMIUM", ["chromium", "chromium-browser", "google-chrome"])
        for flag in FLAGS.split():
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={folder}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(program("CHROMEDRIVER", ["chromedriver"])))

    def cdp(self, command, **arguments):
        return self.driver.execute_cdp_cmd(command, arguments)

    def js(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def find(self, css):
        return self.driver.find_element("css selector", css)

    def open(self, page, width=1200, height=900, scheme="light", media="", scripts=True):
        """Opens a page as somebody with this screen sees it."""
        self.driver.get("about:blank")
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        # A page that glides to where it is clicked cannot be clicked meanwhile.
        features = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}
        features = [{"name": name, "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", media=media, features=features)
        self.cdp("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        self.driver.get(Path(page).resolve().as_uri())

    def point_at(self, element):
        """Moves the mouse there, once the page stands still: a page that scrolls takes its hints away."""
        self.js("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
        self.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
        ActionChains(self.driver).move_to_element(element).perform()

    def console(self):
        """What the console says."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self):
        """Addresses that were asked for."""
        messages = (json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance"))
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def rows(self):
        """Names of the kernels that are shown, from top to bottom."""
        return self.js(
            "return [...document.querySelectorAll('#kernels tbody tr')].filter(r => !r.hidden).map(r => r.cells[0].textContent)"
        )


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """The report of `multikernel demo`."""
    page = tmp_path_factory.mktemp("demo") / "demo-report.html"
    subprocess.run([ROOT / "target" / "debug" / "multikernel", "demo", "--quiet", "--out", page], check=True)
    return page


def pages():
    """Names of the pages; made by `cargo test -p multikernel-report`."""
    names = sorted(page.stem for page in PAGES.glob("*.html"))
    return names or pytest.exit("there are no pages to look at; run cargo test -p multikernel-report", 1)

"""speedscope's web application, over HTTP on this machine. Neither Debian nor PyPI has it, and no script installs it.
SPEEDSCOPE names the folder of the built application, such as dist/release of its package for npm."""
import json, os, pathlib

from _served import Served
from support import skip, wait_for


class Application(Served):
    """The application, with the profiles that are put into it."""

    def __init__(self):
        folder = os.environ.get("SPEEDSCOPE")
        if not folder:
            skip("needs speedscope's built web application: SPEEDSCOPE=FOLDER")
        super().__init__(folder, "speedscope")

    def schema(self):
        """The published schema of its files, https://www.speedscope.app/file-format-schema.json."""
        return json.loads((self.folder / "file-format-schema.json").read_text())

    def page(self, profile, view):
        """The address at which the application shows a file of its folder. view: time-ordered, left-heavy or
        sandwich."""
        return f"{self.address}/#profileURL={pathlib.Path(profile).name}&view={view}"

    def open(self, browser, profile, view):
        """Loads a file."""
        self.put(profile)
        browser.driver.get("about:blank")
        browser.driver.get(self.page(profile, view))
        wait_for(lambda: "(1/" in text(browser) or "Something went wrong" in text(browser), what="the profile")


def text(browser):
    return browser.js("return document.body.innerText")


def profile_name(browser):
    """The name of the profile that is shown, and its number: "live bytes (1/4)"."""
    return text(browser).split("\n")[1]


def next_profile(browser):
    before = profile_name(browser)
    browser.one("body").send_keys("n")
    wait_for(lambda: profile_name(browser) != before, what="the next profile")


def tables(browser):
    """The rows of each table, as texts. The list of profiles comes first, the functions last."""
    return browser.js("return [...document.querySelectorAll('table')].map((table) => [...table.rows].map((row) => "
                      "[...row.cells].map((cell) => cell.textContent)))")


def sandwich(browser):
    """{(total, self, function)}, as texts without percentages. Of a long table only the visible part is returned."""
    return {(total.split(" (")[0], own.split(" (")[0], name) for total, own, name in tables(browser)[-1]}


def totals(browser):
    """{name of a profile: its total, as text}"""
    return {name: total for _, name, total in tables(browser)[0][1:]}

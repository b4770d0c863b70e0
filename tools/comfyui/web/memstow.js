// memstow.js: the tab "Memory" in ComfyUI's side bar. In: figures by ComfyUI's web socket while the tab is open. Out:
// bars, models and the last run on the page; orders for a model to the server. Texts of the program are only ever set
// as text, never as HTML. Nothing is loaded from other sites.
import { app } from "../../scripts/app.js";
import { api } from "../../scripts/api.js";
import { absent, whyAbsent } from "./absent.js";
import { badges } from "./badges.js";
import { Curve } from "./curve.js";
import { outcomeOf, size, text, whenLanguageChanges } from "./messages.js";
import { STYLE } from "./style.js";
import { ended, listenToEnds, teller } from "./tickets.js";
import { element, post } from "./tools.js";
import { Work } from "./work.js";

const RENEW_MS = 20_000;
const BADGES = "memstow.badges", LEAKS = "memstow.leaks";
const MOST = 1000; // the highest priority; the lowest is -MOST
const POLICIES = ["none", "keep", "stow", "free"];
const MOVES = ["stow", "restore"];
const DONE = { stow: "stowed", restore: "restored", free: "freed" }; // order -> key of the message about its end

function toast(severity, detail) {
    const life = severity === "error" ? 10_000 : 5_000;
    app.extensionManager.toast.add({ severity, summary: "memstow", detail, life });
}

// ---- parts of the tab, made from figures

// A bar of parts [{ name, bytes, kind }]. The list below it has the same figures, for people who do not see the bar.
function bar(title, total, parts) {
    const shown = parts.filter((part) => part.bytes > 0);
    const segments = shown.map((part) => element("span", {
        class: `memstow-part memstow-is-${part.kind}`,
        title: text("named", { name: part.name, value: size(part.bytes) }),
        style: `width: ${(100 * part.bytes) / Math.max(total, 1)}%`,
    }));
    const rows = shown.map((part) => element("li", {},
        element("span", { class: `memstow-mark memstow-is-${part.kind}`, "aria-hidden": "true" }),
        element("span", { class: "memstow-name", title: part.name }, part.name),
        element("span", { class: "memstow-number" }, size(part.bytes))));
    return element("section", { "aria-label": title },
        element("h3", {}, title, element("span", { class: "memstow-number" }, size(total))),
        element("div", { class: "memstow-bar", "aria-hidden": "true" }, ...segments),
        element("ul", { class: "memstow-legend" }, ...rows));
}

export function labelOf(model) {
    return model.origin ? `${model.name} (${model.origin})` : model.name;
}

const sum = (list, bytesOf) => list.reduce((all, one) => all + bytesOf(one), 0);
const residentOf = (model) => Math.min(model.resident_bytes, model.live_bytes);
const stowedOfHost = (model) => model.stowed_bytes - model.device_stowed_bytes;
// The part of a model's stowed memory that came back because it was used. To the kernel, the pages of this part are
// pages of mapped files.
const cameBack = (model) => Math.max(residentOf(model) - model.live_bytes + stowedOfHost(model), 0);

// The parts of the machine's memory: each model with its resident bytes on the host, other memory of this process in
// three parts, other programs, and free memory.
export function hostParts(figures) {
    const { total_bytes, available_bytes, resident_bytes, glibc_free_bytes, file_bytes } = figures.memory;
    const models = figures.models.map((model) => ({ name: labelOf(model), bytes: residentOf(model), kind: "model" }));
    let left = resident_bytes - sum(models, (model) => model.bytes);
    const take = (bytes) => {
        const taken = Math.max(Math.min(bytes, left), 0);
        left -= taken;
        return taken;
    };
    return [...models,
        { name: text("mappedFiles"), bytes: take(file_bytes - sum(figures.models, cameBack)), kind: "files" },
        { name: text("keptByAllocator"), bytes: take(glibc_free_bytes), kind: "kept" },
        { name: text("otherOfComfyui"), bytes: take(left), kind: "other" },
        { name: text("otherPrograms"), bytes: Math.max(total_bytes - available_bytes - resident_bytes, 0),
            kind: "system" },
        { name: text("available"), bytes: available_bytes, kind: "free" }];
}

// The bar of a device. "Other" is memory of nodes, of other programs, and of the driver.
function deviceBar(figures, device) {
    const models = figures.models.map((model) => ({
        name: labelOf(model), bytes: model.on_device_bytes[device.device] ?? 0, kind: "model",
    }));
    const ofModels = sum(models, (model) => model.bytes);
    const others = Math.max(device.total_bytes - device.free_bytes - ofModels, 0);
    const kept = Math.min(device.kept_bytes, others);
    return bar(text("gpu", { number: device.device, name: device.name }), device.total_bytes, [...models,
        { name: text("keptByPytorch"), bytes: kept, kind: "kept" },
        { name: text(ofModels ? "other" : "inUse"), bytes: others - kept, kind: "other" },
        { name: text("free"), bytes: device.free_bytes, kind: "free" }]);
}

const NOT_IN_RAM_LEAST = 1 << 16; // bytes

function where(model) {
    const ofHost = model.live_bytes - stowedOfHost(model), inRam = Math.min(residentOf(model), ofHost);
    const notInRam = ofHost - inRam;
    const places = [[inRam, "inRam"], [notInRam < NOT_IN_RAM_LEAST ? 0 : notInRam, "notInRam"],
        [model.cuda_bytes - model.device_stowed_bytes, "onGpu"], [model.stowed_bytes, "stowedThere"]];
    const words = places.filter(([bytes]) => bytes > 0).map(([bytes, key]) => text(key, { size: size(bytes) }));
    return words.join(", ") || text("nothing");
}

function lastRun(last) {
    if (!last) return element("section", { "aria-label": text("lastRun") }, element("h3", {}, text("lastRun")),
        element("p", {}, text("noRun")));
    const row = (name, before, atMost, after) => element("tr", {}, element("th", { scope: "row", title: name }, name),
        ...Object.entries({ before, atMost, after }).map(([key, bytes]) => element("td", { "data-label": text(key) },
            bytes === null ? "?" : size(bytes))));
    const group = (kind, title, rows) => rows.length ? element("tbody", { "data-of": kind }, element("tr", {},
        element("th", { scope: "rowgroup", colspan: 4 }, element("em", {}, title))), ...rows) : null;
    const nodes = last.nodes.map((node) => row(`${node.class} #${node.node}`, node.before_bytes, node.peak_bytes,
        node.after_bytes));
    const models = last.models.flatMap((model) => [
        row(labelOf(model), model.before_bytes, model.peak_bytes, model.after_bytes),
        ...(model.peak_cuda_bytes ? [row(text("gpuOf", { model: labelOf(model) }), model.before_cuda_bytes,
            model.peak_cuda_bytes, model.after_cuda_bytes)] : [])]);
    const { rss } = last;
    return element("section", { "aria-label": text("lastRun"), class: "memstow-run" },
        element("h3", {}, text("runEnded", { run: last.run, outcome: outcomeOf(last) })),
        element("table", {},
            element("thead", {}, element("tr", {}, ...["", "before", "atMost", "after"].map(
                (key) => element("th", { scope: "col" }, key && text(key))))),
            element("tbody", {}, row(text("residentMemory"), rss.before_bytes, rss.peak_bytes, rss.after_bytes)),
            group("models", text("liveOfModels"), models), group("nodes", text("liveWhileNodeRan"), nodes)),
        element("p", { class: "memstow-line" }, last.text.replace(/^memstow: /, "")));
}

// The innermost Python line of a leak's stack that is not in a library; else the innermost Python line; else the
// innermost frame.
function lineOf(leak) {
    const lines = leak.stack.filter((frame) => frame.kind === "python");
    const own = lines.find((frame) => !/\/(site|dist)-packages\/|\/lib\/python3/.test(frame.file ?? ""));
    const line = own ?? lines[0] ?? leak.stack[0];
    if (!line) return "";
    return line.file ? `${line.function}, ${line.file.split("/").pop()}:${line.line}` : line.function;
}

function leaksOf(document) {
    if (!document.leaks.length) return [];
    const rows = document.leaks.map((leak) => element("li", {},
        element("strong", {}, text("perRun", { size: size(Math.round(leak.bytes_per_run)) })), " ", text("named", {
            name: [leak.node, leak.model].filter(Boolean).join(", ") || text("outsideOfNodes"),
            value: lineOf(leak) })));
    return [element("section", { class: "memstow-leaks", role: "status", "aria-label": text("leaks") },
        element("h3", {}, text(document.leaks.length === 1 ? "aLeak" : "someLeaks", { count: document.leaks.length })),
        element("ul", {}, ...rows),
        element("a", { href: api.apiURL("/memstow/page"), target: "_blank", rel: "noopener" },
            text("allAboutIt")))];
}

// Asks the server for leaks. null: it has no answer.
async function leaksNow() {
    const answer = await api.fetchApi("/memstow/leaks");
    return answer.ok ? leaksOf(await answer.json()) : null;
}

// The models that a button of ComfyUI's would take, and their size, as text.
function takenBy(figures, ids, sizeOf) {
    const models = figures.models.filter((model) => ids.includes(model.id));
    const bytes = sum(models, sizeOf);
    if (!models.length) return text("noModel");
    return text("named", { name: models.map(labelOf).join(", "), value: size(bytes) });
}

// ComfyUI's two buttons. A text beside each button says which models the button would take.
class Buttons {
    constructor(make) {
        this.unload = element("p", { id: "memstow-unload", class: "memstow-line" });
        this.free = element("p", { id: "memstow-free", class: "memstow-line" });
        const button = (name, flags, words) => {
            const made = make(name, async () => {
                const answer = await api.fetchApi("/free", {
                    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(flags) });
                if (!answer.ok) throw new Error(text("status", answer));
                toast("info", text("askedFor", { button: name }));
            });
            made.setAttribute("aria-describedby", words.id);
            return made;
        };
        this.section = element("section", { class: "memstow-free-buttons", "aria-label": text("comfyuiButtons") },
            element("h3", {}, text("comfyuiButtons")),
            button(text("unload"), { unload_models: true }, this.unload), this.unload,
            button(text("freeCache"), { unload_models: true, free_memory: true }, this.free), this.free);
    }

    show(figures) {
        const { unload, free } = figures.takes;
        const onGpu = takenBy(figures, unload, (model) => model.cuda_bytes);
        this.unload.textContent = text("unloadTakes", { models: onGpu });
        const all = takenBy(figures, free, (model) => model.live_bytes + model.cuda_bytes);
        this.free.textContent = text("freeTakes", { models: all });
    }
}

// A list of the memory of models that are gone, and of the objects that hold it.
function leftOf(left) {
    if (!left.length) return [];
    const rows = left.map((one) => element("li", {}, element("strong", {}, labelOf(one)), " ", text("named", {
        name: size(one.live_bytes),
        value: one.holders.length ? text("heldBy", { holders: one.holders.join("; ") }) : text("heldUnknown") })));
    return [element("section", { "aria-label": text("leftBehind") },
        element("h3", {}, text("leftBehindLong")), element("ul", { class: "memstow-gone" }, ...rows))];
}

// The effect of a chosen policy, as text.
function policyOf(model, { policy, priority }) {
    if (policy === "none") return text("policyNone");
    const [plain, withPriority] = model.is_remembered ? ["policyKept", "policyPriorityKept"]
        : ["policyUntil", "policyPriorityUntil"];
    return text(priority ? withPriority : plain, { policy, priority });
}

// ---- the tab itself

const tab = {
    root: null, body: null, timer: 0, figures: null, rows: new Map(), judged: null, curve: null, buttons: null,
    // made: kind of page → URL of the latest page. moves: id of a model → the move for which the tab waits.
    // absence: why there are no figures
    made: {}, moves: new Map(), absence: null, renewing: null,

    open(root) {
        this.root = root;
        this.timer = setInterval(() => this.renew(), RENEW_MS);
        return this.draw();
    },

    // Makes the tab anew, in the present language. The progress of unfinished work stays, and so do links to pages.
    draw() {
        const { root } = this;
        const part = (name, role) => root.querySelector(`.${name}`) ?? element("div", { class: name, role });
        this.judged = this.absence = null;
        this.rows.clear();
        root.replaceChildren(element("div", { class: "memstow" },
            element("h2", {}, text("memory")),
            element("div", { class: "memstow-buttons", role: "group", "aria-label": text("memoryOfAll") },
                this.button(text("apply"), () => this.apply()),
                this.button(text("snapshot"), () => this.snapshot()),
                this.button(text("page"), () => this.page("page", text("page"))),
                this.button(text("diff"), () => this.page("diff", text("whatGrew"))),
                element("a", { href: api.apiURL("/memstow/report?format=text"), target: "_blank", rel: "noopener" },
                    text("lastReport"))),
            part("memstow-work"), part("memstow-ready", "status"),
            element("div", { class: "memstow-body", "aria-live": "off" }, "…")));
        this.body = root.querySelector(".memstow-body");
        if (this.figures) this.show(this.figures); // the answer of the server may take a while
        return this.renew();
    },

    close() {
        clearInterval(this.timer);
        if (this.root) this.leave();
        this.root = this.body = this.figures = this.judged = null;
        this.rows.clear();
    },

    // Waits for the answer to the latest request, and then tells the server that the tab is closed. If that request
    // arrived afterwards, the server would take the tab for open.
    async leave() {
        await this.renewing;
        if (!this.root) await post("/memstow/watch", { client: api.clientId, open: false }).catch(() => {});
    },

    renew() {
        this.renewing = this.renewed();
        return this.renewing;
    },

    // Tells the server that the tab is still open, and shows the present figures.
    async renewed() {
        const root = this.root;
        try {
            const figures = await post("/memstow/watch", { client: api.clientId, open: true });
            if (this.root === root && root) this.show(figures);
        } catch (error) {
            if (this.root !== root || !root) return;
            if (error.status === 404 || error.status === 405) await this.missing();
            else if (!this.figures && this.absence === null)
                this.body.textContent = text("noFigures", { why: error.message });
        }
    },

    // Says why memstow's routes do not exist. While the reason stays the same, the tab is not drawn anew, because the
    // user may have pressed the button in it.
    async missing() {
        const { root } = this, why = await whyAbsent();
        if (this.root !== root || !root || why === "under" || why === this.absence) return;
        this.absence = why;
        this.figures = null;
        root.querySelector(".memstow-buttons").hidden = true;
        this.body.replaceChildren(...absent(why, (name, act) => this.button(name, act)));
    },

    button(name, act) {
        return element("button", { type: "button", onclick: async (event) => {
            const pressed = event.currentTarget, hadFocus = document.activeElement === pressed;
            pressed.disabled = true; // a button that is disabled loses the focus
            try {
                await act();
            } catch (error) {
                toast("error", error.message);
            }
            pressed.disabled = false;
            if (hadFocus && document.activeElement === document.body) pressed.focus();
        } }, name);
    },

    async apply() {
        const done = await ended(await post("/memstow/trigger", { reason: "the button in the page", ...teller() }));
        toast("success", done.text.replace(/^memstow: /, ""));
        await this.renew();
    },

    // Does long work (`act`). If the user cancels it, that is no error, and the result is null. `begun` puts the line
    // with the progress into the page.
    async work(words, cancelled, act, begun = ({ line }) => this.root.querySelector(".memstow-work").append(line)) {
        const work = new Work(words, async () => (await post("/memstow/cancel", cancelled)).cancelled);
        begun(work);
        try {
            return await act();
        } catch (error) {
            if (!work.isCancelled) throw error;
            toast("info", text("workCancelled", { work: words }));
            return null;
        } finally {
            work.end();
        }
    },

    async snapshot() {
        const done = await this.work(text("snapshot"), { what: "snapshot" }, () => post("/memstow/snapshot", {}));
        if (done) toast("success", text("snapshotMade", done));
    },

    // Lets the server make a page, and shows a link to the page. The page does not open by itself, because a browser
    // opens no window long after a click.
    async page(what, words) {
        const { root } = this;
        const body = await this.work(words, { what }, async () => {
            const answer = await api.fetchApi(`/memstow/${what}`);
            if (!answer.ok) throw new Error(await answer.text());
            return answer.blob();
        });
        if (!body) return;
        URL.revokeObjectURL(this.made[what]);
        this.made[what] = URL.createObjectURL(body);
        root.querySelector(`[data-made=${what}]`)?.remove();
        root.querySelector(".memstow-ready").append(element("p", { "data-made": what },
            element("a", { href: this.made[what], target: "_blank" }, text("openPage", { page: words })),
            text("madeAt", { time: new Date().toLocaleTimeString() })));
    },

    async order(model, body) {
        const busy = this.figures && this.figures.is_busy;
        const asked = await post("/memstow/model", { owner: model.id, ...body, ...teller() });
        if (busy && !asked.done) toast("info", text("afterRun"));
        const done = await this.waited(model, body, asked);
        if (!done) return this.renew();
        const what = body.do === "policy" ? policyOf(model, body)
            : body.do === "why" ? done.text : text(DONE[body.do], { size: size(done.given_bytes) });
        toast("success", text("named", { name: labelOf(model), value: what }));
        await this.renew();
    },

    // Waits until an order for a model is done. A move shows its progress in the model's row. Returns null if the move
    // was cancelled.
    async waited(model, body, asked) {
        if (!MOVES.includes(body.do)) return ended(asked);
        const begun = (work) => {
            this.moves.set(model.id, { work, isOut: body.do === "stow" });
            this.rows.get(model.id)?.append(work.line);
        };
        try {
            return await this.work(text("actOn", { act: text(body.do), model: labelOf(model) }),
                { what: "move", owner: model.id }, () => ended(asked), begun);
        } finally {
            this.moves.delete(model.id);
        }
    },

    // The row of a model. It is made once and updated later, so that a pressed button and an open list of policies stay
    // as they are. It is made anew if the model has another name: after a restart of ComfyUI, another model may have
    // the same id.
    row(model) {
        const name = labelOf(model);
        let row = this.rows.get(model.id);
        if (row?.querySelector("strong").textContent !== name) {
            const choose = async () => {
                try {
                    if (!priority.checkValidity()) throw new Error(text("priorityRange", { least: -MOST, most: MOST }));
                    await this.order(model, { do: "policy", policy: choice.value, priority: priority.valueAsNumber });
                } catch (error) {
                    toast("error", error.message);
                }
            };
            const choice = element("select", { "aria-label": text("policyOf", { model: name }), onchange: choose },
                ...POLICIES.map((policy) => element("option", { value: policy }, policy)));
            const priority = element("input", { type: "number", min: -MOST, max: MOST, step: 1, required: true,
                "aria-label": text("priorityOf", { model: name }), onchange: choose, title: text("priorityTooltip") });
            const act = (what, title, label = text("actOn", { act: title, model: name })) => {
                const button = this.button(title, () => this.order(model, { do: what }));
                button.setAttribute("aria-label", label);
                return button;
            };
            row = element("li", { class: "memstow-model", "data-owner": model.id },
                element("strong", { title: name }, name), element("span", { class: "memstow-where" }),
                element("span", { class: "memstow-why" }), element("span", { class: "memstow-reason" }),
                element("span", { class: "memstow-acts" }, choice,
                    element("label", {}, text("priority"), priority), act("stow", text("stow")),
                    act("restore", text("restore")), act("free", text("freeNow")),
                    act("why", text("why"), text("whyHere", { model: name }))), this.moves.get(model.id)?.work.line);
            this.rows.set(model.id, row);
        }
        const choice = row.querySelector("select"), policy = model.policy ?? "none", move = this.moves.get(model.id);
        if (move && model.live_bytes + model.cuda_bytes) {
            const out = model.stowed_bytes / (model.live_bytes + model.cuda_bytes);
            move.work.at(move.isOut ? out : 1 - out);
        }
        row.querySelector(".memstow-where").textContent = where(model);
        row.querySelector(".memstow-why").textContent = text("named", { name: policy,
            value: model.rule }) + (model.is_loaded ? text("loaded") : "");
        row.querySelector(".memstow-reason").textContent = model.why ? text("hereBecause", model) : "";
        if (document.activeElement !== choice) choice.value = policy;
        const priority = row.querySelector("input");
        priority.disabled = policy === "none";
        if (document.activeElement !== priority) priority.value = model.priority;
        return row;
    },

    show(figures) {
        this.figures = figures;
        this.absence = null;
        this.root.querySelector(".memstow-buttons").hidden = false;
        const models = [...figures.models].sort((a, b) => b.live_bytes + b.cuda_bytes - a.live_bytes - a.cuda_bytes);
        const ids = new Set(models.map((model) => model.id));
        for (const id of this.rows.keys()) if (!ids.has(id)) this.rows.delete(id);
        let list = this.body.querySelector(".memstow-models");
        if (!list) {
            this.curve = new Curve();
            this.buttons = new Buttons((text, act) => this.button(text, act));
            list = element("ul", { class: "memstow-models" });
            this.body.replaceChildren(element("div", { class: "memstow-warning" }),
                element("div", { class: "memstow-above" }),
                element("section", { "aria-label": text("models") }, element("h3", {}, text("models")), list,
                    element("p", { class: "memstow-none" }, text("noModels"))),
                this.buttons.section, element("div", { class: "memstow-left" }), this.curve.section,
                element("div", { class: "memstow-below" }));
        }
        this.body.querySelector(".memstow-above").replaceChildren(
            bar(text("ram"), figures.memory.total_bytes, hostParts(figures)),
            ...figures.devices.map((device) => deviceBar(figures, device)));
        const rows = models.map((model) => this.row(model));
        if (rows.length !== list.children.length || rows.some((row, i) => row !== list.children[i])) {
            const focused = document.activeElement;
            list.replaceChildren(...rows);
            if (list.contains(focused)) focused.focus();
        }
        this.body.querySelector(".memstow-none").hidden = rows.length > 0;
        this.body.querySelector(".memstow-left").replaceChildren(...leftOf(figures.left));
        this.buttons.show(figures);
        this.curve.show(figures.runs);
        this.body.querySelector(".memstow-below").replaceChildren(lastRun(figures.last));
        this.judge();
    },

    // Asks the server for leaks, after a run has ended. ComfyUI must be idle, because it collects its garbage for the
    // answer.
    async judge(isAnew = false) {
        const { root, figures } = this;
        if (isAnew) this.judged = null;
        if (app.extensionManager.setting.get(LEAKS) === false) {
            this.body.querySelector(".memstow-warning")?.replaceChildren();
            return;
        }
        if (!figures?.last || figures.last.run === this.judged || figures.is_busy || this.judging) return;
        this.judging = true;
        this.judged = figures.last.run;
        const found = await leaksNow().catch(() => null);
        this.judging = false;
        if (found && this.root === root) this.body.querySelector(".memstow-warning")?.replaceChildren(...found);
        if (this.root) this.judge(); // for runs that have ended meanwhile, and for a tab that was opened meanwhile
    },
};

app.registerExtension({
    name: "memstow.memory",
    settings: [{
        id: "memstow.start", category: ["memstow", "Start", "Start"], name: "Start ComfyUI under memstow",
        type: "boolean", defaultValue: false,
        tooltip: "From the next start of ComfyUI on. MEMSTOW=0 in its environment prevents it.",
    }, {
        id: BADGES, category: ["memstow", "Canvas", "Badges"], name: "Show on each node what it held in the last run",
        type: "boolean", defaultValue: false, onChange: (wanted) => badges.want(wanted === true),
        tooltip: "The most memory that each node added while it ran, and how much of this memory stayed.",
    }, {
        id: LEAKS, category: ["memstow", "Side bar", "Leaks"], name: "Look for leaks when runs have ended",
        type: "boolean", defaultValue: true, onChange: () => tab.root && tab.judge(true),
        tooltip: "While the tab Memory is open and ComfyUI is idle. Each look collects Python's garbage.",
    }],
    nodeCreated: (node) => badges.add(node),
    setup() {
        badges.listen();
        listenToEnds();
        whenLanguageChanges(() => tab.root && tab.draw());
        document.head.append(element("style", {}, STYLE));
        api.addEventListener("memstow.figures", (event) => tab.root && tab.show(event.detail));
        api.addEventListener("reconnected", () => tab.root && tab.renew());
        app.extensionManager.registerSidebarTab({
            id: "memstow", icon: "pi pi-chart-bar", title: text("memory"), tooltip: text("memoryTooltip"),
            type: "custom", render: (root) => tab.open(root), destroy: () => tab.close(),
        });
    },
});

// badges.js: shows on each node of the canvas how much memory it held in the last run, if the user wants badges. In:
// figures of nodes by ComfyUI's web socket when a run has ended. Out: a badge on each node that ran.
import { app } from "../../scripts/app.js";
import { api } from "../../scripts/api.js";
import { size, text } from "./messages.js";
import { post } from "./tools.js";

// The node with this id in a prompt. The id of a node inside a subgraph is "outer:inner".
function nodeOf(id) {
    let graph = app.graph?.rootGraph ?? app.graph, node = null;
    for (const part of String(id).split(":")) {
        node = graph?.getNodeById(/^\d+$/.test(part) ? Number(part) : part);
        graph = node?.subgraph;
    }
    return node;
}

export const badges = {
    wanted: false, asked: null, figures: new WeakMap(), // asked: id of the client for which figures were asked

    want(wanted) {
        this.wanted = wanted;
        if (!wanted && this.asked) post("/memstow/badges", { client: this.asked, on: false }).catch(() => {});
        if (!wanted) this.asked = null;
        this.show([]);
        this.ask();
    },

    // Asks for figures once for each id that the web socket gives this client. After a restart of ComfyUI (isAnew) the
    // client must ask again with the same id.
    async ask(isAnew = false) {
        if (!this.wanted || !api.clientId || (!isAnew && this.asked === api.clientId)) return;
        this.asked = api.clientId;
        try {
            this.show((await post("/memstow/badges", { client: this.asked, on: true })).nodes);
        } catch {
            this.asked = null; // ComfyUI does not run under memstow, or does not know the client yet
        }
    },

    show(nodes) {
        this.figures = new WeakMap(nodes.map((one) => [nodeOf(one.node), one]).filter(([node]) => node));
        app.graph?.setDirtyCanvas?.(true, true);
    },

    textOf(node) {
        const figures = this.wanted && this.figures.get(node);
        if (!figures) return "";
        return text("badge", { most: size(figures.most_bytes), stayed: size(figures.stayed_bytes) });
    },

    // A badge without text is not drawn.
    add(node) {
        if (window.LGraphBadge && Array.isArray(node.badges))
            node.badges.push(() => new window.LGraphBadge({ text: this.textOf(node) }));
    },

    listen() {
        api.addEventListener("memstow.nodes", (event) => this.show(event.detail.nodes));
        api.addEventListener("status", () => this.ask());
        api.addEventListener("reconnected", () => this.ask(true));
    },
};

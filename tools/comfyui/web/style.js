// style.js: the look of the tab "Memory". In: the colours of ComfyUI's theme. Out: rules of CSS, all for .memstow. The
// tab may be as narrow as 70 pixels: a tenth of a small window.
export const STYLE = `
.memstow { padding: 0.75rem; overflow-y: auto; height: 100%; box-sizing: border-box; font-size: 0.85rem;
    color: var(--fg-color, #ddd); container-type: inline-size; overflow-wrap: anywhere; }
.memstow h2 { font-size: 1.1rem; margin: 0 0 0.5rem; }
.memstow h3 { font-size: 0.95rem; margin: 1rem 0 0.3rem; display: flex; flex-wrap: wrap;
    justify-content: space-between; }
.memstow ul { list-style: none; margin: 0; padding: 0; }
.memstow [hidden] { display: none; }
.memstow-bar { display: flex; height: 1.1rem; border-radius: 0.25rem; overflow: hidden;
    background: var(--comfy-input-bg, #222); }
.memstow-part { height: 100%; min-width: 1px; box-sizing: border-box;
    border-right: 1px solid var(--comfy-menu-bg, #353535); }
.memstow-is-model { background: #4c8dd6; } .memstow-is-kept { background: #c9a227; }
.memstow-is-other { background: #8a63c7; } .memstow-is-system { background: #777; }
.memstow-is-files { background: #3f9a6b; }
.memstow-is-free { background: transparent; border: 1px solid var(--border-color, #555); }
.memstow-legend li { display: flex; flex-wrap: wrap; align-items: center; column-gap: 0.4rem; }
.memstow-mark { width: 0.7rem; height: 0.7rem; flex: none; border-radius: 0.15rem; }
.memstow-name, .memstow-models strong { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.memstow-name { flex: 1; min-width: 0; }
.memstow-number { font-variant-numeric: tabular-nums; white-space: nowrap; margin-left: auto; }
.memstow-models > li { display: flex; flex-direction: column; padding: 0.4rem 0;
    border-bottom: 1px solid var(--border-color, #555); }
.memstow-free-buttons p { margin: 0.1rem 0 0.4rem; }
.memstow-why, .memstow-reason, .memstow-line { color: var(--descrip-text, #999); overflow-wrap: anywhere; }
.memstow-gone li { overflow-wrap: anywhere; padding: 0.2rem 0; }
.memstow-acts, .memstow-buttons { display: flex; flex-wrap: wrap; gap: 0.3rem; align-items: center;
    margin-top: 0.3rem; }
.memstow button, .memstow select, .memstow input { font: inherit; color: var(--input-text, #ddd); cursor: pointer;
    background: var(--comfy-input-bg, #222); border: 1px solid var(--border-color, #555); border-radius: 0.25rem;
    padding: 0.15rem 0.5rem; max-width: 100%; box-sizing: border-box; }
.memstow label { display: flex; flex-wrap: wrap; align-items: center; gap: 0.3rem; max-width: 100%; }
.memstow input { width: 4rem; cursor: text; }
.memstow button:disabled { opacity: 0.5; cursor: progress; }
.memstow :focus-visible { outline: 2px solid #4c8dd6; outline-offset: 1px; }
.memstow-type { padding: 0.4rem; background: var(--comfy-input-bg, #222); white-space: pre-wrap; user-select: all;
    overflow-wrap: anywhere; }
.memstow a { color: inherit; }
.memstow-picture { height: 90px; }
.memstow-curve svg { display: block; width: 100%; height: 100%; }
.memstow-curve .memstow-line-of { fill: none; stroke: #4c8dd6; stroke-width: 2; vector-effect: non-scaling-stroke; }
.memstow-curve text { fill: var(--fg-color, #ddd); font-size: 10px; }
.memstow-curve .memstow-grid { stroke: var(--border-color, #555); stroke-width: 1; }
.memstow-curve .memstow-bad { stroke: #d9534f; stroke-width: 2; } .memstow-curve .memstow-gave { fill: #c9a227; }
.memstow-curve .memstow-top { fill: #4c8dd6; }
.memstow summary { cursor: pointer; }
.memstow-work-line { display: flex; flex-wrap: wrap; gap: 0.4rem; align-items: center; margin-top: 0.3rem; }
.memstow-work-line progress { flex: 1 1 3rem; min-width: 0; }
.memstow-ready p { margin: 0.3rem 0 0; }
.memstow-leaks { border-left: 0.25rem solid #d9534f; padding-left: 0.5rem; overflow-wrap: anywhere; }
.memstow table { width: 100%; border-collapse: collapse; }
.memstow table, .memstow thead, .memstow tbody { display: block; }
.memstow tr { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); } /* a name has its own line */
.memstow thead th:first-child { display: none; }
.memstow th, .memstow td { font-weight: normal; text-align: right; font-variant-numeric: tabular-nums;
    padding: 0.1rem; }
.memstow tbody th { grid-column: 1 / -1; text-align: left; overflow: hidden; text-overflow: ellipsis;
    white-space: nowrap; padding-top: 0.3rem; }
@container (max-width: 12rem) { /* three sizes are wider than the tab: each has its own line, with its name */
    .memstow tr { grid-template-columns: minmax(0, 1fr); }
    .memstow thead { display: none; }
    .memstow td { display: flex; flex-wrap: wrap; justify-content: space-between; column-gap: 0.4rem; }
    .memstow td::before { content: attr(data-label); color: var(--descrip-text, #999); }
    .memstow-models strong, .memstow-name, .memstow tbody th { white-space: normal; }
    .memstow-legend li { align-items: flex-start; padding-bottom: 0.2rem; }
    .memstow-legend .memstow-mark { margin-top: 0.2rem; }
    .memstow-legend .memstow-number { flex-basis: 100%; text-align: right; }
    .memstow-number { white-space: normal; }
    .memstow button, .memstow select { padding: 0.15rem 0.25rem; }
}
@container (max-width: 6rem) {
    .memstow > *, .memstow > h2 { margin-left: -0.5rem; margin-right: -0.5rem; }
    .memstow > h2 { font-size: 0.95rem; }
}
`;

# needs: deb:nodejs
"""Names and figures in the frames of the flame graph can be read: over every fill of the palette, light and dark, faded
or found, text has a contrast of at least 4.5 : 1, as WCAG asks of small text. axe cannot see into a canvas."""
import json, shutil

import support

COPY = support.HERE / "web" # older versions of Node want to be told that files are modules
shutil.copytree(support.ROOT / "tools/web", COPY)
(COPY / "package.json").write_text('{"type": "module"}')

support.run("node", "--input-type=module", "-e", f"""
import assert from "node:assert/strict";
const {{ Palette, FIGURE_OPACITY, OUTER_OPACITY, UNFOUND_OPACITY }} = await import({json.dumps(
    (COPY / "colour.js").as_uri())});

const toLight = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
const fromLight = (value) => (value <= 0.0031308 ? value * 12.92 : 1.055 * value ** (1 / 2.4) - 0.055);
const within = (value) => Math.min(1, Math.max(0, value));

/** "#rrggbb" or "oklch(lightness chroma hue)" as red, green and blue from 0 to 1. */
function colourOf(text) {{
    if (text.startsWith("#")) return [1, 3, 5].map((at) => Number.parseInt(text.slice(at, at + 2), 16) / 255);
    const [lightness, chroma, hue] = /oklch\\((.*)\\)/.exec(text)[1].split(" ").map(Number);
    const [a, b] = [chroma * Math.cos(hue * Math.PI / 180), chroma * Math.sin(hue * Math.PI / 180)];
    const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
    const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
    const s = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3;
    return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
        -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
        -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s].map((value) => fromLight(within(value)));
}}

const over = (top, below, opacity) => top.map((value, i) => value * opacity + below[i] * (1 - opacity));
const luminance = (colour) => [0.2126, 0.7152, 0.0722].reduce((sum, part, i) => sum + part * toLight(colour[i]), 0);
function contrast(one, other) {{
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
}}
assert.ok(Math.abs(contrast([0, 0, 0], [1, 1, 1]) - 21) < 1e-9);
assert.ok(Math.abs(contrast(colourOf("#767676"), [1, 1, 1]) - 4.54) < 0.01); // a pair that is known
assert.deepEqual(colourOf("oklch(1 0 0)").map((value) => value.toFixed(3)), ["1.000", "1.000", "1.000"]);

function fills(palette) {{
    const named = ["python", "native", "owner"].flatMap((family) => Array.from({{ length: 3000 }},
        (_, i) => palette.fill(family, `name ${{i}}`)));
    const changes = Array.from({{ length: 201 }}, (_, i) => palette.fillOfChange(i / 100 - 1));
    return [...new Set([...named, ...changes, palette.fill("all", ""), palette.fill("allocator", "")])];
}}

for (const dark of [false, true]) {{
    const palette = new Palette(dark);
    const [text, back] = [palette.text, palette.back].map(colourOf);
    const opacities = [1, OUTER_OPACITY, UNFOUND_OPACITY];
    const shown = fills(palette).flatMap((fill) => opacities.map((opacity) => [fill, opacity]));
    let least = [99];
    for (const [fill, opacity] of [...shown, [palette.found, 1], [palette.found, OUTER_OPACITY]]) {{
        const box = over(colourOf(fill), back, opacity);
        for (const ink of [1, FIGURE_OPACITY]) {{
            const found = contrast(over(text, box, ink), box);
            if (found < least[0]) least = [found, fill, opacity, ink];
        }}
    }}
    assert.ok(least[0] >= 4.5, `${{dark ? "dark" : "light"}}: ${{least.join(" ")}}`);
}}
""")

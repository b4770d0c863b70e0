# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 600
"""Every view of every page at 1280, 2560 and 390 pixels: nothing overlaps, nothing is wider than the window, and no
text is cut off without an ellipsis. The views of a page take turns in light and dark; layout_long has each view in
both."""
import _layout
from _page import Browser

browser = Browser()
_layout.none_in(browser, lambda number: [_layout.THEMES[number % 2]])

# Faults that a script adds to a page are found. The page's policy allows no attribute "style", so the script sets the
# styles.
browser.js("""const add = (words, style) => Object.assign(document.body.appendChild(document.createElement("p")).style,
    style) && (document.body.lastChild.textContent = words);
add("one text", { position: "absolute", top: "0", left: "0" });
add("cut off here", { width: "20px", overflow: "hidden", whiteSpace: "nowrap" });
add("wide", { width: "3000px", flex: "none" });""")
said = " ".join(_layout.faults(browser)[0])
assert "overlap" in said and "pixels wide" in said and "is cut off by" in said, said

# long
# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 600
"""Every view of every page at 1280, 2560 and 390 pixels, in light and dark: nothing overlaps, nothing is wider than the
window, and no text is cut off without an ellipsis."""
import _layout
from _page import Browser

_layout.none_in(Browser(), lambda number: _layout.THEMES)

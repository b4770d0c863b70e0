# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:axe-core-python==0.1.0
# timeout: 600
"""axe finds no fault in any view of any page. The views of a page take turns: in light, in dark, on a phone.
accessible_long has each view in each of them."""
from _accessible import LOOKS, all_pages

all_pages(lambda number: [LOOKS[number % len(LOOKS)]])

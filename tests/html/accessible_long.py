# long
# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:axe-core-python==0.1.0
# timeout: 900
"""axe finds no fault in any view of any page: in light, in dark, and on a phone."""
from _accessible import LOOKS, all_pages

all_pages(lambda number: LOOKS)

#!/usr/bin/env python3
# needs: comfyui comfyui-front-ends deb:chromium deb:chromium-driver pip:selenium==4.51.0
# needs: pip:comfyui-frontend-package==1.32.9
# needs: pip:axe-core-python==0.1.0
# timeout: 3600
# long
"""The tab "Memory", with the buttons of models and of long work, and the badges of nodes in the newest front end of
November 2026: 1.58.1. ComfyUI's two buttons are not tried there: sidebar_buttons moves the edge of the side bar, which
is another element there."""
from _sidebar import with_front_end

with_front_end("1.58.1", "sidebar", "sidebar_badges", "sidebar_why", "sidebar_work")

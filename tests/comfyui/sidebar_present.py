#!/usr/bin/env python3
# needs: comfyui comfyui-front-ends deb:chromium deb:chromium-driver pip:selenium==4.51.0
# needs: pip:comfyui-frontend-package==1.32.9
# needs: pip:axe-core-python==0.1.0
# timeout: 3600
# long
"""Tests the tab "Memory", all its buttons, and the badges of nodes in ComfyUI's front end 1.58.1, the newest one of
November 2026."""
from _sidebar import with_front_end

with_front_end("1.58.1", "sidebar", "sidebar_badges", "sidebar_buttons", "sidebar_why", "sidebar_work")

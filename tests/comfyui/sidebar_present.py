#!/usr/bin/env python3
# needs: comfyui comfyui-front-ends deb:chromium deb:chromium-driver pip:selenium==4.51.0
# needs: pip:comfyui-frontend-package==1.32.9
# timeout: 1800
# long
"""The tab "Memory" and the badges of nodes in the newest front end of November 2026: 1.58.1."""
from _sidebar import with_front_end

with_front_end("1.58.1", "sidebar", "sidebar_badges")

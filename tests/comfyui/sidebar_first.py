#!/usr/bin/env python3
# needs: comfyui comfyui-front-ends deb:chromium deb:chromium-driver pip:selenium==4.51.0
# needs: pip:comfyui-frontend-package==1.32.9
# timeout: 1800
# long
"""The tab "Memory" and the badges of nodes in the front end that belongs to ComfyUI 0.3.64: 1.27.10. tests/check has
the same in two newer front ends: 1.32.9 (sidebar and sidebar_badges) and 1.58.1 (sidebar_present)."""
from _sidebar import with_front_end

with_front_end("1.27.10", "sidebar", "sidebar_badges")

"""The real ComfyUI-Manager as a node pack: PACK is for Comfy(packs=…). Newer versions of ComfyUI start Manager in
main.py; here a pack starts it. A test that uses it needs: comfyui-manager"""
import support

MANAGER = support.ROOT / "build/deps/comfyui-manager"
BEFORE = f'''
import os, sys
import folder_paths
from comfy.cli_args import args
folder = folder_paths.get_system_user_directory("manager")
os.makedirs(folder, exist_ok=True)
with open(os.path.join(folder, "config.ini"), "w") as file:
    file.write("[default]\\nnetwork_mode = offline\\nfile_logging = false\\n")
args.enable_manager = args.enable_manager_legacy_ui = True
sys.path.insert(0, "{MANAGER}")
import comfyui_manager
comfyui_manager.prestartup()
'''
START = '''
import comfyui_manager
comfyui_manager.start()
NODE_CLASS_MAPPINGS = {}
'''
PACK = {"manager": {"prestartup_script.py": BEFORE, "__init__.py": START}}


def need():
    if not MANAGER.is_dir():
        support.skip("ComfyUI-Manager is not installed: pip could not install comfyui-manager")

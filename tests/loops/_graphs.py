"""Shared by the tests of loops: node classes as a server describes them, and workflows."""
import sys

import support

sys.path.insert(0, str(support.ROOT / "tools/python"))


def described(outputs, is_output=False, **inputs):
    return {"input": {"required": {name: spec for name, spec in inputs.items() if not name.startswith("_")},
                      "optional": {name[1:]: spec for name, spec in inputs.items() if name.startswith("_")}},
            "output": list(outputs), "output_node": is_output}


CLASSES = {"DiscomfortPort": described(["*"], True, unique_id=["STRING", {}], _input_data=["*", {"forceInput": True}],
                                       _tags=["STRING", {}]),
           "Number": described(["INT"], value=["INT", {"default": 0}]),
           "Add": described(["INT"], a=["INT", {}], b=["INT", {"default": 1}]),
           "Text": described(["STRING"], text=["STRING", {"multiline": True}]),
           "Image": described(["IMAGE", "MASK"], image=[["a.png", "b.png"], {"image_upload": True}]),
           "Blur": described(["IMAGE"], image=["IMAGE"], radius=["FLOAT", {"default": 1.0}]),
           "Encode": described(["LATENT"], pixels=["IMAGE"], _mask=["IMAGE,MASK"]),
           "Sample": described(["LATENT"], latent=["LATENT"],
                               seed=["INT", {"default": 0, "control_after_generate": True}], steps=["INT", {}],
                               sampler=[["euler", "heun"]], denoise=["FLOAT", {"default": 1.0}]),
           "Show": described([], True, value=["*"]), "ShowImage": described([], True, image=["IMAGE"]),}


def port(id, source=None, tags=""):
    return {"class_type": "DiscomfortPort",
            "inputs": {"unique_id": id, "tags": tags, **({"input_data": source} if source else {})}}


def node(kind, **inputs):
    return {"class_type": kind, "inputs": inputs}


def refused(function, *words):
    """Asserts that the function raises a LoopError, and that the error's text is one short line with these words.
    Returns this text."""
    import memstow_loops
    try:
        result = function()
    except memstow_loops.LoopError as error:
        text = str(error)
        assert all(word in text for word in words), (text, words)
        assert "\n" not in text and len(text) < 400, text
        return text
    raise AssertionError(f"it was not refused: {result}")

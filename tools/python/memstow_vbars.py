"""Reports comfy-aimdo's device memory, which memstow does not see. comfy-aimdo maps memory for weights page by page,
with the driver's own functions, in ranges that it calls VBARs.

In: comfy-aimdo's ModelVBAR objects, through their own methods. Out: the owner of each VBAR, and how much of it is
resident. Never calls a method of a closed VBAR, or a method that changes a VBAR."""
from __future__ import annotations

import gc
import weakref
from types import ModuleType
from typing import Any, Callable, Iterator

PINNED = 2  # a bit of a page's flags in ModelVBAR.get_residency()
RESIDENT = 1


class Watch:
    """All VBARs of the process. A new VBAR is noted with the model in whose scope it was made."""

    def __init__(self, module: ModuleType, owner_now: Callable[[], int]) -> None:
        self.kind: Any = module.ModelVBAR
        self.owners: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
        made, owners = self.kind.__init__, self.owners

        def __init__(vbar: Any, *arguments: Any, **options: Any) -> None:
            made(vbar, *arguments, **options)
            owners[vbar] = owner_now()
        self.kind.__init__ = __init__
        for thing in gc.get_objects():
            if issubclass(type(thing), self.kind): # isinstance() would run the code of proxies
                owners.setdefault(thing, 0)

    def inside(self, thing: Any) -> list[Any]:
        """The thing itself, if it is a VBAR; else the VBARs in its attribute dynamic_vbars, which ComfyUI's models
        have."""
        if isinstance(thing, self.kind):
            return [thing]
        held = getattr(thing, "dynamic_vbars", None)
        return [vbar for vbar in list(held.values()) if isinstance(vbar, self.kind)] if isinstance(held, dict) else []

    def look(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(owner, device, address, size, resident, pinned) for each open VBAR. The last three are in bytes."""
        # keyrefs() returns a list: other threads may add VBARs during the iteration
        for reference in self.owners.keyrefs():
            vbar = reference()
            if vbar is None or not getattr(vbar, "_ptr", None) or not hasattr(vbar, "base_addr"):
                continue
            pages, resident = vbar.get_residency(), vbar.loaded_size()
            held = sum(1 for page in pages if page & RESIDENT)
            pinned = sum(1 for page in pages if page & PINNED) * resident // held if held else 0
            yield self.owners.get(vbar, 0), int(vbar.device), int(vbar.base_addr), int(vbar.max_size), resident, pinned

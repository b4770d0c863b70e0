"""What comfy-aimdo holds of a device, which memstow does not see: it maps memory for models' weights page by page, with
the driver's own functions, in ranges that it calls VBARs.

In: comfy-aimdo's ModelVBAR objects, asked through their own methods. Out: whose each is and what of it is resident.
Never: a call of a VBAR that is closed, and nothing that changes one."""
from __future__ import annotations

import gc
import weakref
from types import ModuleType
from typing import Any, Callable, Iterator

PINNED = 2  # of a page's flags, as ModelVBAR.get_residency() has them
RESIDENT = 1


class Watch:
    """All VBARs of the process, from now on with the model in whose scope they were made."""

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
        """The VBARs that a thing is or, as ComfyUI's models do, refers to."""
        if isinstance(thing, self.kind):
            return [thing]
        held = getattr(thing, "dynamic_vbars", None)
        return [vbar for vbar in list(held.values()) if isinstance(vbar, self.kind)] if isinstance(held, dict) else []

    def look(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """(owner, device, address, size, resident, pinned) of each that is open; bytes."""
        for reference in self.owners.keyrefs(): # a list: other threads make some meanwhile
            vbar = reference()
            if vbar is None or not getattr(vbar, "_ptr", None) or not hasattr(vbar, "base_addr"):
                continue
            pages, resident = vbar.get_residency(), vbar.loaded_size()
            held = sum(1 for page in pages if page & RESIDENT)
            pinned = sum(1 for page in pages if page & PINNED) * resident // held if held else 0
            yield self.owners.get(vbar, 0), int(vbar.device), int(vbar.base_addr), int(vbar.max_size), resident, pinned

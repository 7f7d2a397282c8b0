#!/usr/bin/env bash
# usage: run.sh BUILD_DIR. Installs kplan to a folder of its own, builds the program beside this script against it, runs it, and
# compares the README's program with it.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cmake --install "$1" --prefix "$work/prefix" >/dev/null
cmake -G Ninja -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_CXX_FLAGS="-Wall -Wextra -Werror" >/dev/null
cmake --build "$work/build" >/dev/null
got=$("$work/build/consumer")
[ "$got" = "1 2 3 4" ] || { echo "the program printed '$got', not '1 2 3 4'"; exit 1; }
# Not by a pipe to grep -q, which leaves at the first match: ldd would die of it now and then.
libraries=$(ldd "$work/build/consumer")
[[ "$libraries" == *"$work/prefix"* ]] || { echo "the program does not use the installed library"; exit 1; }
# Every public header compiles alone, and shows no dependency's types.
for header in "$work"/prefix/include/kplan/*.hpp; do
  [ "$(basename "$header")" = mpi.hpp ] && continue
  echo "#include <kplan/$(basename "$header")>" | c++ -std=c++20 -fsyntax-only -Wall -Wextra -Werror -I "$work/prefix/include" -x c++ -
  if grep -qE '#include *[<"](llvm|mpi\.h|rdma|nlohmann|fmt)' "$header"; then echo "$header includes a dependency"; exit 1; fi
done
program=$(sed -n '/^```cpp$/,/^```$/p' "$here/../../README.md" | sed '1d;$d')
[ "$program" = "$(cat "$here/main.cpp")" ] || { echo "the README's program is not tests/consumer/main.cpp"; exit 1; }
echo "the program outside the tree runs"

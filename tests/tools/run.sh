#!/bin/bash
# Drives the kplan command as its users do. run.sh KPLAN_BINARY PLANS_DIR [CASE] runs every case, two at a time, or one,
# and prints what failed; exits with 0 when nothing did. Cases are functions case_*, each in a directory of its own.
set -u

kplan=$(realpath "$1")
examples=$(realpath "$2")
[ -d "$examples/examples" ] && examples=$examples/examples
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
export TMPDIR=$scratch  # two mpirun that begin and end at once would meet in one session directory

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_SIZE PMI_RANK PMIX_RANK KPLAN_RENDEZVOUS KPLAN_RANK KPLAN_SIZE

failures=0
count=0
fail() {
  failures=$((failures + 1))
  echo "FAILED: $current: $*"
  [ -s stderr ] && sed 's/^/    stderr: /' stderr | head -8
  [ -s stdout ] && sed 's/^/    stdout: /' stdout | head -8
}

# expect CODE ARGUMENTS...: runs kplan; errors must be on stderr alone, success must leave stderr empty.
expect() {
  local code=$1
  shift
  count=$((count + 1))
  timeout 120 "$kplan" "$@" >stdout 2>stderr
  local got=$?
  if [ $got -ne "$code" ]; then fail "kplan $*: exit code $got, expected $code"; return 1; fi
  if [ "$code" -eq 0 ] && [ -s stderr ]; then fail "kplan $*: something on stderr"; return 1; fi
  if [ "$code" -eq 2 ] && [ -s stdout ]; then fail "kplan $*: something on stdout beside an error"; return 1; fi
  if [ "$code" -ne 0 ] && ! grep -q 'kplan: .*\[KP-[A-Z][0-9]*\]' stderr; then fail "kplan $*: no error with a code on stderr"; return 1; fi
}

# refuse CODE_OF_ERROR ARGUMENTS...
refuse() {
  local error=$1
  shift
  expect 2 "$@" && { grep -q "\[$error\]" stderr || fail "kplan $*: expected $error"; }
}

says() { grep -qF -- "$1" stdout || fail "expected on stdout: $1"; }
complains() { grep -qF -- "$1" stderr || fail "expected on stderr: $1"; }
last_line_is() { [ "$(tail -n 1 stdout)" = "$1" ] || fail "expected as the last line: $1"; }

# parses: stdout is one JSON document. holds EXPRESSION: a Python expression over it, `d`.
parses() { holds True; }
holds() {
  command -v python3 >/dev/null || return 0
  python3 -c "import json,sys; d = json.load(open('stdout')); sys.exit(0 if ($1) else 1)" 2>python_error || fail "not so: $1"
}

has_ofi() { ! "$kplan" run "$examples/reduce.json" --transport ofi 2>&1 | grep -q KP-L010; }

plans() { for f in "$examples"/*.json; do case $f in *.data.json) ;; *) basename "$f" .json ;; esac; done; }

for file in "$here"/cases/*.sh; do . "$file"; done

if [ $# -lt 3 ]; then
  declare -F | sed -n 's/^declare -f \(case_.*\)/\1/p' | xargs -P 2 -I CASE "$here/run.sh" "$kplan" "$examples" CASE
  exit
fi
declare -F "$3" >/dev/null || { echo "there is no $3"; exit 2; }
current=${3#case_}
current=${current//_/ }
"$3"
echo "$current: $count runs of kplan, $failures failures"
[ $failures -eq 0 ]

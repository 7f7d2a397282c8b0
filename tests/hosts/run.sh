#!/bin/bash
# Runs plans between hosts: run.sh BIN_DIR PLANS_DIR. A host is a network namespace of its own with one cable to a
# switch, a bridge in one more namespace; cables are made slow, lose packets, or are cut. A line for each case; exits
# with 0 when all passed, with 77 where namespaces are not allowed. Whatever happens, nothing of it stays.
set -u

bin=$(realpath "$1")
examples=$(realpath "$2")
[ -d "$examples/examples" ] && examples=$examples/examples
here=$(dirname "$(realpath "$0")")
kplan=$bin/kplan
hosts=kplan-$$
host_count=3
limit=60
PATH=$PATH:/usr/sbin:/sbin

scratch=$(mktemp -d)
cd "$scratch" || exit 1
ln -s "$examples" examples && ln -s "$here/enter.sh" enter.sh  # paths without spaces

unset OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK PMI_SIZE PMI_RANK PMIX_RANK KPLAN_RENDEZVOUS KPLAN_RANK KPLAN_SIZE
unset KPLAN_OFI_ONE_SIDED
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export KPLAN_HOSTS=$hosts KPLAN_TIMEOUT=25 KPLAN_NODE=off KPLAN_OFI_PROVIDER=tcp KPLAN_CACHE_DIR=${KPLAN_CACHE_DIR:-$scratch/kernels}

# --- hosts

# on HOST COMMAND...
on() { ip netns exec "$hosts-$1" "${@:2}"; }

end_all() { for host in $(seq "$host_count"); do ip netns pids "$hosts-$host" | xargs -r kill -KILL; done; } 2>/dev/null

remove() {
  end_all
  wait
  for host in switch $(seq "$host_count"); do ip netns del "$hosts-$host"; done
  rm -rf "$scratch"
} 2>/dev/null

make_switch() {
  ip -n "$hosts-switch" link add switch type bridge forward_delay 0 mcast_snooping 0 &&
    ip -n "$hosts-switch" link set switch up
}

# make_host HOST: its address is 10.77.0.HOST.
make_host() {
  ip netns add "$hosts-$1" &&
    ip -n "$hosts-$1" link set lo up &&
    ip -n "$hosts-$1" link add cable type veth peer name "port$1" netns "$hosts-switch" &&
    ip -n "$hosts-switch" link set "port$1" master switch up &&
    ip -n "$hosts-$1" addr add "10.77.0.$1/24" dev cable &&
    ip -n "$hosts-$1" link set cable up
}

# A cable takes a moment until it carries; libfabric would choose another address before.
await_cable() {
  local tries
  for tries in $(seq 100); do
    on "$1" grep -q 1 /sys/class/net/cable/carrier && on "$1" grep -q up /sys/class/net/cable/operstate && return
    sleep 0.1
  done
  return 1
}

make_hosts() {
  local host
  make_switch || return
  for host in $(seq "$host_count"); do make_host "$host" || return; done
  for host in $(seq "$host_count"); do await_cable "$host" || return; done
}

wire_bytes() { on switch sh -c 'cat /sys/class/net/port*/statistics/rx_bytes' | awk '{ sum += $1 } END { print sum }'; }

# --- runs

milliseconds_since() { echo $((($(date +%s%N) - $1) / 1000000)); }
seconds() { awk -v ms="$(milliseconds_since "$began")" 'BEGIN { printf "%.1f s", ms / 1000 }'; }

begin() {
  current=$1
  rm -f stdout* stderr*
  wire_before=$(wire_bytes)
  began=$(date +%s%N)
}

# start HOSTS RANKS COMMAND...: one process a rank, without a launcher; rank r is on host r % HOSTS + 1.
start() {
  local count=$1 ranks=$2 rank
  shift 2
  port=$((port + 1))
  processes=()
  for ((rank = 0; rank < ranks; ++rank)); do
    KPLAN_RENDEZVOUS=10.77.0.1:$port KPLAN_RANK=$rank KPLAN_SIZE=$ranks \
      on $((rank % count + 1)) timeout -k 2 "$limit" "$@" >"stdout.$rank" 2>"stderr.$rank" &
    processes+=($!)
  done
}

# Waits for all ranks; `statuses` is how they ended.
finish() {
  local process
  statuses=()
  for process in "${processes[@]}"; do
    wait "$process"
    statuses+=($?)
  done
}

# launch HOSTS RANKS COMMAND...: under mpirun, on the first host; `statuses` is its exit code.
launch() {
  local count=$1 ranks=$2 addresses
  shift 2
  addresses=$(printf '10.77.0.%d:8,' $(seq "$count"))
  TMPDIR=$scratch on 1 timeout -k 2 "$limit" \
    mpirun --host "${addresses%,}" -n "$ranks" --map-by node --bind-to none --oversubscribe \
    --mca plm rsh --mca plm_rsh_agent "$scratch/enter.sh" --mca plm_rsh_no_tree_spawn 1 \
    --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24 \
    "$@" >stdout 2>stderr &
  processes=($!)
  finish
  sed -i '/plm:rsh: Warning: setpgid/d' stderr  # of mpirun, when its child was faster
}

# --- judgements

passed=0
failed=0
pass() {
  passed=$((passed + 1))
  echo "ok: $current ($(seconds), $((($(wire_bytes) - wire_before) / 1000)) kB on the wire${1:+, $1})"
}
fail() {
  local file
  failed=$((failed + 1))
  echo "FAILED: $current: $* ($(seconds))"
  for file in stderr* stdout*; do [ -s "$file" ] && head -4 "$file" | cut -c1-400 | sed "s/^/    $file: /"; done
  end_all
  return 1
}

# All ended well, and said so by a line on stdout that fits PATTERN, and nothing on stderr.
all_well() {
  case " ${statuses[*]} " in *[1-9]*) fail "exit codes ${statuses[*]}"; return 1 ;; esac
  grep -qsE "$1" stdout* || { fail "no line on stdout like: $1"; return 1; }
  [ -z "$(cat stderr*)" ] || { fail "something on stderr"; return 1; }
}
verified() { all_well "^verified: $1 ranks, .*, identical"; }

# crossed least|most BYTES
crossed() {
  local bytes=$(($(wire_bytes) - wire_before))
  case $1 in
  least) [ "$bytes" -ge "$2" ] || fail "$bytes bytes on the wire, expected $2 at the least" ;;
  most) [ "$bytes" -le "$2" ] || fail "$bytes bytes on the wire, expected $2 at the most" ;;
  esac
}

plan() { echo run "examples/$1.json" --verify; }

# --- cases

skip() { echo "skipped: $*"; exit 77; }
trap remove EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
[ "$(id -u)" = 0 ] || skip "network namespaces want root"
command -v ip >/dev/null || skip "no ip command (package iproute2)"
mpirun --version 2>/dev/null | grep -q 'Open MPI' || skip "no Open MPI"
"$kplan" run examples/reduce.json --transport ofi >/dev/null 2>reason || skip "$(head -n 1 reason)"
ip netns add "$hosts-switch" 2>reason && on switch true 2>reason || skip "no network namespaces here: $(head -n 1 reason)"
make_hosts 2>reason || skip "no virtual cables here: $(head -n 1 reason)"

port=7700
. "$here/cases.sh"
for case in $(sed -n 's/^\(case_[A-Za-z_]*\)().*/\1/p' "$here/cases.sh"); do
  [ $# -gt 2 ] && [ "$case" != "$3" ] && continue
  "$case"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]

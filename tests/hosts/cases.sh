# The cases of run.sh, in the order in which they run.

# --- whole cables

case_examples_over_tcp() {
  local name
  for name in halo-2d transpose reduce private-stride moving-particles ghost-gather; do
    begin "$name over tcp, 4 ranks on 2 hosts"
    start 2 4 "$kplan" $(plan "$name") --transport ofi && finish
    verified 4 && pass
  done
}

case_examples_over_mpi() {
  local name
  for name in halo-2d transpose reduce private-stride moving-particles ghost-gather; do
    begin "$name over MPI, 4 ranks on 2 hosts"
    launch 2 4 "$kplan" $(plan "$name") --transport mpi
    verified 4 && pass
  done
}

case_started_by_PMIx() {
  begin "transpose over tcp under mpirun, 4 ranks on 2 hosts"
  launch 2 4 "$kplan" $(plan transpose) --transport ofi
  verified 4 && pass
}

case_three_hosts() {
  begin "halo-2d over tcp, 5 ranks on 3 hosts"
  start 3 5 "$kplan" $(plan halo-2d) --transport ofi && finish
  verified 5 && pass
  begin "transpose over MPI, 3 ranks on 3 hosts"
  launch 3 3 "$kplan" $(plan transpose) --transport mpi
  verified 3 && pass
}

case_random_plans() {
  local transport
  for transport in mpi ofi; do
    begin "random plans over $transport under mpirun, 3 ranks on 3 hosts"
    KPLAN_PLANS=30 launch 3 3 "$bin/kplan-random-plans-mpi" "$transport"
    all_well '^3 ranks: [0-9]+ plans identical' && pass
  done
}

# Ranks of hosts that share memory find that out though their networks differ; what they send then is not on the wire.
case_shared_memory_between_hosts() {
  local payload=$((4 * 500 * 8 * 100))
  begin "a larger halo over tcp, without shared memory"
  start 2 4 "$kplan" $(plan halo-2d) --transport ofi --set n=500 --repeat 100 && finish
  verified 4 && crossed least $payload && pass
  begin "a larger halo over tcp, with shared memory"
  KPLAN_NODE=on start 2 4 "$kplan" $(plan halo-2d) --transport ofi --set n=500 --repeat 100 && finish
  verified 4 && crossed most $((payload / 4)) && pass
  begin "moving-particles over MPI, with shared memory"
  KPLAN_NODE=on launch 2 4 "$kplan" $(plan moving-particles) --transport mpi
  verified 4 && pass
}

# --- bad cables

# over_both TITLE JUDGEMENT: a halo of larger faces over tcp and MPI, and small messages that nobody expects.
over_both() {
  begin "a larger halo over tcp, $1"
  start 2 4 "$kplan" $(plan halo-2d) --transport ofi --set n=500 --repeat 100 && finish
  verified 4 && "$2" && pass "$judged"
  begin "a larger halo over MPI, $1"
  launch 2 4 "$kplan" $(plan halo-2d) --transport mpi --set n=500 --repeat 100
  verified 4 && "$2" && pass "$judged"
  begin "moving-particles over tcp, $1"
  start 2 4 "$kplan" $(plan moving-particles) --transport ofi --repeat 50 && finish
  verified 4 && pass
}

# shape QUEUE...: a queueing discipline on the cables of the first two hosts.
shape() { on 1 tc qdisc replace dev cable root "$@" 2>/dev/null && on 2 tc qdisc replace dev cable root "$@" 2>/dev/null; }
straighten() { on 1 tc qdisc del dev cable root; on 2 tc qdisc del dev cable root; } 2>/dev/null

# What the queue of the first host's cable has counted since it was made.
queue_count() { on 1 tc -s qdisc show dev cable | grep -o "$1 [0-9]*" | head -n 1 | cut -d ' ' -f 2; }
has_waited() {
  judged="$(queue_count overlimits) waits so far"
  [ "${judged%% *}" -gt 0 ] || fail "nothing had to wait"
}

case_narrow_cables() {
  shape tbf rate 20mbit burst 32kbit latency 400ms || { echo "no tbf"; return; }
  over_both "20 Mbit/s" has_waited
  straighten
}

has_lost() {
  judged="$(queue_count dropped) lost so far"
  [ "${judged%% *}" -gt 0 ] || fail "nothing was lost"
}

case_slow_lossy_cables() {
  shape netem delay 5ms 1ms loss 2% || { echo "no netem"; return; }
  over_both "5 ms and losses" has_lost
  straighten
}

drop_packets() { on "$1" nft 'add table ip loss; add chain ip loss input { type filter hook input priority 0; };
    add rule ip loss input ip saddr 10.77.0.0/24 numgen random mod 100 < 2 counter drop'; }
packets_dropped() { on 1 nft list table ip loss | grep -o 'packets [0-9]*' | cut -d ' ' -f 2; }
has_dropped() {
  local before=${judged%% *}
  judged="$(packets_dropped) lost so far"
  [ "${judged%% *}" -gt "${before:-0}" ] || fail "nothing was lost"
}

case_losses() {
  command -v nft >/dev/null || { echo "no nft"; return; }
  drop_packets 1 2>/dev/null && drop_packets 2 2>/dev/null || { echo "no nft that works"; return; }
  judged=
  over_both "2 packets of 100 lost" has_dropped
  on 1 nft delete table ip loss
  on 2 nft delete table ip loss
}

# --- cut cables

# await_traffic BYTES: until so many have crossed; or the ranks have ended.
await_traffic() {
  local tries
  for tries in $(seq 200); do
    [ $(($(wire_bytes) - wire_before)) -ge "$1" ] && return
    kill -0 "${processes[0]}" 2>/dev/null || return
    sleep 0.1
  done
}

# All have ended in time, not well, and said for whom they waited.
all_told() {
  local most=$1 waited rank
  waited=$(milliseconds_since "$cut")
  [ "$waited" -le "$most" ] || { fail "$waited ms until all had ended: exit codes ${statuses[*]}"; return 1; }
  for rank in "${!statuses[@]}"; do
    case ${statuses[rank]} in 1 | 2) ;; *) fail "exit code ${statuses[rank]} of rank $rank"; return 1 ;; esac
    grep -qE "^kplan: .*rank $rank wait(s|ed) .*rank [0-9]+.*\[KP-T[0-9]+\]" "stderr.$rank" ||
      { fail "rank $rank does not say for whom it waits"; return 1; }
  done
  judged="ended $waited ms after the cut: $(cat stderr.* | grep -o 'KP-T[0-9]*' | sort | uniq -c | xargs)"
}

# cut_one HOSTS RANKS NAME HOST: the cable of HOST, in the middle of a long run.
cut_one() {
  begin "$3 over tcp, $2 ranks on $1 hosts, the cable of host $4 cut"
  KPLAN_TIMEOUT=3 start "$1" "$2" "$kplan" run "examples/$3.json" --transport ofi --repeat 100000
  await_traffic 300000
  cut=$(date +%s%N)
  ip -n "$hosts-$4" link set cable down
  finish
  all_told 15000 && pass "$judged"
  ip -n "$hosts-$4" link set cable up
  await_cable "$4"
}

case_cut_cables() {
  cut_one 2 4 transpose 2
  cut_one 3 3 transpose 1
  cut_one 2 4 moving-particles 2
}

case_cable_out_for_a_second() {
  begin "halo-2d over tcp, 4 ranks on 2 hosts, a cable out for a second"
  shape tbf rate 2mbit burst 32kbit latency 400ms  # else it may be over before
  start 2 4 "$kplan" $(plan halo-2d) --transport ofi --repeat 600
  await_traffic 100000
  kill -0 "${processes[0]}" 2>/dev/null || { fail "ended before the cable was out"; return; }
  ip -n "$hosts-2" link set cable down
  sleep 1
  ip -n "$hosts-2" link set cable up
  finish
  straighten
  verified 4 && pass
}

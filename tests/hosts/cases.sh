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
  local payload=$((8 * 64 * 64 * 8 * 20))
  begin "a larger transpose without shared memory"
  start 2 4 "$kplan" $(plan transpose) --transport ofi --set n=64 --repeat 20 && finish
  verified 4 && crossed least $payload && pass
  begin "a larger transpose with shared memory"
  KPLAN_NODE=on start 2 4 "$kplan" $(plan transpose) --transport ofi --set n=64 --repeat 20 && finish
  verified 4 && crossed most $((payload / 4)) && pass
  begin "moving-particles with shared memory under mpirun"
  KPLAN_NODE=on launch 2 4 "$kplan" $(plan moving-particles) --transport mpi
  verified 4 && pass
}

# --- bad cables

# over_both TITLE REPEAT JUDGEMENT...: a larger transpose and small messages of both kinds, over tcp and MPI.
over_both() {
  local title=$1 repeat=$2
  shift 2
  begin "transpose over tcp, $title"
  start 2 4 "$kplan" $(plan transpose) --transport ofi --set n=128 --repeat "$repeat" && finish
  verified 4 && "$@" && pass "$judged"
  begin "transpose over MPI, $title"
  launch 2 4 "$kplan" $(plan transpose) --transport mpi --set n=128 --repeat "$repeat"
  verified 4 && "$@" && pass "$judged"
  begin "moving-particles over tcp, $title"
  start 2 4 "$kplan" $(plan moving-particles) --transport ofi --repeat 20 && finish
  verified 4 && judged= && pass
}

# shape QUEUE...: a queueing discipline on the cables of the first two hosts.
shape() { on 1 tc qdisc replace dev cable root "$@" 2>/dev/null && on 2 tc qdisc replace dev cable root "$@" 2>/dev/null; }
straighten() { on 1 tc qdisc del dev cable root; on 2 tc qdisc del dev cable root; }

# What the queue of the first host's cable has counted since it was made.
queue_count() { on 1 tc -s qdisc show dev cable | grep -o "$1 [0-9]*" | head -n 1 | cut -d ' ' -f 2; }
has_waited() { judged="$(queue_count overlimits) waits"; [ "$(queue_count overlimits)" -gt 0 ] || fail "nothing had to wait"; }

case_narrow_cables() {
  shape tbf rate 20mbit burst 32kbit latency 400ms || { echo "no tbf"; return; }
  over_both "20 Mbit/s" 3 has_waited
  straighten
}

has_lost() { judged="$(queue_count dropped) lost"; [ "$(queue_count dropped)" -gt 0 ] || fail "nothing was lost"; }

case_slow_lossy_cables() {
  shape netem delay 5ms 1ms loss 2% || { echo "no netem"; return; }
  over_both "5 ms and losses" 20 has_lost
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
  over_both "2 packets of 100 lost" 20 has_dropped
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

# All have ended in time, not well, and said for whom they waited. The last rank is on the cut host.
all_told() {
  local most=$1 rank codes
  [ $((($(date +%s%N) - cut) / 1000000000)) -le "$most" ] || { fail "did not end within $most s: exit codes ${statuses[*]}"; return 1; }
  for rank in "${!statuses[@]}"; do
    case ${statuses[rank]} in 1 | 2) ;; *) fail "exit code ${statuses[rank]} of rank $rank"; return 1 ;; esac
    grep -qE "^kplan: .*rank $rank wait(s|ed) .*rank [0-9]+.*\[KP-T[0-9]+\]" "stderr.$rank" ||
      { fail "rank $rank does not say for whom it waits"; return 1; }
  done
  codes=$(cat stderr.* | grep -o 'KP-T[0-9]*' | sort | uniq -c | awk '{ printf "%s%d %s", sep, $1, $2; sep = ", " }')
  judged="$((($(date +%s%N) - cut) / 1000000)) ms after the cut: $codes"
}

# cut_one HOSTS RANKS NAME: the last host's cable, in the middle of a long run.
cut_one() {
  local count=$1 ranks=$2 name=$3
  begin "$name, $ranks ranks on $count hosts, the cable of host $count cut"
  KPLAN_TIMEOUT=3 start "$count" "$ranks" "$kplan" run "$examples/$name.json" --transport ofi --repeat 100000
  await_traffic 300000
  cut=$(date +%s%N)
  ip -n "$hosts-$count" link set cable down
  finish
  all_told 15 && pass "$judged"
  ip -n "$hosts-$count" link set cable up
  await_cable "$count"
}

case_cut_cables() {
  cut_one 2 4 transpose
  cut_one 3 3 transpose
  cut_one 2 4 moving-particles
}

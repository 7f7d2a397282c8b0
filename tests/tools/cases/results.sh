# What is printed, against values worked out by hand.

case_print_shows_the_buffers_of_all_ranks_in_rank_order() {
  expect 0 run "$examples/allgatherv.json" --ranks 3 --print rb --print counts
  cat >expected <<'END'
rb rank 0: 0 100 101 200 201 202 -1 -1 -1
rb rank 1: 0 100 101 200 201 202 -1 -1 -1
rb rank 2: 0 100 101 200 201 202 -1 -1 -1
counts rank 0: 1 2 3
counts rank 1: 1 2 3
counts rank 2: 1 2 3
END
  diff expected stdout >difference || fail "$(cat difference)"
}

case_print_shows_records_in_braces_and_scalars_alone() {
  expect 0 run "$examples/minloc.json" --ranks 4 --print least && says "least rank 0: {0.5, 2}"
  expect 0 run "$examples/scalar-send.json" --ranks 3 --print b && says "b rank 2: 10" && says "b rank 0: 0"
}

case_print_and_verify_go_together_and_verified_comes_last() {
  expect 0 run "$examples/scalar-send.json" --ranks 2 --print b --verify && says "b rank 1: 10"
  last_line_is "verified: 2 ranks, 2 buffers, identical"
}

case_set_changes_parameters() {
  expect 0 run "$examples/scalar-send.json" --ranks 3 --set send_rank=2 --set recv_rank=1 --print b && says "b rank 1: 30"
  expect 0 run "$examples/broadcast.json" --set n=2 --set root=1 --ranks 3 --print x --verify
  [ "$(head -n 3 stdout | cut -d: -f2 | sort -u | wc -l)" -eq 1 ] || fail "a broadcast leaves different values"
}

case_options_may_stand_before_the_plan() {
  expect 0 run --set n=3 --print part "$examples/reduce.json" --ranks 2 && says "part rank 1: "
}

case_default_contents_differ_everywhere() {
  expect 0 run "$examples/even-exchange.json" --ranks 4 --print B
  [ "$(cut -d: -f2 stdout | tr ' ' '\n' | grep -c .)" -eq 16 ] || fail "expected 16 elements"
  [ "$(cut -d: -f2 stdout | tr ' ' '\n' | grep . | sort -u | wc -l)" -eq 16 ] || fail "expected 16 different elements"
}

case_data_fills_by_expressions_values_and_fields() {
  cat >p.json <<'END'
{"kplan": 1, "name": "p", "types": {"pair": {"fields": [{"name": "a", "type": "f32"}, {"name": "b", "type": "i8"}]}},
 "parameters": {"n": {"type": "i64", "default": 2}, "w": {"type": "c128", "default": 1}, "on": {"type": "bool", "default": false}},
 "buffers": {"m": {"type": "f64", "shape": ["n", 2]}, "v": {"type": "i32", "shape": ["n"]}, "all": {"type": "c64", "shape": [1]},
             "r": {"type": "pair", "shape": [2]}, "s": {"type": "f64", "shape": ["n"], "strides": [3]}},
 "statements": [{"communicate": "m[0, 0]@r0 <<= m[0, 0]@r0 where r0 in world"}]}
END
  cat >p.data.json <<'END'
{"n": {"value": "1 + 1"}, "m": {"fill": "100 * rank + 10 * i0 + i1 + size / 1000.0"}, "v": {"values": {"0": [4, 5], "1": [-6, 7]}}, "all": {"values": [[1, -0.5]]},
 "r": {"fill": {"a": "i0 + 0.1", "b": "rank"}}, "s": {"values": [1, 1e300]}}
END
  expect 0 run p.json --ranks 2 --print m --print v --print all --print r --print s --verify
  says "m rank 1: 100.002 101.002 110.002 111.002"
  says "v rank 0: 4 5"
  says "v rank 1: -6 7"
  says "all rank 1: (1,-0.5)"
  says "r rank 1: {0.1, 1} {1.1, 1}"
  says "s rank 0: 1 1e+300"
  expect 0 run p.json --ranks 1 --set w=1,-2 --set on=true
  expect 2 run p.json --ranks 3 && complains "no values of \`v\` are given for rank 2"
}

case_large_unsigned_integers_are_given_as_they_are() {
  cat >u.json <<'END'
{"kplan": 1, "name": "u", "parameters": {"p": {"type": "u64"}},
 "buffers": {"v": {"type": "u64", "shape": [2]}, "d": {"type": "f64", "shape": [1]}, "w": {"type": "u64", "shape": []}},
 "statements": [{"communicate": "w@r <<= p@r where r in world"}]}
END
  local most=18446744073709551615
  # Other types take them as reals.
  echo "{\"v\": {\"values\": [$most, 9223372036854775808]}, \"d\": {\"values\": [$most]}}" >u.data.json
  expect 0 run u.json --ranks 2 --set p=$most --print v --print w --print d &&
    says "v rank 1: $most 9223372036854775808" && says "w rank 1: $most" && says "d rank 1: 18446744073709551616"
  for value in $most '"~u64(0)"'; do
    echo "{\"p\": {\"value\": $value}}" >p.data.json
    expect 0 run u.json --ranks 1 --data p.data.json --print w && says "w rank 0: $most"
  done
  echo "{\"p\": {\"value\": 0}, \"v\": {\"fill\": $most}}" >v.data.json
  expect 0 run u.json --ranks 1 --data v.data.json --print v && says "v rank 0: $most $most"
}

case_fills_are_cast_to_the_type_of_their_elements() {
  cat >f.json <<'END'
{"kplan": 1, "name": "f", "buffers": {"i": {"type": "i64", "shape": [3]}, "b": {"type": "u8", "shape": [2]}},
 "statements": [{"communicate": "i[0]@0 <<= i[0]@0"}]}
END
  echo '{"i": {"fill": "i0 * 1.5"}, "b": {"fill": "300 + i0"}}' >f.data.json
  expect 0 run f.json --ranks 1 --print i --print b && says "i rank 0: 0 1 3" && says "b rank 0: 44 45"
}

case_explain_counts_messages_and_payload() {
  # 3 ranks: each of the even ranks 0 and 2 gets one f64 from the two others.
  expect 0 explain "$examples/even-exchange.json" --ranks 3 --json
  holds "d['ranks'] == 3 and d['statements'][0]['messages'] == 4 and d['statements'][0]['bytes'] == 32"
  holds "(d['statements'][0]['form'], d['statements'][0]['knowledge'], d['statements'][0]['name']) == ('direct', 'global', 'exchange')"
  # The smaller type travels.
  expect 0 explain "$examples/convert.json" --ranks 4 --json --set n=8 && holds "d['statements'][0]['bytes'] == 4 * 8 * 4"
  expect 0 explain "$examples/reduce.json" --ranks 1 --json && holds "d['statements'][0]['form'] == 'local' and d['statements'][0]['messages'] == 0"
  expect 0 explain "$examples/private-stride.json" --ranks 4 --json && holds "d['statements'][0]['form'] == 'direct' and d['statements'][0]['bytes'] == 576"
  # As a push it moves nothing: no rank is the sender of an environment of its own.
  echo '{"kplan": 1, "name": "p", "buffers": {"a": {"type": "f64", "shape": [5]}, "b": {"type": "f64", "shape": [5]}}, "statements": [{"communicate": "b[k]@rank <<= a[k]@(rank + 1) % size where k in range(5)"}]}' > p.json
  expect 0 explain p.json --ranks 3 && says "form       nothing" && says 'say `"direction": "pull"`'
  expect 0 explain p.json --ranks 1 && says "form       local"
  # One of two reductions, too; what a varying statement costs is said as well.
  echo '{"kplan": 1, "name": "p", "parameters": {"n": {"type": "i64", "default": 4}}, "buffers": {"a": {"type": "f64", "shape": [5]}}, "statements": [{"communicate": "a[0]@rank + 1 <<= a[3]@rank, a[n]@rank <<= a[1]@rank + 1 where rank + 1 < size"}]}' > p.json
  expect 0 explain p.json --ranks 3 && says 'nothing goes to `a[n]`' && says 'say `"direction": "pull"`'
  expect 0 explain p.json --ranks 3 --json && holds "d['statements'][0]['nothing_goes_to'] == ['a[n]']"
  expect 0 explain "$examples/particles.json" --ranks 3 --json && holds "'nothing_goes_to' not in d['statements'][0]"
  expect 0 explain "$examples/moving-particles.json" --ranks 3 && says "dynamic: row by row"
  expect 0 explain "$examples/window.json" --ranks 3 && says 'dynamic: row by row at first, then a schedule for each value of `count`, `first`, `first + count`, remembered'
  expect 0 explain "$examples/circular-shift.json" --ranks 256 --json && holds "d['statements'][0]['messages'] == 256 and 'sampled_ranks' not in d"
  expect 0 explain "$examples/circular-shift.json" --ranks 1000 --json && holds "d['statements'][0]['messages'] == len(d['sampled_ranks']) < 1000"
}

case_graph_has_an_edge_for_each_message() {
  expect 0 show "$examples/even-exchange.json" --stage graph --ranks 3
  [ "$(grep -c -- '->' stdout)" -eq 4 ] || fail "expected 4 edges"
  says '1 -> 0 [label="8 B"];'
  command -v dot >/dev/null && { dot -Tsvg stdout >/dev/null 2>&1 || fail "dot does not read the graph"; }
}

case_schedules_name_what_each_part_of_a_message_is_of() {
  # The fields travel together, and a part of a message behind them is another reduction's.
  cat >s.json <<'EOT'
{"kplan": 1, "name": "s", "types": {"pair": {"fields": [{"name": "x", "type": "f64"}, {"name": "y", "type": "f64"}]}},
 "parameters": {"k": {"type": "i64", "time": "varying", "default": 1}},
 "buffers": {"p": {"type": "pair", "shape": [4]}, "q": {"type": "pair", "shape": [4]}, "a": {"type": "f64", "shape": [4]}, "b": {"type": "f64", "shape": [4]}},
 "statements": [{"communicate": "p[i].x@1 <<= q[i].x@0, p[i].y@1 <<= q[i].y@0, a[k]@1 << sum << b[i]@0 where i in range(4)"}]}
EOT
  expect 0 show s.json --stage schedule --ranks 2 --rank 1 &&
    holds "[(p['operator'], p['to']['buffer']) for p in d['statements'][0]['receives'][0]['parts']] == [('assign', 'p'), ('sum', 'a[k]')]"
  expect 0 show s.json --stage schedule --ranks 2 --rank 0 &&
    holds "[p['from'][0]['buffer'] for p in d['statements'][0]['sends'][0]['parts']] == ['q', 'b']"
}

case_the_code_of_where_lists_is_shown() {
  expect 0 show "$examples/moving-particles.json" --stage kernel && says "move: rows to send" &&
    says "rows0[n0++] = {v8, v11, s0, v5};" && says "array1: word 1 of the rows"
}

case_kernels_too_long_for_machine_code_say_so() {
  terms=$(printf ' + x[k] * %d' $(seq 40))
  cat >long.json <<PLAN
{"kplan": 1, "name": "long", "buffers": {"a": {"type": "c128", "shape": [9]}, "x": {"type": "c128", "shape": [9]}},
 "statements": [{"communicate": "a[k]@rank <<= 1$terms@rank where k in range(9)"}]}
PLAN
  expect 0 show long.json --stage kernel && says "too long for machine code"
  expect 0 explain long.json --ranks 1 --timing --json && holds "d['timing']['kernels']['too_long'] > 0 and d['timing']['kernels']['generated'] == 0"
  expect 0 run long.json --ranks 2 --verify
}

case_block_copies_are_said_as_such() {
  expect 0 show "$examples/reduce.json" --stage kernel --ranks 2 --rank 1 && says "no copy, 40 bytes are sent from part at byte 0"
  expect 0 show "$examples/broadcast.json" --stage kernel --ranks 2 --rank 1 && says "unpack from rank 0: block copy of 16 bytes from the message at byte 0 to x at byte 0"
}

case_long_all_reduces_are_explained_as_the_two_steps_they_take() {
  cat >total.json <<'PLAN'
{"kplan": 1, "name": "total", "parameters": {"n": {"type": "i64"}},
 "buffers": {"a": {"type": "f64", "shape": ["n"]}, "x": {"type": "f64", "shape": ["n"]}},
 "statements": [{"communicate": "a@r << sum << x@s where s in world, r in world", "fresh": true}]}
PLAN
  expect 0 explain total.json --ranks 4 --set n=100 && grep -q 'collective: allreduce$' stdout &&
    grep -q '12 messages, 9600 bytes' stdout || fail "short ones take one step"
  expect 0 explain total.json --ranks 4 --set n=100000 && grep -q 'collective: allreduce in two steps' stdout &&
    grep -q '24 messages, 4800000 bytes' stdout || fail "long ones take two"
  KPLAN_TWO_STEP_BYTES=0 expect 0 explain total.json --ranks 4 --set n=100000 &&
    grep -q '12 messages, 9600000 bytes' stdout || fail "unless that is turned off"
}

case_ranks_that_are_set_to_other_lengths_of_pieces_take_the_shortest() {
  command -v mpirun >/dev/null || return 0
  local other
  for other in 4096 0; do
    count=$((count + 1))
    timeout 120 mpirun --oversubscribe -n 1 -x KPLAN_PIECE_BYTES=$other "$kplan" run "$examples/halo-3d.json" --set n=100 --verify : \
      -n 2 "$kplan" run "$examples/halo-3d.json" --set n=100 --verify >stdout 2>stderr || fail "rank 0 with KPLAN_PIECE_BYTES=$other: exit code $?"
    grep -qE "^verified: 3 ranks, 1 buffer, identical\$" stdout || fail "rank 0 with KPLAN_PIECE_BYTES=$other is not verified"
  done
}

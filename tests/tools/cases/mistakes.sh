# Exit code 2, nothing on stdout, and a message that says what to do.

case_arguments_that_are_wrong() {
  refuse KP-L001
  refuse KP-L001 frobnicate && complains 'there is no command `frobnicate`'
  refuse KP-L001 chek plan.json && complains 'did you mean `check`?'
  refuse KP-L001 run
  refuse KP-L001 run "$examples/reduce.json" --no-such-option && complains 'run has no option `--no-such-option`'
  refuse KP-L001 run "$examples/reduce.json" --rnaks 4 && complains 'did you mean `--ranks`?'
  refuse KP-L001 run "$examples/reduce.json" another.json && complains 'another.json is not expected here'
  refuse KP-L001 run "$examples/reduce.json" --ranks 0 && complains '0 is not in 1 to 2147483647'
  refuse KP-L001 run "$examples/reduce.json" --ranks 99999999999999999999 && complains 'is not in 1 to 2147483647'
  refuse KP-L001 run "$examples/reduce.json" --ranks four && complains '`four` is no whole number'
  refuse KP-L001 run "$examples/reduce.json" --ranks 1.5 && complains '`1.5` is no whole number'
  refuse KP-L001 run "$examples/reduce.json" --transport pigeon
  refuse KP-L001 run "$examples/reduce.json" --repeat 0
  refuse KP-L001 show "$examples/reduce.json"
  refuse KP-L001 show "$examples/reduce.json" --stage llvm
  refuse KP-L001 explain "$examples/reduce.json"
  refuse KP-L002 check "$examples/reduce.json" --ranks 4 --rank 4
  refuse KP-L002 show "$examples/reduce.json" --stage schedule --rank 4
  refuse KP-L003 run "$examples/reduce.json" --set n
  refuse KP-L003 run "$examples/reduce.json" --set n=many
  refuse KP-L004 run "$examples/reduce.json" --set roto=1 && complains 'did you mean `root`?'
  refuse KP-L004 run "$examples/reduce.json" --set part=1 && complains "--data"
  refuse KP-L005 run "$examples/reduce.json" --set n=1 --set n=2
  refuse KP-B013 run "$examples/reduce.json" --set n=4.0 && complains 'the real number 4.0 was given for `n`, which is i64'
  refuse KP-L006 check "$examples/reduce.json" --rank 1
  refuse KP-L008 show "$examples/circular-shift.json" --stage graph --ranks 100000
  refuse KP-L015 run "$examples/reduce.json" --transport mpi --ranks 2 && complains "mpirun -n 2"
  refuse KP-L012 run "$examples/reduce.json" --ranks 100000
  refuse KP-L014 run "$examples/reduce.json" --print totla && complains 'did you mean `total`?'
  refuse KP-L014 run "$examples/reduce.json" --print everything && complains 'there are part, total'
}

case_help_and_version_are_no_mistakes() {
  expect 0 --help && says "explain"
  expect 0 run --help && says "--verify"
  expect 0 --version && says "kplan "
}

case_output_that_cannot_be_written() {
  # unwritten ARGUMENTS...: into a full device, and with stdout closed
  unwritten() {
    count=$((count + 2))
    timeout 60 "$kplan" "$@" >/dev/full 2>stderr
    [ $? -eq 1 ] || fail "kplan $* >/dev/full: expected exit code 1"
    complains 'kplan: the output cannot be written: No space left on device [KP-L016]'
    timeout 60 "$kplan" "$@" >&- 2>stderr
    [ $? -eq 1 ] || fail "kplan $* >&-: expected exit code 1"
    complains 'kplan: the output cannot be written: Bad file descriptor [KP-L016]'
  }
  local reduce=$examples/reduce.json
  : >stdout
  unwritten --help
  unwritten --version
  unwritten check "$reduce"
  unwritten check "$reduce" --json
  unwritten explain "$reduce" --ranks 2
  unwritten show "$reduce" --stage plan
  unwritten show "$examples/halo-3d.json" --stage graph --ranks 27
  unwritten run "$reduce"
}

case_plans_that_are_wrong() {
  refuse KP-J001 check missing.json
  echo '{"kplan": 1, "name": "x"' >broken.json
  expect 2 check broken.json
  sed 's/r in world/r in wold/' "$examples/reduce.json" >misspelt.json
  expect 2 check misspelt.json && complains "misspelt.json:" && complains "^" && complains 'did you mean `world`?'
  expect 2 check misspelt.json --json
  sed 's/total\[:\]@root/total[n]@root/; s/part\[:\]/part[0]/' "$examples/reduce.json" >outside.json
  expect 0 check outside.json --json && holds "d['note'] == 'names and types are right; for bounds and double assignment give --ranks N'"
  expect 2 check outside.json --ranks 4
  expect 2 explain outside.json --ranks 4
  expect 2 run outside.json
  expect 2 show outside.json --stage kernel
}

case_data_that_is_wrong() {
  local reduce=$examples/reduce.json
  refuse KP-J001 run "$reduce" --data missing.json
  echo '{"pert": {"fill": "1"}}' >d.json
  refuse KP-D001 run "$reduce" --data d.json && complains 'did you mean `part`?'
  echo '{"n": 5}' >d.json
  refuse KP-J010 run "$reduce" --data d.json && complains 'parameter `n` takes {"value": expression}, not an integer'
  echo '{"part": [1]}' >d.json
  refuse KP-J010 run "$reduce" --data d.json && complains 'buffer `part` takes {"fill": expression} or {"values": [...]}, not an array'
  echo '{"part": {}}' >d.json
  refuse KP-D002 run "$reduce" --data d.json
  echo '{"part": {"filled": "1"}}' >d.json
  refuse KP-J011 run "$reduce" --data d.json
  echo '{"part": {"values": [1, true]}}' >d.json
  refuse KP-D004 run "$reduce" --data d.json && complains "d.json:1:"
  echo '{"part": {"values": {"first": [1]}}}' >d.json
  refuse KP-D005 run "$reduce" --data d.json
  echo '{"part": {"values": {"0": [1], "00": [2]}}}' >d.json
  refuse KP-D005 run "$reduce" --data d.json && complains 'rank 0 is given twice'
  echo '{"part": {"fill": "i0 / (rank - 1)"}}' >d.json
  refuse KP-D006 run "$reduce" --data d.json && complains "on rank 1"
  echo '{"n": {"value": "root + 1"}}' >d.json
  refuse KP-D007 run "$reduce" --data d.json
  echo '{"part": {"values": {"0": [1, 2, 3, 4, 5]}}}' >d.json
  refuse KP-D009 run "$reduce" --data d.json
  echo '{"part": {"values": [1, 2]}}' >d.json
  refuse KP-D010 run "$reduce" --data d.json
  echo '{"part": {"fill": "i0 + j0"}}' >d.json
  expect 2 run "$reduce" --data d.json && complains "d.json:1:"
}

# All scalar types that data documents can miss, as parameters and as buffers.
types_plan() {
  cat >types.json <<'END'
{"kplan": 1, "name": "types", "types": {"pair": {"fields": [{"name": "a", "type": "f32"}, {"name": "b", "type": "i8"}]}},
 "parameters": {"i": {"type": "i64", "default": 0}, "narrow": {"type": "i8", "default": 0}, "on": {"type": "bool", "default": false},
                "u": {"type": "u64", "default": 0}, "x": {"type": "f32", "default": 0}, "d": {"type": "f64", "default": 0}},
 "buffers": {"vi": {"type": "i64", "shape": [1]}, "vu": {"type": "u64", "shape": [1]}, "vb": {"type": "u8", "shape": [1]},
             "vx": {"type": "f32", "shape": [1]}, "vc": {"type": "c64", "shape": [1]}, "vd": {"type": "f64", "shape": [1]}, "vp": {"type": "pair", "shape": [1]}},
 "statements": [{"communicate": "vu[0]@r <<= u@r, vi[0]@r <<= i@r, vb[0]@r <<= u8(on)@r where r in world"}]}
END
}

case_literals_that_their_type_does_not_have() {
  types_plan
  # literal ENTRY TYPE: a number that is refused at its place
  literal() {
    echo "{$1}" >d.json
    refuse KP-D004 run types.json --ranks 1 --data d.json && complains "a value of $2 is expected here, not" && complains "d.json:1:"
  }
  literal '"i": {"value": 2.9}' i64
  literal '"narrow": {"value": 258}' i8
  literal '"on": {"value": 7}' bool
  literal '"i": {"value": true}' i64
  literal '"u": {"value": -1}' u64
  literal '"i": {"value": 18446744073709551615}' i64
  literal '"u": {"value": 18446744073709551616}' u64
  literal '"x": {"value": 1e39}' f32
  literal '"vx": {"values": [1e39]}' f32
  literal '"vx": {"values": [16777217]}' f32
  literal '"vc": {"values": [[0, 1e39]]}' f32
  literal '"vi": {"fill": 2.5}' i64
  literal '"vp": {"fill": {"a": 1, "b": 300}}' i8
}

case_values_that_a_parameter_cannot_hold() {
  types_plan
  # lost ENTRY VALUE TYPE
  lost() {
    echo "{$1}" >d.json
    refuse KP-D011 run types.json --ranks 3 --data d.json && complains "on rank 0 is $2, which is no value of $3" && complains "^"
  }
  lost '"i": {"value": "sqrt(0 - 1)"}' nan i64
  lost '"i": {"value": "size / 2.0"}' 1.5 i64
  lost '"i": {"value": "1e300"}' 1e+300 i64
  lost '"i": {"value": "9223372036854775808.0"}' 9223372036854775808.0 i64
  lost '"i": {"value": "~u64(0)"}' 18446744073709551615 i64
  lost '"narrow": {"value": "size + 255"}' 258 i8
  lost '"on": {"value": "size"}' 3 bool
  lost '"u": {"value": "rank - 1"}' -1 u64
  lost '"x": {"value": "1e39 * 1.0"}' 1e+39 f32
  lost '"d": {"value": "i64(9007199254740993)"}' 9007199254740993 f64
  echo '{"i": {"value": "size * 2.0"}, "narrow": {"value": "i8(258)"}, "on": {"value": "size - 1"}, "x": {"value": "0.1 * size"}}' >d.json
  expect 0 run types.json --ranks 2 --data d.json --print vi --print vb && says "vi rank 1: 4"
}

case_memory_that_is_not_there() {
  echo '{"kplan": 1, "name": "g", "buffers": {"a": {"type": "f64", "shape": []}, "b": {"type": "f64", "shape": []}}, "groups": {"team": {"color": "rank / 4"}}, "statements": [{"in": "team", "communicate": "a@0 <<= b@1"}]}' >g.json
  (ulimit -v 600000; "$kplan" --version) >stdout 2>&1 || return 0  # as with sanitizers
  count=$((count + 1))
  (ulimit -v 600000; expect 1 check g.json --ranks 10000000 --rank 0; exit $failures) || failures=$((failures + 1))
  complains 'kplan: there is not enough memory [KP-L009]'
}

case_plugins_that_are_no_library() {
  local file
  for file in /dev/null / "$examples/reduce.json"; do
    KPLAN_PLUGIN=$file refuse KP-E012 run "$examples/reduce.json" && complains "is \`$file\`, which is no shared library"
  done
}

case_uniform_values_that_differ_between_ranks() {
  echo '{"root": {"value": "rank"}}' >d.json
  refuse KP-A002 run "$examples/reduce.json" --data d.json --ranks 3 && complains "root"
  refuse KP-A002 check "$examples/reduce.json" --data d.json --ranks 3
}

case_a_claim_that_is_wrong() {
  echo '{"count": {"fill": "rank % 2 + 1"}}' >d.json
  refuse KP-A003 run "$examples/known-counts.json" --data d.json --ranks 3
  refuse KP-A003 check "$examples/known-counts.json" --data d.json --ranks 3
  sed 's/{"name": "gather"/{"knowledge": "receiver", "name": "gather"/' "$examples/gather.json" >claim.json
  refuse KP-A020 check claim.json && complains "claim.json:" && complains "/statements/0/knowledge: receiver knowledge is claimed"
}

case_fixed_contents_that_are_missing() {
  cp "$examples/pull.json" alone.json
  refuse KP-B010 run alone.json --ranks 3 && complains '`from`' && complains 'when k = 2, rank 0; give them with the values'
}

case_a_run_that_fails_exits_with_1() {
  cat >divide.json <<'END'
{"kplan": 1, "name": "divide", "buffers": {"a": {"type": "i32", "shape": []}, "b": {"type": "i32", "shape": []}},
 "statements": [{"communicate": "b@(r + 1) % size <<= a / (a - 2)@r where r in world"}]}
END
  echo '{"a": {"fill": "rank + 1"}}' >divide.data.json
  expect 1 run divide.json --ranks 4 && complains "[KP-R001]" && [ "$(grep -c KP- stderr)" -eq 1 ] || fail "expected one error"
  [ -s stdout ] && fail "a failed run prints"
  expect 1 run divide.json --ranks 4 --repeat 5
  expect 0 run divide.json --ranks 1 --verify
}

case_under_mpirun_ranks_over_libfabric_say_what_is_wrong() {
  command -v mpirun >/dev/null && has_ofi || return 0
  count=$((count + 1))
  KPLAN_OFI_PROVIDER=none timeout 60 mpirun --oversubscribe -n 2 "$kplan" run "$examples/reduce.json" --transport ofi >stdout 2>stderr
  complains "KPLAN_OFI_PROVIDER is \`none\`"
}

case_under_mpirun_one_rank_speaks_for_all() {
  command -v mpirun >/dev/null || return 0
  local reduce=$examples/reduce.json
  together() {
    local code=$1 error=$2
    shift 2
    count=$((count + 1))
    timeout 60 mpirun --oversubscribe -n 3 "$kplan" "$@" >stdout 2>stderr
    local got=$?
    [ $got -eq "$code" ] || fail "mpirun kplan $*: exit code $got, expected $code"
    [ "$(grep -c '^kplan: ' stderr)" -eq 1 ] || fail "mpirun kplan $*: expected one message"
    grep -q "\[$error\]" stderr || fail "mpirun kplan $*: expected $error"
    [ -s stdout ] && fail "mpirun kplan $*: something on stdout"
  }
  together 2 KP-L001 run "$reduce" --no-such-option
  KPLAN_TIMEOUT=soon together 2 KP-E001 run "$reduce"
  KPLAN_NODE=maybe together 2 KP-E004 run "$reduce"
  together 2 KP-L011 run "$reduce" --transport local
  together 2 KP-L013 run "$reduce" --ranks 4
  together 2 KP-J001 run missing.json
  sed 's|"sum"|"mine"|; s|<< sum <<|<< mine <<|; s|"statements"|"operators": {"mine": {"native": true}}, "statements"|' "$reduce" >native.json
  together 2 KP-B030 run native.json
  echo '{"root": {"value": "rank"}}' >d.json
  together 2 KP-A002 run "$reduce" --data d.json
  echo '{"part": {"values": {"0": [1, 2, 3, 4, 5], "2": [1, 2, 3, 4, 5]}}}' >d.json
  together 2 KP-D009 run "$reduce" --data d.json
  expect 0 run "$reduce" --ranks 3 --print total
  cp stdout expected
  timeout 60 mpirun --oversubscribe -n 3 "$kplan" run "$reduce" --ranks 3 --print total >stdout 2>stderr || fail "mpirun --print fails"
  diff expected stdout >/dev/null || fail "threads and processes print different things"
}

case_a_time_out_that_is_no_number() {
  KPLAN_TIMEOUT=soon refuse KP-E001 run "$examples/reduce.json"
}

case_planes_that_lie_outside_are_found_without_a_run() {
  cat >plane.json <<'PLAN'
{"kplan": 1, "name": "plane", "parameters": {"k": {"type": "i64", "time": "varying", "default": 0}},
 "buffers": {"a": {"type": "f64", "shape": [4, 3]}, "b": {"type": "f64", "shape": [3]}},
 "statements": [{"communicate": "a[k, :]@1 <<= b[:]@0"}]}
PLAN
  expect 0 check plane.json --ranks 2 --set k=3
  refuse KP-P052 check plane.json --ranks 2 --set k=4
  refuse KP-P052 run plane.json --ranks 2 --set k=-1
}

case_contents_that_are_made_up_are_said_to_be() {
  cat >list.json <<'PLAN'
{"kplan": 1, "name": "list",
 "buffers": {"list": {"type": "i32", "shape": [4], "time": "varying"}, "x": {"type": "f64", "shape": [4]},
             "y": {"type": "f64", "shape": [4]}},
 "statements": [{"communicate": "y[k]@(rank + 1) % size <<= x[list[k]]@rank where k in range(4)"}]}
PLAN
  refuse KP-P052 explain list.json --ranks 2 && complains 'the contents of `list` are made up'
  echo '{"list": {"fill": "4"}}' >list.data.json
  refuse KP-P052 explain list.json --ranks 2
  ! grep -q "made up" stderr || fail "contents that are given are called made up"
}

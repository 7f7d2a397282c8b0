# Checks on more ranks than anyone has here cost what the ranks looked at do.

case_a_check_on_100000_ranks_takes_no_longer_than_on_1000() {
  local plan n seconds TIMEFORMAT=%U
  for plan in halo-2d halo-2d-periodic halo-3d halo-3d-faces circular-shift convert scalar-send gather; do
    [ $plan = gather ] && continue  # its root receives from everybody
    declare -A spent=()
    for n in 1000 100000; do
      { time expect 0 check "$examples/$plan.json" --ranks $n 2>messages; } 2>seconds
      spent[$n]=$(tr -d . <seconds | sed 's/^0*//')
      says "of $n; --rank R checks another"
    done
    [ "${spent[100000]:-0}" -lt 1000 ] || fail "$plan on 100000 ranks: ${spent[100000]} ms of processor time"
    [ "${spent[100000]:-0}" -lt $((3 * ${spent[1000]:-0} + 200)) ] || fail "$plan: ${spent[1000]:-0} ms on 1000 ranks, ${spent[100000]} ms on 100000"
  done
}

case_groups_of_more_ranks_than_can_be_gone_through_are_refused() {
  echo '{"kplan": 1, "name": "g", "buffers": {"a": {"type": "f64", "shape": []}, "b": {"type": "f64", "shape": []}}, "groups": {"team": {"color": "rank / 4"}}, "statements": [{"in": "team", "communicate": "a@0 <<= b@1"}]}' >g.json
  expect 0 check g.json --ranks 1000000 --rank 999999 && says "checked rank 999999 of 1000000"
  refuse KP-L009 check g.json --ranks 16777217 --rank 0 && complains "at most 16777216 of them, not for 16777217; give fewer --ranks"
}

case_a_check_says_which_ranks_it_looked_at() {
  expect 0 check "$examples/halo-3d.json" --ranks 100000 && says "checked ranks 0, 1, 2, 50000, 99998, 99999 of 100000; --rank R checks another"
  expect 0 check "$examples/halo-3d.json" --ranks 100000 --rank 777 && says "checked rank 777 of 100000; --rank R checks another"
  expect 0 check "$examples/halo-3d.json" --ranks 8 && says "checked all 8 ranks"
  expect 0 check "$examples/halo-3d.json" --ranks 100000 --json && holds "d['ranks'] == 100000 and d['checked_ranks'] == [0, 1, 2, 50000, 99998, 99999]"
}

case_a_mistake_on_a_far_rank_is_found() {
  sed 's/r \/ py + 1 < px/r \/ py < px/' "$examples/halo-2d.json" >far.json
  expect 2 check far.json --ranks 100000 && complains "the receiver 100000" && complains "ranks 0 to 99999"
}

#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The rules of simqueue (mev-share-node), with a queue's clock for its blocks, where
# queue/ticks.bats, caps.bats and expire.bats do not have them yet.  Where a worker's
# error lost a message there, it ends in rejected here.

load ../helpers/server

# Looked at twice in each block: it runs once in each, and not after its end.
@test "simqueue: how often an item runs, block by block" {
	local name first last calls attempts says blocks counts rejected row b

	# Notes each run, and ends as $SAYS has it; done when it has run $CALLS times.
	script work <<-'END'
		read -r x
		echo "$x" >>"$T/runs"
		[ "$(grep -c . "$T/runs")" -ge "$CALLS" ] || { echo "$SAYS" >&3; exit 0; }
		echo done >&3
	END
	while IFS='|' read -r name first last calls attempts says blocks counts rejected; do
		redis flushall >/dev/null
		: >"$T/runs"
		row="$name:"
		run_mq 0 mq-publish --from-tick "$first" --until-tick "$last" q item
		for b in $blocks; do
			run_mq 0 mq-publish --tick "$b" q
			for _ in 1 2; do
				CALLS=$calls SAYS=$says run_mq 0/1/75 mq-consume --drain \
					--attempts "$attempts" q -- "$T/work"
			done
			row+=" $(wc -l <"$T/runs")"
		done
		assert_equal "$row, $(held q)" "$name: $counts, 0 0 0 $rejected"
	done <<-'END'
		two failures, then success|7|30|3|15|resend tick|7 8 9 10|1 2 3 3|0
		given up after exactly three|1|30|100|3|resend tick|1 2 3 4 5|1 2 3 3 3|1
		every block until the last one|3|5|100|15|resend tick|2 3 4 5 6 7|0 1 2 3 3 3|1
		what cannot be helped runs exactly once|22|25|100|15|err|22 23 24 25|1 1 1 1|1
	END
}

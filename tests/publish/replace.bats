#!/usr/bin/env bats
# mq-publish -k KEY --replace: the latest message with a key is the one that runs.

load ../helpers/server
load ../helpers/consume

replaced() {
	run_mq 0 mq-publish -v -k a --replace q "$@"
	assert_equal "$stderr" "mq-publish: 1 message accepted, 1 replaced"
}

# The number of locks and marks.
fields() {
	redis hlen "rmq::queue::[${1:-q}]::locks"
}

# commands COMMAND...: how many the server ran for it, in scripts, too.
commands() {
	redis config resetstat >/dev/null
	"$@"
	redis info commandstats | awk -F'[=,]' '/^cmdstat/ {n += $2} END {print n}'
}

# first [OPTION...]: a message that waits with the key.
first() {
	run_mq 0 mq-publish -q -k a --replace "$@" q first
}

@test "replace: of a message that is ready, the latest runs, and the others are gone" {
	first
	replaced second
	replaced third
	assert_equal "$(held q)" "3 0 0 0"
	assert_equal "$(counts published replaced)" "3 2"
	assert_equal "$(drained)" third
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(fields)" 0
}

@test "replace: a message that is stale is dropped after the newer one has ended, too" {
	first
	run_mq 0 mq-publish -q -k a --replace -p 9 q urgent
	run_mq 0 mq-consume -q -n 1 q -- sh -c 'cat; echo' 
	assert_output urgent
	assert_equal "$(held q)" "1 0 0 0"
	assert_equal "$(fields)" 1
	run_mq 0 mq-publish -q q other
	assert_equal "$(drained)" other
	assert_equal "$(fields)" 0
}

@test "replace: -k KEY --replace -d 30s is a debounce" {
	local i
	for i in {1..9}; do
		run_mq 0 mq-publish -q -k a --replace -d 30s q "$i"
	done
	assert_equal "$(held q)" "0 1 0 0"
	assert_equal "$(counts replaced)" 8
	assert_equal "$(payloads delayed)" 9
	# A limit does not count the one that leaves.
	run_mq 0 mq-publish -q -k a --replace -d 30s --max-delayed 1 q last
	run_mq 0 mq-publish -q -k a --replace q now
	assert_equal "$(drained)" now
	assert_equal "$(fields)" 0
}

@test "replace: a message that has begun, or keeps its key longer, is left alone" {
	script again <<-S
		"$BUILD/mq-publish" -q -k a --replace q second
	S
	first
	run_mq 0 mq-consume -n 1 q -- "$T/again"
	assert_equal "$(drained)" second
	run_mq 0 mq-publish -q -k a q until-done
	tells 1 "mq-publish: q: not published: another message has its key" \
		mq-publish -k a --replace q x
	assert_equal "$(drained)" until-done
}

@test "replace: a claim of stale messages only goes on to the next, with -n 1 and mq-lease" {
	local i
	for i in {1..150}; do
		echo "{\"payload\":\"$i\",\"headers\":{\"Mq-Key\":[\"a\"],\"Mq-Unique\":[\"queued\"]}}"
	done | run_mq 0 mq-publish -q --jsonl --replace q
	assert_equal "$(counts published replaced)" "150 149"
	run_mq 0 mq-consume -q -n 1 q -- sh -c 'cat; echo'
	assert_output 150
	first
	run_mq 0 mq-publish -q -k a --replace -p -9 q low
	run_mq 0 mq-lease --for 1m q
	assert_output --partial low
	for i in {1..250}; do
		echo "{\"payload\":\"$i\",\"headers\":{\"Mq-Key\":[\"b\"],\"Mq-Unique\":[\"queued\"]}}"
	done | run_mq 0 mq-publish -q --jsonl --replace r
	run_mq 0 mq-lease --for 1m r
	assert_output --partial 250
	for i in {1..350}; do
		echo "{\"payload\":\"$i\",\"headers\":{\"Mq-Key\":[\"b\"],\"Mq-Unique\":[\"queued\"]}}"
	done | run_mq 0 mq-publish -q --jsonl --replace s
	assert_equal "$(drained s)" 350
}

@test "replace: --wait hears of it, the group goes on, and the batch counts it" {
	"$BUILD/mq-publish" -k a --replace --wait -d 1h q first >"$T/said" 2>&1 3>&- &
	local waiter=$!
	eventually 10 eval '[ "$(held q)" = "0 1 0 0" ]'
	run_mq 0 mq-publish -i -k a --replace q second
	wait $waiter || true
	grep -q "replaced by $output" "$T/said"
	assert_equal "$(drained)" second
	# One that holds the slot of its group, and is a member of a batch.
	run_mq 0 mq-publish -q -k b --replace -g g --batch b q one
	run_mq 0 mq-publish -q -k b --replace -p 1 q two
	run_mq 0 mq-publish -q -g g q three
	run_mq 0 mq-publish -q --after b q four
	assert_equal "$(drained)" "two three four"
	assert_equal "$(fields)" 0
}

@test "replace: it costs the same, however many are ready" {
	local n
	first
	n=$(commands replaced second)
	drained >/dev/null
	seq 20000 | run_mq 0 mq-publish -q -l q
	first
	seq 20000 | run_mq 0 mq-publish -q -l q
	assert_equal "$(commands replaced second)" "$n"
}

@test "replace: what was replaced goes to no other queue, and mq-clean keeps the mark" {
	first
	replaced second
	run_mq 0 mq-clean -q
	assert_equal "$(fields)" 2
	run_mq 0 mq-purge -q --force --all q
	assert_equal "$(fields)" 0
	run_mq 0 mq-publish -q -g g q holder
	first -g g
	run_mq 0 mq-publish -q -k a --replace -g g q second
	run_mq 0 mq-return -q --from delayed --to other q
	assert_equal "$(drained other)" second
	assert_equal "$(drained)" holder
	assert_equal "$(fields)" 0
	first
	replaced second
	run_mq 0 mq-purge -q --force --ready q
	assert_equal "$(fields)" 0
}

@test "replace: of fifty publishers against claims, no message runs that was replaced before" {
	local i all=()
	for i in {1..50}; do
		"$BUILD/mq-publish" -q -k a --replace q "$i" 3>&- &
		all+=($!)
	done
	"$BUILD/mq-consume" -q --drain q -- sh -c 'cat; echo' >"$T/one" 3>&-
	for i in "${all[@]}"; do
		wait "$i"
	done
	"$BUILD/mq-consume" -q --drain q -- sh -c 'cat; echo' >"$T/two" 3>&-
	assert_equal "$(($(cat "$T/one" "$T/two" | wc -l) + $(counts replaced)))" 50
	assert_equal "$(held q)" "0 0 0 0"
	assert_equal "$(fields)" 0
}

@test "replace: needs a key, and another --unique is refused" {
	tells 64 "mq-publish: --replace needs --key" mq-publish --replace q x
	tells 64 "mq-publish: --replace needs --unique queued" \
		mq-publish -k a --unique done --replace q x
	tells 64 "mq-publish: --coalesce and --replace cannot be used together" \
		mq-publish -k a --unique queued --coalesce --replace q x
}

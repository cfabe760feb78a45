#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# layouts: rmq rsmq
# What --print-acl prints for an option is enough for that option, what only one option
# needs is printed only with it, and each rule lets something pass: see rights.py.

load ../helpers/server

: "${LAYOUT:=rmq}"

setup() {
	export LAYOUT MQ_LAYOUT=$LAYOUT
	common_setup
}

# Each node has one.
monitors_begin() {
	[ "$(grep -c '^OK$' "$T/monitor")" = "$(server_pid | wc -w)" ]
}

@test "rights: each option has enough with its own, and no rule is too much" {
	replica_beside
	redis monitor >"$T/monitor" 3>&- &
	eventually 10 monitors_begin
	USER_URL=$(url_as app:pw) BUILD=$BUILD T=$T D=$D \
		PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1 \
		run python3 "$root/tests/server/rights.py"
	assert_success
	assert_output ""
}

@test "rights: a user with those of an older version can do what that could" {
	replica_beside
	USER_URL=$(url_as app:pw) BUILD=$BUILD T=$T D=$D BEFORE=$root/tests/server/rights.before \
		PYTHONPATH=$root/tests/helpers PYTHONDONTWRITEBYTECODE=1 \
		run python3 "$root/tests/server/rights.py"
	assert_success
	assert_output ""
}

# only OPTION TOOL RULE...: these are printed with the option, in front of any value.
only() {
	local option=$1 tool=$2 rule with without
	shift 2
	# shellcheck disable=SC2086 # an option and its value
	with=$("$BUILD/$tool" --print-acl $option q)
	without=$("$BUILD/$tool" --print-acl q)
	for rule; do
		[ "${TOPOLOGY-}" != cluster ] || rule=$(sed 's/rsmq:/{rsmq}:/' <<<"$rule")
		[[ " $with " == *" $rule "* && " $without " != *" $rule "* ]] || {
			echo "$tool $option: $rule"
			return 1
		}
	done
}

@test "rights: what only one option needs is printed with it" {
	local key='~rmq::queue::{p}::*' clone=(+client'|'kill +client'|'list +client'|'setname)
	only --durable mq-publish +config'|'get +info +wait
	only --resume mq-pause +del
	only "--running --id $(printf '%032d' 7)" mq-return '&mq::wake::*' +publish
	[ "${TOPOLOGY-}" = cluster ] || only "--running --id $(printf '%032d' 7)" mq-return +del +persist
	only --server mq-stats +config'|'get
	only --create mq-set +sadd
	if [ "$LAYOUT" = rmq ]; then
		[ "${TOPOLOGY-}" = cluster ] || key='~rmq::queue::\[p]::*'
		[ "${TOPOLOGY-}" = cluster ] || only --delete-queue mq-purge '~rmq::queue::{q}::*'
		# On a cluster, each publisher asks whether others know the queue.
		[ "${TOPOLOGY-}" = cluster ] || only "--attach a=/dev/null" mq-publish +exists
		only "--attach a=/dev/null" mq-publish '~mq::attach::*' +expire +persist +srem +set +hdel
		only --wait mq-publish +blmove +lindex +hrandfield
		only "--key a" mq-publish +hdel +hrandfield +set
		only "--group a" mq-publish +hdel +hrandfield +set
		only --jsonl mq-publish +hdel +hrandfield +set
		only --http mq-publish +hdel +hrandfield +set
		only "--tick 1" mq-publish +set
		only --clone mq-return '~mq::attach::*' +exec +multi "${clone[@]}"
		only "--notify p" mq-consume "$key"
		only "--push p" mq-consume "$key"
		only "--to p" mq-return "$key"
	else
		only --delete-queue mq-purge +srem
		only --realtime mq-publish '&rsmq:rt:q' +publish
		only --clone mq-return +unlink +pexpire "${clone[@]}"
		only --create mq-set +hsetnx +time
		only "--push p" mq-consume '~rsmq:p' '~rsmq:p:Q' '~rsmq:p:X*'
		only "--to p" mq-return '~rsmq:p' '~rsmq:p:Q' '~rsmq:p:X*'
	fi
	# What is done to a receipt needs less than who takes messages.
	run_mq 0 mq-lease --print-acl --ack "$(printf 'a.1')" q
	refute_output --partial '+ping'
}

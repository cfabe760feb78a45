#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The example for nginx: mq-stats --http behind a password, by a socket in the file
# system.
# needs: proxy
# topology: own

load ../helpers/server
load ../helpers/http

setup() {
	common_setup
	export PATH=$PATH:/usr/sbin
}

teardown() {
	[ ! -e "$T/nginx.pid" ] || nginx -c "$T/nginx.conf" -e "$T/log" -s stop
	http_stop
	common_teardown
}

@test "nginx: asks for a password, and hands on names as they are" {
	run_mq 0 mq-publish -q 'a/b c' hello
	serve_at "$T/stats.sock" mq-stats --http
	port=$(free_ports 1)
	printf 'anna:%s\n' '{PLAIN}secret' >"$T/htpasswd"
	{
		printf 'pid %s/nginx.pid;\nerror_log %s/log;\nevents {}\nhttp {\naccess_log off;\n' "$T" "$T"
		for kind in client_body proxy fastcgi uwsgi scgi; do
			printf '%s_temp_path %s/%s;\n' $kind "$T" $kind
		done
		sed "s|/run/mq-stats.sock|$T/stats.sock|; s|listen 8080|listen 127.0.0.1:$port|
			s|/etc/nginx/mq.htpasswd|$T/htpasswd|" "$root/tests/house/examples/nginx.conf"
		echo '}'
	} >"$T/nginx.conf"
	[ "$(id -u)" != 0 ] || sed -i '1i user root;' "$T/nginx.conf"
	nginx -c "$T/nginx.conf" -e "$T/log"
	wants 401 /queues/
	wants 401 /queues/ -u anna:wrong
	wants 200 /queues/ -u anna:secret
	grep -q '<!DOCTYPE html>' "$T/body"
	wants 200 '/queues/queues.json?x=1' -u anna:secret
	wants 200 /queues/queue/a%2Fb%20c -u anna:secret
	[ "$(jq -r .queue.name "$T/body")" = "a/b c" ]
	wants 404 /queues/queue/a%252Fb -u anna:secret
	wants 403 /queues/ -u anna:secret -X POST -d x
	wants 200 /queues/metrics -u anna:secret -I
}

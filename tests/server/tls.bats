#!/usr/bin/env bats
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# needs: tls
# The way to a server through TLS, with certificates of a CA of this file.  A build
# without TLS must say so, as the first test does, and has no others.
# topology: own

load ../helpers/server

# Of options that it does not know, a server names the first.
serves_tls() {
	redis-server --tls-port 0 --unknown x 2>&1 | grep -q "'unknown"
}

setup_file() {
	D=$(own_dir)
	export D
	serves_tls || return 0
	make_certificates
	choose good
	PORT=$(free_ports 1)
	PLAIN=$(free_ports 1)
	export PORT PLAIN
	server_run --tls-port "$PORT" --port "$PLAIN" --bind 127.0.0.1 \
		--tls-auth-clients no --tls-ca-cert-file "$D/ca.pem" \
		--tls-cert-file "$D/now.pem" --tls-key-file "$D/now.key"
}

setup() {
	[ -n "${PORT-}" ] || skip "this server is built without TLS"
	common_setup
	serve good
	redis config set tls-auth-clients no >/dev/null
	redis config set tls-protocols "" >/dev/null
	url="rediss://localhost:$PORT?cacert=$D/ca.pem"
	has_tls || [[ $BATS_TEST_DESCRIPTION == *" whether it has TLS"* ||
		$BATS_TEST_DESCRIPTION == "tls: redis:// "* ]] || skip "this build has no TLS"
}

new_key() {
	openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 \
		-out "$D/$1.key" 2>/dev/null || openssl ecparam -genkey -noout \
		-name prime256v1 -out "$D/$1.key"
}

# authority NAME
authority() {
	new_key "$1"
	openssl req -x509 -key "$D/$1.key" -subj "/CN=$1" -days 2 \
		-addext 'keyUsage=critical,keyCertSign' -out "$D/$1.pem"
}

# certificate NAME AUTHORITY ALTNAME [COMMAND...]: openssl is run by the command.
certificate() {
	new_key "$1"
	openssl req -new -key "$D/$1.key" -subj "/CN=$1" |
		"${@:4}" openssl x509 -req -CA "$D/$2.pem" -CAkey "$D/$2.key" \
			-CAcreateserial -days 2 -out "$D/$1.pem" \
			-extfile <(echo "subjectAltName=$3") 2>/dev/null
}

make_certificates() {
	authority ca
	authority other
	certificate good ca DNS:localhost
	certificate address ca IP:127.0.0.1
	certificate expired ca DNS:localhost faketime -f -10d
	certificate foreign ca DNS:queue.example
	certificate stranger other DNS:localhost
	new_key alone
	openssl req -x509 -key "$D/alone.key" -subj /CN=alone -days 2 \
		-addext subjectAltName=DNS:localhost -out "$D/alone.pem"
	openssl pkey -in "$D/good.key" -aes256 -passout pass:x -out "$D/secret.key"
	: >"$D/empty"
}

# choose NAME: the server reads this certificate next.
choose() {
	ln -sf "$1.pem" "$D/now.pem"
	ln -sf "$1.key" "$D/now.key"
}

# serve NAME: new connections get this certificate.
serve() {
	choose "$1"
	redis config set tls-cert-file "$D/now.pem" >/dev/null
}

has_tls() {
	"$BUILD/mq-publish" -V | grep -qx 'features: tls'
}

# says TEXT: one line, behind the name of the tool.
says() {
	assert_equal "${stderr#*: }" "$1"
}

# refused STATUS URL WHY: both by a connection that waits.
refused() {
	run_mq "$1" mq-publish -u "$2" q x
	says "$2: $3"
	run_mq "$1" mq-consume -u "$2" -n 1 q
	says "$2: $3"
}

@test "tls: a build says whether it has TLS" {
	local tool

	for tool in publish consume lease stats return purge pause clean; do
		run_mq 0 "mq-$tool" -V
		assert_regex "$output" $'\nfeatures: (tls|none)$'
	done
	has_tls && run_mq 0 mq-publish -u "$url" q x && return
	run_mq 78 mq-publish -u "$url" q x
	says "$url: this build does not support TLS, which needs hiredis_ssl (hiredis 1.0 or newer) and OpenSSL 3"
}

@test "tls: every tool, by a URL in the env file" {
	mkdir -p "$T/mq"
	echo "MQ_URL='$url'" >"$T/mq/env"
	unset MQ_URL
	export XDG_CONFIG_HOME=$T
	seq 1000 | run_mq 0 mq-publish -l q
	run_mq 0 mq-stats --json q
	run_mq 0 mq-consume -n 990 -l q
	assert_equal "$(sort -n <<<"$output" | uniq | wc -l)" 990
	run_mq 1 mq-consume -n 5 -j 2 q -- false
	run_mq 0 mq-return q
	run_mq 0 mq-lease --for 1m q
	run_mq 0 mq-pause q
	run_mq 0 mq-clean
	run_mq 0 mq-purge --force --ready q
	assert_equal "$stderr" ""
}

@test "tls: long payloads in both directions, at once and bit by bit" {
	head -c 50000000 /dev/urandom >"$T/long"
	run_mq 0 mq-publish -u "$url" q <"$T/long"
	run_mq 0 mq-consume -u "$url" -n 1 --push r q -- sh -c 'echo push >&3'
	"$BUILD/mq-consume" -u "$url" -n 1 r | cmp - "$T/long"
}

# Nodes name each other by address.
@test "tls: a cluster" {
	local port nodes cluster

	port=$(free_ports 1)
	nodes=$(free_ports 1)
	redis-server --port 0 --tls-port "$port" --bind 127.0.0.1 --dir "$T" --save '' \
		--cluster-enabled yes --cluster-port "$nodes" \
		--cluster-announce-ip 127.0.0.1 --tls-auth-clients no \
		--tls-ca-cert-file "$D/ca.pem" --tls-cert-file "$D/good.pem" \
		--tls-key-file "$D/good.key" --unixsocket "$T/redis.sock" \
		>/dev/null 3>&- &
	eventually 10 redis-cli -s "$T/redis.sock" cluster addslotsrange 0 16383
	cluster="rediss-cluster://localhost:$port?cacert=$D/ca.pem&sni=localhost"
	eventually 20 "$BUILD/mq-publish" -u "$cluster" q x
	run_mq 0 mq-stats -u "$cluster" q
	run_mq 78 mq-publish -u "rediss-cluster://localhost:$port?cacert=$D/ca.pem" q x
	assert_regex "$stderr" "TLS: the server's certificate is for another host"
}

@test "tls: sentinels, and the master that they know" {
	local port sentinel

	port=$(free_ports 1)
	cat >"$T/sentinel.conf" <<-END
		port 0
		tls-port $port
		bind 127.0.0.1
		dir $T
		tls-replication yes
		tls-auth-clients no
		tls-ca-cert-file $D/ca.pem
		tls-cert-file $D/good.pem
		tls-key-file $D/good.key
		sentinel monitor main 127.0.0.1 $PORT 1
	END
	redis-server "$T/sentinel.conf" --sentinel >/dev/null 3>&- &
	sentinel="rediss-sentinel://localhost:$port/main?cacert=$D/ca.pem&sni=localhost"
	eventually 30 "$BUILD/mq-publish" -u "$sentinel" q x 2>/dev/null
	run_mq 0 mq-consume -u "$sentinel" -n 1 q
	assert_output x
	# It names the master by its address.
	run_mq 78 mq-publish -u "rediss-sentinel://localhost:$port/main?cacert=$D/ca.pem" q x
	assert_regex "$stderr" "TLS: the server's certificate is for another host"
}

# --- who the server is -----------------------------------------------------------

@test "tls: whose certificate it must be, and who must have signed it" {
	local cert where why trust='from an authority that is not trusted; cacert=FILE names one'
	local another='for another host; sni=NAME says whose it must be'
	while IFS='|' read -r cert where why; do
		serve "$cert"
		if [ -z "$why" ]; then
			run_mq 0 mq-publish -u "rediss://$where" q x
			run_mq 0 mq-consume -u "rediss://$where" -n 1 q
			assert_output x
		else
			refused 78 "rediss://$where" "TLS: the server's certificate $why"
		fi
	done <<-END
		good|localhost:$PORT|is $trust
		good|localhost:$PORT?cacert=$D/other.pem|is $trust
		alone|localhost:$PORT?cacert=$D/ca.pem|is self-signed; to trust it, name its file with cacert=
		alone|localhost:$PORT?cacert=$D/alone.pem|
		foreign|localhost:$PORT?cacert=$D/ca.pem|is $another
		foreign|localhost:$PORT?cacert=$D/ca.pem&sni=queue.example|
		good|127.0.0.1:$PORT?cacert=$D/ca.pem|is $another
		good|127.0.0.1:$PORT?cacert=$D/ca.pem&sni=localhost|
		good|localhost:$PORT?cacert=$D/ca.pem&sni=queue.example|is $another
		address|localhost:$PORT?cacert=$D/ca.pem|is $another
		address|127.0.0.1:$PORT?cacert=$D/ca.pem|
		expired|localhost:$PORT?cacert=$D/ca.pem|has expired
	END
	assert_equal "$(held q)" "0 0 0 0"
	serve good
	SSL_CERT_FILE=$D/ca.pem run_mq 0 mq-publish -u "rediss://localhost:$PORT" q x
}

@test "tls: insecure=1 takes any certificate, and says so once" {
	local insecure="rediss://localhost:$PORT?insecure=1"

	serve alone
	run_mq 0 mq-publish -u "$insecure" q x
	says "$insecure: insecure=1: its certificate is not verified"
	run_mq 0 mq-consume -u "$insecure" -n 1 q
	assert_output x
	says "$insecure: insecure=1: its certificate is not verified"
	serve expired
	run_mq 0 mq-publish -q -u "$insecure" q x
	assert_equal "$stderr" ""
}

# --- files ------------------------------------------------------------------------

@test "tls: files that are not there, or hold something else: 78" {
	local files why
	while IFS='|' read -r files why; do
		refused 78 "rediss://localhost:$PORT?$files" "TLS: $why"
	done <<-END
		cacert=$T/none|cacert=$T/none: No such file or directory
		cacert=$D/empty|cacert=$D/empty: holds no certificate
		cacert=$D/ca.pem&cert=$T/none&key=$D/good.key|cert=$T/none: No such file or directory
		cacert=$D/ca.pem&cert=$D/empty&key=$D/good.key|cert=$D/empty: holds no certificate
		cacert=$D/ca.pem&cert=$D/good.pem&key=$T/none|key=$T/none: No such file or directory
		cacert=$D/ca.pem&cert=$D/good.pem&key=$D/good.pem|key=$D/good.pem: holds no private key
		cacert=$D/ca.pem&cert=$D/good.pem&key=$D/alone.key|key=$D/alone.key: does not belong to the certificate in $D/good.pem
		cacert=$D/ca.pem&cert=$D/good.pem|cert= and key= are given together or not at all
	END
	run_mq 0 mq-publish -u "$url&cert=$D/good.pem&key=$D/good.key" q x
}

@test "tls: a key with a passphrase is refused, and nobody is asked: 78" {
	url+="&cert=$D/good.pem&key=$D/secret.key"
	# On a terminal, which the library would ask.
	run timeout 180 python3 -c 'import pty, os, sys
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))' \
		"$BUILD/mq-publish" -u "$url" q x
	assert_equal "$status" 78
	assert_output -p "TLS: key=$D/secret.key: needs a passphrase; use a key without one"
}

# --- who we are -------------------------------------------------------------------

@test "tls: a server that demands a certificate" {
	redis config set tls-auth-clients yes >/dev/null
	refused 78 "$url" \
		'TLS: the server demands a certificate; name its files with cert= and key='
	# The alert comes, if it does, just before the end of the connection.
	run "$BUILD/mq-publish" -u "$url&cert=$D/stranger.pem&key=$D/stranger.key" q x
	assert_regex "$status" '^(69|78)$'
	assert_regex "$output" 'TLS: the server (refuses the|ended the connection; it may not accept the) certificate of cert='
	url+="&cert=$D/foreign.pem&key=$D/foreign.key"
	for version in '' TLSv1.2; do
		redis config set tls-protocols "$version" >/dev/null
		run_mq 0 mq-publish -u "$url" q x
		run_mq 0 mq-consume -u "$url" -n 1 q
		assert_output x
	done
	refused 78 "${url%%&*}" \
		'TLS: the server refuses the handshake; if it demands a certificate, name its files with cert= and key='
}

# --- one side without TLS -----------------------------------------------------------

# answers PYTHON: a listener at $port, which does that with each connection c.
answers() {
	port=$(free_ports 1)
	python3 -c "import socket, sys, time
s = socket.create_server(('127.0.0.1', int(sys.argv[1])))
while True:
    c = s.accept()[0]
    try:
        $1
    except OSError:
        pass" "$port" 3>&- &
	eventually 10 port_open "$port"
}

@test "tls: something that does not answer: 69; something else that does: 78" {
	answers 'time.sleep(1000)'
	refused 69 "rediss://localhost:$port" \
		'TLS: no answer to the handshake; a server without TLS takes redis://'
	answers 'c.send(b"SSH-2.0-server\r\n")'
	refused 78 "rediss://localhost:$port" \
		'TLS: the server does not speak it; a server without TLS takes redis://'
}

# A byte each half second is no answer.
@test "tls: something that begins an answer, and never ends it: 69" {
	answers 'c.sendall(bytes([22, 3, 3, 64, 0]))
        while True:
            c.sendall(b"2")
            time.sleep(0.5)'
	status=0
	timeout 55 "$BUILD/mq-publish" -u "rediss://localhost:$port" q x || status=$?
	assert_equal "$status" 69
}

port_open() {
	(: <>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# Redis 7.0 waits for the rest of what it takes for a command, unless there is a newline
# in it by chance.
@test "tls: a server without TLS" {
	run "$BUILD/mq-publish" -u "rediss://localhost:$PLAIN" q x
	assert_regex "$status" '^(69|78)$'
	assert_output -p '; a server without TLS takes redis://'
}

@test "tls: redis:// to a port with TLS: 69; but not to what ends each connection at once" {
	run_mq 69 mq-publish -u "redis://localhost:$PORT" q x
	assert_regex "$stderr" '; a server with TLS takes rediss://$'
	answers 'c.close()'
	run_mq 69 mq-publish -u "redis://127.0.0.1:$port" q x
	refute grep -q rediss:// <<<"$stderr"
}

# --- a consumer ---------------------------------------------------------------------

@test "tls: a consumer is woken, and works off what comes" {
	start_mq mq-consume -u "$url" -l q
	eventually 10 joined
	promptly '"$BUILD/mq-publish" q x' '[ -s "$T/out" ]' ': >"$T/out"'
	seq 20000 | run_mq 0 mq-publish -u "$url" -l q
	eventually 30 held_is q "0 0 0 0"
	stop_mq
	assert_equal "$(tail -n 20000 "$T/out" | tr -d '\0' | cksum)" "$(seq 20000 | cksum)"
}

@test "tls: workers have nothing of the connection" {
	script s <<'.'
readlink /proc/$$/fd/* >>"$T/open"
read -r x
echo done >&3
.
	run_mq 0 mq-publish -u "$url" q x
	run_mq 0 mq-consume -u "$url" -n 1 q -- "$T/s"
	run_mq 0 mq-publish -u "$url" q x
	run_mq 0 mq-consume -u "$url" -n 1 --stream q -- "$T/s"
	run cat "$T/open"
	assert_output --partial pipe
	refute_output --partial socket
}

@test "tls: a consumer finds a certificate that is not good, and waits for a better one" {
	start_mq mq-consume -u "$url" -l q
	eventually 10 joined
	serve expired
	redis client kill type normal skipme yes >/dev/null
	eventually 10 grep -q expired "$T/err"
	tick
	tick
	assert_equal "$(grep -c expired "$T/err")" 1
	assert_equal "$(tail -n 1 "$T/err")" \
		"mq-consume: $url: TLS: the server's certificate has expired; trying again"
	redis lpush 'rmq::queue::[q]::ready' x >/dev/null
	redis sadd rmq::queues q >/dev/null
	serve good
	eventually 30 grep -qx x "$T/out"
	stop_mq
}

# Bit by bit, so that writing has to wait for room.
@test "tls: a duplicate goes to another server, however long it is" {
	python3 "$root/tests/helpers/link.py" "$PORT" 0.002 >"$T/port" 3>&- &
	eventually 10 [ -s "$T/port" ]
	script s <<'.'
cat >/dev/null
echo "dup 0-X-$FAR" >&3
read -r x <&4
echo "$x" >>"$T/answers"
echo done >&3
.
	redis sadd rmq::queues other >/dev/null
	head -c 20000000 /dev/urandom >"$T/long"
	run_mq 0 mq-publish q <"$T/long"
	run_mq 0 mq-publish q small
	FAR="rediss://localhost:$(<"$T/port")?cacert=$D/ca.pem&queue=other" \
		run_mq 0 mq-consume -n 2 q -- "$T/s"
	run cat "$T/answers"
	assert_output --regexp $'^ok [^\n]*\nok [^\n]*$'
	"$BUILD/mq-consume" -n 1 other | cmp - "$T/long"
	run_mq 0 mq-publish q x
	serve expired
	FAR="$url&queue=other" run_mq 0 mq-consume -n 1 q -- "$T/s"
	assert_equal "$(tail -n 1 "$T/answers")" \
		"fail couldn't connect to queue - $url&queue=other: TLS: the server's certificate has expired"
	assert_equal "$stderr" ""
	seq 3 | run_mq 0 mq-publish -l q
	FAR="$url&insecure=1&queue=other" run_mq 0 mq-consume -n 3 q -- "$T/s"
	assert_equal "$(grep -c 'its certificate is not verified' <<<"$stderr")" 1
	run tail -n 1 "$T/answers"
	assert_output --regexp '^ok '
}

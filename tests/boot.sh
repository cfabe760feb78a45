#!/bin/bash
# Copyright (c) 2026 the mq-tools authors. SPDX-License-Identifier: ISC
# The commands of mq-service(7), mq-http(7) and mq-production(7) on a machine that was booted: as
# root, systemd as process 1 of its own namespaces, on a copy of / that is gone afterwards.
#   boot.sh BUILD    installs by "make install", runs what the pages say, and looks at what became of it
# Outside nothing changes: all writes go to an overlay in memory, the network is an own one.
set -u

root=$(cd "$(dirname "$0")/.." && pwd)
failed=0 passed=0

# --- outside: the machine ---

boot() {
	local log=$T/console i

	cat >"$T/boot" <<-'END'
		set -e
		mount --make-rprivate /
		mount -t tmpfs t "$T"
		mkdir "$T/upper" "$T/work" "$T/root"
		mount -t overlay o -o "lowerdir=/,upperdir=$T/upper,workdir=$T/work" "$T/root"
		mount --bind "$SOURCE" "$T/root/mnt"
		mount -o remount,bind,ro "$T/root/mnt"
		cd "$T/root"
		mount -t proc p proc
		mount -t sysfs s sys
		mount -t cgroup2 c sys/fs/cgroup
		for d in run tmp dev; do mount -t tmpfs t "$d"; done
		for n in null zero full random urandom tty; do touch "dev/$n"; mount --bind "/dev/$n" "dev/$n"; done
		mkdir dev/pts dev/shm
		mount -t devpts -o newinstance,ptmxmode=666 d dev/pts
		ln -s pts/ptmx dev/ptmx
		ln -s /proc/self/fd dev/fd
		ip link set lo up
		exec env -i container=mq PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . \
		    /lib/systemd/systemd --unit=multi-user.target
	END
	export T SOURCE=$root
	mkdir "$T/cgroup"
	trap down EXIT
	mount -t cgroup2 c "$T/cgroup" && mkdir "$T/cgroup/mq-boot.$$" || exit 78
	(
		echo "$BASHPID" >"$T/cgroup/mq-boot.$$/cgroup.procs"
		exec unshare --kill-child=KILL -fpmuiCn bash "$T/boot" >"$log" 2>&1 </dev/null
	) &
	machine=$!
	for ((i = 0; i < 300; i++)); do
		init=$(pgrep -P "$machine") && inside <<<'systemctl is-system-running' 2>/dev/null |
			grep -qE '^(running|degraded)$' && return
		kill -0 "$machine" 2>/dev/null || break
		read -rt 0.2 <> <(:)
	done
	cat "$log" >&2
	echo "boot.sh: systemd does not boot here; it takes root, overlayfs and cgroup2" >&2
	exit 78
}

# What systemd has made of control groups would stay.
down() {
	local i

	[ -z "${machine-}" ] || kill -KILL "$machine" 2>/dev/null
	wait 2>/dev/null
	for ((i = 0; i < 50; i++)); do
		find "$T/cgroup/mq-boot.$$" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -e "$T/cgroup/mq-boot.$$" ] || break
		read -rt 0.1 <> <(:)
	done
	umount "$T/cgroup"
	rm -rf --one-file-system "$T"
}

inside() {
	setsid -w nsenter -t "$init" -m -p -u -i -C -n --root --wd env -i LANG=C.UTF-8 HOME=/root \
	    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin bash -c 'cd && exec bash -s'
}

# --- inside: what the pages say ---

# The commands of a section, each with the lines that belong to it, and a NUL byte behind it.
commands() {
	sed -n "/^\.S[hs] $2\$/,/^\.S[hs] /p" "$root/man/$1" |
		perl -0777 -ne 'while (/^\.Bd -literal.*\n([#\$] (?:.*\n)*?)\.Ed/mg) {
			my $t = $1; $t =~ s/\\e/\\/g;
			print "$1\0" while $t =~ /^[#\$] ((?:.*\n)(?:(?![#\$] ).*\n)*)/mg }'
}

# check NAME: the commands on stdin, with a wait, succeed.
check() {
	local text

	text=$(cat)
	if inside <<<"set -e
until_() { local i; for i in {1..100}; do \"\$@\" >/dev/null 2>&1 </dev/null && return; read -rt 0.2 <> <(:) || :; done; return 1; }
$text" >"$T/out" 2>&1; then
		passed=$((passed + 1))
		echo "ok - $1"
	else
		failed=$((failed + 1))
		echo "not ok - $1"
		tail -n 20 "$T/out" | sed 's/^/# /'
	fi
}

# Before version 256 systemctl has no --stdin: what the page says then.
without_stdin() {
	[[ $text != *--stdin* ]] || inside <<<'systemctl edit --help | grep -q -- --stdin' || text=$(sed '
		s|^systemctl edit --stdin \(.*\) <<END|mkdir -p /etc/systemd/system/\1.service.d; cat >/etc/systemd/system/\1.service.d/write.conf <<END|' <<<"$text")
}

# run PAGE SECTION PATTERN: the commands of the section that match.
run() {
	local text some=0

	while IFS= read -rd '' text; do
		[[ $text =~ $3 ]] || continue
		some=1
		without_stdin
		check "$1: ${text%%$'\n'*}" <<<"$text"
	done < <(commands "$1" "$2")
	((some)) || { echo "not ok - $1 has no $3"; failed=$((failed + 1)); }
}

build=${1:-build}
((EUID == 0)) || { echo "boot.sh: only root can boot a machine" >&2; exit 78; }
T=$(mktemp -d "${TMPDIR:-/tmp}/mq.XXXXXX")
boot

check "make install" <<END
make -s -C /mnt B='$build' install PREFIX=/usr/local
systemctl daemon-reload
[ "\$(stat -c %a:%U:%G /etc/mq)" = 750:root:_mq ]
systemd-run -q --unit=queues redis-server --port 6379 --save '' --dir /tmp
until_ redis-cli ping
cat >make-thumbnail <<'.'
#!/bin/sh
cat >/srv/thumbnails/"\$MQ_ID" || { echo "err cannot write" >&3; exit; }
.
END
run mq-service.7 Services '^(echo MQ_URL|install -D|echo OPTIONS|systemctl enable --now mq-consume)'
check "the unit is shut: /srv is not written" <<'END'
mq-publish thumbnails cat.jpg
until_ sh -c 'mq-stats --reasons thumbnails | grep "cannot write"'
systemctl is-active mq-consume@thumbnails mq-clean.timer
END
run mq-service.7 Services '^(chown|chmod)'
run mq-service.7 Services '^(install -d|systemctl edit)'
check "systemctl daemon-reload" <<<'systemctl daemon-reload'
run mq-service.7 Services '^systemctl restart'
check "the worker writes" <<'END'
mq-return thumbnails
until_ sh -c 'grep -qx cat.jpg /srv/thumbnails/*'
mq-stats --check consumers=1,rejected=0 thumbnails
END
check "a consumer that is killed is started again, and another user reads no env file" <<'END'
pid=$(systemctl show -P MainPID mq-consume@thumbnails)
((pid))
kill -KILL "$pid"
mq-publish thumbnails dog.jpg
until_ sh -c 'grep -qx dog.jpg /srv/thumbnails/*'
runuser -u nobody -- sh -c '! cat /etc/mq/env'
END
check "an env file of root alone is status 78, which is told" <<'END'
chmod 600 /etc/mq/env
systemctl restart mq-consume@thumbnails || true
until_ sh -c 'systemctl show -P ExecMainStatus mq-consume@thumbnails | grep -qx 78'
chmod 640 /etc/mq/env
systemctl reset-failed
systemctl restart mq-consume@thumbnails
END
check "an account that lingers" <<'END'
useradd -m ann
loginctl enable-linger ann
systemctl start "user@$(id -u ann)"
install -D -o ann /root/make-thumbnail /home/ann/bin/make-thumbnail
END
text=
while IFS= read -rd '' more; do
	[[ $more =~ config/systemd|--user ]] && text+=$more
done < <(commands mq-service.7 Services)
check "mq-service.7: a unit of the user's own" <<END
chmod 755 /root
printf '%s' $(printf %q "$text") >/tmp/user.sh
runuser -u ann -- env HOME=/home/ann PATH=/usr/local/bin:/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/\$(id -u ann) sh -e /tmp/user.sh
runuser -u ann -- env XDG_RUNTIME_DIR=/run/user/\$(id -u ann) systemctl --user is-active thumbnails
END
run mq-http.7 'Units of systemd' .
check "mq-http.7: it was published" <<'END'
mq-stats --list delayed thumbnails | grep cat.jpg
END
check "mq-production.7: systemctl status, the probe, the journal" <<'END'
systemctl status --no-pager mq-consume@thumbnails
curl -fsS http://127.0.0.1:9780/healthz
journalctl -k --no-pager -n 1 >/dev/null
systemctl stop mq-consume@thumbnails
END
echo "$passed passed, $failed failed"
((failed == 0))

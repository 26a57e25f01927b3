#!/usr/bin/env bash
# sidecar.sh: a shell script beside `baton serve`. The connection is the work: while the connection
# is open and the deadline is ahead, the script works; when the script ends, the next one leads.
#
#     baton serve web &
#     ./sidecar.sh web /run/baton/serve.sock
set -eu
election=$1
socket=${2:-/run/baton/serve.sock}

exec 3< <(exec curl -sSfN --unix-socket "$socket" -X POST -H 'Content-Type: application/json' \
	-H 'Baton-Request: 1' -H 'Accept: application/x-ndjson' \
	"http://baton/v1/elections/$election/lead?renewed=1")
connection=$!
trap 'kill $connection 2>/dev/null || true' EXIT # the work has ended: the leadership is free

deadline=0 # on CLOCK_BOOTTIME, in ms; 0: another one leads
now() { read -r up _ </proc/uptime && echo "${up/./}0"; }
field() { sed -n "s/.*\"$1\":\"\([0-9]*\)\".*/\1/p" <<<"$event"; }

while true; do
	if read -r -t 0.1 -u 3 event; then
		case $event in
		*'"became"'* | *'"renewed"'*)
			deadline=$(($(field deadline_boot_ns) / 1000000)) term=$(field term)
			;;
		*'"lost"'*) break ;;
		esac
	elif [ $? -le 128 ]; then
		break # not a pause but the end: the sidecar is gone
	elif [ "$deadline" -gt "$(now)" ]; then
		echo "term $term works" # one short step of the work
	fi
done

#!/bin/sh
# queue-consumer-redis: one instance works on a list in Redis, in order; the rest stand by. Between
# "I lead" and a write the process can be stopped for as long as it likes: so every write goes
# through a guard in Redis that refuses the terms of the past.
#
#     baton run --store redis://h orders -- ./queue-consumer-redis.sh redis://h
#
# An order is done when it has been moved to the list of those that are: a leader that dies in the
# middle leaves it where it was. Ends when there are no more. BATON_TERM is what `baton run` gives;
# with an old one (BATON_TERM=5 ./queue-consumer-redis.sh redis://h) one sees what a leader meets
# that was frozen at the wrong moment.
set -eu
redis=$1
guard=$(redis-cli -u "$redis" SCRIPT LOAD "$("${BATON:-baton}" schema redis --fence)")

# fenced KEY COMMAND...: carried out, or refused because our term is over.
fenced() {
	key=$1
	shift
	redis-cli -e -u "$redis" EVALSHA "$guard" 2 "{orders}:fence" "$key" "$BATON_TERM" "$@"
}

fenced "{orders}:new" EXISTS "{orders}:new" >/dev/null # from here on, older terms are over
while order=$(redis-cli -u "$redis" LINDEX "{orders}:new" 0) && [ -n "$order" ]; do
	echo "term $BATON_TERM works on $order" # the work itself
	fenced "{orders}:new" LMOVE "{orders}:new" "{orders}:done" LEFT RIGHT >/dev/null
done

#!/bin/sh
# Spreads the children of the load's root evenly over the groups beside the home group: spread.sh PADDOCK PORT ADMIN_PORT GROUPS
# PADDOCK is the program; the ports are those of a member, for clients and for operators.
set -eu
paddock=$1 host=127.0.0.1:$2 admin=127.0.0.1:$3 groups=$4
identity=$(mktemp)
trap 'rm -f "$identity"' EXIT
echo digest:super:secret > "$identity"
"$paddock" shell "$host" -- create /paddock-bench ""
group=1
while [ "$group" -le "$groups" ]; do
    first=$((4096 * (group - 1) / groups)) last=$((4096 * group / groups - 1))
    # The home group is there before the others.
    tries=0
    until "$paddock" groups move "$admin" /paddock-bench --to "$group" --slots "$first-$last" --at-once 4096 --auth "@$identity"; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ]
        sleep 0.1
    done
    group=$((group + 1))
done

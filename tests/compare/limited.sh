#!/bin/sh
# Runs a member with a fifth of a core: limited.sh NAME COMMAND...
# Its CPU cgroup is `paddock-NAME` at the root, of version 2 or 1, and is made if it is missing. Needs the right to do so.
set -eu
name=$1
shift
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    group=/sys/fs/cgroup/paddock-$name
    mkdir -p "$group"
    echo "2000 10000" > "$group/cpu.max"
else
    group=/sys/fs/cgroup/cpu/paddock-$name
    mkdir -p "$group"
    echo 10000 > "$group/cpu.cfs_period_us"
    echo 2000 > "$group/cpu.cfs_quota_us"
fi
echo $$ > "$group/cgroup.procs"
exec "$@"

#!/bin/sh
# Becomes systemd in a container: `boot.sh DIRECTORY GROUP`, the directory of a root file system, and a new group of the second version
# of control groups. It has no network but loopback. It ends, and leaves nothing, when this process is killed.
set -e
echo $$ > "$2/cgroup.procs"
exec unshare --mount --pid --uts --ipc --net --cgroup --fork --kill-child=KILL sh -c '
set -e
mount --make-rprivate /
mount --bind "$1" "$1"
cd "$1"
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs dev -o mode=755
mkdir dev/pts dev/shm
mount -t devpts devpts dev/pts -o newinstance,ptmxmode=0666,mode=620
for device in null zero full random urandom tty; do
    touch dev/$device
    mount --bind /dev/$device dev/$device
done
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ip link set lo up
pivot_root . mnt
umount -l /mnt
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /sbin/init
' boot "$1"

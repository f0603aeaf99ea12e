#!/bin/bash
# boot.sh ROOT: starts the systemd of a Debian root in the namespaces that this process is in (mount, PID, network, cgroup, UTS, IPC).
set -e
root=$1
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
mount -t bpf bpf "$root/sys/fs/bpf"
mount -t tmpfs tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null:3 zero:5 full:7 random:8 urandom:9; do
	mknod -m 666 "$root/dev/${device%:*}" c 1 "${device#*:}"
done
mknod -m 666 "$root/dev/tty" c 5 0
ln -s pts/ptmx "$root/dev/ptmx"
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts devpts "$root/dev/pts"
ip link set lo up
mkdir "$root/tmp/outside"
cd "$root"
pivot_root . tmp/outside
umount -l /tmp/outside
rmdir /tmp/outside
exec env -i container=other PATH=/usr/sbin:/usr/bin /lib/systemd/systemd --log-target=console --log-level=notice --show-status=no

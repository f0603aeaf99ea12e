#!/bin/bash
# machine.sh NAME POLICY: a machine of this name, with this policy. Before, the process enters the cgroup and makes namespaces; here it makes file
# systems of its own, says so by a file, and waits to be killed.
set -e
hostname "$1"
mount -t tmpfs tmpfs /mnt
mkdir /mnt/home /mnt/{etc,lib,log}{,-work}
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/etc-work /etc
mount -t overlay overlay -o lowerdir=/var/lib,upperdir=/mnt/lib,workdir=/mnt/lib-work /var/lib
mount -t tmpfs tmpfs /var/log
mount -t tmpfs tmpfs /run
mount -t sysfs sysfs /sys
mount -t cgroup2 none /sys/fs/cgroup
mount -t bpf bpf /sys/fs/bpf
ip link set lo up
printf '127.0.0.1 localhost\n10.9.0.1 m1\n10.9.0.2 m2\n10.9.0.3 m3\n' >/etc/hosts
rm -rf /etc/opentcp /var/lib/opentcp
mkdir -p /etc/opentcp
cp "$2" /etc/opentcp/policy.toml
touch /mnt/home/ready
exec sleep 600

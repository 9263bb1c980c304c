#!/usr/bin/env bash
# Boots systemd in namespaces of its own, over a copy of this machine's files that nothing outlives, with the two
# units of the project and a service that checks them: boot.sh PROGRAM UNITS CHECK OUT
#
# CHECK is a script that runs there as root; OUT is a directory that it may write to. Exits with 77, and a word
# why, where that cannot be done.
set -euo pipefail
program=$1 units=$2 check=$3 out=$4

cannot() {
    echo "$1"
    exit 77
}

# A group of its own in every hierarchy: this systemd must not see, let alone rule, those of the machine.
group=anabranch-test-$$
hierarchies=$(awk '$3 == "cgroup" || $3 == "cgroup2" { print $2 }' /proc/mounts)
[ -n "$hierarchies" ] || cannot "no control groups are mounted"
if [ "${5:-}" != inside ]; then
    groups=()
    leave() {
        for made in "${groups[@]}"; do
            find "$made" -depth -type d -exec rmdir {} \; 2>/dev/null || true
        done
    }
    trap leave EXIT
    for hierarchy in $hierarchies; do
        case $hierarchy in
            */cpuset) continue ;; # A new group has no processors yet, so nothing can join it.
        esac
        mkdir "$hierarchy/$group" 2>/dev/null || cannot "control groups cannot be made in $hierarchy"
        groups+=("$hierarchy/$group")
    done
    namespaces=(unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child)
    "${namespaces[@]}" true 2>/dev/null || cannot "namespaces cannot be made here"
    status=0
    (
        for made in "${groups[@]}"; do echo "$BASHPID" >"$made/cgroup.procs"; done
        exec timeout --signal KILL 60 "${namespaces[@]}" \
            bash "$0" "$program" "$units" "$check" "$out" inside
    ) </dev/null || status=$?
    exit "$status"
fi

# Here are the new namespaces.
mounted() {
    mount "$@" 2>/dev/null || cannot "not permitted here: mount $*"
}
place=$out/place
mkdir "$place"
mounted -t tmpfs tmpfs "$place"
mkdir "$place/upper" "$place/work" "$place/root"
root=$place/root
mounted -t overlay overlay -o "lowerdir=/,upperdir=$place/upper,workdir=$place/work" "$root"
mounted -t proc proc "$root/proc"
mounted -t sysfs sysfs "$root/sys"
mounted --rbind /dev "$root/dev"
for empty in run tmp; do mounted -t tmpfs tmpfs "$root/$empty"; done
awk '$3 == "cgroup" || $3 == "cgroup2" { print $2, $3, $4 }' /proc/mounts | grep -v cpuset >"$place/hierarchies"
if ! grep -q '^/sys/fs/cgroup cgroup2' "$place/hierarchies"; then
    mounted -t tmpfs tmpfs "$root/sys/fs/cgroup"
fi
while read -r hierarchy kind options; do
    mkdir -p "$root$hierarchy"
    options=$(tr , '\n' <<<"$options" | sed -E '/^(rw|ro|relatime|no.*|nsdelegate|memory_.*|xattr)$/d' | paste -sd ,)
    # A hierarchy is named by what it controls, and the one without controllers by its name.
    case $options in name=*) options=none,$options ;; esac
    mounted -t "$kind" ${options:+-o "$options"} cgroup "$root$hierarchy"
done <"$place/hierarchies"

touch "$root/usr/bin/anabranch"
mount --bind "$program" "$root/usr/bin/anabranch"
mkdir -p "$root/etc/anabranch" "$root/etc/systemd/system" "$root/out" "$root/old"
mount --bind "$out" "$root/out"
cp "$units"/*.service "$root/etc/systemd/system/"
cp "$check" "$root/check.sh"
id anabranch >/dev/null 2>&1 || {
    echo 'anabranch:x:990:990::/nonexistent:/usr/sbin/nologin' >>"$root/etc/passwd"
    echo 'anabranch:x:990:' >>"$root/etc/group"
}
cat >"$root/etc/systemd/system/check.target" <<'UNIT'
[Unit]
DefaultDependencies=no
Requires=check.service
UNIT
cat >"$root/etc/systemd/system/check.service" <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash /check.sh
ExecStopPost=/bin/systemctl exit --force --force
StandardOutput=file:/out/said
StandardError=file:/out/said
UNIT
# Answers what it is told, for whoever connects.
cat >"$root/etc/systemd/system/echo.socket" <<'UNIT'
[Unit]
DefaultDependencies=no
[Socket]
ListenStream=127.0.0.1:7777
Accept=yes
UNIT
cat >"$root/etc/systemd/system/echo@.service" <<'UNIT'
[Unit]
DefaultDependencies=no
[Service]
ExecStart=/bin/cat
StandardInput=socket
UNIT
ip link set lo up
cd "$root"
# In a changed root alone, the kernel makes no user namespaces, and the units ask for one.
mount --make-rprivate /
pivot_root . old
umount --lazy /old
touch /out/booted
exec env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other \
    /lib/systemd/systemd --unit=check.target --log-target=console

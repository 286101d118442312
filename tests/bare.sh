#!/bin/sh
# Proves the README's two commands on a bare system: makes a minimal Debian 12 in
# a folder, clones this tree into it and runs both there. Needs root, debootstrap,
# and about 6 GB; takes an hour. Not part of tests/run.sh.
#
#   sh tests/bare.sh [FOLDER]          a root that is there already is used again
#
# Packages come from where this machine's own apt takes them.
set -u
cd "$(dirname "$0")/.." || exit 3
. tests/setup.sh
top=${1:-build/bare}
[ "$(id -u)" -eq 0 ] || die "a root folder can be made by root only"
case $top in
/*) ;;
*) top=$PWD/$top ;;
esac

# The address that apt takes Debian's main archive from.
# shellcheck disable=SC2016  # a format of apt's
mirror() {
    apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 2>/dev/null | head -n 1
}

make_root() {
    need debootstrap
    mkdir -p "$top"
    debootstrap --variant=minbase bookworm "$top" "$(mirror)" >"$top.log" 2>&1 || {
        tail -n 20 "$top.log"
        die "debootstrap failed"
    }
    # What this machine needs to reach its sources, it needs in there too.
    apt-config dump | grep -E '^Acquire::(http|https|Check)' >"$top/etc/apt/apt.conf.d/90here"
    for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
        mkdir -p "$top$(dirname "$file")"
        [ -e "$file" ] && cp -rL "$file" "$top$(dirname "$file")/"
    done
    [ -n "${PIP_CERT:-}" ] && cp "$PIP_CERT" "$top/etc/pip-cert.pem"
    return 0
}

# shellcheck disable=SC2317  # a trap's
unmount() {
    for folder in dev/shm dev proc; do
        mountpoint -q "$top/$folder" && umount "$top/$folder"
    done
}

# inside COMMAND...: in the bare system, with little of this one's environment.
inside() {
    env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb \
        ${http_proxy:+"http_proxy=$http_proxy"} ${https_proxy:+"https_proxy=$https_proxy"} \
        ${PIP_CERT:+"PIP_CERT=/etc/pip-cert.pem"} \
        chroot "$top" "$@"
}

outcome=0
# readme COMMAND: one of the two, timed.
readme() {
    begin=$(date +%s)
    inside sh -c "cd /root/gradc && sh $1"
    status=$?
    say "bare Debian 12: sh $1: status $status after $(($(date +%s) - begin)) s"
    [ "$status" -eq 0 ] || outcome=1
}

[ -x "$top/bin/sh" ] || make_root
trap unmount EXIT
mount -t proc proc "$top/proc" || say "no /proc in there: some tests will be skipped"
mountpoint -q "$top/dev" || mount --bind /dev "$top/dev" || say "no /dev in there"
rm -rf "$top/root/gradc"
git clone -q --no-hardlinks . "$top/root/gradc" || exit 3
say "$(inside cat /etc/debian_version), $(inside dpkg-query -f '.\n' -W | wc -l) packages, commit $(git rev-parse --short HEAD)"
readme examples/run.sh
readme tests/run.sh
exit "$outcome"

#!/bin/sh
# Installs Anabranch @VERSION@ for Linux on x86-64; --help tells how. The archive follows the last line.
set -eu

version='@VERSION@'
sum='@SUM@'

usage() {
    cat <<END
Installs Anabranch $version for Linux on x86-64.

Usage: sh $0 [--prefix DIR] [--uninstall]

  --prefix DIR   install below DIR: the program into DIR/bin, manual pages and completions into DIR/share
                 (default: $prefix); root gets systemd units in DIR/lib as well
  --uninstall    remove what was installed below the prefix
END
}

die() {
    echo "installer: $1" >&2
    exit "${2:-1}"
}

if [ "$(id -u)" = 0 ]; then
    prefix=/usr/local
else
    prefix=${HOME:-}/.local
fi
remove=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix)
            [ $# -gt 1 ] || die '--prefix needs a directory' 2
            prefix=$2
            shift
            ;;
        --prefix=*) prefix=${1#--prefix=} ;;
        --uninstall) remove=yes ;;
        -h | --help)
            usage
            exit
            ;;
        *) die "unknown option '$1'; --help lists them" 2 ;;
    esac
    shift
done
case $prefix in
    '') die '--prefix needs a directory' 2 ;;
    # They would have to be quoted in systemd's units.
    *[!A-Za-z0-9/._+-]*) die "the prefix '$prefix' has other characters than letters, digits and /._+-" 2 ;;
    /*) ;;
    *) prefix=$(pwd)/$prefix ;;
esac

# What an installation consists of, one file a line.
list=$prefix/share/doc/anabranch/INSTALLED

uninstall() {
    while IFS= read -r file; do
        rm -f "$prefix/$file" "$prefix/$file.new"
    done <"$list"
    rm -f "$list" "$list.new"
    # It stays if it holds something else.
    rmdir "${list%/*}" 2>/dev/null || true
}

if [ "$remove" ]; then
    [ -f "$list" ] || die "nothing is installed below $prefix"
    uninstall
    echo "Removed from $prefix."
    exit
fi

[ "$(uname -s) $(uname -m)" = 'Linux x86_64' ] || die "this is for Linux on x86-64, not for $(uname -s) on $(uname -m)"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tail -n +@FIRST@ "$0" >"$work/archive"
[ "$(sha256sum <"$work/archive")" = "$sum  -" ] || die "$0 is damaged: get it again"
mkdir "$work/tree"
tar -C "$work/tree" -xzf "$work/archive"
if [ "$(id -u)" = 0 ]; then
    for unit in "$work"/tree/lib/systemd/system/*.service; do
        [ -f "$unit" ] || continue
        sed "s|/usr/bin/anabranch|$prefix/bin/anabranch|" "$unit" >"$work/unit"
        cat "$work/unit" >"$unit"
    done
else
    # Systemd reads none there.
    rm -rf "$work/tree/lib"
fi
mkdir -p "${list%/*}" || die "cannot write below $prefix: choose another directory with --prefix, or run this as root"
export LC_ALL=C # for `comm`, whose order must be that of `sort`
(cd "$work/tree" && find . -type f | sed 's|^\./||' | sort) >"$work/new"
[ -f "$list" ] || : >"$list"
# Until the end the list names the files of an earlier version too, so that --uninstall removes them all even if this is
# interrupted.
sort -u "$list" "$work/new" >"$work/all"
comm -13 "$work/new" "$work/all" >"$work/old"
replace() {
    [ ! -d "$2" ] || die "$2 is a directory: remove the installed version with --uninstall first"
    # Under another name first: the file may be in use.
    cp "$1" "$2.new" || {
        rm -f "$2.new"
        die "cannot write $2"
    }
    chmod u=rwX,go=rX "$2.new"
    mv -f "$2.new" "$2"
}
replace "$work/all" "$list"
while IFS= read -r file; do
    mkdir -p "$(dirname "$prefix/$file")"
    replace "$work/tree/$file" "$prefix/$file"
done <"$work/new"
while IFS= read -r file; do
    rm -f "$prefix/$file"
done <"$work/old"
replace "$work/new" "$list"

echo "Installed $("$prefix/bin/anabranch" --version) below $prefix."
case :$PATH: in
    *:"$prefix/bin":*) ;;
    *) echo "Your shell does not look there yet: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo "Try it: anabranch demo --time 5"
exit

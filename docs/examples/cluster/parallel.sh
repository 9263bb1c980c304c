#!/bin/sh
# A sweep in parts with GNU parallel, one part for each core unless told otherwise.
#
#   sh parallel.sh SCENARIO OUT [PARTS]
#
# Given once more it makes what is missing.
set -eu
scenario=$1
out=$2
parts=${3:-$(nproc)}

case $(parallel --version 2>&1) in
*GNU*) ;;
*)
    echo "This needs GNU parallel; moreutils has another program of that name." >&2
    exit 1
    ;;
esac

mkdir -p "$out/parts"
seq "$parts" | parallel --halt soon,fail=1 --joblog "$out/parts/log" \
    anabranch sim run "$scenario" --shard "{}/$parts" --jobs 1 --out "$out/parts/{}"
anabranch sim merge "$out"/parts/[0-9]* --out "$out/all"

#!/bin/sh
# Stands where the suite expects src/redis-server: starts a node with the configuration that the
# suite has written, and prints the two lines that the suite waits for.
#
# SEMEL_PROGRAM: the node's program.
conf=$1
[ $# -eq 0 ] || shift
case "$conf" in
  -v | --version)
    exec redis-server --version
    ;;
esac
# What a node does not promise and no test of the tier is about: snapshots to a file, modules, and
# that protected settings may change.
kept=$conf.node
grep -vE '^(save|enable-protected-configs|enable-module-command) ' "$conf" >"$kept"
place=$(mktemp -d) || exit 1 # no other process has a file in it
ready=$place/ready
echo "started, PID: $$"
(
  looks=0
  while [ ! -s "$ready" ] && [ "$looks" -lt 1500 ]; do
    sleep 0.02
    looks=$((looks + 1))
  done
  [ ! -s "$ready" ] || echo "Ready to accept connections"
  rm -rf "$place"
) &
exec "$SEMEL_PROGRAM" node --redis-conf "$kept" --ready-file "$ready" "$@"

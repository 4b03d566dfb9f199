#!/bin/sh
# Stands where the suite expects src/redis-server: starts a node with the configuration that the
# suite has written, and prints the two lines that the suite waits for.
#
# SEMEL_PROGRAM: the node's program.
case "${1-}" in
  -v | --version)
    exec redis-server --version
    ;;
  -* | '')
    echo "shim.sh: the node's own flags are not those of redis-server" >&2
    exit 1
    ;;
esac
conf=$(realpath "$1")
shift
value_of() { # the last word of the directive
  sed -n "s/^$1 *//p" "$conf" | tail -n 1 | tr -d \'\"
}

# What a node does not promise and no test of the tier is about: snapshots to a file, modules, and
# that protected settings may change.
left_out='save|enable-protected-configs|enable-module-command'
# The rest is what the node tells an operator to write instead.
if [ "$(value_of appendonly)" = yes ]; then
  left_out="$left_out|appendonly|appendfsync|dir"
  durability=logged
  [ "$(value_of appendfsync)" != always ] || durability=synced
  set -- --storage-enabled yes --dir node --durability "$durability" "$@"
fi
kept=$conf.node
users=$conf.users
if grep -q '^user ' "$conf"; then
  left_out="$left_out|user"
  [ -e "$users" ] || grep '^user ' "$conf" >"$users"
  set -- --aclfile "$users" "$@"
fi
# What CONFIG REWRITE has written stays, where a test starts the server again.
[ "$kept" -nt "$conf" ] || grep -vE "^($left_out) " "$conf" >"$kept"
ready=$conf.ready # the same after a restart, as CONFIG GET shows it
rm -f "$ready"
dir=$(value_of dir) # to which redis-server changes
[ -z "$dir" ] || cd "$dir" || exit 1
echo "started, PID: $$"
(
  looks=0
  while [ ! -s "$ready" ] && [ "$looks" -lt 1500 ]; do
    sleep 0.02
    looks=$((looks + 1))
  done
  [ ! -s "$ready" ] || echo "Ready to accept connections"
) &
# One thread: tests rely on the order in which requests of two connections are sent.
exec "$SEMEL_PROGRAM" node --redis-conf "$kept" --ready-file "$ready" --stand-in yes \
  --cache-databases all --monitor yes --io-threads 1 "$@"

#!/bin/bash
# Stands where the suite expects src/redis-server: semel called by that name, as by a link, which
# takes redis-server's flags and files. The line with the number of the process is what the suite
# waits for.
#
# SEMEL_PROGRAM: semel.
case "${1-}" in
  -* | '') exec -a "$0" "$SEMEL_PROGRAM" "$@" ;;
esac
conf=$(realpath "$1")
shift
value_of() { # the last word of the directive
  sed -n "s/^$1 *//p" "$conf" | tail -n 1 | tr -d \'\"
}

# What the stand-in tells its user to write instead.
left_out=nothing
if [ "$(value_of appendonly)" = yes ]; then
  left_out="$left_out|appendonly|appendfsync|dir"
  directory=$(realpath "$(value_of dir)")/node
  mkdir -p "$directory"
  durability=logged
  [ "$(value_of appendfsync)" != always ] || durability=synced
  set -- --storage-enabled yes --dir "$directory" --durability "$durability" --test-clock no "$@"
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
echo "started, PID: $$"
exec -a "$0" "$SEMEL_PROGRAM" "$kept" "$@"

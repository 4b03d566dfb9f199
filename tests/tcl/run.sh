#!/usr/bin/env bash
# Runs the files of our tier of a Redis test suite against the node, or a redis-server:
# REDIS_TCL_DIR=.. tests/tcl/run.sh [--against redis] [--program SEMEL]
#
# REDIS_TCL_DIR is a source tree of redis 7.0 or 7.2 with its runtest; the suite is not ours and not
# in this tree. Without it nothing is run, and that is said in one line. Tests named in skip.txt are
# left out. The last line is the figure.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

if [ -z "${REDIS_TCL_DIR:-}" ]; then
  echo "tcl: skipped, REDIS_TCL_DIR does not name a tree of redis' tests"
  exit 0
fi
if [ ! -x "$REDIS_TCL_DIR/runtest" ]; then
  echo "tcl: REDIS_TCL_DIR: no program runtest in '$REDIS_TCL_DIR'" >&2
  exit 2
fi
command -v tclsh >/dev/null || {
  echo "tcl: skipped, tclsh is not installed"
  exit 0
}
exec python3 "$here/run_files.py" --suite "$REDIS_TCL_DIR" --skip "$here/skip.txt" \
  --program "$root/build/release/tools/semel/semel" "$@"

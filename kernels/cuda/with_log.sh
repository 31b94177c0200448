#!/bin/sh
# with_log.sh LOG COMMAND ...: runs the command and keeps what it says of its work in LOG; shows it
# where the command fails.
log=$1
shift
"$@" 2>"$log.new"
status=$?
if [ "$status" -ne 0 ]; then
  cat "$log.new" >&2
else
  mv "$log.new" "$log"
fi
exit "$status"

#!/bin/sh
# What mpirun calls to start its daemon on another host: enter.sh ADDRESS COMMAND... The last number of the address is the
# host's. Daemons of hosts with one name would take each other's files, so each has a directory of its own.
host=$1
shift
mkdir -p "$host"
TMPDIR=$PWD/$host exec ip netns exec "$KPLAN_HOSTS-${host##*.}" sh -c "$*"

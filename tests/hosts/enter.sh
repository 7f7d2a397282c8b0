#!/bin/sh
# What mpirun calls to start its daemon on another host: enter.sh ADDRESS COMMAND... The last number of the address is the host's.
host=$1
shift
exec ip netns exec "$KPLAN_HOSTS-${host##*.}" sh -c "$*"

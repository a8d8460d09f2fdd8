#!/bin/bash
# Starts a run of mpirun again until it is done: again.sh mpirun -np 8 gnb train DATASET --run runs/first
#
# A run that was interrupted after a checkpoint (status 75) starts again any number of times. One that a failure of a
# rank, a machine or the network ended (status 69, or a signal) starts again at most RESTARTS times, 3 by default. It resumes each time. An error of the
# program (status 1) or wrong usage (2) ends the loop. Ctrl-C interrupts the run and ends the loop.
set -u
left=${RESTARTS:-3}
stop=0
trap 'stop=1' INT TERM
while :; do
  "$@"
  status=$?
  case $status in
    0 | 1 | 2) exit $status ;;
    75) ;;
    *)
      if [ "$left" -le 0 ]; then exit $status; fi
      left=$((left - 1))
      ;;
  esac
  if [ $stop = 1 ]; then exit $status; fi
  echo "again.sh: the run ended with status $status; it starts again" >&2
done

#!/bin/sh
# Starts the app of an image with its flags for Node; whatever follows the name of the image are flags of the server. A
# leading `tritonserver` or `paceline serve`, as commands written for other images have it, is skipped.
set -eu
case ${1-} in
  tritonserver) shift ;;
  paceline)
    shift
    if [ "${1-}" = serve ]; then shift; fi
    ;;
esac
# Where the other processes of a cluster reach this container, unless told: its first address.
if [ -n "${PACELINE_LINK_HOST-}" ] && [ -z "${PACELINE_ADVERTISE_HOST-}" ]; then
  PACELINE_ADVERTISE_HOST=$(hostname -i | cut -d' ' -f1)
  export PACELINE_ADVERTISE_HOST
fi
# Unquoted on purpose: one word a flag.
exec node $(cat /app/node.flags) /app/dist/main.js "$@"

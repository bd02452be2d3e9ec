#!/bin/sh
# EpilogSlurmctld=…/epilog.sh: when a job ends, its place in Jostle is free again.
# slurmctld hands on nothing of its own environment: JOSTLE_URL and JOSTLE_HEADERS are read from jostle.env beside this file.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
settings=$(dirname "$0")/jostle.env
[ -r "$settings" ] && . "$settings"
comment=${SLURM_JOB_COMMENT:-$(scontrol show job "$SLURM_JOB_ID" 2>/dev/null)}
id=$(printf '%s\n' "$comment" | sed -n 's/.*placement=\([A-Za-z0-9-]*\).*/\1/p' | head -n 1)
[ -n "$id" ] && curl -s -m 2 ${JOSTLE_HEADERS:+-H "@$JOSTLE_HEADERS"} -X DELETE \
    "${JOSTLE_URL:-http://127.0.0.1:8000}/v1/placements/$id" >/dev/null 2>&1
exit 0

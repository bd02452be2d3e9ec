#!/bin/sh
# EpilogSlurmctld=…/epilog.sh: when a job ends, its place in Jostle is free again.
url=${JOSTLE_URL:-http://127.0.0.1:8000}
id=$(scontrol show job -o "$SLURM_JOB_ID" 2>/dev/null | sed -n 's/.*placement=\([A-Za-z0-9-]*\).*/\1/p')
[ -n "$id" ] && curl -s -m 2 ${JOSTLE_HEADERS:+-H "@$JOSTLE_HEADERS"} -X DELETE "$url/v1/placements/$id" >/dev/null 2>&1
exit 0

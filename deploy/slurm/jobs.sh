#!/bin/sh
# PrologSlurmctld=…/jobs.sh and EpilogSlurmctld=…/jobs.sh: Jostle hears which jobs are where from when on, records those that
# succeed as runs, and frees the places of those that end. Whatever happens here, the job goes on.
# slurmctld hands on nothing of its own environment: JOSTLE_URL, JOSTLE_HEADERS, and `export SLURM_CONF=…` where that is not in its
# usual place, are read from jostle.env beside this file.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export LC_ALL=C SLURM_TIME_FORMAT=%s
settings=$(dirname "$0")/jostle.env
[ -r "$settings" ] && . "$settings"
case ${SLURM_SCRIPT_CONTEXT:-} in epilog*) event=ended ;; *) event=began ;; esac

# Only ASCII without quotes gets into the JSON below.
lines() { tr -d '"\\\000-\011\013-\037\177-\377' | sed 's/.*/"&"/' | paste -sd, -; }

# A job of several nodes has a line for each.
spread() {
    while IFS='|' read -r job user node rest; do
        case $node in
            *[\[,]*) scontrol show hostnames "$node" | while read -r one; do printf '%s\n' "$job|$user|$one|$rest"; done ;;
            ?*) printf '%s\n' "$job|$user|$node|$rest" ;;
        esac
    done
}

# Names and comments are their users': a job begins, and its name ends, with a word that nobody guesses, so a line break or a
# separator inside of them makes no further job and no other field.
word=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
flat() {
    awk -v w="$word" '
        function put() {
            if (!match(r, w)) return
            name = substr(r, 1, RSTART - 1); comment = substr(r, RSTART + RLENGTH)
            if (!match(name, /^[^|]*[|][^|]*[|][^|]*[|][^|]*[|]/)) return
            head = substr(name, 1, RLENGTH); name = substr(name, RLENGTH + 1); gsub(/[|]/, " ", name)
            print head name "|" comment
        }
        index($0, w) == 1 { put(); r = substr($0, length(w) + 1); next }
        { r = r " " $0 }
        END { put() }'
}

jobs=$(
    {
        squeue -h -t R,CF,S -o "$word%A|%u|%N|%S|%j$word%k" | flat | grep -v "^$SLURM_JOB_ID|"
        start=$(squeue -h -t all -j "$SLURM_JOB_ID" -o %S) # a job that is over has no node there any more
        head="$SLURM_JOB_ID|$SLURM_JOB_USER|$SLURM_JOB_NODELIST|${start:-0}"
        printf '%s\n' "$word$head|$SLURM_JOB_NAME$word$SLURM_JOB_COMMENT" | flat
    }
) 2>/dev/null || exit 0
{
    printf '{"event":"%s","job":"%s","exit":"%s","nodes":[' "$event" "$SLURM_JOB_ID" "${SLURM_JOB_EXIT_CODE2:-}"
    sinfo -h -N -o '%N|%f|%c' | sort -u | lines
    printf '],"jobs":['
    printf '%s\n' "$jobs" | spread | lines
    printf ']}'
} 2>/dev/null | curl -s -m 2 ${JOSTLE_HEADERS:+-H "@$JOSTLE_HEADERS"} -H 'Content-Type: application/json' --data-binary @- \
    "${JOSTLE_URL:-http://127.0.0.1:8000}/v1/slurm/jobs" >/dev/null 2>&1
exit 0

/* Graph: four PageRank steps over n nodes with eight random edges each, doubles scattered along the edges. */
#include "kernel.h"

#define DEGREE 8
#define STEPS 4

static u32 n, *edge;
static f64 *rank, *next;

EXPORT(setup) void setup(u32 size) {
    n = size;
    edge = take(n * DEGREE * 4), rank = take(n * 8), next = take(n * 8);
    for (u32 i = 0; i < n * DEGREE; i++) edge[i] = mix(i) % n;
    publish(rank, n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 0; i < n; i++) rank[i] = 1.0 / n;
        for (u32 step = 0; step < STEPS; step++) {
            for (u32 i = 0; i < n; i++) next[i] = 0.15 / n;
            for (u32 i = 0; i < n; i++) {
                f64 share = 0.85 / DEGREE * rank[i];
                for (u32 k = 0; k < DEGREE; k++) next[edge[i * DEGREE + k]] += share;
            }
            for (u32 i = 0; i < n; i++) rank[i] = next[i];
        }
    }
}

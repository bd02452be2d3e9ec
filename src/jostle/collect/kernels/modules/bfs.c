/* Graph: breadth-first search from node 0 over n nodes with eight random edges each. */
#include "kernel.h"

#define DEGREE 8

static u32 n, *edge, *level, *queue;

EXPORT(setup) void setup(u32 size) {
    n = size;
    edge = take(n * DEGREE * 4), level = take(n * 4), queue = take(n * 4);
    for (u32 i = 0; i < n * DEGREE; i++) edge[i] = mix(i) % n;
    publish(level, n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 0; i < n; i++) level[i] = ~0u;
        u32 head = 0, tail = 1;
        queue[0] = 0, level[0] = 0;
        while (head < tail) {
            u32 node = queue[head++], next = level[node] + 1;
            for (u32 k = 0; k < DEGREE; k++) {
                u32 other = edge[node * DEGREE + k];
                if (level[other] == ~0u) level[other] = next, queue[tail++] = other;
            }
        }
    }
}

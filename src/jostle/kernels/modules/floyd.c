/* Graph: all shortest paths between n nodes by Floyd and Warshall; edge lengths 1 .. 65536, complete graph. */
#include "kernel.h"

static u32 n, *length, *path;

EXPORT(setup) void setup(u32 size) {
    n = size;
    length = take(n * n * 4), path = take(n * n * 4);
    for (u32 i = 0; i < n * n; i++) length[i] = i % (n + 1) ? (mix(i) >> 16) + 1 : 0;
    publish(path, n * n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(path, length, n * n * 4);
        for (u32 k = 0; k < n; k++)
            for (u32 i = 0; i < n; i++) {
                u32 first = path[i * n + k];
                for (u32 j = 0; j < n; j++) {
                    u32 by = first + path[k * n + j];
                    if (by < path[i * n + j]) path[i * n + j] = by;
                }
            }
    }
}

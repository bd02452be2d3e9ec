/* Stencils: one seven-point Jacobi sweep over n x n x n doubles. */
#include "kernel.h"

static u32 n;
static f64 *now, *after;

EXPORT(setup) void setup(u32 size) {
    n = size;
    now = take(n * n * n * 8), after = take(n * n * n * 8);
    for (u32 i = 0; i < n * n * n; i++) now[i] = after[i] = unit(i);
    publish(after, n * n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    u32 plane = n * n;
    while (reps--)
        for (u32 z = 1; z + 1 < n; z++)
            for (u32 y = 1; y + 1 < n; y++)
                for (u32 x = 1; x + 1 < n; x++) {
                    const f64 *p = now + z * plane + y * n + x;
                    after[z * plane + y * n + x] =
                        0.4 * p[0] + 0.1 * (p[-1] + p[1] + *(p - n) + p[n] + *(p - plane) + p[plane]);
                }
}

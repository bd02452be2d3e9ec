/* Structured grid: one Jacobi sweep of the five-point stencil over n x n doubles. */
#include "kernel.h"

static u32 n;
static f64 *now, *next;

EXPORT(setup) void setup(u32 size) {
    n = size;
    now = take(n * n * 8), next = take(n * n * 8);
    for (u32 i = 0; i < n * n; i++) now[i] = next[i] = unit(i);
    publish(now, n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 1; i + 1 < n; i++) {
            f64 *row = now + i * n, *out = next + i * n;
            for (u32 j = 1; j + 1 < n; j++)
                out[j] = 0.2 * (row[j] + row[j - 1] + row[j + 1] + *(row + j - n) + row[j + n]);
        }
        f64 *swap = now;
        now = next, next = swap;
    }
    publish(now, n * n * 8);
}

/* Dense linear algebra: R of the QR factorisation of an n x n matrix of doubles, by modified Gram-Schmidt on its rows
   (so of its transpose, column after column in memory). */
#include "kernel.h"

static u32 n;
static f64 *source, *q, *r;

EXPORT(setup) void setup(u32 size) {
    n = size;
    source = take(n * n * 8), q = take(n * n * 8), r = take(n * n * 8);
    for (u32 i = 0; i < n * n; i++) source[i] = unit(i) + (i % (n + 1) == 0) * (f64)n;
    publish(r, n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(q, source, n * n * 8);
        for (u32 k = 0; k < n; k++) {
            f64 *one = q + k * n, square = 0;
            for (u32 i = 0; i < n; i++) square += one[i] * one[i];
            f64 length = __builtin_sqrt(square);
            r[k * n + k] = length;
            for (u32 i = 0; i < n; i++) one[i] /= length;
            for (u32 j = k + 1; j < n; j++) {
                f64 *other = q + j * n, along = 0;
                for (u32 i = 0; i < n; i++) along += one[i] * other[i];
                for (u32 i = 0; i < n; i++) other[i] -= along * one[i];
                r[k * n + j] = along;
            }
        }
    }
}

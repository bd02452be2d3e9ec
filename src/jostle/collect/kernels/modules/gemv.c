/* Dense linear algebra: y = A x with an n x n matrix of doubles: each element of the matrix is used once. */
#include "kernel.h"

static u32 n;
static f64 *matrix, *x, *y;

EXPORT(setup) void setup(u32 size) {
    n = size;
    matrix = take(n * n * 8), x = take(n * 8), y = take(n * 8);
    for (u32 i = 0; i < n * n; i++) matrix[i] = unit(i);
    for (u32 i = 0; i < n; i++) x[i] = unit(n * n + i);
    publish(y, n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 i = 0; i < n; i++) {
            f64 sum = 0;
            for (u32 j = 0; j < n; j++) sum += matrix[i * n + j] * x[j];
            y[i] = sum;
        }
}

/* Dense linear algebra: Cholesky factor L of an n x n symmetric positive definite matrix of doubles, row by row. */
#include "kernel.h"

static u32 n;
static f64 *matrix, *factor;

EXPORT(setup) void setup(u32 size) {
    n = size;
    matrix = take(n * n * 8), factor = take(n * n * 8);
    for (u32 i = 0; i < n; i++)
        for (u32 j = 0; j < n; j++) matrix[i * n + j] = unit(i < j ? i * n + j : j * n + i) + (i == j) * (f64)n;
    publish(factor, n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 i = 0; i < n; i++)
            for (u32 j = 0; j <= i; j++) {
                f64 sum = matrix[i * n + j];
                for (u32 k = 0; k < j; k++) sum -= factor[i * n + k] * factor[j * n + k];
                factor[i * n + j] = i == j ? __builtin_sqrt(sum) : sum / factor[j * n + j];
            }
}

/* Dense linear algebra: LU factors in place, without pivoting, of a diagonally dominant n x n matrix. */
#include "kernel.h"

static u32 n;
static f64 *source, *a;

EXPORT(setup) void setup(u32 size) {
    n = size;
    source = take(n * n * 8), a = take(n * n * 8);
    for (u32 i = 0; i < n * n; i++) source[i] = unit(i);
    for (u32 i = 0; i < n; i++) source[i * n + i] += n;
    publish(a, n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(a, source, n * n * 8);
        for (u32 k = 0; k < n; k++) {
            f64 inverse = 1 / a[k * n + k], *pivot = a + k * n;
            for (u32 i = k + 1; i < n; i++) {
                f64 *row = a + i * n, factor = row[k] *= inverse;
                for (u32 j = k + 1; j < n; j++) row[j] -= factor * pivot[j];
            }
        }
    }
}

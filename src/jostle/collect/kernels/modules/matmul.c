/* Dense linear algebra: C = A B, n x n doubles, the i-k-j order. */
#include "kernel.h"

static u32 n;
static f64 *a, *b, *c;

EXPORT(setup) void setup(u32 size) {
    n = size;
    a = take(n * n * 8), b = take(n * n * 8), c = take(n * n * 8);
    for (u32 i = 0; i < n * n; i++) a[i] = unit(i), b[i] = unit(i + n * n);
    publish(c, n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 i = 0; i < n; i++) {
            f64 *row = c + i * n;
            for (u32 j = 0; j < n; j++) row[j] = 0;
            for (u32 k = 0; k < n; k++) {
                f64 scale = a[i * n + k], *other = b + k * n;
                for (u32 j = 0; j < n; j++) row[j] += scale * other[j];
            }
        }
}

/* Floating-point compute: Mandelbrot escape counts (u16, at most 100) on an n x n grid over [-2, 0.5] x [-1.25, 1.25]. */
#include "kernel.h"

#define LIMIT 100

static u32 n;
static u16 *escape;

EXPORT(setup) void setup(u32 size) {
    n = size;
    escape = take(n * n * 2);
    publish(escape, n * n * 2);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 row = 0; row < n; row++)
            for (u32 column = 0; column < n; column++) {
                f64 a = -2 + 2.5 * column / n, b = -1.25 + 2.5 * row / n, x = 0, y = 0;
                u32 k = 0;
                while (k < LIMIT && x * x + y * y <= 4) {
                    f64 next = x * x - y * y + a;
                    y = 2 * x * y + b, x = next, k++;
                }
                escape[row * n + column] = k;
            }
}

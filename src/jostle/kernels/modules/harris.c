/* Vision: corner strengths after Harris, det - trace^2 / 16 of the gradients' 5 x 5 structure tensor (i64), n x n pixels. */
#include "kernel.h"

#define REACH 2

static u32 n;
static u8 *image;
static i32 *xx, *xy, *yy;
static long long *strength;

EXPORT(setup) void setup(u32 size) {
    n = size;
    image = take(n * n), xx = take(n * n * 4), xy = take(n * n * 4), yy = take(n * n * 4);
    strength = take(n * n * 8);
    for (u32 y = 0; y < n; y++)
        for (u32 x = 0; x < n; x++) image[y * n + x] = (mix(y / 6 * 512 + x / 6) >> 25) + (mix(y * n + x) >> 28);
    publish(strength, n * n * 8);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 y = 1; y + 1 < n; y++)
            for (u32 x = 1; x + 1 < n; x++) {
                const u8 *p = image + y * n + x;
                i32 gx = p[1] - p[-1], gy = *(p + n) - *(p - n);
                xx[y * n + x] = gx * gx, xy[y * n + x] = gx * gy, yy[y * n + x] = gy * gy;
            }
        for (u32 y = REACH + 1; y + REACH + 1 < n; y++)
            for (u32 x = REACH + 1; x + REACH + 1 < n; x++) {
                long long a = 0, b = 0, c = 0;
                for (u32 v = y - REACH; v <= y + REACH; v++)
                    for (u32 u = x - REACH; u <= x + REACH; u++)
                        a += xx[v * n + u], b += xy[v * n + u], c += yy[v * n + u];
                strength[y * n + x] = a * c - b * b - ((a + c) * (a + c) >> 4);
            }
    }
}

/* Vision: the Sobel edge strength |gx| + |gy|, at most 255, of an n x n grey image. */
#include "kernel.h"

static u32 n;
static u8 *image, *edge;

static inline i32 size_of(i32 x) { return x < 0 ? -x : x; }

EXPORT(setup) void setup(u32 size) {
    n = size;
    image = take(n * n), edge = take(n * n);
    for (u32 i = 0; i < n * n; i++) image[i] = mix(i) >> 28;
    publish(edge, n * n);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 y = 1; y + 1 < n; y++)
            for (u32 x = 1; x + 1 < n; x++) {
                const u8 *p = image + y * n + x, *above = p - n, *below = p + n;
                i32 gx = above[1] + 2 * p[1] + below[1] - above[-1] - 2 * p[-1] - below[-1];
                i32 gy = below[-1] + 2 * below[0] + below[1] - above[-1] - 2 * above[0] - above[1];
                i32 strength = size_of(gx) + size_of(gy);
                edge[y * n + x] = strength > 255 ? 255 : strength;
            }
}

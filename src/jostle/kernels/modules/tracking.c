/* Vision: feature tracking after Lucas and Kanade: at points eight apart of an n x n grey image, the shift (two doubles)
   to the next image that least squares over 11 x 11 pixels gives. */
#include "kernel.h"

#define REACH 5
#define APART 8

static u32 n;
static u8 *before, *after;
static f64 *shift;

static u32 smooth(u32 y, u32 x) { /* between random values on a grid of eight pixels */
    u32 at = y / 8 * 4096 + x / 8, v = y % 8, u = x % 8;
    u32 above = (8 - u) * (mix(at) >> 24) + u * (mix(at + 1) >> 24);
    u32 below = (8 - u) * (mix(at + 4096) >> 24) + u * (mix(at + 4097) >> 24);
    return ((8 - v) * above + v * below) / 64;
}

EXPORT(setup) void setup(u32 size) {
    n = size;
    u32 points = (n - 2 * REACH - 2) / APART;
    before = take(n * n), after = take(n * n), shift = take(points * points * 16);
    for (u32 y = 0; y < n; y++)
        for (u32 x = 0; x < n; x++) before[y * n + x] = smooth(y + 1, x + 1), after[y * n + x] = smooth(y, x + 1);
    publish(shift, points * points * 16);
}

EXPORT(run) void run(u32 reps) {
    u32 points = (n - 2 * REACH - 2) / APART;
    while (reps--)
        for (u32 i = 0; i < points; i++)
            for (u32 j = 0; j < points; j++) {
                u32 cy = REACH + 1 + i * APART, cx = REACH + 1 + j * APART;
                i32 xx = 0, xy = 0, yy = 0, xt = 0, yt = 0;
                for (u32 y = cy - REACH; y <= cy + REACH; y++)
                    for (u32 x = cx - REACH; x <= cx + REACH; x++) {
                        const u8 *p = before + y * n + x;
                        i32 gx = p[1] - p[-1], gy = *(p + n) - *(p - n), t = after[y * n + x] - *p;
                        xx += gx * gx, xy += gx * gy, yy += gy * gy, xt += gx * t, yt += gy * t;
                    }
                f64 size = (f64)xx * yy - (f64)xy * xy;
                f64 *to = shift + 2 * (i * points + j);
                to[0] = size > 0 ? 2 * ((f64)xy * yt - (f64)yy * xt) / size : 0;
                to[1] = size > 0 ? 2 * ((f64)xy * xt - (f64)xx * yt) / size : 0;
            }
}

/* Vision: stereo disparity (u8, 0..15) of two n x n grey images, least sum of absolute differences over 5 x 5. */
#include "kernel.h"

#define RANGE 16
#define REACH 2

static u32 n;
static u8 *left_image, *right_image, *disparity;

EXPORT(setup) void setup(u32 size) {
    n = size;
    left_image = take(n * n), right_image = take(n * n), disparity = take(n * n);
    for (u32 y = 0; y < n; y++)
        for (u32 x = 0; x < n; x++) {
            u32 shift = mix(y / 8 * 1024 + x / 8) % RANGE;
            left_image[y * n + x] = mix(y * n + x);
            right_image[y * n + x] = mix(y * n + (x + shift) % n);
        }
    publish(disparity, n * n);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 y = REACH; y + REACH < n; y++)
            for (u32 x = REACH; x + REACH + RANGE < n; x++) {
                u32 best = ~0u, at = 0;
                for (u32 d = 0; d < RANGE; d++) {
                    u32 sum = 0;
                    for (u32 v = y - REACH; v <= y + REACH; v++)
                        for (u32 u = x - REACH; u <= x + REACH; u++) {
                            i32 apart = left_image[v * n + u + d] - right_image[v * n + u];
                            sum += apart < 0 ? -apart : apart;
                        }
                    if (sum < best) best = sum, at = d;
                }
                disparity[y * n + x] = at;
            }
}

/* Vision: the idea of face detection after Viola and Jones: an integral image of n x n grey pixels, and for each
   24 x 24 window a cascade of rectangle features, left at the first that fails. The result (u8): stages passed. */
#include "kernel.h"

#define WINDOW 24
#define STAGES 12
#define FEATURES 4

static u32 n, *integral;
static u8 *image, *passed;
/* Two rectangles side by side: top, left, height, width of the first, and whether they lie above each other. */
static u8 feature[STAGES * FEATURES][5];

EXPORT(setup) void setup(u32 size) {
    n = size;
    image = take(n * n), integral = take((n + 1) * (n + 1) * 4), passed = take(n * n);
    for (u32 y = 0; y < n; y++)
        for (u32 x = 0; x < n; x++) image[y * n + x] = (mix(y / 6 * 512 + x / 6) >> 25) + (mix(y * n + x) >> 27);
    for (u32 f = 0; f < STAGES * FEATURES; f++) {
        u8 *p = feature[f];
        p[2] = 2 + mix(f * 8) % 8, p[3] = 2 + mix(f * 8 + 1) % 8, p[4] = mix(f * 8 + 2) & 1;
        p[0] = mix(f * 8 + 3) % (WINDOW - 2 * p[2]), p[1] = mix(f * 8 + 4) % (WINDOW - 2 * p[3]);
    }
    publish(passed, n * n);
}

static inline i32 sum(u32 top, u32 left, u32 height, u32 width) {
    const u32 *a = integral + top * (n + 1) + left, *b = a + height * (n + 1);
    return (i32)(b[width] - b[0] - a[width] + a[0]);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 y = 0; y < n; y++) {
            u32 row = 0;
            for (u32 x = 0; x < n; x++) {
                row += image[y * n + x];
                integral[(y + 1) * (n + 1) + x + 1] = integral[y * (n + 1) + x + 1] + row;
            }
        }
        for (u32 y = 0; y + WINDOW <= n; y++)
            for (u32 x = 0; x + WINDOW <= n; x++) {
                u32 stage = 0;
                for (; stage < STAGES; stage++) {
                    i32 score = 0;
                    for (u32 f = stage * FEATURES; f < (stage + 1) * FEATURES; f++) {
                        const u8 *p = feature[f];
                        u32 top = y + p[0], left = x + p[1];
                        i32 one = sum(top, left, p[2], p[3]);
                        i32 other = p[4] ? sum(top + p[2], left, p[2], p[3]) : sum(top, left + p[3], p[2], p[3]);
                        score += one > other ? 1 : -1;
                    }
                    if (score < 0) break;
                }
                passed[y * n + x] = stage;
            }
    }
}

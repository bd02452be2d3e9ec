/* Signals: the 8 x 8 integer cosine transform of H.265 of each block of an n x n image, n a multiple of 8. */
#include "kernel.h"

static const i32 C[64] = {64, 64,  64,  64,  64,  64,  64,  64,  89, 75,  50,  18,  -18, -50, -75, -89,
                          83, 36,  -36, -83, -83, -36, 36,  83,  75, -18, -89, -50, 50,  89,  18,  -75,
                          64, -64, -64, 64,  64,  -64, -64, 64,  50, -89, 18,  75,  -75, -18, 89,  -50,
                          36, -83, 83,  -36, -36, 83,  -83, 36,  18, -50, 75,  -89, 89,  -75, 50,  -18};

static u32 n;
static u8 *image;
static i32 *transformed;

EXPORT(setup) void setup(u32 size) {
    n = size;
    image = take(n * n), transformed = take(n * n * 4);
    for (u32 i = 0; i < n * n; i++) image[i] = mix(i);
    publish(transformed, n * n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 top = 0; top < n; top += 8)
            for (u32 left = 0; left < n; left += 8) {
                i32 half[64];
                for (u32 u = 0; u < 8; u++)
                    for (u32 x = 0; x < 8; x++) {
                        i32 sum = 0;
                        for (u32 y = 0; y < 8; y++) sum += C[u * 8 + y] * image[(top + y) * n + left + x];
                        half[u * 8 + x] = (sum + 2) >> 2;
                    }
                for (u32 u = 0; u < 8; u++)
                    for (u32 v = 0; v < 8; v++) {
                        i32 sum = 0;
                        for (u32 x = 0; x < 8; x++) sum += C[v * 8 + x] * half[u * 8 + x];
                        transformed[(top + u) * n + left + v] = (sum + 256) >> 9;
                    }
            }
}

/* Vision: the idea of SIFT on an n x n grey image: differences of Gaussians over five scales, extrema among 26
   neighbours, and around each a 4 x 4 x 8 histogram of gradient directions. The result (u32 each): the number of
   keypoints and the sums of their histograms. */
#include "kernel.h"

#define SCALES 5
#define CONTRAST 8
#define BORDER 9

static u32 n, *found;
static i32 *scale[SCALES], *apart[SCALES - 1], *across;

EXPORT(setup) void setup(u32 size) {
    n = size;
    for (u32 s = 0; s < SCALES; s++) scale[s] = take(n * n * 4);
    for (u32 s = 0; s + 1 < SCALES; s++) apart[s] = take(n * n * 4);
    across = take(n * n * 4), found = take(129 * 4);
    for (u32 y = 0; y < n; y++) /* blobs and noise */
        for (u32 x = 0; x < n; x++)
            scale[0][y * n + x] = 12 * (mix(y / 5 * 512 + x / 5) >> 28) + (mix(y * n + x) >> 28);
    publish(found, 129 * 4);
}

static inline i32 kept(i32 at) { return at < 0 ? 0 : at >= (i32)n ? (i32)n - 1 : at; }

static void blur(const i32 *from, i32 *to, i32 step) {
    for (i32 y = 0; y < (i32)n; y++)
        for (i32 x = 0; x < (i32)n; x++) {
            const i32 *row = from + y * n;
            across[y * n + x] = row[kept(x - 2 * step)] + 4 * row[kept(x - step)] + 6 * row[x] +
                                4 * row[kept(x + step)] + row[kept(x + 2 * step)];
        }
    for (i32 y = 0; y < (i32)n; y++)
        for (i32 x = 0; x < (i32)n; x++)
            to[y * n + x] = (across[kept(y - 2 * step) * n + x] + 4 * across[kept(y - step) * n + x] +
                             6 * across[y * n + x] + 4 * across[kept(y + step) * n + x] +
                             across[kept(y + 2 * step) * n + x]) >> 8;
}

static u32 is_extremum(u32 s, u32 y, u32 x) {
    i32 value = apart[s][y * n + x], sign = value < 0 ? -1 : 1;
    if (value * sign < CONTRAST) return 0;
    for (u32 t = s - 1; t <= s + 1; t++)
        for (u32 v = y - 1; v <= y + 1; v++)
            for (u32 u = x - 1; u <= x + 1; u++)
                if ((t != s || v != y || u != x) && apart[t][v * n + u] * sign >= value * sign) return 0;
    return 1;
}

static void describe(const i32 *image, u32 y, u32 x) {
    for (u32 v = 0; v < 16; v++)
        for (u32 u = 0; u < 16; u++) {
            const i32 *p = image + (y + v - 8) * n + x + u - 8;
            i32 gx = p[1] - p[-1], gy = *(p + n) - *(p - n);
            i32 ax = gx < 0 ? -gx : gx, ay = gy < 0 ? -gy : gy;
            u32 octant = (gy < 0) << 2 | (gx < 0) << 1 | (ay > ax);
            found[1 + (v / 4 * 4 + u / 4) * 8 + octant] += ax + ay;
        }
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 0; i < 129; i++) found[i] = 0;
        for (u32 s = 1; s < SCALES; s++) {
            blur(scale[s - 1], scale[s], (i32)s);
            for (u32 i = 0; i < n * n; i++) apart[s - 1][i] = scale[s][i] - scale[s - 1][i];
        }
        for (u32 s = 1; s + 2 < SCALES; s++)
            for (u32 y = BORDER; y + BORDER < n; y++)
                for (u32 x = BORDER; x + BORDER < n; x++)
                    if (is_extremum(s, y, x)) found[0]++, describe(scale[s], y, x);
    }
}

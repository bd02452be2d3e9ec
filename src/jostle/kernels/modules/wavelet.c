/* Signals: the integer CDF 5/3 wavelet (as in lossless JPEG 2000) of n 32-bit numbers, five levels, n a multiple of 32. */
#include "kernel.h"

#define LEVELS 5

static u32 n;
static i32 *source, *now, *apart;

EXPORT(setup) void setup(u32 size) {
    n = size;
    source = take(n * 4), now = take(n * 4), apart = take(n * 4);
    for (u32 i = 0; i < n; i++) source[i] = mix(i) >> 20;
    publish(now, n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(now, source, n * 4);
        for (u32 length = n, level = 0; level < LEVELS; level++, length /= 2) {
            u32 half = length / 2;
            i32 *low = apart, *high = apart + half;
            for (u32 i = 0; i < half; i++) {
                i32 right = now[i + 1 < half ? 2 * i + 2 : 2 * i];
                high[i] = now[2 * i + 1] - ((now[2 * i] + right) >> 1);
            }
            for (u32 i = 0; i < half; i++) low[i] = now[2 * i] + ((high[i ? i - 1 : 0] + high[i] + 2) >> 2);
            __builtin_memcpy(now, apart, length * 4);
        }
    }
}

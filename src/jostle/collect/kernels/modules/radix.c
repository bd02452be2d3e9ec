/* Sorting: radix sort, four passes of eight bits, of n 32-bit numbers. */
#include "kernel.h"

static u32 n, *source, *v, *spare;

EXPORT(setup) void setup(u32 size) {
    n = size;
    source = take(n * 4), v = take(n * 4), spare = take(n * 4);
    for (u32 i = 0; i < n; i++) source[i] = mix(i);
    publish(v, n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(v, source, n * 4);
        u32 *from = v, *to = spare;
        for (u32 shift = 0; shift < 32; shift += 8) {
            u32 place[256] = {0}, sum = 0;
            for (u32 i = 0; i < n; i++) place[from[i] >> shift & 255]++;
            for (u32 i = 0; i < 256; i++) {
                u32 count = place[i];
                place[i] = sum, sum += count;
            }
            for (u32 i = 0; i < n; i++) to[place[from[i] >> shift & 255]++] = from[i];
            u32 *swap = from;
            from = to, to = swap;
        }
    }
}

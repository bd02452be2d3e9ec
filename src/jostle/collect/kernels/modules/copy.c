/* Memory bandwidth: 128 KiB copied a repetition, wandering through n bytes (a power of two, at least that). */
#include "kernel.h"

#define CHUNK 131072

static u32 n, at;
static u8 *from, *to;

EXPORT(setup) void setup(u32 bytes) {
    n = bytes;
    from = take(n), to = take(n);
    for (u32 i = 0; i < 1024; i++) ((u32 *)from)[i] = mix(i);
    for (u32 done = 4096; done < n; done *= 2) __builtin_memcpy(from + done, from, done);
    __builtin_memset(to, 0, n);
    publish(to, n);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memcpy(to + at, from + at, CHUNK);
        at = (at + CHUNK) & (n - 1);
    }
}

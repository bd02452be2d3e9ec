/* Memory bandwidth: the triad a = b + s c, 16384 doubles a repetition, wandering through three arrays of
   n bytes each (n a power of two, at least 128 KiB). */
#include "kernel.h"

#define CHUNK 16384

static u32 n, at;
static f64 *a, *b, *c;

EXPORT(setup) void setup(u32 bytes) {
    n = bytes / 8;
    a = take(bytes), b = take(bytes), c = take(bytes);
    for (u32 i = 0; i < 512; i++) b[i] = unit(i), c[i] = unit(i + 512);
    /* Doubling copies: set-up stays cheap where instructions are interpreted. */
    for (u32 done = 512; done < n; done *= 2) {
        __builtin_memcpy(b + done, b, done * 8);
        __builtin_memcpy(c + done, c, done * 8);
    }
    __builtin_memset(a, 0, bytes);
    publish(a, bytes);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        f64 *x = a + at, *y = b + at, *z = c + at;
        for (u32 i = 0; i < CHUNK; i++) x[i] = y[i] + 3 * z[i];
        at = (at + CHUNK) & (n - 1);
    }
}

/* Hashing: CRC-32 (IEEE 802.3) of n bytes, a table look-up a byte. */
#include "kernel.h"

static u32 n, *table, *sum;
static u8 *message;

EXPORT(setup) void setup(u32 size) {
    n = size;
    message = take(n), table = take(1024), sum = take(4);
    for (u32 i = 0; i < n; i++) message[i] = mix(i);
    for (u32 i = 0; i < 256; i++) {
        u32 value = i;
        for (u32 k = 0; k < 8; k++) value = value & 1 ? value >> 1 ^ 0xedb88320u : value >> 1;
        table[i] = value;
    }
    publish(sum, 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        u32 value = ~0u;
        for (u32 i = 0; i < n; i++) value = value >> 8 ^ table[(value ^ message[i]) & 255];
        *sum = ~value;
    }
}

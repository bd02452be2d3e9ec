/* Hashing: SHA3-256 (FIPS 202) of n bytes, n a multiple of 136. */
#include "kernel.h"

#define RATE 17

static u32 n;
static u64 *message, *state;

static inline u64 left(u64 x, u32 by) { return by ? x << by | x >> (64 - by) : x; }

static void permute(u64 *a) {
    u32 shifted = 1; /* the round constants' linear feedback shift register */
    for (u32 round = 0; round < 24; round++) {
        u64 c[5], b[25];
        for (u32 x = 0; x < 5; x++) c[x] = a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20];
        for (u32 x = 0; x < 5; x++) {
            u64 d = c[(x + 4) % 5] ^ left(c[(x + 1) % 5], 1);
            for (u32 y = 0; y < 25; y += 5) a[x + y] ^= d;
        }
        u32 x = 1, y = 0;
        b[0] = a[0];
        for (u32 t = 0; t < 24; t++) {
            u32 next = (2 * x + 3 * y) % 5;
            b[next * 5 + y] = left(a[x + 5 * y], (t + 1) * (t + 2) / 2 % 64);
            x = y, y = next;
        }
        for (u32 row = 0; row < 25; row += 5)
            for (u32 i = 0; i < 5; i++) a[row + i] = b[row + i] ^ (~b[row + (i + 1) % 5] & b[row + (i + 2) % 5]);
        for (u32 j = 0; j < 7; j++) {
            if (shifted & 1) a[0] ^= 1ull << ((1 << j) - 1);
            shifted = shifted & 128 ? shifted << 1 ^ 0x171 : shifted << 1;
        }
    }
}

EXPORT(setup) void setup(u32 size) {
    n = size;
    message = take(n), state = take(25 * 8);
    for (u32 i = 0; i < n; i++) ((u8 *)message)[i] = mix(i);
    publish(state, 32);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 0; i < 25; i++) state[i] = 0;
        for (u32 at = 0; at < n / 8; at += RATE) {
            for (u32 i = 0; i < RATE; i++) state[i] ^= message[at + i];
            permute(state);
        }
        state[0] ^= 0x06, state[RATE - 1] ^= 1ull << 63;
        permute(state);
    }
}

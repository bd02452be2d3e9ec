/* Hashing: BLAKE2s-256 (RFC 7693) of n bytes, n a multiple of 64 and above 0. */
#include "kernel.h"

static const u32 IV[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                          0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
static const u8 ORDER[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

static u32 n;
static u8 *message;
static u32 *digest;

static inline u32 right(u32 x, u32 by) { return x >> by | x << (32 - by); }

static inline void turn(u32 *v, u32 a, u32 b, u32 c, u32 d, u32 x, u32 y) {
    v[a] += v[b] + x, v[d] = right(v[d] ^ v[a], 16), v[c] += v[d], v[b] = right(v[b] ^ v[c], 12);
    v[a] += v[b] + y, v[d] = right(v[d] ^ v[a], 8), v[c] += v[d], v[b] = right(v[b] ^ v[c], 7);
}

static void block(u32 *h, const u32 *m, u32 done, u32 is_last) {
    u32 v[16];
    for (u32 i = 0; i < 8; i++) v[i] = h[i], v[i + 8] = IV[i];
    v[12] ^= done, v[14] ^= is_last ? ~0u : 0;
    for (u32 round = 0; round < 10; round++) {
        const u8 *s = ORDER[round];
        for (u32 i = 0; i < 4; i++) turn(v, i, i + 4, i + 8, i + 12, m[s[2 * i]], m[s[2 * i + 1]]);
        for (u32 i = 0; i < 4; i++)
            turn(v, i, 4 + ((i + 1) & 3), 8 + ((i + 2) & 3), 12 + ((i + 3) & 3), m[s[8 + 2 * i]], m[s[9 + 2 * i]]);
    }
    for (u32 i = 0; i < 8; i++) h[i] ^= v[i] ^ v[i + 8];
}

EXPORT(setup) void setup(u32 size) {
    n = size;
    message = take(n), digest = take(32);
    for (u32 i = 0; i < n; i++) message[i] = mix(i);
    publish(digest, 32);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        for (u32 i = 0; i < 8; i++) digest[i] = IV[i] ^ (i ? 0 : 0x01010020);
        for (u32 at = 64; at <= n; at += 64) block(digest, (const u32 *)(message + at - 64), at, at == n);
    }
}

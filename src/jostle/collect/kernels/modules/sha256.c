/* Hashing: SHA-256 (FIPS 180-4) of n bytes, n a multiple of 64. */
#include "kernel.h"

static const u32 K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static u32 n;
static u8 *message, *digest;

static inline u32 right(u32 x, u32 by) { return x >> by | x << (32 - by); }

static void block(u32 *h, const u8 *at) {
    u32 w[64];
    for (u32 i = 0; i < 16; i++) w[i] = __builtin_bswap32(((const u32 *)at)[i]);
    for (u32 i = 16; i < 64; i++) {
        u32 s0 = right(w[i - 15], 7) ^ right(w[i - 15], 18) ^ w[i - 15] >> 3;
        u32 s1 = right(w[i - 2], 17) ^ right(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    u32 a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], last = h[7];
    for (u32 i = 0; i < 64; i++) {
        u32 t1 = last + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
        u32 t2 = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        last = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d, h[4] += e, h[5] += f, h[6] += g, h[7] += last;
}

EXPORT(setup) void setup(u32 size) {
    n = size;
    message = take(n + 64), digest = take(32);
    for (u32 i = 0; i < n; i++) message[i] = mix(i);
    message[n] = 0x80;
    for (u32 i = 0; i < 8; i++) message[n + 56 + i] = (u64)n * 8 >> (56 - 8 * i);
    publish(digest, 32);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        u32 h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        for (u32 at = 0; at <= n; at += 64) block(h, message + at);
        for (u32 i = 0; i < 8; i++) ((u32 *)digest)[i] = __builtin_bswap32(h[i]);
    }
}

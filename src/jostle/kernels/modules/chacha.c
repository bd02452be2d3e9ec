/* Cryptography: ChaCha20 (RFC 8439) over n bytes, n a multiple of 64; key 0..31, nonce 0..11, counter from 1. */
#include "kernel.h"

static u32 n, *plain, *cipher, key[8], nonce[3];

static inline u32 left(u32 x, u32 by) { return x << by | x >> (32 - by); }

#define QUARTER(a, b, c, d)                                                                          \
    a += b, d = left(d ^ a, 16), c += d, b = left(b ^ c, 12), a += b, d = left(d ^ a, 8), c += d, b = left(b ^ c, 7)

EXPORT(setup) void setup(u32 size) {
    n = size;
    plain = take(n), cipher = take(n);
    for (u32 i = 0; i < n / 4; i++) plain[i] = mix(i);
    for (u32 i = 0; i < 32; i++) ((u8 *)key)[i] = i;
    for (u32 i = 0; i < 12; i++) ((u8 *)nonce)[i] = i;
    publish(cipher, n);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 block = 0; block < n / 64; block++) {
            u32 s[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, key[0], key[1], key[2], key[3],
                         key[4], key[5], key[6], key[7], block + 1, nonce[0], nonce[1], nonce[2]};
            u32 x[16];
            for (u32 i = 0; i < 16; i++) x[i] = s[i];
            for (u32 round = 0; round < 10; round++) {
                QUARTER(x[0], x[4], x[8], x[12]);
                QUARTER(x[1], x[5], x[9], x[13]);
                QUARTER(x[2], x[6], x[10], x[14]);
                QUARTER(x[3], x[7], x[11], x[15]);
                QUARTER(x[0], x[5], x[10], x[15]);
                QUARTER(x[1], x[6], x[11], x[12]);
                QUARTER(x[2], x[7], x[8], x[13]);
                QUARTER(x[3], x[4], x[9], x[14]);
            }
            for (u32 i = 0; i < 16; i++) cipher[block * 16 + i] = plain[block * 16 + i] ^ (x[i] + s[i]);
        }
}

/* Cryptography: AES-128 (FIPS 197), each 16-byte block of n bytes apart, by table look-ups; key 0..15. */
#include "kernel.h"

static u32 n, *table, *round_key;
static u8 *box, *plain, *cipher;

static inline u32 left(u32 x, u32 by) { return x << by | x >> (32 - by); }
static inline u8 twice(u8 x) { return x << 1 ^ (x >> 7) * 0x1b; }

static void tables(void) {
    /* p runs through the powers of 3, q through their inverses: q is the inverse of p in GF(2^8). */
    u8 p = 1, q = 1;
    do {
        p ^= twice(p);
        q ^= q << 1, q ^= q << 2, q ^= q << 4, q ^= (q >> 7) * 0x09;
        box[p] = q ^ (u8)(q << 1 | q >> 7) ^ (u8)(q << 2 | q >> 6) ^ (u8)(q << 3 | q >> 5) ^ (u8)(q << 4 | q >> 4) ^ 0x63;
    } while (p != 1);
    box[0] = 0x63;
    for (u32 i = 0; i < 256; i++) {
        u32 s = box[i], s2 = twice(s);
        table[i] = s2 | s << 8 | s << 16 | (s2 ^ s) << 24;
    }
}

EXPORT(setup) void setup(u32 size) {
    n = size;
    box = take(256), table = take(1024), round_key = take(176), plain = take(n), cipher = take(n);
    tables();
    for (u32 i = 0; i < n; i++) plain[i] = mix(i);
    for (u32 i = 0; i < 16; i++) ((u8 *)round_key)[i] = i;
    u8 constant = 1;
    for (u32 i = 4; i < 44; i++) {
        u32 word = round_key[i - 1];
        if (i % 4 == 0) {
            word = left(word, 24);
            word = box[word & 255] | box[word >> 8 & 255] << 8 | box[word >> 16 & 255] << 16 | (u32)box[word >> 24] << 24;
            word ^= constant, constant = twice(constant);
        }
        round_key[i] = round_key[i - 4] ^ word;
    }
    publish(cipher, n);
}

EXPORT(run) void run(u32 reps) {
    while (reps--)
        for (u32 at = 0; at < n; at += 16) {
            const u32 *in = (const u32 *)(plain + at);
            u32 s[4], t[4], *k = round_key;
            for (u32 i = 0; i < 4; i++) s[i] = in[i] ^ *k++;
            for (u32 round = 1; round < 10; round++) {
                for (u32 i = 0; i < 4; i++)
                    t[i] = *k++ ^ table[s[i] & 255] ^ left(table[s[(i + 1) & 3] >> 8 & 255], 8) ^
                           left(table[s[(i + 2) & 3] >> 16 & 255], 16) ^ left(table[s[(i + 3) & 3] >> 24], 24);
                for (u32 i = 0; i < 4; i++) s[i] = t[i];
            }
            for (u32 i = 0; i < 4; i++)
                ((u32 *)(cipher + at))[i] =
                    *k++ ^ (box[s[i] & 255] | box[s[(i + 1) & 3] >> 8 & 255] << 8 |
                            box[s[(i + 2) & 3] >> 16 & 255] << 16 | (u32)box[s[(i + 3) & 3] >> 24] << 24);
        }
}

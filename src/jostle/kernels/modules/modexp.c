/* Cryptography: base^65537 modulo an odd number of n 32-bit limbs, by Montgomery's multiplication. */
#include "kernel.h"

static u32 n, negated_inverse, *modulus, *base, *square_of_radix, *one, *x, *y, *spare;

/* spare = a b / 2^(32 n) modulo modulus, less than it; CIOS. */
static void multiply(u32 *to, const u32 *a, const u32 *b) {
    for (u32 i = 0; i < n + 2; i++) spare[i] = 0;
    for (u32 i = 0; i < n; i++) {
        u64 carry = 0;
        for (u32 j = 0; j < n; j++) {
            u64 sum = (u64)a[j] * b[i] + spare[j] + carry;
            spare[j] = sum, carry = sum >> 32;
        }
        u64 top = spare[n] + carry;
        spare[n] = top, spare[n + 1] = top >> 32;
        u32 factor = spare[0] * negated_inverse;
        carry = ((u64)factor * modulus[0] + spare[0]) >> 32;
        for (u32 j = 1; j < n; j++) {
            u64 sum = (u64)factor * modulus[j] + spare[j] + carry;
            spare[j - 1] = sum, carry = sum >> 32;
        }
        top = spare[n] + carry;
        spare[n - 1] = top, spare[n] = spare[n + 1] + (u32)(top >> 32);
    }
    /* Always subtract, keep what is right: the same instructions whatever the numbers. */
    u64 borrow = 0;
    for (u32 j = 0; j < n; j++) {
        u64 less = (u64)spare[j] - modulus[j] - borrow;
        to[j] = less, borrow = less >> 63;
    }
    u32 keep = borrow > spare[n] ? ~0u : 0;
    for (u32 j = 0; j < n; j++) to[j] = (to[j] & ~keep) | (spare[j] & keep);
}

EXPORT(setup) void setup(u32 limbs) {
    n = limbs;
    modulus = take(n * 4), base = take(n * 4), square_of_radix = take(n * 4), one = take(n * 4);
    x = take(n * 4), y = take(n * 4), spare = take(n * 4 + 8);
    for (u32 i = 0; i < n; i++) modulus[i] = mix(i), base[i] = mix(i + n);
    modulus[0] |= 1, modulus[n - 1] |= 0x80000000u, base[n - 1] &= 0x7fffffffu, one[0] = 1;
    u32 inverse = 1; /* Newton: each step doubles the bits that are right */
    for (u32 i = 0; i < 5; i++) inverse *= 2 - modulus[0] * inverse;
    negated_inverse = -inverse;
    /* 2^(64 n) modulo modulus: double 1 so often. */
    u32 *value = square_of_radix;
    value[0] = 1;
    for (u32 step = 0; step < 64 * n; step++) {
        u32 out = value[n - 1] >> 31;
        for (u32 j = n - 1; j; j--) value[j] = value[j] << 1 | value[j - 1] >> 31;
        value[0] <<= 1;
        u32 j = n - 1;
        while (j && value[j] == modulus[j]) j--;
        if (!out && value[j] < modulus[j]) continue;
        u64 borrow = 0;
        for (j = 0; j < n; j++) {
            u64 less = (u64)value[j] - modulus[j] - borrow;
            value[j] = less, borrow = less >> 63;
        }
    }
    publish(y, n * 4);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        multiply(x, base, square_of_radix);
        __builtin_memcpy(y, x, n * 4);
        for (u32 i = 0; i < 16; i++) multiply(y, y, y);
        multiply(y, y, x);
        multiply(y, y, one);
    }
}

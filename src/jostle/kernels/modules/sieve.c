/* Number theory: the sieve of Eratosthenes below n, one byte a number: 1 where it is prime. */
#include "kernel.h"

static u32 n;
static u8 *prime;

EXPORT(setup) void setup(u32 size) {
    n = size;
    prime = take(n);
    publish(prime, n);
}

EXPORT(run) void run(u32 reps) {
    while (reps--) {
        __builtin_memset(prime, 1, n);
        prime[0] = prime[1] = 0;
        for (u32 i = 2; i * i < n; i++)
            if (prime[i])
                for (u32 j = i * i; j < n; j += i) prime[j] = 0;
    }
}

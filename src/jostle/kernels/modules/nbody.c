/* Particles: one softened all-pairs gravity step of n bodies; positions x, y, z, then velocities, n doubles each. */
#include "kernel.h"

#define STEP 1e-4
#define SOFTENING 1e-2

static u32 n;
static f64 *state, *mass;

EXPORT(setup) void setup(u32 size) {
    n = size;
    state = take(n * 48), mass = take(n * 8);
    for (u32 i = 0; i < 3 * n; i++) state[i] = unit(i) - 0.5;
    for (u32 i = 0; i < n; i++) mass[i] = unit(i + 3 * n) / n;
    publish(state, n * 48);
}

EXPORT(run) void run(u32 reps) {
    f64 *x = state, *y = x + n, *z = y + n, *vx = z + n, *vy = vx + n, *vz = vy + n;
    while (reps--) {
        for (u32 i = 0; i < n; i++) {
            f64 ax = 0, ay = 0, az = 0;
            for (u32 j = 0; j < n; j++) {
                f64 dx = x[j] - x[i], dy = y[j] - y[i], dz = z[j] - z[i];
                f64 square = dx * dx + dy * dy + dz * dz + SOFTENING;
                f64 pull = mass[j] / (square * __builtin_sqrt(square));
                ax += pull * dx, ay += pull * dy, az += pull * dz;
            }
            vx[i] += STEP * ax, vy[i] += STEP * ay, vz[i] += STEP * az;
        }
        for (u32 i = 0; i < n; i++) x[i] += STEP * vx[i], y[i] += STEP * vy[i], z[i] += STEP * vz[i];
    }
}

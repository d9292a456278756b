/* The operations as kernels of the simulator: each loops over its own grid. The kernels of gpu.cu, by the same names.
 */
#include "sim_kernel.h"

#define ROW_FUNCTION static inline
#include "row_math.h"

#define FLOATS(index) FOUNDRY_SIM_ARGUMENT(index, float *)
#define NUMBERS(index) FOUNDRY_SIM_ARGUMENT(index, const int *)
#define NUMBER(index) FOUNDRY_SIM_ARGUMENT(index, int)

// kernel: embed(ptr, ptr, ptr, ptr, i32, i32)
FOUNDRY_SIM_KERNEL(embed) {
    const signed char *table = FOUNDRY_SIM_ARGUMENT(2, const signed char *);
    const int rows = NUMBER(4), width = NUMBER(5);
    for (int i = 0; i < rows * width; i++) {
        const int token = NUMBERS(1)[i / width];
        FLOATS(0)[i] = (float)table[(long)token * width + i % width] * FLOATS(3)[token];
    }
}

// kernel: normalise(ptr, ptr, ptr, i32, i32, f32)
FOUNDRY_SIM_KERNEL(normalise) {
    const int rows = NUMBER(3), width = NUMBER(4);
    for (int row = 0; row < rows; row++) {
        const float *from = FLOATS(1) + row * width;
        const float scale = inverse_mean_square(from, width, FOUNDRY_SIM_ARGUMENT(5, float));
        for (int i = 0; i < width; i++) FLOATS(0)[row * width + i] = from[i] * scale * FLOATS(2)[i];
    }
}

// kernel: multiply(ptr, ptr, ptr, ptr, i32, i32, i32)
FOUNDRY_SIM_KERNEL(multiply) {
    const signed char *weights = FOUNDRY_SIM_ARGUMENT(2, const signed char *);
    const int rows = NUMBER(4), width = NUMBER(5), outputs = NUMBER(6);
    for (int i = 0; i < rows * outputs; i++) {
        const int output = i % outputs;
        const float *from = FLOATS(1) + i / outputs * width;
        FLOATS(0)[i] = dot_quantised(weights + (long)output * width, from, width) * FLOATS(3)[output];
    }
}

// kernel: rotate(ptr, ptr, ptr, ptr, i32, i32, i32)
FOUNDRY_SIM_KERNEL(rotate) {
    const int rows = NUMBER(4), heads = NUMBER(5), size = NUMBER(6), half = size / 2;
    for (int i = 0; i < rows * heads; i++) {
        const int position = NUMBERS(1)[i / heads];
        if (position >= 0)
            rotate_head(FLOATS(0) + i * size, FLOATS(2) + position * half, FLOATS(3) + position * half, half);
    }
}

// kernel: store(ptr, ptr, ptr, ptr, ptr, i32, i32, i32)
FOUNDRY_SIM_KERNEL(store) {
    const int most = NUMBER(5), rows = NUMBER(6), width = NUMBER(7);
    for (int i = 0; i < rows * width; i++) {
        const int row = i / width, position = NUMBERS(2)[row];
        if (position < 0) continue;
        FLOATS(0)[cache_place(NUMBERS(4) + NUMBERS(3)[row] * most, position, width) + i % width] = FLOATS(1)[i];
    }
}

/* Parameters 1 to 11 of both attention kernels: one block into `partial`. */
static void attend_one(float *partial, const void *const *arguments, int row, int head, int chunk) {
    const int heads = NUMBER(9), key_heads = NUMBER(10), size = NUMBER(11);
    const int place = head / (heads / key_heads) * size;
    attend_block(partial, FLOATS(1) + (row * heads + head) * size, FLOATS(2) + place, FLOATS(3) + place,
                 NUMBERS(6) + NUMBERS(5)[row] * NUMBER(7), chunk * CHUNK, NUMBERS(4)[row], key_heads * size, size);
}

// kernel: attend(ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32, i32)
FOUNDRY_SIM_KERNEL(attend) {
    const int rows = NUMBER(8), heads = NUMBER(9), size = NUMBER(11);
    float partial[PARTIAL(LARGEST_HEAD)];
    for (int i = 0; i < rows * heads; i++) {
        attend_one(partial, arguments, i / heads, i % heads, 0);
        for (int j = 0; j < size; j++) FLOATS(0)[i * size + j] = merged(partial, 1, size, j);
    }
}

// kernel: attend_part(ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i32, i32, i32, i32, i32)
FOUNDRY_SIM_KERNEL(attend_part) {
    const int rows = NUMBER(8), heads = NUMBER(9), size = NUMBER(11), chunks = NUMBER(12);
    for (int i = 0; i < rows * heads * chunks; i++)
        attend_one(FLOATS(0) + i * PARTIAL(size), arguments, i / chunks / heads, i / chunks % heads, i % chunks);
}

// kernel: attend_merge(ptr, ptr, i32, i32, i32, i32)
FOUNDRY_SIM_KERNEL(attend_merge) {
    const int rows = NUMBER(2), heads = NUMBER(3), size = NUMBER(4), chunks = NUMBER(5);
    for (int i = 0; i < rows * heads * size; i++)
        FLOATS(0)[i] = merged(FLOATS(1) + (long)(i / size) * chunks * PARTIAL(size), chunks, size, i % size);
}

// kernel: gate(ptr, ptr, ptr, i32)
FOUNDRY_SIM_KERNEL(gate) {
    for (int i = 0; i < NUMBER(3); i++) FLOATS(0)[i] = gated(FLOATS(1)[i], FLOATS(2)[i]);
}

// kernel: add(ptr, ptr, i32)
FOUNDRY_SIM_KERNEL(add) {
    for (int i = 0; i < NUMBER(2); i++) FLOATS(0)[i] += FLOATS(1)[i];
}

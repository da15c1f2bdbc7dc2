/* Attention from C: a forward, its backward, a decode step, and the config that was used. Tensors lie in the device's memory, here the CPU's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "tilewright/tilewright.h"

enum { heads_q = 4, heads_kv = 2, queries = 200, keys = 300, columns = 32 };

static int fail(const char* what) {
    fprintf(stderr, "%s: %s\n", what, tilewright_last_error());
    return 1;
}

static tilewright_tensor dense(const float* data, int64_t heads, int64_t rows) {
    tilewright_tensor tensor = {data, heads * rows * columns, rows * columns, columns, 1};
    return tensor;
}

static float* filled(int64_t count) {
    float* data = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; data && i < count; ++i) data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

/* Zeros, at an address that malloc aligns to 16 bytes. */
static void* workspace_of(int64_t bytes) { return calloc(1, (size_t)bytes + 16); }

static double sum(const float* data, int64_t count) {
    double total = 0;
    for (int64_t i = 0; i < count; ++i) total += data[i];
    return total;
}

int main(void) {
    const int64_t query_count = heads_q * queries * columns, key_count = heads_kv * keys * columns;
    tilewright_context* context = NULL;
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    tilewright_forward_tensors tensors = TILEWRIGHT_INIT_FORWARD_TENSORS;
    tilewright_config config = TILEWRIGHT_INIT_CONFIG;
    if (tilewright_open(NULL, &context) != TILEWRIGHT_OK) return fail("open");
    if (tilewright_parse_problem("forward:b1,hq4,hkv2,sq200,skv300,d32,fp32,causal", &problem) != TILEWRIGHT_OK) return fail("problem");

    float *query = filled(query_count), *key = filled(key_count), *value = filled(key_count), *out = filled(query_count), *lse = filled(heads_q * queries);
    tensors.query = dense(query, heads_q, queries), tensors.key = dense(key, heads_kv, keys);
    tensors.value = dense(value, heads_kv, keys), tensors.out = dense(out, heads_q, queries);
    tensors.lse = lse;
    if (tilewright_forward(context, &problem, &tensors, NULL) != TILEWRIGHT_OK) return fail("forward");
    if (tilewright_synchronize(context) != TILEWRIGHT_OK) return fail("synchronize");
    if (tilewright_lookup(context, &problem, &config) != TILEWRIGHT_OK) return fail("lookup");
    printf("tilewright %s: out[0] = %.4f, config %s\n", tilewright_version(), out[0], config.json);

    /* The gradient of the sum of all outputs, one entry of it against a difference of two forwards. */
    tilewright_backward_tensors back = TILEWRIGHT_INIT_BACKWARD_TENSORS;
    float *query_gradient = filled(query_count), *key_gradient = filled(key_count), *value_gradient = filled(key_count);
    problem.operation = TILEWRIGHT_BACKWARD;
    if (tilewright_workspace_bytes(context, &problem, &back.workspace_bytes) != TILEWRIGHT_OK) return fail("workspace");
    float row_of_ones[columns];
    for (int i = 0; i < columns; ++i) row_of_ones[i] = 1;
    back.forward = &tensors, back.workspace = workspace_of(back.workspace_bytes);
    back.out_gradient.data = row_of_ones; /* strides of 0: one row for all queries of all heads */
    back.query_gradient = dense(query_gradient, heads_q, queries);
    back.key_gradient = dense(key_gradient, heads_kv, keys), back.value_gradient = dense(value_gradient, heads_kv, keys);
    if (tilewright_backward(context, &problem, &back, NULL) != TILEWRIGHT_OK) return fail("backward");
    if (tilewright_synchronize(context) != TILEWRIGHT_OK) return fail("synchronize");
    problem.operation = TILEWRIGHT_FORWARD;
    double change = 0;
    for (int side = -1; side <= 1; side += 2) {
        query[5] += (float)side * 0.1f;
        if (tilewright_forward(context, &problem, &tensors, NULL) != TILEWRIGHT_OK || tilewright_synchronize(context) != TILEWRIGHT_OK) return fail("forward");
        change += side * sum(out, query_count);
        query[5] -= (float)side * 0.1f;
    }
    printf("backward: query_gradient[5] = %.5f, by differences %.5f\n", query_gradient[5], change / 0.2);
    if (fabs(query_gradient[5] - change / 0.2) > 1e-3) return 1;

    /* One new query a head over the same keys, of which the sequence has 250. */
    tilewright_decode_tensors step = TILEWRIGHT_INIT_DECODE_TENSORS;
    int32_t length = 250;
    if (tilewright_parse_problem("decode:b1,hq4,hkv2,sq1,skv300,d32,fp32", &problem) != TILEWRIGHT_OK) return fail("problem");
    if (tilewright_workspace_bytes(context, &problem, &step.workspace_bytes) != TILEWRIGHT_OK) return fail("workspace");
    step.query = dense(query, heads_q, 1), step.out = dense(out, heads_q, 1);
    step.key = dense(key, heads_kv, keys), step.value = dense(value, heads_kv, keys);
    step.lse = lse, step.lengths = &length, step.workspace = workspace_of(step.workspace_bytes);
    if (tilewright_decode(context, &problem, &step, NULL) != TILEWRIGHT_OK) return fail("decode");
    if (tilewright_synchronize(context) != TILEWRIGHT_OK) return fail("synchronize");
    printf("decode: lse[0] = %.4f\n", lse[0]);

    problem.head_dim = 1000;
    if (tilewright_prepare(context, &problem) == TILEWRIGHT_OK) return 1;
    printf("as expected: %s\n", tilewright_last_error());
    tilewright_close(context);
    free(query), free(key), free(value), free(out), free(lse), free(query_gradient), free(key_gradient), free(value_gradient), free(back.workspace), free(step.workspace);
    return 0;
}

/* Attention from C: parse the problem, call, read the config that was used. Tensors lie in the device's memory, here the CPU's. */
#include <stdio.h>
#include <stdlib.h>

#include "tilewright/tilewright.h"

static int fail(const char* what) {
    fprintf(stderr, "%s: %s\n", what, tilewright_last_error());
    return 1;
}

static tilewright_tensor dense(const float* data, int64_t heads, int64_t rows, int64_t columns) {
    tilewright_tensor tensor = {data, heads * rows * columns, rows * columns, columns, 1};
    return tensor;
}

static float* filled(int64_t count) {
    float* data = malloc((size_t)count * sizeof(float));
    for (int64_t i = 0; data && i < count; ++i) data[i] = (float)rand() / (float)RAND_MAX - 0.5f;
    return data;
}

int main(void) {
    tilewright_context* context = NULL;
    tilewright_problem problem = TILEWRIGHT_INIT_PROBLEM;
    tilewright_forward_tensors tensors = TILEWRIGHT_INIT_FORWARD_TENSORS;
    tilewright_config config = TILEWRIGHT_INIT_CONFIG;
    if (tilewright_open(NULL, &context) != TILEWRIGHT_OK) return fail("open");
    if (tilewright_parse_problem("forward:b1,hq4,hkv2,sq200,skv300,d32,fp32,causal", &problem) != TILEWRIGHT_OK) return fail("problem");

    float* query = filled(problem.heads_q * problem.seq_q * problem.head_dim);
    float* key = filled(problem.heads_kv * problem.seq_kv * problem.head_dim);
    float* value = filled(problem.heads_kv * problem.seq_kv * problem.head_dim_v);
    float* out = filled(problem.heads_q * problem.seq_q * problem.head_dim_v);
    tensors.query = dense(query, problem.heads_q, problem.seq_q, problem.head_dim);
    tensors.key = dense(key, problem.heads_kv, problem.seq_kv, problem.head_dim);
    tensors.value = dense(value, problem.heads_kv, problem.seq_kv, problem.head_dim_v);
    tensors.out = dense(out, problem.heads_q, problem.seq_q, problem.head_dim_v);
    if (tilewright_forward(context, &problem, &tensors, NULL) != TILEWRIGHT_OK) return fail("forward");
    if (tilewright_synchronize(context) != TILEWRIGHT_OK) return fail("synchronize");
    if (tilewright_lookup(context, &problem, &config) != TILEWRIGHT_OK) return fail("lookup");
    printf("tilewright %s: out[0] = %.4f, config %s\n", tilewright_version(), out[0], config.json);

    problem.head_dim = 1000;
    if (tilewright_prepare(context, &problem) == TILEWRIGHT_OK) return 1;
    printf("as expected: %s\n", tilewright_last_error());
    tilewright_close(context);
    free(query), free(key), free(value), free(out);
    return 0;
}

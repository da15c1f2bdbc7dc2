/* Tilewright for C and everything that calls C: exact attention with tuned configs, or the lookup alone.
 *
 * Conventions. Every function that can fail returns a tilewright_status and leaves one sentence in tilewright_last_error(),
 * which belongs to the calling thread. Structures that cross the boundary begin with struct_size: set it with the
 * TILEWRIGHT_INIT_* macros, so that a newer library knows what an older caller left out: that has the macros' values (tilewright_tensor is a
 * part of others and never changes). Sizes and strides are in elements, strides of any value, 0 included; the last dimension has stride 1.
 * Threads: every function may be called from any number of threads at once, on one context too, except that nothing may run on what
 * is being closed, and that calls at the same time want workspaces of their own. The exact mathematics is in docs/numerics.md.
 */
#ifndef TILEWRIGHT_TILEWRIGHT_H
#define TILEWRIGHT_TILEWRIGHT_H

#include <stdint.h>

#if defined(__GNUC__)
#define TILEWRIGHT_API __attribute__((visibility("default")))
#else
#define TILEWRIGHT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Frozen numbers. */
typedef enum tilewright_status {
    TILEWRIGHT_OK = 0,
    TILEWRIGHT_INVALID_ARGUMENT = 1, /* the caller's input; the message names the value and the limit */
    TILEWRIGHT_NOT_FOUND = 2,
    TILEWRIGHT_UNSUPPORTED = 3, /* legal, but this library or architecture cannot do it */
    TILEWRIGHT_UNAVAILABLE = 4, /* no such device, driver or compiler here */
    TILEWRIGHT_IO = 5,
    TILEWRIGHT_COMPILE = 6,
    TILEWRIGHT_RUNTIME = 7,
    TILEWRIGHT_TIMEOUT = 8,
    TILEWRIGHT_INTERNAL = 9 /* a bug in Tilewright */
} tilewright_status;

typedef enum tilewright_dtype { TILEWRIGHT_FP32 = 1, TILEWRIGHT_FP16 = 2, TILEWRIGHT_BF16 = 3 } tilewright_dtype;
typedef enum tilewright_alignment { TILEWRIGHT_BOTTOM_RIGHT = 1, TILEWRIGHT_TOP_LEFT = 2 } tilewright_alignment;

/* How a config was found, best first. */
typedef enum tilewright_provenance {
    TILEWRIGHT_EXACT = 1,
    TILEWRIGHT_NEAREST = 2,
    TILEWRIGHT_FAMILY = 3,
    TILEWRIGHT_PREDICTED = 4,
    TILEWRIGHT_HEURISTIC = 5
} tilewright_provenance;

typedef enum tilewright_operation { TILEWRIGHT_FORWARD = 1, TILEWRIGHT_BACKWARD = 2, TILEWRIGHT_DECODE = 3 } tilewright_operation;

/* Attention: query [batch][heads_q][seq_q][head_dim], key [batch][heads_kv][seq_kv][head_dim],
 * value [batch][heads_kv][seq_kv][head_dim_v], out [batch][heads_q][seq_q][head_dim_v]. */
typedef struct tilewright_problem {
    uint64_t struct_size;
    int64_t batch, heads_q, heads_kv, seq_q, seq_kv, head_dim, head_dim_v;
    int32_t dtype;     /* tilewright_dtype */
    int32_t alignment; /* tilewright_alignment: of the causal diagonal or window when seq_q != seq_kv */
    int64_t window_left, window_right; /* aligned query i sees keys i - left .. i + right; -1: unbounded; causal: -1, 0 */
    int32_t softcap, bias, alibi, sink; /* 1: the problem has one */
    int32_t operation;                  /* tilewright_operation; forward where an older caller's struct_size ends before it */
    int32_t deterministic;              /* of a backward: 1: gradients are bitwise repeatable; else 0, for forward and decode always are */
    /* Decoding: hints for the choice of a config. Keys of a page, 0: none; sequences have from shortest_kv keys (-1: all have seq_kv) to seq_kv. */
    int64_t page_size, shortest_kv, length_seed;
    /* Packed sequences, whose calls need neither: sequences have from shortest_q queries (-1: all have seq_q) to seq_q; 1: packed. */
    int64_t shortest_q, packed;
} tilewright_problem;

typedef struct tilewright_tensor {
    const void* data; /* in the device's memory, owned by the caller; out is written */
    int64_t batch_stride, head_stride, row_stride, column_stride;
} tilewright_tensor;

typedef struct tilewright_forward_tensors {
    uint64_t struct_size;
    tilewright_tensor query, key, value, out;
    float* lse;              /* [batch][heads_q][seq_q], contiguous; null: not wanted */
    tilewright_tensor bias;  /* [batch][heads_q][seq_q][seq_kv] of the problem's dtype, if the problem has one */
    const float* alibi_slope; /* [heads_q], if the problem has ALiBi */
    const float* sink;        /* [heads_q], if the problem has sinks */
    const float* scale;       /* one number in the host's memory; null: 1 / sqrt(head_dim) */
    float softcap;            /* positive, if the problem has one */
} tilewright_forward_tensors;

typedef enum tilewright_index_type { TILEWRIGHT_INT32 = 1, TILEWRIGHT_INT64 = 2 } tilewright_index_type;

/* Sequences of any lengths, 0 included, one behind the other in the rows of every tensor: tensors are [head][row][column] of any strides,
 * their batch strides are not used, and lse is [heads_q][query_rows]. The problem's batch is the number of sequences, its seq_q and
 * seq_kv the greatest lengths: hints, which the CPU checks. */
typedef struct tilewright_packed_sequences {
    uint64_t struct_size;
    const void* query_starts; /* first row of each sequence and the end of the last, [batch + 1], not descending, in the device's memory */
    const void* key_starts;   /* likewise */
    int64_t query_rows;       /* of query and out */
    int64_t key_rows;         /* of key and value */
    int32_t index_type;       /* tilewright_index_type: of the starts */
} tilewright_packed_sequences;

/* Gradients of a loss with respect to query, key, value, bias and sinks, from those with respect to out and lse. */
typedef struct tilewright_backward_tensors {
    uint64_t struct_size;
    const tilewright_forward_tensors* forward; /* the call that is differentiated; out and lse hold its results and are only read */
    tilewright_tensor out_gradient;            /* as out; may have stride 0 in any dimension but the last */
    const float* lse_gradient;                 /* as lse; null: zero */
    tilewright_tensor query_gradient, key_gradient, value_gradient; /* as query, key, value; written; may not overlap anything else */
    float* sink_gradient;                      /* [heads_q], if the problem has sinks */
    void* workspace;                           /* device memory, 16-byte aligned; not shared by concurrent calls */
    int64_t workspace_bytes;                   /* at least tilewright_backward_workspace_bytes() */
    int32_t deterministic;                     /* 1: gradients are bitwise repeatable, as with the problem's */
    int32_t reserved;                          /* 0 */
    tilewright_tensor bias_gradient;           /* as bias, any strides; summed over dimensions of stride 0; data null: not wanted */
} tilewright_backward_tensors;

/* Few queries and many keys of each sequence, whose number may differ. All pointers but `scale` are the device's. */
typedef struct tilewright_decode_tensors {
    uint64_t struct_size;
    tilewright_tensor query;
    tilewright_tensor key, value; /* [batch][heads_kv][seq_kv][...], or in pages [page][heads_kv][page_size][...] with batch_stride from page to page */
    tilewright_tensor out;
    float* lse;                   /* [batch][heads_q][seq_q], contiguous; null: not wanted */
    const int32_t* lengths;       /* keys of each sequence, [batch], from 0 to seq_kv; null: all have seq_kv */
    const int32_t* block_table;   /* pages of each sequence, [batch][table_stride]; null: no pages */
    int64_t table_stride;
    int64_t page_size;            /* a power of two from 16 on, if there is a block table */
    int64_t pages;                /* of the cache, if known, else 0 */
    tilewright_tensor bias;
    const float* alibi_slope;
    const float* sink;
    const float* scale;
    float softcap;
    int32_t splits;               /* units that the keys are cut into; 0: as many as the device likes */
    void* workspace;              /* device memory, 16-byte aligned, zeros before its first use; not shared by concurrent calls */
    int64_t workspace_bytes;      /* at least tilewright_decode_workspace_bytes() */
} tilewright_decode_tensors;

/* New keys and values for a decode problem's cache: query is not needed. */
typedef struct tilewright_append_tensors {
    uint64_t struct_size;
    tilewright_tensor key, value;             /* new rows, [batch][heads_kv][rows][head_dim or head_dim_v] */
    tilewright_tensor key_cache, value_cache; /* written; as tilewright_decode_tensors' key and value */
    int64_t rows;                             /* that key and value have of each sequence */
    const int32_t* lengths;                   /* keys that each sequence has so far, [batch]: its new ones come behind them */
    const int32_t* counts;                    /* new rows of each sequence, [batch], from 0 to rows; null: all have `rows` */
    const int32_t* block_table;
    int64_t table_stride, page_size;
    int64_t pages;                            /* of the cache, if there is a block table */
    uint32_t* status;                         /* a word of the device, 0xffffffff before: becomes the least number of a sequence without place; may be null */
} tilewright_append_tensors;

typedef struct tilewright_options {
    uint64_t struct_size;
    const char* device;   /* "cpu:0", "nvidia:0", "amd:0"; null: "cpu:0" */
    const char* database; /* the user's tuning database; null: the usual place (docs/database.md) */
    int32_t threads;      /* of the CPU; 0: all */
} tilewright_options;

typedef struct tilewright_config {
    uint64_t struct_size;
    int32_t provenance; /* tilewright_provenance */
    int32_t block_q, block_kv, stages, workers;
    double median_us;   /* measured or predicted time of the problem that it was found for; 0: unknown */
    double distance;    /* 0 for exact; about the number of doublings between that problem and this one */
    char json[512];     /* the whole config, canonical JSON */
    /* Of the measurement, or of the prediction that was stored; an older caller's struct_size ends before. */
    double spread;        /* (p80 - p20) / median */
    double error;         /* against the reference; -1: unknown */
    int64_t measured_at;  /* seconds since 1970 UTC; 0: never */
    uint32_t differences; /* in what that problem and device differ from what was asked: bits, tilewright_difference */
    int32_t reserved;
    const char* problem;  /* that was measured; null: none. These three are valid while the context or database lives */
    const char* device;   /* that it was measured on; null: none */
    const char* database; /* the file that the config is from; null: none */
} tilewright_config;

typedef enum tilewright_difference {
    TILEWRIGHT_DIFFERS_BATCH = 1,
    TILEWRIGHT_DIFFERS_HEADS = 2,
    TILEWRIGHT_DIFFERS_SEQ_Q = 4,
    TILEWRIGHT_DIFFERS_SEQ_KV = 8,
    TILEWRIGHT_DIFFERS_WINDOW = 16,
    TILEWRIGHT_DIFFERS_DEVICE = 32,
    TILEWRIGHT_DIFFERS_ARCH = 64,
    TILEWRIGHT_DIFFERS_TOOLCHAIN = 128,
    TILEWRIGHT_DIFFERS_PAGE = 256,
    TILEWRIGHT_DIFFERS_DETERMINISTIC = 512,
    TILEWRIGHT_DIFFERS_PACKED = 1024
} tilewright_difference;

/* The databases alone. */
typedef struct tilewright_database_options {
    uint64_t struct_size;
    const char* arch;     /* "gfx942", "sm_90a", "cpu": configs are checked against its limits and today's kernels */
    const char* device;   /* as its vendor calls it, for which measurements are exact; null: those of any device are of its family */
    const char* database; /* the user's tuning database; null: the usual place */
    int32_t units;        /* of that device: multiprocessors, compute units, threads; 0: as many as the arch usually has */
    int32_t reserved;
} tilewright_database_options;

/* What a caller asks of a config beyond being fast. */
typedef struct tilewright_limits {
    uint64_t struct_size;
    int64_t max_workspace_bytes; /* -1: any */
    double max_error;            /* measured, against the reference; negative: any */
    int32_t deterministic;       /* of a backward: 1: as the problem's */
    int32_t reserved;
} tilewright_limits;

#define TILEWRIGHT_INIT_PROBLEM {sizeof(tilewright_problem), 1, 1, 1, 1, 1, 64, 64, TILEWRIGHT_BF16, TILEWRIGHT_BOTTOM_RIGHT, -1, -1, 0, 0, 0, 0, TILEWRIGHT_FORWARD, 0, 0, -1, 0, -1, 0}
#define TILEWRIGHT_INIT_FORWARD_TENSORS {sizeof(tilewright_forward_tensors), {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, 0, {0, 0, 0, 0, 1}, 0, 0, 0, 0}
#define TILEWRIGHT_INIT_PACKED_SEQUENCES {sizeof(tilewright_packed_sequences), 0, 0, 0, 0, TILEWRIGHT_INT32}
#define TILEWRIGHT_INIT_BACKWARD_TENSORS {sizeof(tilewright_backward_tensors), 0, {0, 0, 0, 0, 1}, 0, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, 0, 0, 0, 0, 0, {0, 0, 0, 0, 1}}
#define TILEWRIGHT_INIT_DECODE_TENSORS {sizeof(tilewright_decode_tensors), {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, 0, 0, 0, 0, 0, 0, {0, 0, 0, 0, 1}, 0, 0, 0, 0, 0, 0, 0}
#define TILEWRIGHT_INIT_APPEND_TENSORS {sizeof(tilewright_append_tensors), {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, {0, 0, 0, 0, 1}, 1, 0, 0, 0, 0, 0, 0, 0}
#define TILEWRIGHT_INIT_OPTIONS {sizeof(tilewright_options), 0, 0, 0}
#define TILEWRIGHT_INIT_CONFIG {sizeof(tilewright_config), 0, 0, 0, 0, 0, 0, 0, {0}, 0, -1, 0, 0, 0, 0, 0, 0}
#define TILEWRIGHT_INIT_DATABASE_OPTIONS {sizeof(tilewright_database_options), 0, 0, 0, 0, 0}
#define TILEWRIGHT_INIT_LIMITS {sizeof(tilewright_limits), -1, -1, 0, 0}

/* A device with its databases and compiled kernels. Safe to use from several threads at once. */
typedef struct tilewright_context tilewright_context;
/* Tuning databases for one architecture, which need not be here. Safe to use from several threads at once. */
typedef struct tilewright_database tilewright_database;

/* "0.1.0" */
TILEWRIGHT_API const char* tilewright_version(void);
/* Of the last failed call of this thread; "" before any. Valid until this thread's next call. */
TILEWRIGHT_API const char* tilewright_last_error(void);

/* *context is null after an error. The caller closes it; no call may be running then. Null may be closed. */
TILEWRIGHT_API tilewright_status tilewright_open(const tilewright_options* options, tilewright_context** context);
TILEWRIGHT_API void tilewright_close(tilewright_context* context);

/* The compact problem text, e.g. "forward:b4,hq32,hkv8,sq4096,d128,bf16,causal". Unsupported: the caller's problem has no place for what the text says. */
TILEWRIGHT_API tilewright_status tilewright_parse_problem(const char* text, tilewright_problem* problem);

/* Ok exactly if the call of the problem's operation would accept it with dense, aligned tensors: same checks, kernels compiled and loaded, nothing launched. */
TILEWRIGHT_API tilewright_status tilewright_prepare(tilewright_context* context, const tilewright_problem* problem);
/* Launches; asynchronous on GPUs. `stream` is the vendor's handle; null: the default one. */
TILEWRIGHT_API tilewright_status tilewright_forward(tilewright_context* context, const tilewright_problem* problem, const tilewright_forward_tensors* tensors, void* stream);
/* The same for packed sequences, each computed as if it were alone; unsupported: a bias. On GPUs starts count as the nearest row that there is. */
TILEWRIGHT_API tilewright_status tilewright_forward_packed(tilewright_context* context, const tilewright_problem* problem, const tilewright_forward_tensors* tensors,
                                                           const tilewright_packed_sequences* sequences, void* stream);
/* Gradients of a backward problem. Rows that see nothing contribute zero. */
TILEWRIGHT_API tilewright_status tilewright_backward(tilewright_context* context, const tilewright_problem* problem, const tilewright_backward_tensors* tensors, void* stream);
/* The same for packed sequences, each computed as if it were alone: out, lse and gradients lie as tilewright_forward_packed has out and lse. */
TILEWRIGHT_API tilewright_status tilewright_backward_packed(tilewright_context* context, const tilewright_problem* problem, const tilewright_backward_tensors* tensors,
                                                            const tilewright_packed_sequences* sequences, void* stream);
/* out and lse of a decode problem. Lengths and tables are read by the device at the time of the launch. */
TILEWRIGHT_API tilewright_status tilewright_decode(tilewright_context* context, const tilewright_problem* problem, const tilewright_decode_tensors* tensors, void* stream);
/* Writes new keys and values behind the last ones of each sequence, never outside the cache: a sequence that has no place is an error on the CPU,
 * and nothing is written; on a GPU nothing of it is written, and `status` names it. */
TILEWRIGHT_API tilewright_status tilewright_append(tilewright_context* context, const tilewright_problem* problem, const tilewright_append_tensors* tensors, void* stream);
/* Bytes of device memory that the caller must provide beside the tensors, as the problem's operation is called with its defaults; 0: none. */
TILEWRIGHT_API tilewright_status tilewright_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int64_t* bytes);
/* The same for `deterministic` and `splits` as the tensors will have them. */
TILEWRIGHT_API tilewright_status tilewright_backward_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int32_t deterministic, int64_t* bytes);
/* Of so many queries of all packed sequences together. */
TILEWRIGHT_API tilewright_status tilewright_backward_packed_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int64_t query_rows, int64_t* bytes);
TILEWRIGHT_API tilewright_status tilewright_decode_workspace_bytes(tilewright_context* context, const tilewright_problem* problem, int32_t splits, int64_t* bytes);
/* The config that the call of the problem's operation takes. Nanoseconds when warm: no lock, no allocation but for the JSON text. */
TILEWRIGHT_API tilewright_status tilewright_lookup(tilewright_context* context, const tilewright_problem* problem, tilewright_config* config);
TILEWRIGHT_API tilewright_status tilewright_synchronize(tilewright_context* context);

/* *database is null after an error: not_found: no such arch. Files that cannot be read are left out, and lookups answer from what is left.
 * The caller closes it; no call may be running then. Null may be closed. */
TILEWRIGHT_API tilewright_status tilewright_database_open(const tilewright_database_options* options, tilewright_database** database);
TILEWRIGHT_API void tilewright_database_close(tilewright_database* database);
/* As tilewright_lookup(); limits may be null. Always answers a valid problem: where no config is known that keeps the limits, with the one that comes nearest to them. */
TILEWRIGHT_API tilewright_status tilewright_database_lookup(tilewright_database* database, const tilewright_problem* problem, const tilewright_limits* limits, tilewright_config* config);
/* Loads what changed on disk, beside lookups; *changed (may be null) is 1 if anything had. */
TILEWRIGHT_API tilewright_status tilewright_database_refresh(tilewright_database* database, int32_t* changed);

#ifdef __cplusplus
}
#endif

#endif

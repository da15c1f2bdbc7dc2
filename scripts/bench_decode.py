#!/usr/bin/env python3
"""Decoding on one NVIDIA GPU: our calls through the public interface, PyTorch's SDPA backends and a plain read of the same bytes, in turns.

GB/s of keys and values read (1e9 bytes), 32 query heads over 8 KV heads, bf16, one query unless a cell says otherwise. A cell is named batch x keys,
then what is unlike: "1x65536 page16", "16x4096 sq8", "1x8192 d64", "1x8192 lengths" (the device reads how many keys there are), "ragged" (so it
does, of 32 sequences, log-uniform from 128 to 32768 keys). Layers share a block table, and so do the copies. Caches are cold: calls go round copies of keys and values of over 450 MB in all. "ours": many calls between two events; "ours_graph": the same calls replayed from a CUDA
graph; likewise for the others. "read": a kernel that only adds up the same copies, launched the same way. Every call is checked against a
float64 softmax first.

    cmake --build --preset release --target tilewright_bench
    scripts/bench_decode.py --library build/release/bench/libtilewright_bench.so --json decode.json
"""
import argparse, ctypes, json, math, statistics, sys

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench_common import Tensor, header

PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
HEADS, KV_HEADS, COLD_BYTES = 32, 8, 450e6

# FlashAttention-3, best number of splits, on another H200 on 2026-11-29: GB/s, many calls between two events.
FA3 = {"1x8192": 2019, "1x65536": 3732, "16x4096": 3826, "64x4096": 4195, "64x16384": 4429}

LENGTHS = ["1x8192 lengths", "64x4096 lengths"]
DENSE = ["1x8192", "1x65536", "16x4096", "64x4096", "64x16384", "1x8192 d64", "16x4096 d64", "64x4096 d64", "64x4096 fp16"]
PAGED = [f"{cell} page{page}" for cell in ("1x8192", "1x65536", "64x4096", "ragged") for page in (16, 64)]
QUERIES = [f"{cell} sq{queries}" for cell in ("16x4096", "64x4096") for queries in (4, 8, 16)]
CELLS = DENSE[:5] + ["ragged"] + DENSE[5:] + LENGTHS + PAGED + QUERIES


class Decode(ctypes.Structure):
    _fields_ = [("query", Tensor), ("key", Tensor), ("value", Tensor), ("out", Tensor), ("lengths", ctypes.c_void_p), ("table", ctypes.c_void_p),
                ("table_stride", ctypes.c_int64), ("page_size", ctypes.c_int64), ("pages", ctypes.c_int64), ("splits", ctypes.c_int64)]


class Tilewright:
    def __init__(self, path, index=0):
        self.library = ctypes.CDLL(path)
        for name in ("attention", "decode_call"): getattr(self.library, "tilewright_bench_" + name).restype = ctypes.c_void_p
        self.library.tilewright_bench_error.restype = ctypes.c_char_p
        self.library.tilewright_bench_decode_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        self.library.tilewright_bench_decode_run.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
        self.attention = self.library.tilewright_bench_attention(index)
        if not self.attention: sys.exit("no device: " + self.error())

    def error(self):
        return self.library.tilewright_bench_error().decode()

    def launcher(self, problem, copies):
        """What launches so many calls round the copies (query, key, value, out, lengths or None, table or None), which must stay alive."""
        calls = []
        for query, key, value, out, lengths, table in copies:
            paged = table is not None
            given = Decode(*map(Tensor.of, (query, key, value, out)), lengths.data_ptr() if lengths is not None else None, table.data_ptr() if paged else None,
                           table.stride(0) if paged else 0, key.shape[2] if paged else 0, key.shape[0] if paged else 0, 0)
            calls.append(self.library.tilewright_bench_decode_call(self.attention, problem.encode(), ctypes.addressof(given)))
            if not calls[-1]: raise RuntimeError(self.error())
        handles = (ctypes.c_void_p * len(calls))(*calls)

        def run(launches):
            if self.library.tilewright_bench_decode_run(handles, len(calls), launches, torch.cuda.current_stream().cuda_stream): raise RuntimeError(self.error())
        return run


READ_TEXT = r"""
extern "C" __global__ void read_all(const uint4* key, const uint4* value, int count, unsigned* out) {
    unsigned sum = 0;
    long long first = (long long)blockIdx.x * blockDim.x + threadIdx.x, step = (long long)gridDim.x * blockDim.x;
    for (int which = 0; which < 2; ++which) {
        const uint4* from = which ? value : key;
        for (long long i = first; i < count; i += 8 * step) {
            uint4 x[8];
            #pragma unroll
            for (int n = 0; n < 8; ++n) x[n] = i + n * step < count ? __ldcs(from + i + n * step) : uint4{0, 0, 0, 0};
            #pragma unroll
            for (int n = 0; n < 8; ++n) sum ^= x[n].x ^ x[n].y ^ x[n].z ^ x[n].w;
        }
    }
    if (sum == 0x12345678) *out = sum;
}
"""


def reader(pairs):
    kernel, out = torch.cuda._compile_kernel(READ_TEXT, "read_all"), torch.zeros(1, dtype=torch.int32, device="cuda")
    blocks = 8 * torch.cuda.get_device_properties(0).multi_processor_count

    def run(launches):
        for i in range(launches):
            key, value = pairs[i % len(pairs)]
            kernel((blocks, 1, 1), (256, 1, 1), (key, value, key.numel() // 8, out))
    return run


def graph_of(run, launches):
    """Replays `launches` launches; None where they cannot be captured."""
    try:
        run(3)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph): run(launches)
        return graph.replay
    except RuntimeError as reason:
        print("no graph:", str(reason).splitlines()[0][:120])
        torch.cuda.synchronize()


def in_turns(contenders, launches, repeats):
    """Median seconds of a call of each contender; A B C A B C, so that what drifts drifts for all."""
    spans = []
    for repeat in range(repeats + 1):
        for name, run in contenders.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            torch.cuda._sleep(400000)  # the host gets ahead
            start.record(), run(), end.record()
            if repeat: spans.append((name, start, end))
    torch.cuda.synchronize()
    times = {name: [] for name in contenders}
    for name, start, end in spans: times[name].append(start.elapsed_time(end) * 1e-3 / launches)
    return {name: statistics.median(all_) for name, all_ in times.items()}


class Cell:
    def __init__(self, name):
        words = name.split()
        number = lambda prefix, default: next((int(w[len(prefix):]) for w in words[1:] if w.startswith(prefix)), default)
        self.page, self.queries, self.d = number("page", 0), number("sq", 1), number("d", 128)
        self.dtype = torch.float16 if "fp16" in words else torch.bfloat16
        if words[0] == "ragged":
            generator = torch.Generator().manual_seed(5)
            self.lengths = [int(128 * 256 ** float(torch.rand(1, generator=generator))) for _ in range(32)]
        else:
            batch, keys = map(int, words[0].split("x"))
            self.lengths = [keys] * batch
        self.ragged = words[0] == "ragged"
        self.reads_lengths = self.ragged or "lengths" in words
        self.batch, self.most = len(self.lengths), max(self.lengths)
        self.bytes = 2 * 2 * sum(self.lengths) * KV_HEADS * self.d
        self.problem = f"decode:b{self.batch},hq{HEADS},hkv{KV_HEADS},sq{self.queries},skv{self.most},d{self.d},{'fp16' if 'fp16' in words else 'bf16'}" + (",causal" if self.queries > 1 else "")

    def copies(self):
        random = lambda *shape: torch.randn(*shape, device="cuda", dtype=self.dtype)
        lengths = torch.tensor(self.lengths, device="cuda", dtype=torch.int32) if self.reads_lengths else None
        result, table, shape = [], None, (self.batch, KV_HEADS, self.most, self.d)
        if self.page:
            counts = [(n + self.page - 1) // self.page for n in self.lengths]
            order = torch.randperm(sum(counts), device="cuda", dtype=torch.int32)
            table, first = torch.full((self.batch, max(counts)), 0x7fffffff, device="cuda", dtype=torch.int32), 0
            for i, n in enumerate(counts): table[i, :n], first = order[first:first + n], first + n
            shape = (sum(counts), KV_HEADS, self.page, self.d)
        for _ in range(max(2, math.ceil(COLD_BYTES / self.bytes)) if not self.ragged else 1):
            query, out = random(self.batch, HEADS, self.queries, self.d), random(self.batch, HEADS, self.queries, self.d)
            result.append((query, random(*shape), random(*shape), out, lengths, table))
        return result

    def error(self, copy):
        """Of some heads, against float64."""
        query, key, value, out, _, table = copy
        wrong = norm = 0.0
        for b in {0, self.batch - 1}:
            n = self.lengths[b]
            for kv_head in (0, KV_HEADS - 1):
                pick = lambda cache: cache[table[b, :(n + self.page - 1) // self.page].long(), kv_head].reshape(-1, self.d)[:n] if self.page else cache[b, kv_head, :n]
                heads = slice(kv_head * HEADS // KV_HEADS, (kv_head + 1) * HEADS // KV_HEADS)
                scores = query[b, heads].double() @ pick(key).double().T / math.sqrt(self.d)
                hidden = torch.arange(n, device="cuda")[None, :] > torch.arange(self.queries, device="cuda")[:, None] + n - self.queries
                want = scores.masked_fill(hidden, -math.inf).softmax(-1) @ pick(value).double()
                wrong, norm = wrong + float(((out[b, heads].double() - want) ** 2).sum()), norm + float((want ** 2).sum())
        return math.sqrt(wrong / norm)


def measure(ours, name, repeats, peers=True):
    cell = Cell(name)
    copies = cell.copies()
    launches = max(len(copies), min(200, int(4e9 / cell.bytes)) // len(copies) * len(copies))
    run = ours.launcher(cell.problem, copies)
    for copy in copies: copy[3].fill_(math.nan)
    run(len(copies))
    errors = [cell.error(copies[i]) for i in {0, len(copies) - 1}]
    if not max(errors) < 5e-3: return {"wrong": max(errors)}
    runs = {"ours": run}
    if peers and not cell.page and not cell.ragged:
        if cell.queries == 1: runs["read"] = reader([(copy[1], copy[2]) for copy in copies])
        for peer, backend in PEERS.items():
            def attend(launches, backend=backend):
                with sdpa_kernel([backend]):
                    for i in range(launches):
                        query, key, value = copies[i % len(copies)][:3]  # every query sees all keys
                        F.scaled_dot_product_attention(query, key, value, enable_gqa=True)
            try:
                attend(len(copies))
                runs[peer] = attend
            except RuntimeError as reason:
                print(f"{peer} cannot: {str(reason).splitlines()[0][:100]}")
    contenders = {peer: lambda run=run: run(launches) for peer, run in runs.items()}
    contenders |= {peer + "_graph": replay for peer, replay in ((peer, graph_of(run, launches)) for peer, run in runs.items()) if replay}
    times = in_turns(contenders, launches, repeats)
    result = {peer: round(cell.bytes / seconds * 1e-9) for peer, seconds in times.items()}
    result["us"] = round(times["ours"] * 1e6, 2)
    return result


def measure_all(library, only="", repeats=5, peers=True, report=None, cells=CELLS):
    """GB/s by cell; `report(cells)` is called after each. "read" is the card's rate at the largest cell."""
    ours, result = Tilewright(library), {}
    for name in (cell for cell in cells if only in cell):
        with torch.no_grad(): result[name] = measure(ours, name, repeats, peers)
        result["read"] = max((c["read"] for c in result.values() if isinstance(c, dict) and "read" in c), default=0)
        print(name, result[name], flush=True)
        torch.cuda.empty_cache()
        if report: report(result)
    return result


def print_table(cells):
    print("\n| batch x keys | ours | graph | cuDNN | graph | FA3 elsewhere | read | ours / better peer |\n|---|---|---|---|---|---|---|---|")
    for name, c in cells.items():
        if name == "read" or "ours" not in c: continue
        peer = max([c.get(peer + how, 0) for peer in PEERS for how in ("", "_graph")] + [FA3.get(name, 0)])
        print(f"| {name} | {c['ours']} | {c.get('ours_graph', '-')} | {c.get('cudnn', '-')} | {c.get('cudnn_graph', '-')} | {FA3.get(name, '-')} | {c.get('read', '-')} | " +
              (f"{max(c['ours'], c.get('ours_graph', 0)) / peer:.3f} |" if peer else "- |"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/bench/libtilewright_bench.so")
    parser.add_argument("--json", help="write the cells here")
    parser.add_argument("--commit", help="default: git's HEAD")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--alone", action="store_true", help="without peers and plain reads")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    head = header(arguments.commit)

    def report(cells):
        if arguments.json:
            with open(arguments.json, "w") as file: json.dump(head | {"cells": cells}, file, indent=1)
    print_table(measure_all(arguments.library, arguments.only, arguments.repeats, not arguments.alone, report))


if __name__ == "__main__":
    main()

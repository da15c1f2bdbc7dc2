#!/usr/bin/env python3
"""Attention forward on one NVIDIA GPU: our kernels and every PyTorch SDPA backend, in turns, in one process, on the same tensors.

Each of 36 cells (head dims 64, 128, 256; full and causal; sequences 512 ... 16384; 2048/d heads, batch 16384/sequence, bf16):
our candidates are checked against a float64 softmax on sampled rows, raced briefly, and the best is timed in turns with the
others. TFLOP/s by 4*batch*heads*seq*seq*d, half of it where causal, from the median of CUDA-event times. SDPA's "math" backend
writes the whole score matrix and is left out.

    cmake --build --preset release --target tilewright_bench
    scripts/bench_peers.py --library build/release/bench/libtilewright_bench.so --json peers.json

--winners takes what `tilewright db export` writes: the config that was tuned for a cell becomes one of its candidates.
"""
import argparse, contextlib, ctypes, json, math, re, statistics, sys

import bench_decode
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

from bench_common import Tensor, compile_all, header, print_ratios, row_of, toolchain, write_rows

HEAD_DIMS = (64, 128, 256)
SEQUENCES = (512, 1024, 2048, 4096, 8192, 16384)
PEERS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}

# FlashAttention-3 over cuDNN 9.19, both measured on an H200 on 2026-11-29 (docs/performance.md): what the better of the two
# would be in this run, since FlashAttention-3 is no backend of PyTorch's. By (head dim, causal), one number a sequence.
FA3_OVER_CUDNN = {
    (64, 0): (332/399, 386/443, 501/468, 528/481, 554/491, 560/491), (64, 1): (208/268, 292/342, 411/398, 489/436, 549/456, 563/471),
    (128, 0): (503/536, 627/613, 684/654, 715/673, 737/680, 704/684), (128, 1): (321/345, 499/439, 613/516, 688/571, 728/606, 750/628),
    (256, 0): (514/542, 653/636, 748/696, 776/726, 798/740, 809/747), (256, 1): (349/350, 502/463, 632/543, 722/598, 777/627, 805/648),
}


def config(**fields):
    return json.dumps({"persistent": 1, **fields})


def tiles(block_q, block_kv, stages, overlapped, *sections):
    return [config(block_q=block_q, block_kv=block_kv, workers=block_q // 64, stages=stages, overlapped=overlapped, turns=1, section_kb=kb) for kb in sections]


# What was fastest somewhere; sections of 8, 16 and 32 MiB.
CANDIDATES = {
    64: tiles(192, 128, 3, 1, 8192, 16384, 32768) + tiles(192, 128, 2, 1, 16384, 32768),
    128: tiles(192, 128, 2, 0, 8192, 16384, 32768) + tiles(128, 128, 2, 1, 8192, 16384) + tiles(192, 80, 2, 1, 16384, 32768) + tiles(192, 64, 3, 1, 16384),
    192: tiles(128, 96, 2, 1, 8192, 32768) + tiles(128, 80, 2, 1, 32768),
    256: tiles(128, 64, 2, 1, 8192, 16384, 32768) + tiles(128, 80, 2, 1, 8192, 16384),
}


class Tilewright:
    def __init__(self, path, index=0):
        self.library = ctypes.CDLL(path)
        for name, result in dict(open=ctypes.c_void_p, load=ctypes.c_void_p, call=ctypes.c_void_p, ranked=ctypes.c_char_p, canonical=ctypes.c_char_p, error=ctypes.c_char_p).items():
            getattr(self.library, "tilewright_bench_" + name).restype = result
        self.library.tilewright_bench_load.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        self.library.tilewright_bench_canonical.argtypes = [ctypes.c_char_p]
        self.library.tilewright_bench_ranked.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int]
        self.library.tilewright_bench_call.argtypes = [ctypes.c_void_p, ctypes.c_char_p] + [ctypes.c_void_p] * 5
        self.library.tilewright_bench_launch.argtypes = [ctypes.c_void_p] * 3
        self.device = self.library.tilewright_bench_open(index)
        if not self.device: sys.exit("no device: " + self.error())

    def error(self):
        return self.library.tilewright_bench_error().decode()

    def load(self, problem, config):
        """The kernel, or None and the reason."""
        kernel = self.library.tilewright_bench_load(self.device, problem.encode(), config.encode())
        return kernel, None if kernel else self.error()

    def ranked(self, problem, count):
        return self.library.tilewright_bench_ranked(self.device, problem.encode(), count).decode().split("\n")[:-1]

    def canonical(self, config):
        return self.library.tilewright_bench_canonical(config.encode()).decode()

    def launcher(self, kernel, problem, *tensors):
        """What launches `kernel` on query, key, value and out, which must stay alive."""
        described = [Tensor.of(t) for t in tensors]
        call, launch = self.library.tilewright_bench_call(kernel, problem.encode(), *map(ctypes.addressof, described), None), self.library.tilewright_bench_launch
        if not call: raise RuntimeError(self.error())

        def run():
            if launch(self.device, call, torch.cuda.current_stream().cuda_stream): raise RuntimeError(self.error())
        return contextlib.nullcontext, run


def in_turns(contenders, repeats, warm_ups):
    """Milliseconds of each call of each contender (a context to be in, a launch); A B C A B C, so that what drifts drifts for all."""
    spans = []
    for repeat in range(warm_ups + repeats):
        for name, (context, launch) in contenders.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            with context(): start.record(), launch(), end.record()
            if repeat >= warm_ups: spans.append((name, start, end))
    torch.cuda.synchronize()
    times = {name: [] for name in contenders}
    for name, start, end in spans: times[name].append(start.elapsed_time(end))
    return times


def relative_error(out, query, key, value, causal, samples=128):
    """Of sampled rows, against float64."""
    (batch, heads, seq, d), group = query.shape, query.shape[1] // key.shape[1]
    generator = torch.Generator().manual_seed(seq + d)
    error = norm = 0.0
    for _ in range(4):
        b, h = (int(torch.randint(n, (1,), generator=generator)) for n in (batch, heads))
        rows = torch.cat([torch.tensor([0, seq - 1]), torch.randint(seq, (samples // 4,), generator=generator)]).to(query.device)
        scores = query[b, h, rows].double() @ key[b, h // group].double().T / math.sqrt(d)
        if causal: scores.masked_fill_(torch.arange(seq, device=rows.device)[None, :] > rows[:, None], -math.inf)
        want = scores.softmax(-1) @ value[b, h // group].double()
        got = out[b, h, rows].double()
        error, norm = error + float(((got - want) ** 2).sum()), norm + float((want ** 2).sum())
    return math.sqrt(error / norm)


def peer(name, query, key, value, causal):
    return lambda: sdpa_kernel([PEERS[name]]), lambda: F.scaled_dot_product_attention(query, key, value, is_causal=bool(causal))


def problem_text(d, seq, causal):
    return f"forward:b{16384 // seq},hq{2048 // d},sq{seq},skv{seq},d{d}" + (",causal" if causal else "")


class Shape:
    """The sizes of a problem text: self-attention, bf16, full or causal."""

    def __init__(self, problem):
        self.problem, self.causal = problem, int(problem.endswith(",causal"))
        number = lambda name, default=1: int((re.search(rf"[:,]{name}(\d+)", problem) or [0, default])[1])
        self.batch, self.heads, self.seq, self.d = number("b"), number("hq"), number("sq"), number("d")
        self.heads_kv, self.d_v = number("hkv", self.heads), number("dv", self.d)

    def tensors(self):
        sizes = (self.heads, self.d), (self.heads_kv, self.d), (self.heads_kv, self.d_v), (self.heads, self.d_v)
        return [torch.randn(self.batch, self.seq, heads, d, device="cuda", dtype=torch.bfloat16).transpose(1, 2) for heads, d in sizes]

    def flops(self):
        return 2 * self.batch * self.heads * self.seq * self.seq * (self.d + self.d_v) * (0.5 if self.causal else 1)


def measure(ours, kernels, problem, repeats, peers):
    shape = Shape(problem)
    causal, flops = shape.causal, shape.flops()
    query, key, value, out = shape.tensors()
    right, errors = {}, {}
    for text, kernel in kernels:
        launch = ours.launcher(kernel, problem, query, key, value, out)
        out.fill_(math.nan), launch[1]()
        error = relative_error(out, query, key, value, causal)
        if error < 5e-3 and bool(torch.isfinite(out).all()): right[text], errors[text] = launch, error
        else: print(f"WRONG {problem} {text}: relative error {error:.2e}", flush=True)
    races = in_turns(right, 5, 2)
    best = min(races, key=lambda text: statistics.median(races[text]))
    contenders = {"ours": right[best]}
    for name in peers:
        other = peer(name, query, key, value, causal)
        try:
            in_turns({name: other}, 0, 1)
        except RuntimeError as reason:
            print(f"{name} cannot: {str(reason).splitlines()[0][:100]}")
        else:
            contenders[name] = other
    times = in_turns(contenders, repeats, 3)
    cell = {name: round(flops / statistics.median(t) * 1e-9, 1) for name, t in times.items()}
    quartiles = statistics.quantiles(times["ours"], n=4)
    cell["spread"] = round((quartiles[2] - quartiles[0]) / quartiles[1], 4)  # interquartile range over the median
    cell["config"] = best
    cell["error"] = errors[best]
    cell["us"] = sorted(1000 * t for t in times["ours"])
    cell["candidates"] = {text: round(flops / statistics.median(t) * 1e-9, 1) for text, t in races.items()}
    return cell


def winners(path):
    """Tuned configs by problem text."""
    if not path: return {}
    with open(path) as lines: rows = [json.loads(line) for line in lines]
    return {row["problem"]: json.dumps(row["config"]) for row in rows}


def canonical_text(d, seq, causal):
    batch, heads = 16384 // seq, 2048 // d
    return f"forward:b{batch},hq{heads},hkv{heads},sq{seq},skv{seq},d{d},bf16" + (",causal" if causal else "")


def key_of(d, seq, causal):
    return f"fwd:d{d},s{seq},causal{causal}"


def print_table(cells):
    print("\n| problem | | " + " | ".join(map(str, SEQUENCES)) + " |\n|---|---|" + "---|" * len(SEQUENCES))
    ratios = []
    for d in HEAD_DIMS:
        for causal in (0, 1):
            row = [cells.get(key_of(d, seq, causal), {}) for seq in SEQUENCES]
            for name in ("ours", *PEERS):
                print(f"| {f'forward d{d} ' + ('causal' if causal else 'full') if name == 'ours' else ''} | {name} | " + " | ".join(f"{c[name]:.0f}" if name in c else "-" for c in row) + " |")
            over, target = [], []
            for c, fa3 in zip(row, FA3_OVER_CUDNN[d, causal]):
                ok = "ours" in c and "cudnn" in c
                over.append(f"{c['ours'] / c['cudnn']:.3f}" if ok else "-")
                target.append(f"{c['ours'] / (c['cudnn'] * max(1, fa3)):.3f}" if ok else "-")
                if ok: ratios.append(c["ours"] / (c["cudnn"] * max(1, fa3)))
            print("| | ours / cudnn | " + " | ".join(over) + " |\n| | ours / better of cudnn and FA3 | " + " | ".join(target) + " |")
    print_ratios(ratios)


@torch.no_grad()
def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/bench/libtilewright_bench.so")
    parser.add_argument("--json", help="write the cells here")
    parser.add_argument("--commit", help="default: git's HEAD")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--ranked", type=int, default=2, help="candidates of the model's, beside the list in this script")
    parser.add_argument("--winners", help="tuned configs, as JSON lines")
    parser.add_argument("--only", default="", help="cells whose key contains this")
    parser.add_argument("--decode", action="store_true", help="the cells of bench_decode.py too")
    parser.add_argument("--problems", help="more problems, a text a line, without peers")
    parser.add_argument("--rows", help="write the winners here, for `tilewright db import`")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    ours = Tilewright(arguments.library)
    cells = [(d, seq, causal) for d in HEAD_DIMS for causal in (0, 1) for seq in SEQUENCES if arguments.only in key_of(d, seq, causal)]
    tuned = winners(arguments.winners)

    def candidates(d, problem, ranked=()):
        listed = CANDIDATES[d] + ([tuned[problem]] if problem in tuned else [])
        return list(dict.fromkeys([*map(ours.canonical, listed), *ranked]))
    wanted = {cell: candidates(cell[0], canonical_text(*cell), ours.ranked(problem_text(*cell), arguments.ranked)) for cell in cells}
    more = []
    if arguments.problems:
        with open(arguments.problems) as lines: more = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    wanted_more = {problem: candidates(Shape(problem).d, problem) for problem in more}
    # A kernel serves all sequences of a (head dim, mask): it is compiled once.
    texts = {(d, causal, text): problem_text(d, seq, causal) for (d, seq, causal), texts in wanted.items() for text in texts}
    for problem in more:
        for text in wanted_more[problem]: texts.setdefault((Shape(problem).d, Shape(problem).causal, text), problem)
    loaded = compile_all(ours.load, texts, "kernels")
    report = header(arguments.commit) | {"cells": {}}
    rows, compiler = [], toolchain(report)
    for d, seq, causal in cells:
        kernels = [(text, loaded[d, causal, text][0]) for text in wanted[d, seq, causal] if loaded[d, causal, text][0]]
        cell = measure(ours, kernels, problem_text(d, seq, causal), arguments.repeats, PEERS)
        rows.append(row_of(canonical_text(d, seq, causal), cell, report["device"], compiler, "bench_peers.py"))
        report["cells"][key_of(d, seq, causal)] = cell
        print(key_of(d, seq, causal), {k: v for k, v in cell.items() if k not in ("candidates", "us")}, flush=True)
        if arguments.json:
            with open(arguments.json, "w") as file: json.dump(report, file, indent=1)
    for problem in more:
        kernels = [(text, loaded[Shape(problem).d, Shape(problem).causal, text][0]) for text in wanted_more[problem]]
        cell = measure(ours, [pair for pair in kernels if pair[1]], problem, arguments.repeats, ())
        rows.append(row_of(problem, cell, report["device"], compiler, "bench_peers.py"))
        print(problem, cell["ours"], cell["config"], flush=True)
    if arguments.rows: write_rows(arguments.rows, rows)
    print_table(report["cells"])
    if arguments.decode:
        decode = bench_decode.measure_all(arguments.library, arguments.only)
        bench_decode.print_table(decode)
        if arguments.json:
            with open(arguments.json, "w") as file: json.dump(report | {"cells": report["cells"] | decode}, file, indent=1)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Attention backward on one NVIDIA GPU: our kernels and cuDNN's through PyTorch SDPA, in turns, in one process, on the same tensors.

Each of 36 cells (as scripts/bench_peers.py has them): our candidates are checked against float64 gradients of sampled heads, raced briefly,
and the best is timed in turns with cuDNN. All launches of a backward count, ours with prologue and epilogue. TFLOP/s by
10*batch*heads*seq*seq*d, half of it where causal, from the median of CUDA-event times.

    cmake --build --preset release --target tilewright_bench
    scripts/bench_peers_backward.py --library build/release/bench/libtilewright_bench.so --json peers_backward.json --only bwd:d128
"""
import argparse, contextlib, ctypes, json, math, statistics

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import bench_peers
from bench_common import Tensor, compile_all, header, print_ratios, row_of, toolchain, write_rows
from bench_peers import SEQUENCES, Tilewright, in_turns

# FlashAttention-3 over cuDNN 9.19, both measured on an H200 on 2026-11-29 (docs/performance.md), as in bench_peers.py.
FA3_OVER_CUDNN = {
    (64, 0): (331/282, 432/370, 507/428, 529/456, 526/474, 534/450), (64, 1): (191/168, 295/251, 419/328, 510/386, 566/426, 561/436),
    (128, 0): (341/342, 481/445, 564/524, 621/566, 656/589, 602/530), (128, 1): (222/213, 360/319, 482/413, 571/484, 632/532, 606/569),
    (256, 0): (277/240, 356/306, 431/365, 459/400, 464/360, 469/358), (256, 1): (200/179, 297/256, 381/323, 440/372, 475/419, 470/380),
}


def config(**fields):
    return json.dumps({"block_kv": 128, "stages": 2, "workers": 2, "section_kb": 32768, **fields})


# The first is the default ("{}"); those repeatable, in a fixed order or (d256) without sums, of which the best is reported beside the best of all.
CANDIDATES = {
    64: ["{}", config(block_q=128, dq=2, section_kb=16384), config(block_q=128, dq=2, persistent=1), config(block_q=128, dq=1, section_kb=16384), config(block_q=128, dq=1, section_kb=65536),
         config(block_q=128, dq=1, persistent=1, section_kb=16384), config(block_q=128, dq=1, persistent=1), config(block_q=128, dq=1)],
    128: ["{}", config(block_q=64, dq=2), config(block_q=64, dq=2, persistent=1), config(block_q=64, dq=2, persistent=1, section_kb=16384), config(block_q=64, dq=1), config(block_q=64, dq=1, section_kb=16384), config(block_q=64, dq=1, section_kb=65536),
          config(block_q=64, dq=1, persistent=1, section_kb=8192), config(block_q=64, dq=1, persistent=1)],
    256: ["{}", config(block_q=64, dq=2), config(block_q=64, dq=0), config(block_q=64, dq=1), config(block_q=64, dq=1, section_kb=8192)],
}


class Backward(Tilewright):
    def __init__(self, path):
        super().__init__(path)
        for name, result in dict(load_backward=ctypes.c_void_p, backward_config=ctypes.c_char_p, call_backward=ctypes.c_void_p, backward_workspace=ctypes.c_int64).items():
            getattr(self.library, "tilewright_bench_" + name).restype = result
        self.library.tilewright_bench_load_backward.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
        self.library.tilewright_bench_backward_config.argtypes = [ctypes.c_void_p]
        self.library.tilewright_bench_backward_workspace.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self.library.tilewright_bench_call_backward.argtypes = [ctypes.c_void_p, ctypes.c_char_p] + [ctypes.c_void_p] * 3
        self.library.tilewright_bench_launch_backward.argtypes = [ctypes.c_void_p] * 3

    def load(self, problem, config):
        kernels = self.library.tilewright_bench_load_backward(self.device, problem.encode(), config.encode())
        return kernels, None if kernels else self.error()

    def config_of(self, kernels):
        """Canonical, the default's too."""
        return self.library.tilewright_bench_backward_config(kernels).decode()

    def launcher(self, kernels, problem, tensors, lse):
        described = (Tensor * 8)(*map(Tensor.of, tensors))
        workspace = torch.empty(self.library.tilewright_bench_backward_workspace(kernels, problem.encode()), dtype=torch.uint8, device="cuda").fill_(255)
        call = self.library.tilewright_bench_call_backward(kernels, problem.encode(), ctypes.addressof(described), lse.data_ptr(), workspace.data_ptr())
        if not call: raise RuntimeError(self.error())

        def run(keep=workspace):
            if self.library.tilewright_bench_launch_backward(self.device, call, torch.cuda.current_stream().cuda_stream): raise RuntimeError(self.error())
        return contextlib.nullcontext, run


def key_of(d, seq, causal):
    return f"bwd:d{d},s{seq},causal{causal}"


def problem_text(d, seq, causal):
    return f"backward:b{16384 // seq},hq{2048 // d},sq{seq},skv{seq},d{d}" + (",causal" if causal else "")


def canonical_text(d, seq, causal):
    return bench_peers.canonical_text(d, seq, causal).replace("forward", "backward")


def relative_errors(tensors, lse, causal, heads=2):
    """Of dQ, dK and dV of sampled heads, against float64, from the same out and lse."""
    query, key, value, out, out_gradient, *gradients = tensors
    errors, norms = [0.0] * 3, [0.0] * 3
    for sample in range(heads):
        b, h = (sample * 7) % query.shape[0], (sample * 5 + 3) % query.shape[1]
        q, k, v, o, do = (x[b, h].double() for x in (query, key, value, out, out_gradient))
        want, scale = [torch.zeros_like(q) for _ in range(3)], 1 / math.sqrt(q.shape[1])
        for first in range(0, len(q), 2048):
            rows = slice(first, first + 2048)
            s = q[rows] @ k.T * scale
            if causal: s.masked_fill_(torch.arange(len(k), device=s.device)[None, :] > torch.arange(len(q), device=s.device)[rows, None], -math.inf)
            p = (s - lse[b, h, rows, None].double()).exp()
            ds = p * (do[rows] @ v.T - (do[rows] * o[rows]).sum(1, keepdim=True))
            want[0][rows] = scale * ds @ k
            want[1] += scale * ds.T @ q[rows]
            want[2] += p.T @ do[rows]
        for i in range(3):
            got = gradients[i][b, h].double()
            errors[i], norms[i] = errors[i] + float(((got - want[i]) ** 2).sum()), norms[i] + float((want[i] ** 2).sum())
    return [math.sqrt(e / n) for e, n in zip(errors, norms)]


def measure(ours, kernels, d, seq, causal, repeats):
    batch, heads, problem = 16384 // seq, 2048 // d, problem_text(d, seq, causal)
    make = lambda: torch.randn(batch, seq, heads, d, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
    query, key, value, out_gradient = (make() for _ in range(4))
    gradients = [make() for _ in range(3)]
    flops = 10 * batch * heads * seq * seq * d * (0.5 if causal else 1)
    leaves = [x.detach().requires_grad_() for x in (query, key, value)]
    with torch.enable_grad(), sdpa_kernel([SDPBackend.CUDNN_ATTENTION]): forward = F.scaled_dot_product_attention(*leaves, is_causal=bool(causal))
    with torch.no_grad(): lse = torch.ops.aten._scaled_dot_product_cudnn_attention(query, key, value, None, True, 0.0, bool(causal))[1].reshape(batch, heads, seq).float().contiguous()
    tensors = [query, key, value, forward.detach(), out_gradient, *gradients]
    right, worst = {}, {}
    for text, kernel in kernels:
        launch = ours.launcher(kernel, problem, tensors, lse)
        for x in gradients: x.fill_(math.nan)
        launch[1]()
        errors = relative_errors(tensors, lse, causal)
        if max(errors) < 1e-2: right[text], worst[text] = launch, max(errors)
        else: print(f"WRONG {problem} {text}: relative errors {errors}", flush=True)
    races = in_turns(right, 5, 2)
    rate = lambda times: round(flops / statistics.median(times) * 1e-9, 1)
    fast = {text: rate(t) for text, t in races.items()}
    best, ordered = max(fast, key=fast.get), [text for text in right if f'"dq": {0 if d > 128 else 2}' in text]
    contenders = {"ours": right[best]}
    in_order = max(ordered, key=fast.get, default=None)
    if ordered: contenders["ordered"] = right[in_order]
    contenders["cudnn"] = (contextlib.nullcontext, lambda: torch.autograd.grad(forward, leaves, out_gradient, retain_graph=True))
    times = in_turns(contenders, repeats, 3)
    cell = {name: rate(t) for name, t in times.items()}
    quartiles = statistics.quantiles(times["ours"], n=4)
    winner = lambda name, text: {"config": ours.config_of(dict(kernels)[text]), "error": worst[text], "us": sorted(1000 * t for t in times[name]), "candidates": fast}
    cell |= {"spread": round((quartiles[2] - quartiles[0]) / quartiles[1], 4)} | winner("ours", best)
    return cell, winner("ordered", in_order) if ordered else None


def print_table(cells):
    print("\n| problem | | " + " | ".join(map(str, SEQUENCES)) + " |\n|---|---|" + "---|" * len(SEQUENCES))
    ratios = []
    for (d, causal), standing in FA3_OVER_CUDNN.items():
        row = [cells.get(key_of(d, seq, causal), {}) for seq in SEQUENCES]
        for name in ("ours", "ordered", "cudnn"):
            print(f"| {f'backward d{d} ' + ('causal' if causal else 'full') if name == 'ours' else ''} | {name} | " + " | ".join(f"{c[name]:.0f}" if name in c else "-" for c in row) + " |")
        target = [c["ours"] / (c["cudnn"] * max(1, fa3)) if c else None for c, fa3 in zip(row, standing)]
        ratios += [r for r in target if r]
        print("| | ours / better of cudnn and FA3 | " + " | ".join(f"{r:.3f}" if r else "-" for r in target) + " |")
    print_ratios(ratios)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/bench/libtilewright_bench.so")
    parser.add_argument("--json", help="write the cells here")
    parser.add_argument("--commit", help="default: git's HEAD")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--config", action="append", default=[], help="one more candidate of every cell, as JSON")
    parser.add_argument("--only", default="", help="cells whose key contains one of these, separated by spaces")
    parser.add_argument("--rows", help="write the winners here, for `tilewright db import`")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    ours = Backward(arguments.library)
    cells = [(d, seq, causal) for d, causal in FA3_OVER_CUDNN for seq in SEQUENCES if not arguments.only or any(part in key_of(d, seq, causal) for part in arguments.only.split())]
    # Kernels serve all sequences of a (head dim, mask): they are compiled once.
    texts = {(d, causal, text): problem_text(d, seq, causal) for d, seq, causal in cells for text in CANDIDATES[d] + arguments.config}
    loaded = compile_all(ours.load, texts, "backwards")
    report, rows = header(arguments.commit) | {"cells": {}}, []
    for d, seq, causal in cells:
        kernels = [(text, loaded[d, causal, text][0]) for text in CANDIDATES[d] + arguments.config if loaded[d, causal, text][0]]
        cell, in_order = measure(ours, kernels, d, seq, causal, arguments.repeats)
        report["cells"][key_of(d, seq, causal)] = cell
        for winner, how in ((cell, ""), (in_order, ",deterministic")):
            if winner: rows.append(row_of(canonical_text(d, seq, causal) + how, winner, report["device"], toolchain(report), "bench_peers_backward.py"))
        print(key_of(d, seq, causal), {k: v for k, v in cell.items() if k != "us"}, flush=True)
        if arguments.json:
            with open(arguments.json, "w") as file: json.dump(report, file, indent=1)
    if arguments.rows: write_rows(arguments.rows, rows)
    print_table(report["cells"])


if __name__ == "__main__":
    main()

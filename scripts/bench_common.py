"""What the scripts that time us beside PyTorch share: a tensor as our library takes it, the head of a report, kernels compiled at once."""
import concurrent.futures, ctypes, datetime, json, statistics, subprocess, time

import torch


class Tensor(ctypes.Structure):
    _fields_ = [("address", ctypes.c_void_p), ("batch", ctypes.c_int64), ("head", ctypes.c_int64), ("row", ctypes.c_int64)]

    @staticmethod
    def of(tensor):
        batch, head, row, column = tensor.stride()
        assert column == 1
        return Tensor(tensor.data_ptr(), batch, head, row)


def header(commit):
    """Of a report; `commit`: None for git's HEAD."""
    return {"commit": commit or subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip(), "device": torch.cuda.get_device_name(),
            "date": datetime.date.today().isoformat(), "torch": torch.__version__, "cudnn": torch.backends.cudnn.version()}


def compile_all(load, texts, what):
    """{(head dim, causal, config): what load(problem, config) gave, a handle or None and the reason}, from {that: a problem of the kind}; those without are named."""
    start = time.time()
    with concurrent.futures.ThreadPoolExecutor() as pool: loaded = dict(zip(texts, pool.map(lambda item: load(item[1], item[0][2]), texts.items())))
    print(f"{len(texts)} {what} compiled in {time.time() - start:.1f} s; torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}, {torch.cuda.get_device_name()}", flush=True)
    for (d, causal, text), (handle, reason) in loaded.items():
        if not handle: print(f"not run: d{d} causal{causal} {text}: {reason}")
    return loaded


def toolchain(report):
    """Of rows, from the head of a report."""
    return {"compiler": "nvrtc " + torch.version.cuda, "flags": "", "kernel_source": report["commit"][:16]}


def row_of(problem, cell, device, compiler, script):
    """What `tilewright db import` reads: the winner of a race among candidates, and its sorted times ("us") beside the peers'."""
    us = cell["us"]
    at = lambda fraction: us[round(fraction * (len(us) - 1))]
    return {"problem": problem, "device": {"backend": "nvidia", "arch": "sm_90a", "family": "sm90", "name": device, "units": torch.cuda.get_device_properties(0).multi_processor_count},
            "toolchain": compiler, "config": json.loads(cell["config"]), "outcome": "correct", "median_us": round(statistics.median(us), 3), "p20_us": round(at(0.2), 3),
            "p80_us": round(at(0.8), 3), "samples": len(us), "error": cell["error"], "measured_at": int(time.time()),
            "note": f"scripts/{script}, fastest of {len(cell['candidates'])}"}


def write_rows(path, rows):
    with open(path, "w") as file: file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)


def print_ratios(ratios):
    if ratios: print(f"\n{len(ratios)} cells: least {min(ratios):.3f}, geometric mean {statistics.geometric_mean(ratios):.3f} x the better of cudnn and FA3; {sum(r >= 1 for r in ratios)} at 1.0 or above")

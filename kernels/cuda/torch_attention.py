"""Times PyTorch's attention on the shapes of kvcheck_device_bench, where PyTorch is installed.

Prints one line of a Markdown table for each shape; leaves with 77 where there is no PyTorch or no
GPU that it can use.
"""

import statistics
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
except ImportError as error:
    print(f"no PyTorch: {error}", file=sys.stderr)
    sys.exit(77)
if not torch.cuda.is_available():
    print("PyTorch sees no GPU", file=sys.stderr)
    sys.exit(77)

RUNS = 21
SHAPES = [  # batch, query heads, KV heads, head size, keys, queries
    (32, 32, 8, 128, 8192, 1), (32, 64, 8, 128, 8192, 1), (16, 32, 32, 128, 4096, 1),
    (32, 64, 8, 64, 8192, 1), (1, 32, 8, 128, 65536, 1), (1, 32, 8, 128, 1024, 1),
    (4, 32, 8, 128, 2048, 2048), (1, 32, 8, 128, 8192, 8192), (1, 16, 16, 64, 8192, 8192),
    (1, 16, 4, 256, 4096, 4096),
]
BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]


def median_ms(work):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for _ in range(3):
        work()
    times = []
    for _ in range(RUNS):
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def timed(shape, backend):
    batch, query_heads, kv_heads, head, keys, queries = shape
    make = dict(device="cuda", dtype=torch.float16)
    query = torch.randn(batch, query_heads, queries, head, **make)
    key, value = (torch.randn(batch, kv_heads, keys, head, **make) for _ in range(2))

    def work():
        torch.nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=queries > 1, enable_gqa=query_heads != kv_heads)

    with sdpa_kernel(backend):
        return median_ms(work)


def main():
    print(f"PyTorch {torch.__version__} on {torch.cuda.get_device_name()}\n")
    print("| shape | queries | " + " | ".join(b.name for b in BACKENDS) + " |")
    print("|---|---|" + "---|" * len(BACKENDS))
    for shape in SHAPES:
        cells = []
        for backend in BACKENDS:
            try:
                cells.append(f"{timed(shape, backend):.4f} ms")
            except RuntimeError as error:
                cells.append(str(error).splitlines()[0][:60])
        batch, query_heads, kv_heads, head, keys, queries = shape
        print(f"| {query_heads}/{kv_heads}/{head} T={keys} B={batch} | {queries} | "
              + " | ".join(cells) + " |", flush=True)


main()

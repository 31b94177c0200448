"""Grouped einsums under jax.jit as a peer: what a JAX user writes for one decode step.

Query heads of one KV head share its rows. The cache is resident; the new row is in place already,
so that no copy of it is timed.
"""

import functools
import math
import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false "
                                   "intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("NPROC", "1")
if hasattr(os, "sched_setaffinity"):  # XLA's pool is as large as the set of processors.
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from peer_worker import KEY, VALUE, Prepared, Refused, serve  # noqa: E402


@functools.partial(jax.jit, static_argnames="causal")
def attend(query, key, value, causal):
    """query [Nk,G,S,H], key and value [Nk,T,H] to [Nk,G,S,H]."""
    scores = jnp.einsum("hgsd,htd->hgst", query, key) / math.sqrt(query.shape[-1])
    if causal:
        seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("hgst,htd->hgsd", weights, value)


def prepare(case):
    if case.element_type not in ("f32", "bf16") or case.operation == "windowed" or case.window:
        raise Refused("the einsums are timed on full f32 and bf16 caches without a window")
    dtype = jnp.float32 if case.element_type == "f32" else jnp.bfloat16
    prefill = case.operation == "prefill"
    begin = 0 if prefill else case.length - 1
    query = case.queries(begin, case.length).reshape(
        -1, case.kv_heads, case.group, case.head_size).transpose(1, 2, 0, 3)
    arrays = [jnp.asarray(array, dtype) for array in
              (query, case.cache_values(KEY, 0, case.length),
               case.cache_values(VALUE, 0, case.length))]

    def run():
        return attend(*arrays, causal=prefill).block_until_ready()

    return Prepared(run, lambda: run().astype(jnp.float32)[:, :, -1])


if __name__ == "__main__":
    serve("jax", jax.__version__, prepare)

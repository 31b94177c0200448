"""Random valid scenarios of both operators, as the JSON objects that `kvcheck expect` reads.

Everything follows from the random.Random handed in. A Profile narrows what is drawn to what a peer
can answer; the default draws everything that the contract knows.
"""

import dataclasses
import random

from random_masks import draw_mask, draw_window, is_ragged, shape_of_lengths


@dataclasses.dataclass(frozen=True)
class Profile:
    operator: str | None = None  # None: either
    opsets: tuple[int, ...] = (23, 24, 25)
    types: tuple[str, ...] = ("f32", "f32", "f16", "bf16", "f64")
    head_sizes: tuple[int, ...] = (1, 2, 3, 4, 8, 16, 32)
    rotary_head_sizes: tuple[int, ...] = (2, 4, 8, 16, 32)
    rotary_dim_multiple: int = 2
    layouts: tuple[str, ...] = ("full", "full", "block")
    quantisations: tuple[str, ...] = ("int8", "int4", "fp8")
    quantised_head_sizes: tuple[int, ...] = (1, 2, 3, 4, 8, 16, 32)
    norm: bool = True
    sinks: bool = True
    exact_masks: bool = False  # up to opset 24 no rank 1, and no dimension short
    longest: int = 40
    steps: int = 5


EVERYTHING = Profile()
FILLS = ("random", "random", "random", "needles", "position_code")


def draw(rng: random.Random, profile: Profile = EVERYTHING) -> dict:
    """A valid scenario."""
    operator = profile.operator or rng.choice(("gqa", "attention"))
    scenario = gqa(rng, profile) if operator == "gqa" else attention(rng, profile)
    fill = rng.choice(FILLS)
    if fill == "position_code" and scenario["head_size"] < 2:
        fill = "random"
    scenario["fill"] = {"kind": fill, "seed": rng.randrange(1 << 30)}
    return scenario


def heads(rng: random.Random) -> dict:
    kv_heads = rng.choice((1, 1, 2, 3))
    return {"batch": rng.choice((1, 1, 2, 3)), "kv_heads": kv_heads,
            "query_heads": kv_heads * rng.randint(1, 6 // kv_heads)}


def maybe(rng: random.Random, percent: int) -> bool:
    return rng.randrange(100) < percent


def put_scale_and_softcap(rng: random.Random, scenario: dict) -> None:
    if maybe(rng, 30):
        # Squares, since peers take the root in single precision.
        scenario["scale"] = rng.choice((0.0625, 0.25, 1.0, 2.25))
    if maybe(rng, 25):
        scenario["softcap"] = rng.choice((0.5, 2.0, 20.0))


# ---- GroupQueryAttention ----

def gqa(rng: random.Random, profile: Profile) -> dict:
    scenario = {"schema": 1, "operator": "gqa", **heads(rng)}
    types = [kind for kind in profile.types if kind != "f64"]
    scenario["element_type"] = rng.choice(types)
    put_features(rng, profile, scenario)
    put_cache(rng, profile, scenario)
    scenario["steps"] = gqa_steps(rng, profile, scenario)
    if maybe(rng, 25):
        scenario["mask"] = {"kind": "additive", "rank": 4, "seed": rng.randrange(1 << 20),
                            "hidden_percent": rng.choice((0, 20, 60, 95)),
                            "one_head": maybe(rng, 40)}
        if not is_ragged(scenario):
            scenario["mask"]["one_entry"] = maybe(rng, 40)
    return scenario


def put_features(rng: random.Random, profile: Profile, scenario: dict) -> None:
    rotary = maybe(rng, 40)
    sizes = profile.rotary_head_sizes if rotary else profile.head_sizes
    if maybe(rng, 30) and profile.quantisations:
        sizes = [size for size in sizes if size in profile.quantised_head_sizes]
        scenario["cache"] = {"quantisation": {"kind": rng.choice(profile.quantisations),
                                              "per_channel": maybe(rng, 50)}}
    size = scenario["head_size"] = rng.choice(sizes)
    if rotary:
        multiple = profile.rotary_dim_multiple
        scenario["rotary"] = {"interleaved": maybe(rng, 50)}
        if maybe(rng, 50):
            scenario["rotary"]["dim"] = multiple * rng.randint(1, size // multiple)
        if maybe(rng, 60):
            scenario["rotary"]["position_ids"] = {
                "shift": rng.choice((0, 3, 11)), "stride": rng.choice((1, 1, 2, 3)),
                "extra_columns": rng.choice((0, 0, 1, 3))}
    put_scale_and_softcap(rng, scenario)
    if maybe(rng, 20):
        scenario["causal"] = False
    if profile.norm and maybe(rng, 20):
        scenario["qk_norm"] = {"epsilon": rng.choice((1e-6, 1e-3))}
    if profile.sinks and maybe(rng, 25):
        scenario["head_sink"] = True
    if profile.sinks and maybe(rng, 20):
        scenario["smooth_softmax"] = True
    if maybe(rng, 25):
        scenario["packed_qkv"] = True
    if maybe(rng, 40):
        scenario["share_buffers"] = False


def put_cache(rng: random.Random, profile: Profile, scenario: dict) -> None:
    cache = scenario.setdefault("cache", {})
    causal = scenario.get("causal", True)
    cache["layout"] = rng.choice(profile.layouts) if causal else "full"
    if cache["layout"] == "block":
        cache["window_size"] = rng.randint(1, 9)
        cache["capacity"] = cache["window_size"] + rng.randint(0, 7)
        return
    cache["capacity"] = profile.longest + rng.randint(0, 5)
    if causal and maybe(rng, 40):
        cache["window_size"] = rng.choice((0, 1, 2, 3, 5, 8, 13, 100))
    if maybe(rng, 35):
        scenario["qk_output"] = rng.choice(("biased", "probabilities"))


def gqa_steps(rng: random.Random, profile: Profile, scenario: dict) -> list[dict]:
    """Steps of lengths that the operator takes: prompts, chunks, decodes, rollbacks, shared KV."""
    batch, cache = scenario["batch"], scenario["cache"]
    lengths, steps, shared = [0] * batch, [], False
    if maybe(rng, 45):
        lengths = shape_of_lengths(rng, batch, 0, profile.longest // 2)
        if max(lengths) > 0:
            steps.append({"past": list(lengths)})
    for _ in range(rng.randint(1, profile.steps)):
        kind = rng.randrange(10)
        if kind < 2 and max(lengths) > 0:
            dropped = [rng.randint(0, most_dropped(cache, length)) for length in lengths]
            if max(dropped) > 0:
                steps.append({"rollback": dropped})
                lengths = [length - less for length, less in zip(lengths, dropped)]
            continue
        room = profile.longest - max(lengths)
        if kind == 2 and cache["layout"] == "full" and min(lengths) > 0:
            shared = True
            # More than one query of a batch is a prompt: as many as every entry holds.
            prompt = min(lengths) == max(lengths) and maybe(rng, 30)
            most = min(lengths) if batch == 1 else 1
            queries = lengths[0] if prompt else rng.randint(1, most)
            steps.append({"append": 0, "queries": queries})
        elif room > 0:
            tokens = gqa_tokens(rng, scenario, lengths, room)
            step = {"append": tokens}
            if maybe(rng, 8):
                step["queries"] = 0
            steps.append(step)
            lengths = [length + new for length, new in zip(lengths, tokens)]
    if not any("append" in step for step in steps):
        steps.append({"append": [1] * batch})
    if shared:
        scenario.pop("packed_qkv", None)
    return steps


def gqa_tokens(rng: random.Random, scenario: dict, lengths: list[int], room: int) -> list[int]:
    batch = scenario["batch"]
    if maybe(rng, 35):
        return [1] * batch
    if scenario.get("causal", True) and batch > 1 and maybe(rng, 50):
        tokens = [rng.randint(0, min(room, 6)) for _ in range(batch)]
        return tokens if max(tokens) > 0 else [1] * batch
    if batch == 1 or max(lengths) == 0 or scenario.get("causal", True):
        return [rng.randint(1, min(room, 16))] * batch
    return [1] * batch


def most_dropped(cache: dict, length: int) -> int:
    """Tokens that a rollback may drop and leave the cache exact (contract 3.6)."""
    if cache["layout"] == "full" or length <= cache["capacity"]:
        return length
    block = cache["capacity"] - cache["window_size"] + 1
    rows = length - block * -(-(length - cache["capacity"]) // block)
    return rows - cache["window_size"]


# ---- Attention ----

def attention(rng: random.Random, profile: Profile) -> dict:
    scenario = {"schema": 1, "operator": "attention", "opset": rng.choice(profile.opsets),
                **heads(rng), "element_type": rng.choice(profile.types),
                "head_size": rng.choice(profile.head_sizes),
                "causal": maybe(rng, 60), "input_rank": rng.choice((3, 4))}
    scenario["value_head_size"] = (scenario["head_size"] if maybe(rng, 60)
                                   else rng.choice(profile.head_sizes))
    put_scale_and_softcap(rng, scenario)
    if scenario["opset"] >= 24 and maybe(rng, 35):
        scenario["nonpad_kv_seqlen"] = True
        scenario["cache"] = {"capacity": profile.longest + rng.randint(0, 3)}
    if maybe(rng, 45):
        scenario["qk_output"] = rng.choice(("raw", "softcapped", "biased", "probabilities"))
    if maybe(rng, 25):
        scenario["softmax_precision"] = rng.choice(("f32", "f16", "f64", "bf16"))
    draw_window(rng, scenario)
    scenario["steps"] = attention_steps(rng, profile, scenario)
    if maybe(rng, 60):
        scenario["mask"] = draw_mask(
            rng, scenario, profile.exact_masks and scenario["opset"] < 25)
    return scenario


def attention_steps(rng: random.Random, profile: Profile, scenario: dict) -> list[dict]:
    batch, ragged = scenario["batch"], scenario.get("nonpad_kv_seqlen", False)
    lengths, steps = [0] * batch, []

    def drawn(low: int, high: int) -> list[int]:
        if ragged:
            return shape_of_lengths(rng, batch, low, high)
        return [rng.randint(low, high)] * batch

    if maybe(rng, 50):
        lengths = drawn(0, profile.longest // 2)
        if max(lengths) > 0:
            steps.append({"past": list(lengths)})
    for _ in range(rng.randint(1, profile.steps)):
        if maybe(rng, 20) and max(lengths) > 0:
            dropped = drawn(0, max(lengths))
            dropped = [min(less, length) for less, length in zip(dropped, lengths)]
            if max(dropped) > 0:
                steps.append({"rollback": dropped})
                lengths = [length - less for length, less in zip(lengths, dropped)]
            continue
        room = profile.longest - max(lengths)
        if room > 0:
            tokens = drawn(0 if ragged else 1, min(room, rng.choice((1, 3, 12))))
            if max(tokens) == 0:
                tokens = [1] * batch
            queries = rng.choice((1, max(tokens), max(tokens), rng.randint(1, 8)))
            steps.append({"append": tokens, "queries": queries})
            lengths = [length + new for length, new in zip(lengths, tokens)]
    if not any("append" in step for step in steps):
        steps.append({"append": [1] * batch, "queries": 1})
    return steps

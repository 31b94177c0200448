"""Masks, windows and lengths of random scenarios."""

import random


def shape_of_lengths(rng: random.Random, batch: int, low: int, high: int) -> list[int]:
    """Lengths of a batch: half the time all alike."""
    if rng.randrange(2):
        return [rng.randint(low, high)] * batch
    return [rng.randint(low, high) for _ in range(batch)]


def draw_window(rng: random.Random, scenario: dict) -> None:
    """Left and right windows, which Attention has from opset 25 on."""
    if scenario["opset"] < 25:
        return
    if rng.randrange(2):
        scenario.setdefault("cache", {})["window_size"] = rng.choice((1, 2, 3, 5, 9, 60))
    if rng.randrange(3) == 0:
        scenario["right_window_size"] = rng.choice((0, 1, 2, 5, 60))


def draw_mask(rng: random.Random, scenario: dict, exact: bool) -> dict:
    """attn_mask; `exact`: of rank 2 to 4 with no dimension shorter than the call's, but for batch
    and heads."""
    rank = rng.choice((2, 3, 4) if exact else (1, 2, 2, 3, 4, 4))
    mask = {"kind": rng.choice(("boolean", "additive")), "rank": rank,
            "hidden_percent": rng.choice((0, 20, 50, 90)), "seed": rng.randrange(1 << 20),
            "empty_rows": rng.randrange(3) == 0}
    if rank >= 2 and not exact and rng.randrange(4) == 0:
        mask["one_query"] = True
    # A mask is drawn by positions, and one query row lies at another position in each entry.
    if is_ragged(scenario) and rank > 1 and not mask.get("one_query", False):
        mask["rank"] = rank = 4
    elif rank == 4 and rng.randrange(2):
        mask["one_entry"] = True
    if rank >= 3 and rng.randrange(2):
        mask["one_head"] = True
    if exact:
        return mask
    most = missable_columns(scenario)
    if scenario["opset"] >= 24 and most > 0 and rng.randrange(4) == 0:
        mask["missing_columns"] = rng.randint(1, min(3, most))
    return mask


def is_ragged(scenario: dict) -> bool:
    """Whether batch entries differ in any step."""
    counts = [step[kind] for step in scenario["steps"] for kind in ("append", "past", "rollback")
              if isinstance(step.get(kind), list)]
    return any(min(entries) != max(entries) for entries in counts)


def append_lengths(scenario: dict) -> list[list[int]]:
    """Lengths of all entries after every step that appends."""
    batch = scenario["batch"]
    lengths, called = [0] * batch, []
    for step in scenario["steps"]:
        kind = next(name for name in ("append", "past", "rollback") if name in step)
        counts = step[kind] if isinstance(step[kind], list) else [step[kind]] * batch
        sign = -1 if kind == "rollback" else 1
        lengths = [length + sign * count for length, count in zip(lengths, counts)]
        if kind == "append":
            called.append(lengths)
    return called


def missable_columns(scenario: dict) -> int:
    """Columns that every step's mask may lack: one stays, under nonpad_kv_seqlen all live ones."""
    longest = [max(lengths) for lengths in append_lengths(scenario)]
    if scenario.get("nonpad_kv_seqlen", False):
        return scenario["cache"]["capacity"] - max(longest)
    return min(longest) - 1

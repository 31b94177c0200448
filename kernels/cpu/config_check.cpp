// What a session cannot be, whatever is asked of it later.
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/ranges.h>

#include "kernels/cpu/feature_check.h"
#include "kernels/cpu/refusal.h"
#include "kernels/cpu/request_check.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

namespace {

Reason check_operator(const SessionConfig& config) {
  const bool gqa = config.op == "gqa"sv;
  if (!gqa && config.op != "attention"sv) {
    return refuse("op", config.op, "must be gqa or attention");
  }
  if (gqa && config.opset != 1) return refuse("opset", config.opset, "gqa has opset 1 only");
  if (!gqa && (config.opset < 23 || config.opset > 25)) {
    return refuse("opset", config.opset, "attention has opset 23, 24 or 25");
  }
  if (config.nonpad_kv_seqlen && config.opset < 24) {
    return refuse("nonpad_kv_seqlen", "true", "is an input of attention from opset 24 on");
  }
  if (config.mask != "none"sv && config.mask != "boolean"sv && config.mask != "additive"sv) {
    return refuse("mask", config.mask, "must be none, boolean or additive");
  }
  if (gqa && config.mask == "boolean"sv) {
    return refuse("mask", config.mask, "belongs to attention; gqa takes none or additive");
  }
  switch (config.element_type) {
    case ElementType::f32:
    case ElementType::f16:
    case ElementType::bf16:
    case ElementType::f64:
      break;
    default:
      return refuse("element_type", to_string(config.element_type),
                    "must be f32, f16, bf16 or f64");
  }
  if (!std::isfinite(config.scale) || (!gqa && config.scale < 0)) {
    return refuse("scale", config.scale,
                  "must be finite, and not negative for attention; 0 = "
                  "1/sqrt(head_size)");
  }
  return std::nullopt;
}

Reason check_shape(const SessionConfig& config) {
  const std::pair<const char*, std::int64_t> extents[] = {
      {"batch", config.batch},
      {"query_heads", config.query_heads},
      {"kv_heads", config.kv_heads},
      {"head_size", config.head_size},
      {"value_head_size", config.value_head_size}};
  for (const auto& [field, value] : extents) {
    if (value < 1 || value > kMaxLength) {
      return refuse(field, value, fmt::format("must be from 1 to {}", kMaxLength));
    }
  }
  if (config.query_heads % config.kv_heads != 0) {
    return refuse("query_heads", config.query_heads,
                  fmt::format("must be a multiple of kv_heads ({})", config.kv_heads));
  }
  if (config.op == "gqa"sv && config.value_head_size != config.head_size) {
    return refuse("value_head_size", config.value_head_size,
                  fmt::format("gqa needs head_size ({}) here", config.head_size));
  }
  return std::nullopt;
}

Reason check_windows(const SessionConfig& config) {
  const bool gqa = config.op == "gqa"sv;
  if (!gqa && config.opset < 25 && config.window_size != -1) {
    return refuse("window_size", config.window_size,
                  "attention has no window before opset 25; use -1");
  }
  if (config.window_size < -1 || config.window_size > kMaxLength) {
    return refuse("window_size", config.window_size, "must be -1 (no window) or more");
  }
  if (!gqa && config.window_size == 0) {
    return refuse(
        "window_size", 0,
        "must be at least 1 for attention, whose left_window_size counts the keys before");
  }
  const std::int64_t right = config.right_window_size;
  if (gqa && right != -1) {
    return refuse("right_window_size", right, "belongs to attention; use -1 with gqa");
  }
  if (!gqa && config.opset < 25 && right != -1) {
    return refuse("right_window_size", right, "attention has no window before opset 25; use -1");
  }
  if (right < -1 || right > kMaxLength) {
    return refuse("right_window_size", right, "must be -1 (no limit) or more");
  }
  if (gqa && config.window_size >= 0 && !config.causal) {
    return refuse("causal", "false", "must be true with a window_size");
  }
  return std::nullopt;
}

Reason check_cache(const SessionConfig& config) {
  const bool evicts = config.layout == "block"sv || config.layout == "min_overflow"sv;
  if (!evicts && config.layout != "full"sv) {
    return refuse("layout", config.layout, "must be full, block or min_overflow");
  }
  const std::int64_t least = concatenates(config) ? 0 : 1;
  if (config.capacity < least || config.capacity > kMaxLength) {
    return refuse("capacity", config.capacity,
                  fmt::format("must be from {} to {} rows", least, kMaxLength));
  }
  if (config.op == "attention"sv && evicts) {
    return refuse("layout", config.layout, "attention has full only");
  }
  if (evicts && config.window_size < 1) {
    return refuse("window_size", config.window_size,
                  fmt::format("must be at least 1 with layout {}", config.layout));
  }
  if (evicts && config.capacity < config.window_size) {
    return refuse("capacity", config.capacity,
                  fmt::format("must be at least window_size ({})", config.window_size));
  }
  const std::int64_t rows = concatenates(config) ? 1 : config.capacity;
  if (!rows_fit(config, config.batch, rows)) {
    return refuse("capacity", config.capacity,
                  "keys or values of the batch would exceed 2 GiB; use fewer rows");
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> check_config(const SessionConfig& config) {
  return first_of([&] { return check_operator(config); }, [&] { return check_shape(config); },
                  [&] { return check_windows(config); },
                  // Before the cache: its rows depend on the quantisation.
                  [&] { return check_features(config); }, [&] { return check_cache(config); });
}

std::optional<std::string> check_claims(const Capabilities& can, const SessionConfig& config) {
  const auto takes = [&](const char* field, std::string_view value,
                         const std::set<std::string>& known) -> Reason {
    if (known.count(std::string(value)) > 0) return std::nullopt;
    return refuse(field, value, fmt::format("{} takes {}", can.name, fmt::join(known, ", ")));
  };
  const bool quantised = config.quantisation.quantised();
  return first_of(
      [&] { return takes("op", config.op, can.operators); },
      [&]() -> Reason {
        if (config.op != "attention"sv || can.opsets.count(config.opset) > 0) return std::nullopt;
        return refuse("opset", config.opset,
                      fmt::format("{} takes {}", can.name, fmt::join(can.opsets, ", ")));
      },
      [&] { return takes("element_type", to_string(config.element_type), can.element_types); },
      [&] { return takes("layout", config.layout, can.layouts); },
      [&]() -> Reason {
        if (config.op != "gqa"sv || config.head_size % can.head_size_multiple == 0) {
          return std::nullopt;
        }
        return refuse("head_size", config.head_size,
                      fmt::format("must be a multiple of {}", can.head_size_multiple));
      },
      [&]() -> Reason {
        const std::string& kind = config.quantisation.kind;
        if (quantised ? can.has("cache_" + kind) : !can.has("cache_quantised_only")) {
          return std::nullopt;
        }
        return refuse("quantisation.kind", kind,
                      fmt::format("{} has no such cache; use another target", can.name));
      },
      [&] { return check_claimed_features(can, config); },
      [&]() -> Reason {
        if (config.isa.empty() ||
            std::find(can.isas.begin(), can.isas.end(), config.isa) != can.isas.end()) {
          return std::nullopt;
        }
        return refuse("isa", config.isa,
                      can.isas.empty()
                          ? fmt::format("{} has no choice; leave it out", can.name)
                          : fmt::format("{} can run {} here", can.name, fmt::join(can.isas, ", ")));
      });
}

}  // namespace kvcheck::kernels

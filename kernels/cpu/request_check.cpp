// What a session refuses, decided before anything changes.
#include "kernels/cpu/request_check.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvcheck::kernels {
namespace {

using Reason = std::optional<std::string>;
using Shape = std::vector<std::int64_t>;

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;

template <class Value>
Reason refuse(std::string_view field, const Value& value, std::string_view remedy) {
  return fmt::format("{} = {}: {}", field, value, remedy);
}

/// The first reason that there is.
template <class... Check>
Reason first_of(Check... checks) {
  Reason reason;
  (void)((reason = checks()) || ...);
  return reason;
}

bool concatenates(const SessionConfig& config) {
  return config.op == "attention" && !config.nonpad_kv_seqlen;
}

/// Bytes of a tensor, or nothing when they do not fit 2 GiB. \pre no negative extent
std::optional<std::int64_t> bytes_of(ElementType type, const Shape& shape) {
  auto bytes = static_cast<std::int64_t>(element_bytes(type));
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes) || bytes > kMaxBytes) return std::nullopt;
  }
  return bytes;
}

/// Whether keys and values of `rows` rows stay within 2 GiB each.
bool rows_fit(const SessionConfig& config, std::int64_t entries, std::int64_t rows) {
  const std::int64_t width = std::max(config.head_size, config.value_head_size);
  return bytes_of(config.element_type, {entries, config.kv_heads, rows, width}).has_value();
}

Reason check_tensor(std::string_view field, const Tensor& tensor, ElementType type,
                    const Shape& shape) {
  const std::optional<std::int64_t> bytes = bytes_of(type, shape);
  if (!bytes) {
    return refuse(field, fmt::format("[{}]", fmt::join(shape, ",")),
                  "must not exceed 2 GiB; send fewer tokens");
  }
  // A tensor without elements need not be spelled out.
  if (*bytes == 0 && tensor.bytes.empty()) return std::nullopt;
  if (tensor.type != type) {
    return refuse(field, to_string(tensor.type),
                  fmt::format("its element type must be {}", to_string(type)));
  }
  if (tensor.shape != shape) {
    return refuse(field, fmt::format("[{}]", fmt::join(tensor.shape, ",")),
                  fmt::format("its shape must be [{}]", fmt::join(shape, ",")));
  }
  if (static_cast<std::int64_t>(tensor.bytes.size()) != *bytes) {
    return refuse(field, fmt::format("{} bytes", tensor.bytes.size()),
                  fmt::format("its shape needs {} bytes", *bytes));
  }
  return std::nullopt;
}

Reason check_operator(const SessionConfig& config) {
  const bool gqa = config.op == "gqa";
  if (!gqa && config.op != "attention") {
    return refuse("op", config.op, "must be gqa or attention");
  }
  if (gqa && config.opset != 1) return refuse("opset", config.opset, "gqa has opset 1 only");
  if (!gqa && config.opset != 23 && config.opset != 24) {
    return refuse("opset", config.opset, "attention has opset 23 or 24 here");
  }
  if (config.nonpad_kv_seqlen && config.opset != 24) {
    return refuse("nonpad_kv_seqlen", "true", "is an input of attention from opset 24 on");
  }
  if (config.mask != "none" && config.mask != "boolean" && config.mask != "additive") {
    return refuse("mask", config.mask, "must be none, boolean or additive");
  }
  if (gqa && config.mask != "none") {
    return refuse("mask", config.mask, "belongs to attention; use none with gqa");
  }
  if (config.element_type == ElementType::boolean) {
    return refuse("element_type", "boolean", "must be f32, f16, bf16 or f64");
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
  if (config.op == "gqa" && config.value_head_size != config.head_size) {
    return refuse("value_head_size", config.value_head_size,
                  fmt::format("gqa needs head_size ({}) here", config.head_size));
  }
  return std::nullopt;
}

Reason check_cache(const SessionConfig& config) {
  const bool evicts = config.layout == "block" || config.layout == "min_overflow";
  if (!evicts && config.layout != "full") {
    return refuse("layout", config.layout, "must be full, block or min_overflow");
  }
  const std::int64_t least = concatenates(config) ? 0 : 1;
  if (config.capacity < least || config.capacity > kMaxLength) {
    return refuse("capacity", config.capacity,
                  fmt::format("must be from {} to {} rows", least, kMaxLength));
  }
  if (config.op == "attention") {
    if (evicts) return refuse("layout", config.layout, "attention has full only");
    if (config.window_size != -1) {
      return refuse("window_size", config.window_size,
                    "attention has no window before opset 25; use -1");
    }
  }
  if (config.window_size < -1) {
    return refuse("window_size", config.window_size, "must be -1 (no window) or more");
  }
  if (config.window_size >= 0 && !config.causal) {
    return refuse("causal", "false", "must be true with a window_size");
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

Reason check_counts(const SessionConfig& config, const StepRequest& request) {
  const bool queryless = std::all_of(request.queries.begin(), request.queries.end(),
                                     [](std::int64_t n) { return n == 0; });
  for (std::size_t b = 0; b < request.tokens.size(); ++b) {
    const std::int64_t tokens = request.tokens[b];
    const std::int64_t queries = request.queries[b];
    if (tokens < 0 || tokens > kMaxLength) {
      return refuse(fmt::format("tokens[{}]", b), tokens,
                    fmt::format("must be from 0 to {}", kMaxLength));
    }
    if (queries < 0 || queries > kMaxLength) {
      return refuse(fmt::format("queries[{}]", b), queries,
                    fmt::format("must be from 0 to {}", kMaxLength));
    }
    if (config.op == "gqa" && queries != tokens && !queryless) {
      return refuse(
          fmt::format("queries[{}]", b), queries,
          fmt::format("gqa asks one query per token ({}), or none in all entries", tokens));
    }
    if (concatenates(config) && tokens != request.tokens[0]) {
      return refuse(
          fmt::format("tokens[{}]", b), tokens,
          fmt::format("attention appends the same number ({}) to every entry", request.tokens[0]));
    }
  }
  return std::nullopt;
}

Reason check_lengths(const SessionConfig& config, std::span<const std::int64_t> lengths,
                     std::int64_t rows, const StepRequest& request) {
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t length = lengths[b] + request.tokens[b];
    const std::string field = fmt::format("tokens[{}]", b);
    if (length > kMaxLength) {
      return refuse(field, request.tokens[b],
                    fmt::format("makes the entry longer than {}; append fewer", kMaxLength));
    }
    if (config.layout == "full" && !concatenates(config) && length > config.capacity) {
      return refuse(field, request.tokens[b],
                    fmt::format("does not fit: {} of {} rows are in use; append at most {}",
                                lengths[b], config.capacity, config.capacity - lengths[b]));
    }
    // The present of a concatenating cache, or the temporary buffer of one entry.
    if (!rows_fit(config, concatenates(config) ? config.batch : 1, rows + request.tokens[b])) {
      return refuse(field, request.tokens[b], "the rows would exceed 2 GiB; append fewer");
    }
  }
  return std::nullopt;
}

Reason check_mask(const SessionConfig& config, std::span<const std::int64_t> lengths,
                  const StepRequest& request, std::int64_t queries) {
  if (config.mask == "none") {
    return request.mask ? refuse("mask", "given", "the session was opened without one")
                        : std::nullopt;
  }
  if (!request.mask) {
    if (queries == 0) return std::nullopt;
    return refuse("mask", "absent", fmt::format("the session needs a {} mask", config.mask));
  }
  std::int64_t columns = config.capacity;
  if (concatenates(config)) columns = lengths[0] + request.tokens[0];
  Shape shape{config.batch, config.query_heads, queries, columns};
  const std::size_t rank = request.mask->shape.size();
  if (rank < 2 || rank > 4) return refuse("mask rank", rank, "must be 2, 3 or 4");
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(4 - rank));
  const bool boolean = config.mask == "boolean";
  return check_tensor("mask", *request.mask, boolean ? ElementType::boolean : config.element_type,
                      shape);
}

Reason check_poison(const SessionConfig& config, std::int64_t rows, const StepRequest& request) {
  if (!request.poison) return std::nullopt;
  const std::vector<std::int64_t>& first = request.poison->first_row;
  if (Reason reason = check_per_entry(config, "poison.first_row", first)) return reason;
  for (std::size_t b = 0; b < first.size(); ++b) {
    if (first[b] < 0 || first[b] > rows) {
      return refuse(fmt::format("poison.first_row[{}]", b), first[b],
                    fmt::format("must be from 0 to the rows of the buffer ({})", rows));
    }
  }
  return std::nullopt;
}

}  // namespace

Reason check_per_entry(const SessionConfig& config, const char* field,
                       std::span<const std::int64_t> numbers) {
  if (static_cast<std::int64_t>(numbers.size()) == config.batch) return std::nullopt;
  return refuse(field, fmt::format("{} numbers", numbers.size()),
                fmt::format("must have one per batch entry ({})", config.batch));
}

Reason check_config(const SessionConfig& config) {
  return first_of([&] { return check_operator(config); }, [&] { return check_shape(config); },
                  [&] { return check_cache(config); });
}

Reason check_step(const SessionConfig& config, std::span<const std::int64_t> lengths,
                  std::int64_t rows, const StepRequest& request) {
  Reason reason = first_of([&] { return check_per_entry(config, "tokens", request.tokens); },
                           [&] { return check_per_entry(config, "queries", request.queries); },
                           [&] { return check_counts(config, request); },
                           [&] { return check_lengths(config, lengths, rows, request); });
  if (reason) return reason;
  const auto largest = [](const Shape& numbers) {
    return *std::max_element(numbers.begin(), numbers.end());
  };
  const std::int64_t tokens = largest(request.tokens);
  const std::int64_t queries = largest(request.queries);
  const auto tensor = [&](std::string_view field, const Tensor& given, std::int64_t count,
                          std::int64_t heads, std::int64_t width) {
    return check_tensor(field, given, config.element_type, {config.batch, count, heads, width});
  };
  return first_of(
      [&] { return tensor("query", request.query, queries, config.query_heads, config.head_size); },
      [&] { return tensor("key", request.key, tokens, config.kv_heads, config.head_size); },
      [&] {
        return tensor("value", request.value, tokens, config.kv_heads, config.value_head_size);
      },
      [&]() -> Reason {
        if (bytes_of(config.element_type,
                     {config.batch, queries, config.query_heads, config.value_head_size})) {
          return std::nullopt;
        }
        return refuse("queries", queries, "the output must not exceed 2 GiB; ask fewer");
      },
      [&] { return check_mask(config, lengths, request, queries); },
      [&] { return check_poison(config, rows, request); });
}

Reason check_load(const SessionConfig& config, const LoadRequest& request) {
  if (Reason reason = check_per_entry(config, "lengths", request.lengths)) return reason;
  const std::int64_t limit =
      config.layout == "full" && !concatenates(config) ? config.capacity : kMaxLength;
  for (std::size_t b = 0; b < request.lengths.size(); ++b) {
    const std::int64_t length = request.lengths[b];
    const std::string field = fmt::format("lengths[{}]", b);
    if (length < 0 || length > limit) {
      return refuse(field, length, fmt::format("must be from 0 to {}", limit));
    }
    if (concatenates(config) && length != request.lengths[0]) {
      return refuse(field, length,
                    fmt::format("attention has one past length for the whole batch; use {}",
                                request.lengths[0]));
    }
  }
  const std::int64_t rows = concatenates(config) ? request.lengths[0] : config.capacity;
  const auto tensor = [&](std::string_view field, const Tensor& given, std::int64_t width) {
    return check_tensor(field, given, config.element_type,
                        {config.batch, config.kv_heads, rows, width});
  };
  return first_of([&] { return tensor("rows.key", request.rows.key, config.head_size); },
                  [&] { return tensor("rows.value", request.rows.value, config.value_head_size); });
}

}  // namespace kvcheck::kernels

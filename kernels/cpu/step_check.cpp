// What a step or a load may not ask.
#include <algorithm>
#include <string_view>

#include "kernels/cpu/cache_format.h"
#include "kernels/cpu/key_range.h"
#include "kernels/cpu/mask_check.h"
#include "kernels/cpu/refusal.h"
#include "kernels/cpu/request_check.h"
#include "kernels/cpu/rotary.h"

namespace kvcheck::kernels {

using namespace std::string_view_literals;

namespace {

std::int64_t largest(std::span<const std::int64_t> numbers) {
  return *std::max_element(numbers.begin(), numbers.end());
}

/// Queries of the keys that the cache holds already.
Reason check_shared_kv(const SessionConfig& config, std::span<const std::int64_t> lengths,
                       const StepRequest& request) {
  if (config.layout != "full"sv) {
    return refuse("tokens", 0,
                  fmt::format("layout {} takes no queries without tokens", config.layout));
  }
  if (config.packed_qkv) {
    return refuse("tokens", 0, "packed_qkv takes no queries without tokens");
  }
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    if (request.queries[b] <= lengths[b]) continue;
    return refuse(fmt::format("queries[{}]", b), request.queries[b],
                  fmt::format("must be at most the length ({}) without tokens", lengths[b]));
  }
  return std::nullopt;
}

Reason check_counts(const SessionConfig& config, std::span<const std::int64_t> lengths,
                    const StepRequest& request) {
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
  }
  if (asks_without_tokens(config, request)) return check_shared_kv(config, lengths, request);
  const bool asks_each = config.op == "gqa"sv && largest(request.queries) > 0;
  const bool grows = concatenates(config);
  for (std::size_t b = 0; b < request.tokens.size(); ++b) {
    const std::int64_t tokens = request.tokens[b];
    if (asks_each && request.queries[b] != tokens) {
      return refuse(
          fmt::format("queries[{}]", b), request.queries[b],
          fmt::format("gqa asks one query per token ({}), or none in all entries", tokens));
    }
    if (grows && tokens != request.tokens[0]) {
      return refuse(
          fmt::format("tokens[{}]", b), tokens,
          fmt::format("attention appends the same number ({}) to every entry", request.tokens[0]));
    }
  }
  return std::nullopt;
}

Reason check_lengths(const SessionConfig& config, std::span<const std::int64_t> lengths,
                     std::int64_t rows, const StepRequest& request) {
  const bool grows = concatenates(config);
  const bool full = config.layout == "full"sv && !grows;
  // The present of a concatenating cache, or the temporary buffer of one entry.
  const std::int64_t entries = grows ? config.batch : 1;
  const bool fits = rows_fit(config, entries, rows + largest(request.tokens));
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    const std::int64_t length = lengths[b] + request.tokens[b];
    const auto field = [&] { return fmt::format("tokens[{}]", b); };
    if (length > kMaxLength) {
      return refuse(field(), request.tokens[b],
                    fmt::format("makes the entry longer than {}; append fewer", kMaxLength));
    }
    if (full && length > config.capacity) {
      return refuse(field(), request.tokens[b],
                    fmt::format("does not fit: {} of {} rows are in use; append at most {}",
                                lengths[b], config.capacity, config.capacity - lengths[b]));
    }
    if (!fits && !rows_fit(config, entries, rows + request.tokens[b])) {
      return refuse(field(), request.tokens[b], "the rows would exceed 2 GiB; append fewer");
    }
  }
  return std::nullopt;
}

Reason check_answers(const SessionConfig& config, std::int64_t longest, std::int64_t queries) {
  if (!bytes_of(config.element_type,
                {config.batch, queries, config.query_heads, config.value_head_size})) {
    return refuse("queries", queries, "the output must not exceed 2 GiB; ask fewer");
  }
  const std::int64_t columns = config.nonpad_kv_seqlen ? config.capacity : longest;
  if (config.qk_output != "none"sv &&
      !bytes_of(config.element_type, {config.batch, config.query_heads, queries, columns})) {
    return refuse("queries", queries, "qk must not exceed 2 GiB; ask fewer");
  }
  return std::nullopt;
}

Reason check_position_ids(const SessionConfig& config, const StepRequest& request,
                          std::int64_t width) {
  const bool wanted = config.rotary && config.rotary->position_ids;
  if (!wanted) {
    return request.position_ids
               ? refuse("position_ids", "given", "the session was opened without them")
               : std::nullopt;
  }
  if (!request.position_ids) {
    if (width == 0) return std::nullopt;
    return refuse("position_ids", "absent", "the session was opened with them");
  }
  const Shape& shape = request.position_ids->shape;
  if (shape.size() != 2 || shape[1] < width) {
    return refuse("position_ids", shape_text(shape),
                  fmt::format("its shape must be [{},columns] with at least {} columns",
                              config.batch, width));
  }
  return check_tensor("position_ids", *request.position_ids, ElementType::i64,
                      {config.batch, shape[1]});
}

Reason check_turns(const SessionConfig& config, std::span<const std::int64_t> lengths,
                   const StepRequest& request, std::int64_t longest) {
  if (!config.rotary) return std::nullopt;
  const std::int64_t rows = config.rotary->cos.shape[0];
  if (rows < longest) {
    return refuse("rotary.cos rows", rows,
                  fmt::format("must cover the longest entry ({}); give more rows", longest));
  }
  const RotaryPositions positions(config, lengths, request);
  for (std::int64_t b = 0; b < config.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t count = std::max(request.tokens[at], request.queries[at]);
    for (std::int64_t token = 0; token < count; ++token) {
      const std::int64_t position = positions.of(b, token);
      if (position >= 0 && position < rows) continue;
      return refuse(fmt::format("position of token {} of entry {}", token, b), position,
                    fmt::format("must be from 0 to {}, the last row of rotary.cos", rows - 1));
    }
  }
  return std::nullopt;
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

std::optional<std::string> check_per_entry(const SessionConfig& config, const char* field,
                                           std::span<const std::int64_t> numbers) {
  if (static_cast<std::int64_t>(numbers.size()) == config.batch) return std::nullopt;
  return refuse(field, fmt::format("{} numbers", numbers.size()),
                fmt::format("must have one per batch entry ({})", config.batch));
}

std::optional<std::string> check_step(const SessionConfig& config,
                                      std::span<const std::int64_t> lengths, std::int64_t rows,
                                      const StepRequest& request) {
  Reason reason = first_of([&] { return check_per_entry(config, "tokens", request.tokens); },
                           [&] { return check_per_entry(config, "queries", request.queries); },
                           [&] { return check_counts(config, lengths, request); },
                           [&] { return check_lengths(config, lengths, rows, request); });
  if (reason) return reason;
  const std::int64_t tokens = largest(request.tokens);
  const std::int64_t queries = largest(request.queries);
  std::int64_t longest = 0;
  for (std::size_t b = 0; b < lengths.size(); ++b) {
    longest = std::max(longest, lengths[b] + request.tokens[b]);
  }
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
      [&] { return check_answers(config, longest, queries); },
      [&] { return check_mask(config, request, longest, queries); },
      [&] { return check_position_ids(config, request, std::max(tokens, queries)); },
      [&] { return check_turns(config, lengths, request, longest); },
      [&] { return check_poison(config, rows, request); });
}

std::optional<std::string> check_load(const SessionConfig& config, const LoadRequest& request) {
  if (Reason reason = check_per_entry(config, "lengths", request.lengths)) return reason;
  const std::int64_t limit =
      config.layout == "full"sv && !concatenates(config) ? config.capacity : kMaxLength;
  for (std::size_t b = 0; b < request.lengths.size(); ++b) {
    const std::int64_t length = request.lengths[b];
    const auto field = [&] { return fmt::format("lengths[{}]", b); };
    if (length < 0 || length > limit) {
      return refuse(field(), length, fmt::format("must be from 0 to {}", limit));
    }
    if (concatenates(config) && length != request.lengths[0]) {
      return refuse(field(), length,
                    fmt::format("attention has one past length for the whole batch; use {}",
                                request.lengths[0]));
    }
  }
  const std::int64_t rows = concatenates(config) ? request.lengths[0] : config.capacity;
  const auto tensor = [&](std::string_view field, const Tensor& given, std::int64_t lanes) {
    return check_tensor(field, given, cache_type(config),
                        {config.batch, config.kv_heads, rows, cache_width(config, lanes)});
  };
  return first_of([&] { return tensor("rows.key", request.rows.key, config.head_size); },
                  [&] { return tensor("rows.value", request.rows.value, config.value_head_size); });
}

}  // namespace kvcheck::kernels

// Shape and element type of a step's mask.
#include "kernels/cpu/mask_check.h"

#include <algorithm>
#include <string_view>

namespace kvcheck::kernels {

using namespace std::string_view_literals;

namespace {

/// Columns of the mask: all of them, or fewer from opset 24 on, where what lacks counts as hidden.
Reason check_columns(const SessionConfig& config, std::int64_t longest, std::int64_t found) {
  const std::int64_t most = config.nonpad_kv_seqlen ? config.capacity : longest;
  if (config.op == "gqa"sv || config.opset < 24) {
    if (found == most) return std::nullopt;
    return refuse("mask columns", found, fmt::format("must be the {} keys", most));
  }
  const std::int64_t least = config.nonpad_kv_seqlen ? longest : std::min<std::int64_t>(1, most);
  if (found >= least && found <= most) return std::nullopt;
  return refuse("mask columns", found, fmt::format("must be from {} to {}", least, most));
}

}  // namespace

Reason check_mask(const SessionConfig& config, const StepRequest& request, std::int64_t longest,
                  std::int64_t queries) {
  if (config.mask == "none"sv) {
    return request.mask ? refuse("mask", "given", "the session was opened without one")
                        : std::nullopt;
  }
  if (!request.mask) {
    if (queries == 0) return std::nullopt;
    return refuse("mask", "absent", fmt::format("the session needs a {} mask", config.mask));
  }
  const Shape& shape = request.mask->shape;
  const bool gqa = config.op == "gqa"sv;
  if (gqa && shape.size() != 4) return refuse("mask rank", shape.size(), "must be 4 for gqa");
  if (shape.empty() || shape.size() > 4) {
    return refuse("mask rank", shape.size(), "must be 1, 2, 3 or 4");
  }
  const char* const names[] = {"entries", "heads", "queries"};
  const std::int64_t full[] = {config.batch, config.query_heads, queries};
  const std::size_t lacking = 4 - shape.size();
  for (std::size_t d = lacking; d < 3; ++d) {
    const std::int64_t found = shape[d - lacking];
    // attention_bias has a row for each query.
    const bool may_be_one = !(gqa && d == 2);
    if (found == full[d] || (may_be_one && found == 1)) continue;
    return refuse(fmt::format("mask {}", names[d]), found,
                  may_be_one && full[d] != 1 ? fmt::format("must be {} or 1", full[d])
                                             : fmt::format("must be {}", full[d]));
  }
  if (Reason reason = check_columns(config, longest, shape.back())) return reason;
  const bool boolean = config.mask == "boolean"sv;
  return check_tensor("mask", *request.mask, boolean ? ElementType::boolean : config.element_type,
                      shape);
}

}  // namespace kvcheck::kernels

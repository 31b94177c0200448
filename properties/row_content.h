// Row content: which token a row of the cache holds, compared bit for bit.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/target.h"
#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::properties {

/// The bytes that tokens have in K and V rows, computed once for each token.
class RowContent {
 public:
  RowContent(const model::Scenario& scenario, const model::Timeline& timeline,
             const model::Fill& fill);

  /// Whether row `row` of `rows` holds `token` for `kv_head` of `entry`, in K and in V.
  struct Match {
    bool key = false, value = false;
    bool both() const { return key && value; }
  };
  Match match(const kernels::CacheRows& rows, std::int64_t entry, std::int64_t kv_head,
              std::int64_t row, model::Token token);

  /// The token of `entry` whose key the row holds; empty when none has these bytes. Keys are
  /// distinct per token in every fill with enough lanes; the newest match wins.
  std::optional<model::Token> identify(const kernels::CacheRows& rows, std::int64_t entry,
                                       std::int64_t kv_head, std::int64_t row);

 private:
  const std::vector<std::byte>& key_bytes(std::int64_t entry, std::int64_t kv_head,
                                          model::Token token);
  std::vector<std::byte> value_bytes(std::int64_t entry, std::int64_t kv_head, model::Token token);

  const model::Scenario& scenario_;
  const model::Fill& fill_;
  std::int64_t longest_ = 0;
  std::vector<std::int64_t> generations_;  // Distinct ones in the scenario, ascending.
  std::vector<std::vector<std::byte>> key_cache_;
};

/// Bytes of row `row` of a [B,Nk,R,lanes] tensor.
std::span<const std::byte> row_bytes(const kernels::Tensor& tensor, std::int64_t entry,
                                     std::int64_t kv_head, std::int64_t row);

}  // namespace kvcheck::properties

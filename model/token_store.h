// Keys and values of the tokens that somebody sees, each evaluated once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "model/fill.h"
#include "model/scenario.h"
#include "model/timeline.h"

namespace kvcheck::model {

/// One token of one entry, for all KV heads.
struct TokenRows {
  std::vector<double> keys;    ///< [kv_heads][head_size]
  std::vector<double> values;  ///< [kv_heads][value_head_size]
};

/// Filled on demand: behind a window a sequence may be far longer than memory.
class TokenStore {
 public:
  /// Both must outlive the store.
  TokenStore(const Scenario& scenario, const Fill& fill) : scenario_(&scenario), fill_(&fill) {}

  /// Valid as long as the store.
  const TokenRows& rows(std::int64_t entry, Token token);

 private:
  struct Name {
    std::int64_t entry;
    Token token;
    friend bool operator==(const Name&, const Name&) = default;
  };
  struct NameHash {
    std::size_t operator()(const Name& name) const;
  };
  const Scenario* scenario_;
  const Fill* fill_;
  std::unordered_map<Name, TokenRows, NameHash> rows_;
};

}  // namespace kvcheck::model

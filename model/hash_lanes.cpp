// Loops over lanes.
#include "model/hash_lanes.h"

#include "model/counter_hash.h"

namespace kvcheck::model {

KVCHECK_WIDE_LOOPS void normal_lanes(std::uint64_t hash, std::span<double> row) {
  for (std::size_t c = 0; c < row.size(); ++c) {
    row[c] = roughly_normal(nth_of(hash, static_cast<std::int64_t>(c)));
  }
}

KVCHECK_WIDE_LOOPS void code_lanes(std::uint64_t hash, std::span<double> row) {
  for (std::size_t c = 0; c < row.size(); ++c) {
    row[c] = code(nth_of(hash, static_cast<std::int64_t>(c)));
  }
}

KVCHECK_WIDE_LOOPS void add_signs(double size, std::uint64_t hash, std::span<double> row) {
  for (std::size_t c = 0; c < row.size(); ++c) {
    row[c] += signed_code(size, nth_of(hash, static_cast<std::int64_t>(c)));
  }
}

}  // namespace kvcheck::model

// How the reference target stores rows: element types, codes, and their bytes.
#pragma once

#include <string>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::properties {

using Lanes = std::vector<double>;

/// One token of one KV head as it is stored: lanes as read back, and the bytes of its row.
struct Row {
  Lanes lanes;
  std::vector<std::byte> bytes;
};

class ReferenceStorage {
 public:
  /// Both must outlive the storage.
  ReferenceStorage(const kernels::SessionConfig& config, const std::string& mistake)
      : c_(config), mistake_(mistake) {}

  /// What becomes of new lanes of a key or value.
  Row stored(const Lanes& lanes, bool key, std::int64_t head) const;
  /// Row `at` of entry `entry` and KV head `head` of a past.
  Row loaded(const kernels::Tensor& rows, std::size_t entry, std::int64_t head, std::int64_t at,
             bool key) const;
  /// Zeros for `count` rows of `lanes` lanes, for every entry and KV head.
  kernels::Tensor rows(std::int64_t count, std::int64_t lanes) const;

 private:
  double scale_of(bool key, std::int64_t head, std::int64_t lane) const;
  double code(double value, double scale) const;
  kernels::ElementType type() const;
  std::size_t row_bytes_of(std::size_t lanes) const;

  const kernels::SessionConfig& c_;
  const std::string& mistake_;
};

}  // namespace kvcheck::properties

// A target whose known faults are mended: where it answers just as an entry of the ledger says, the
// answer of the contract stands in for it.
//
// A property that fails on the target and passes on the mended one fails by known faults alone.
// What an entry does not describe exactly is left as it is, so that another fault still fails.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/target.h"
#include "properties/known_findings.h"

namespace kvcheck::properties {

/// Mends sessions of attention, from the requests alone: whatever changed them on their way is part
/// of what is asked. Entries by a reading: each row of outputs and intermediates that is right
/// under it. Entries by lowest_for_hidden: each element of the intermediate.
class MendedTarget final : public kernels::Target {
 public:
  /// Both must outlive the target.
  MendedTarget(kernels::Target& inner, std::vector<const KnownFinding*> entries);

  const kernels::Capabilities& capabilities() const override { return inner_.capabilities(); }
  kernels::Answer<std::unique_ptr<kernels::Session>> open(
      const kernels::SessionConfig& config) override;
  kernels::Answer<kernels::CallResult> call(const kernels::OperatorCall& call) override {
    return inner_.call(call);
  }

  /// Rows or elements that broke the contract and were mended by each entry, in the given order.
  const std::vector<std::int64_t>& mended() const { return mended_; }

 private:
  kernels::Target& inner_;
  std::vector<const KnownFinding*> entries_;
  std::vector<std::int64_t> mended_;
};

}  // namespace kvcheck::properties

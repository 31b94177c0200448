// Explanation: which reading of the contract gives the rows that a target answered.
//
// A row is one query of one head. A reading explains a row when every lane keeps that reading's
// bound; of a row that breaks the contract's bound it must also lie apart from the contract.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/blindness.h"
#include "model/oracle.h"
#include "model/wrong_models.h"

namespace kvcheck::model {

struct RowAt {
  std::size_t step = 0;
  std::int64_t entry = 0, query = 0, head = 0;
  friend bool operator==(const RowAt&, const RowAt&) = default;
};

/// An element of the answer, or nothing where the target gave none.
using Observed = std::function<std::optional<double>(const ElementAt&)>;

/// How much of an answer one wrong reading explains.
struct ReadingShare {
  const WrongModel* model = nullptr;
  std::int64_t failing = 0;  ///< Rows that fail by the contract and that the reading explains.
  std::int64_t rows = 0;  ///< Of all rows that were answered; counted of the best readings alone.
  double worst_ratio =
      0;  ///< Largest bound ratio by the reading, over the failing rows it explains.
};

struct RowExplanation {
  std::int64_t rows = 0;        ///< Answered.
  std::int64_t failing = 0;     ///< Of these outside the contract's bound.
  std::int64_t not_finite = 0;  ///< Of the failing ones: a lane is NaN or infinite.
  double contract_ratio = 0;    ///< Largest bound ratio by the contract.
  /// Readings that explain at least one failing row, the best first: by all rows that they explain,
  /// then by failing rows, then by ratio.
  std::vector<ReadingShare> readings;

  std::int64_t by_contract() const { return rows - failing; }
  bool every_row() const { return !readings.empty() && readings.front().rows == rows; }
  bool every_failing_row() const {
    return !readings.empty() && readings.front().failing == failing;
  }
};

struct ExplainOptions {
  /// Readings to try first: where one of them explains every row, no other is tried.
  std::vector<const WrongModel*> first{};
};

/// Compares the answer with the contract and, where rows fail, with every wrong model that concerns
/// the scenario. `right` answers for the right reading.
/// Costs about one oracle of the steps with failing rows for each such wrong model.
RowExplanation explain_rows(Oracle& right, const ArithmeticProfile& profile,
                            const Observed& observed, const ExplainOptions& options = {});

}  // namespace kvcheck::model

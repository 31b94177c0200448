// What a step brings, made ready: queries as numbers, new keys and values as the cache stores them.
//
// Per token and head: RMSNorm of queries and keys, then the rotary embedding; keys are then rounded
// to the element type; keys and values are quantised where the cache is. Nothing is copied that
// nothing is done to.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cpu/planted/faults.h"
#include "kernels/cpu/quantise.h"
#include "kernels/cpu/rotary.h"
#include "kernels/cpu/row_store.h"
#include "kernels/target.h"

namespace kvcheck::kernels {

/// Real = type of the arithmetic, float or double.
template <class Real>
class StepRows {
 public:
  /// \pre check_config(config) is empty. Refers to `config`. \param widens whether queries become
  /// numbers in any case, for queries()
  explicit StepRows(const SessionConfig& config, bool widens = true, Fault fault = Fault::none);

  /// \param lengths before the step; \pre check_step found nothing wrong
  void prepare(const StepRequest& request, std::span<const std::int64_t> lengths);

  /// Tokens were dropped since the last step. Only a planted fault wants to know.
  void note_rollback() { rolled_back_ = true; }

  /// What KvCache::place takes. Valid while the request is, until the next prepare.
  NewRows rows() const { return rows_; }
  /// [B,S,Nq,H] with S = most queries of any entry; rows past an entry's queries hold anything.
  const Real* queries() const { return queries_; }
  /// The same rows by entry, query and head, as numbers, or as the request holds them where nothing
  /// is done to them and nothing widens them.
  RowSource query_rows() const { return query_rows_; }
  ElementType query_type() const { return query_type_; }

  /// What the cache stores as keys or values; empty where it is not quantised.
  const std::optional<Quantiser>& key_codes() const { return key_codes_; }
  const std::optional<Quantiser>& value_codes() const { return value_codes_; }
  /// Bytes of memory that it keeps between steps.
  std::int64_t scratch_bytes() const;

 private:
  bool transforms() const { return config_.rotary.has_value() || config_.qk_norm.has_value(); }
  void prepare_queries(const StepRequest& request, const RotaryPositions& positions,
                       std::int64_t queries);
  RowSource prepare_rows(const StepRequest& request, const RotaryPositions& positions,
                         std::int64_t tokens, bool key);
  /// \param key whether the row is one of a key
  void transform(Real* row, std::int64_t position, bool key) const;
  void normalise(Real* row, const std::vector<Real>& weight) const;

  const SessionConfig& config_;
  Fault fault_;
  bool rolled_back_ = false;
  std::int64_t key_row_bytes_, value_row_bytes_;  // As the cache stores them.
  std::optional<RotaryTable<Real>> rotary_;
  std::vector<Real> query_weight_, key_weight_;
  std::optional<Quantiser> key_codes_, value_codes_;
  NewRows rows_;
  const Real* queries_ = nullptr;  // Null where they are not numbers.
  RowSource query_rows_;
  ElementType query_type_ = ElementType::f32;
  bool widens_;
  std::vector<Real> query_numbers_;
  std::vector<std::byte> key_bytes_, value_bytes_;
  std::vector<Real> lanes_;          // One key on its way.
  std::vector<std::byte> elements_;  // The same in the element type.
  std::vector<float> rounded_;       // The same as numbers again.
};

}  // namespace kvcheck::kernels

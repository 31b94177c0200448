// Subjects: everything that an audit plants, planted faults of kernels and wrong models.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/target.h"

namespace kvcheck::properties {

struct Subject {
  std::string name;       ///< "cpu-naive+window_one_wide", "model+window.one_more".
  std::string place;      ///< "kernel" or "wrong-model".
  std::string kind;       ///< "window edge"; see right_kinds.h.
  std::string statement;  ///< What it does wrong.
  std::function<std::unique_ptr<kernels::Target>()> make;
  std::int64_t from_length = 1;  ///< Shortest length of an entry at which it can show.
};

/// Planted faults and then wrong models. With `one_row` those alone that can be made in a single
/// row of a single head, made so. Behind a context, those alone that can show at such a length;
/// 0 = all.
std::vector<Subject> audit_subjects(bool one_row, std::int64_t context = 0);

/// The kind of a wrong model: "mask origin" of "causal.top_left".
std::string wrong_model_kind(std::string_view name);

/// Own kernels and the model, without a fault: "cpu-naive", ..., "model". In the order of the
/// registry.
std::vector<Subject> healthy_subjects();

}  // namespace kvcheck::properties

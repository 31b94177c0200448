// Splitting the appends of a run into other steps.
#pragma once

#include <cstddef>
#include <functional>

#include "properties/variant.h"

namespace kvcheck::properties {

/// Whether a step may be cut: every token asks its own query.
bool splittable(const model::Append& append);

/// The variant with the splittable appends that `which` picks token by token; entries that have run
/// out of tokens stay idle.
Variant one_token_at_a_time(const Variant& way, const std::function<bool(std::size_t)>& which);

}  // namespace kvcheck::properties

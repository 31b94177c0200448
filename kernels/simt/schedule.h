// In which order the runtime lets warps and lanes run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kvcheck::kernels::simt {

enum class Order {
  lockstep,  ///< Warp by warp, lane by lane, ascending.
  random,    ///< Any lane that can run, drawn anew at every switch.
  reverse,   ///< Descending.
  priority,  ///< Priorities that are changed at a few random moments (PCT).
  starve     ///< One warp, drawn, runs only when no other can.
};

/// Everything that a launch's interleaving depends on: the same schedule gives the same run.
struct Schedule {
  Order order = Order::lockstep;
  std::uint64_t seed = 0;
};

std::string_view to_string(Order order);
std::optional<Order> order_from(std::string_view name);

}  // namespace kvcheck::kernels::simt

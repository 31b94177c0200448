// Names of the orders.
#include "kernels/simt/schedule.h"

#include <array>
#include <utility>

namespace kvcheck::kernels::simt {
namespace {

constexpr std::array<std::pair<Order, std::string_view>, 5> kOrders{{{Order::lockstep, "lockstep"},
                                                                     {Order::random, "random"},
                                                                     {Order::reverse, "reverse"},
                                                                     {Order::priority, "priority"},
                                                                     {Order::starve, "starve"}}};

}  // namespace

std::string_view to_string(Order order) {
  for (const auto& [known, name] : kOrders) {
    if (known == order) return name;
  }
  return "unknown";
}

std::optional<Order> order_from(std::string_view name) {
  for (const auto& [order, known] : kOrders) {
    if (known == name) return order;
  }
  return std::nullopt;
}

}  // namespace kvcheck::kernels::simt

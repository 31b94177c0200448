// Single elements of a tensor as numbers, and back.
#include "kernels/cpu/element.h"

#include <cstring>

#include <Eigen/Core>

namespace kvcheck::kernels {
namespace {

template <class Storage>
void put(Storage value, std::byte* to) {
  std::memcpy(to, &value, sizeof value);
}

template <class Storage>
double get(const std::byte* from) {
  Storage value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(value);
}

}  // namespace

void encode_element(ElementType type, double value, std::byte* to) {
  switch (type) {
    case ElementType::f32:
      return put(static_cast<float>(value), to);
    case ElementType::f16:
      return put(Eigen::half(static_cast<float>(value)), to);
    case ElementType::bf16:
      return put(Eigen::bfloat16(static_cast<float>(value)), to);
    case ElementType::f64:
      return put(value, to);
    case ElementType::boolean:
      *to = static_cast<std::byte>(value != 0);
  }
}

double decode_element(ElementType type, const std::byte* from) {
  switch (type) {
    case ElementType::f32:
      return get<float>(from);
    case ElementType::f16:
      return get<Eigen::half>(from);
    case ElementType::bf16:
      return get<Eigen::bfloat16>(from);
    case ElementType::f64:
      return get<double>(from);
    case ElementType::boolean:
      return *from == std::byte{0} ? 0 : 1;
  }
  return 0;
}

}  // namespace kvcheck::kernels

// Rows of elements, side by side where all of them are zero or normal numbers, as most are.
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>

#include "model/element_format.h"
#include "model/element_type.h"
#include "model/wide_loops.h"

namespace kvcheck::model {
namespace {

using namespace formats;

/// Whether a double is zero or normal in `format`, so that no branch is needed to convert it.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS bool is_plain(std::uint64_t bits, int max_exponent) {
  constexpr auto least = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent);
  const auto most = static_cast<std::uint64_t>(kDoubleBias + max_exponent);
  const std::uint64_t field = (bits >> kDoubleFraction) & 0x7ff;
  return (bits << 1) == 0 || field - least <= most - least;
}

/// Whether that holds for every element of a row.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS bool all_plain(std::span<const double> row, int max_exponent) {
  std::uint64_t others = 0;
  for (const double value : row) {
    others |= is_plain<format>(std::bit_cast<std::uint64_t>(value), max_exponent) ? 0u : 1u;
  }
  return others == 0;
}

template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS void round_all(std::span<double> row) {
  if constexpr (format.bytes == sizeof(float)) {
    for (double& value : row) {
      const auto narrow = static_cast<double>(static_cast<float>(value));
      value = std::isnan(value) ? value : narrow;
    }
  } else if (all_plain<format>(row, format.max_exponent - 1)) {
    for (double& value : row) value = rounded_normal<format>(std::bit_cast<std::uint64_t>(value));
  } else {
    for (double& value : row) value = rounded<format>(value);
  }
}

template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS void store_all(std::span<const double> row, std::byte* where) {
  if constexpr (format.bytes < sizeof(double) && std::endian::native == std::endian::little) {
    if (all_plain<format>(row, format.max_exponent)) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if constexpr (format.bytes == sizeof(float)) {
          const auto narrow = static_cast<float>(row[i]);  // As in rounded().
          std::memcpy(where + i * format.bytes, &narrow, format.bytes);
        } else {
          const auto bits = std::bit_cast<std::uint64_t>(row[i]);
          const std::uint64_t magnitude = (bits << 1) == 0 ? 0 : encode_normal<format>(bits);
          const auto pattern =
              static_cast<std::uint16_t>((bits >> 63) << format.sign_shift() | magnitude);
          std::memcpy(where + i * format.bytes, &pattern, format.bytes);
        }
      }
      return;
    }
  }
  for (const double value : row) {
    put_bytes<format>(encode<format>(value), where);
    where += format.bytes;
  }
}

/// Whether every element of a row is zero or a normal number; others might be flushed or made
/// quiet.
template <const Format& format, class Pattern>
KVCHECK_INTO_WIDE_LOOPS bool all_plain(const std::byte* where, std::size_t count) {
  static_assert(sizeof(Pattern) == format.bytes);
  constexpr auto least = static_cast<Pattern>(Pattern{1} << format.fraction_bits());
  constexpr auto infinity = static_cast<Pattern>(format.infinity());
  Pattern others = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Pattern pattern;
    std::memcpy(&pattern, where + i * sizeof pattern, sizeof pattern);
    const auto magnitude =
        static_cast<Pattern>(pattern & static_cast<Pattern>(~(Pattern{1} << format.sign_shift())));
    const bool plain = magnitude == 0 || (magnitude >= least && magnitude < infinity);
    others = static_cast<Pattern>(others | (plain ? 0 : 1));
  }
  return others == 0;
}

template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS void load_all(const std::byte* where, std::span<double> row) {
  using Pattern = std::conditional_t<format.bytes == sizeof(float), std::uint32_t, std::uint16_t>;
  if constexpr (format.bytes < sizeof(double) && std::endian::native == std::endian::little) {
    if (all_plain<format, Pattern>(where, row.size())) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if constexpr (format.bytes == sizeof(float)) {
          float narrow;
          std::memcpy(&narrow, where + i * format.bytes, format.bytes);
          row[i] = static_cast<double>(narrow);
        } else {
          Pattern pattern;
          std::memcpy(&pattern, where + i * format.bytes, format.bytes);
          row[i] = decode_plain<format>(pattern);
        }
      }
      return;
    }
  }
  for (double& value : row) {
    value = load<format>(where);
    where += format.bytes;
  }
}

}  // namespace

KVCHECK_WIDE_LOOPS void round_row(ElementType type, std::span<double> row) {
  switch (type) {
    case ElementType::f16:
      return round_all<kF16>(row);
    case ElementType::bf16:
      return round_all<kBf16>(row);
    case ElementType::f64:
      return;
    case ElementType::f32:
      break;
  }
  round_all<kF32>(row);
}

KVCHECK_WIDE_LOOPS void store_elements(ElementType type, std::span<const double> row,
                                       std::byte* where) {
  switch (type) {
    case ElementType::f16:
      return store_all<kF16>(row, where);
    case ElementType::bf16:
      return store_all<kBf16>(row, where);
    case ElementType::f64:
      return store_all<kF64>(row, where);
    case ElementType::f32:
      break;
  }
  store_all<kF32>(row, where);
}

KVCHECK_WIDE_LOOPS void load_elements(ElementType type, const std::byte* where,
                                      std::span<double> row) {
  switch (type) {
    case ElementType::f16:
      return load_all<kF16>(where, row);
    case ElementType::bf16:
      return load_all<kBf16>(where, row);
    case ElementType::f64:
      return load_all<kF64>(where, row);
    case ElementType::f32:
      break;
  }
  load_all<kF32>(where, row);
}

}  // namespace kvcheck::model

// Rounding and storage of the element types in integer arithmetic, so that no rounding mode or
// flush-to-zero setting of the process can change a value.
#include "model/element_type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

#include "model/wide_loops.h"

namespace kvcheck::model {
namespace {

constexpr int kDoubleFraction = 52;
constexpr int kDoubleBias = 1023;
constexpr std::uint64_t kDoubleFractionMask = (std::uint64_t{1} << kDoubleFraction) - 1;

/// A binary interchange format: `precision` significant bits with the hidden one, and the
/// exponents of its normal numbers.
struct Format {
  int precision;
  int min_exponent;
  int max_exponent;
  std::size_t bytes;

  constexpr int fraction_bits() const { return precision - 1; }
  /// Pattern of +infinity; every larger pattern without sign is a NaN.
  constexpr std::uint64_t infinity() const {
    return static_cast<std::uint64_t>(max_exponent - min_exponent + 2) << fraction_bits();
  }
  constexpr int sign_shift() const { return static_cast<int>(bytes) * 8 - 1; }
};

constexpr Format kF32{24, -126, 127, 4};
constexpr Format kF16{11, -14, 15, 2};
constexpr Format kBf16{8, -126, 127, 2};
constexpr Format kF64{53, -1022, 1023, 8};

constexpr const Format& format_of(ElementType type) {
  switch (type) {
    case ElementType::f16:
      return kF16;
    case ElementType::bf16:
      return kBf16;
    case ElementType::f64:
      return kF64;
    case ElementType::f32:
      break;
  }
  return kF32;
}

/// Magnitude pattern of a NaN: the leading payload bits, and never the pattern of infinity.
template <const Format& format>
std::uint64_t encode_nan(std::uint64_t fraction) {
  const std::uint64_t payload = fraction >> (kDoubleFraction - format.fraction_bits());
  const std::uint64_t quiet = std::uint64_t{1} << (format.fraction_bits() - 1);
  return format.infinity() | (payload != 0 ? payload : quiet);
}

/// Magnitude pattern of the value of `format` nearest to a finite double.
template <const Format& format>
std::uint64_t encode_finite(int exponent, std::uint64_t fraction) {
  const int below_normal = exponent < format.min_exponent ? format.min_exponent - exponent : 0;
  const int dropped = kDoubleFraction - format.fraction_bits() + below_normal;
  // From here on even the largest significand is under half of the least subnormal number.
  if (dropped > kDoubleFraction + 1) return 0;
  const std::uint64_t significand = (std::uint64_t{1} << kDoubleFraction) | fraction;
  std::uint64_t kept = significand >> dropped;
  if (dropped > 0) {
    const std::uint64_t rest = significand & ((std::uint64_t{1} << dropped) - 1);
    const std::uint64_t half = std::uint64_t{1} << (dropped - 1);
    if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  }
  // The hidden bit in `kept` counts as one step of the exponent field, and a carry out of the
  // fraction as another, which is what rounding up to the next power of two means.
  const auto field = static_cast<std::uint64_t>(
      exponent > format.min_exponent ? exponent - format.min_exponent : 0);
  return std::min((field << format.fraction_bits()) + kept, format.infinity());
}

template <const Format& format>
constexpr bool is_normal(int exponent) {
  return exponent >= format.min_exponent && exponent <= format.max_exponent;
}

/// The same where the exponent is that of a normal number: the bits that are dropped round by one
/// addition, whose carry runs from the fraction into the exponent.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS std::uint64_t encode_normal(std::uint64_t bits) {
  constexpr int dropped = std::max(1, kDoubleFraction - format.fraction_bits());
  constexpr std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  constexpr auto bias = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent - 1);
  const std::uint64_t magnitude = bits & ~(std::uint64_t{1} << 63);
  const std::uint64_t odd = magnitude >> dropped & 1;
  return ((magnitude + half - 1 + odd) >> dropped) - (bias << format.fraction_bits());
}

template <const Format& format>
std::uint64_t encode(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if constexpr (format.bytes == sizeof(double)) return bits;
  const std::uint64_t sign = (bits >> 63) << format.sign_shift();
  const int field = static_cast<int>((bits >> kDoubleFraction) & 0x7ff);
  const std::uint64_t fraction = bits & kDoubleFractionMask;
  if (is_normal<format>(field - kDoubleBias)) return sign | encode_normal<format>(bits);
  if (field == 0x7ff) {
    return sign | (fraction != 0 ? encode_nan<format>(fraction) : format.infinity());
  }
  if (field == 0) return sign;  // Zero, or far below every narrower format.
  return sign | encode_finite<format>(field - kDoubleBias, fraction);
}

template <const Format& format>
double decode(std::uint64_t bits) {
  if constexpr (format.bytes == sizeof(double)) return std::bit_cast<double>(bits);
  const std::uint64_t sign = (bits >> format.sign_shift()) << 63;
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << format.sign_shift()) - 1);
  const int widen = kDoubleFraction - format.fraction_bits();
  const std::uint64_t fraction_mask = (std::uint64_t{1} << format.fraction_bits()) - 1;
  std::uint64_t wide = 0;
  if (magnitude > fraction_mask && magnitude < format.infinity()) {
    constexpr auto bias = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent - 1);
    wide = (magnitude << widen) + (bias << kDoubleFraction);
  } else if (magnitude >= format.infinity()) {
    wide = (std::uint64_t{0x7ff} << kDoubleFraction) | ((magnitude & fraction_mask) << widen);
  } else if (magnitude != 0) {
    const int top = std::bit_width(magnitude) - 1;
    const int exponent = top + format.min_exponent - format.fraction_bits();
    wide = (static_cast<std::uint64_t>(exponent + kDoubleBias) << kDoubleFraction) |
           ((magnitude << (kDoubleFraction - top)) & kDoubleFractionMask);
  }
  return std::bit_cast<double>(sign | wide);
}

/// The same of a zero or a normal number.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS double decode_plain(std::uint64_t bits) {
  constexpr auto bias = static_cast<std::uint64_t>(kDoubleBias + format.min_exponent - 1);
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << format.sign_shift()) - 1);
  const std::uint64_t wide =
      (magnitude << (kDoubleFraction - format.fraction_bits())) + (bias << kDoubleFraction);
  return std::bit_cast<double>((bits >> format.sign_shift()) << 63 | (magnitude == 0 ? 0 : wide));
}

/// Little-endian bytes of a pattern.
template <const Format& format>
void put_bytes(std::uint64_t bits, std::byte* where) {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(where, &bits, format.bytes);
    return;
  }
  for (std::size_t i = 0; i < format.bytes; ++i) {
    where[i] = static_cast<std::byte>((bits >> (8 * i)) & 0xff);
  }
}

template <const Format& format>
double load(const std::byte* where) {
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < format.bytes; ++i) {
    bits |= std::to_integer<std::uint64_t>(where[i]) << (8 * i);
  }
  return decode<format>(bits);
}

/// A normal number below the largest power of two, where all bits that are dropped are those of the
/// double's fraction.
template <const Format& format>
KVCHECK_INTO_WIDE_LOOPS double rounded_normal(std::uint64_t bits) {
  constexpr int dropped = std::max(1, kDoubleFraction - format.fraction_bits());
  constexpr std::uint64_t half = std::uint64_t{1} << (dropped - 1);
  const std::uint64_t odd = bits >> dropped & 1;
  return std::bit_cast<double>((bits + half - 1 + odd) & ~(2 * half - 1));
}

template <const Format& format>
double rounded(double value) {
  if constexpr (format.bytes == sizeof(double)) return value;
  if (std::isnan(value)) return value;
  // The processor's own conversion does the same; fills ask for millions of these.
  static_assert(std::numeric_limits<float>::is_iec559);
  if constexpr (format.bytes == sizeof(float)) {
    return static_cast<double>(static_cast<float>(value));
  }
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> kDoubleFraction) & 0x7ff) - kDoubleBias;
  if (exponent >= format.min_exponent && exponent < format.max_exponent) {
    return rounded_normal<format>(bits);
  }
  return decode<format>(encode<format>(value));
}

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

struct Name {
  ElementType type;
  std::string_view name;
};

constexpr std::array kNames{Name{ElementType::f32, "f32"}, Name{ElementType::f16, "f16"},
                            Name{ElementType::bf16, "bf16"}, Name{ElementType::f64, "f64"}};

}  // namespace

std::string_view to_string(ElementType type) {
  for (const Name& entry : kNames) {
    if (entry.type == type) return entry.name;
  }
  return "f32";
}

std::optional<ElementType> element_type_from(std::string_view name) {
  for (const Name& entry : kNames) {
    if (entry.name == name) return entry.type;
  }
  return std::nullopt;
}

std::size_t element_bytes(ElementType type) { return format_of(type).bytes; }

double unit_roundoff(ElementType type) { return std::ldexp(1.0, -format_of(type).precision); }

double subnormal_half_spacing(ElementType type) {
  const Format& format = format_of(type);
  if (&format == &kF64) return std::numeric_limits<double>::denorm_min();
  return std::ldexp(1.0, format.min_exponent - format.precision);
}

double largest_finite(ElementType type) {
  const std::uint64_t bits = format_of(type).infinity() - 1;
  switch (type) {
    case ElementType::f16:
      return decode<kF16>(bits);
    case ElementType::bf16:
      return decode<kBf16>(bits);
    case ElementType::f64:
      return decode<kF64>(bits);
    case ElementType::f32:
      break;
  }
  return decode<kF32>(bits);
}

double round_to(ElementType type, double value) {
  switch (type) {
    case ElementType::f16:
      return rounded<kF16>(value);
    case ElementType::bf16:
      return rounded<kBf16>(value);
    case ElementType::f64:
      return value;
    case ElementType::f32:
      break;
  }
  return rounded<kF32>(value);
}

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

void store_element(ElementType type, double value, std::byte* where) {
  switch (type) {
    case ElementType::f16:
      return put_bytes<kF16>(encode<kF16>(value), where);
    case ElementType::bf16:
      return put_bytes<kBf16>(encode<kBf16>(value), where);
    case ElementType::f64:
      return put_bytes<kF64>(encode<kF64>(value), where);
    case ElementType::f32:
      break;
  }
  put_bytes<kF32>(encode<kF32>(value), where);
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

double load_element(ElementType type, const std::byte* where) {
  switch (type) {
    case ElementType::f16:
      return load<kF16>(where);
    case ElementType::bf16:
      return load<kBf16>(where);
    case ElementType::f64:
      return load<kF64>(where);
    case ElementType::f32:
      break;
  }
  return load<kF32>(where);
}

}  // namespace kvcheck::model

// New rows for an append, and what the cache holds then, by plain loops.
#include "tests/kernels/cuda/append_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kvcheck::kernels::device {
namespace {

constexpr std::byte kUntouched{0x5a};

std::int64_t most(const std::vector<std::int64_t>& counts) {
  return *std::max_element(counts.begin(), counts.end());
}

std::size_t element_bytes(Element element) { return element == Element::f32 ? 4 : 2; }

/// A number that all three element types hold exactly: the upper half of an f32 with few bits.
float number(std::size_t index) {
  constexpr float kSpecial[] = {std::numeric_limits<float>::quiet_NaN(),
                                std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                -0.0F,
                                1000.0F,
                                -1000.0F};
  if (index % 29 == 7) return kSpecial[index / 29 % 6];
  const auto hash = static_cast<std::uint32_t>(index * 2654435761u) >> 16;
  return (static_cast<float>(hash % 255) - 127.0F) * 0.125F;
}

/// As an element, by its bits: exact for every number(), so that nothing has to be rounded.
std::uint32_t encoded(Element element, float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  if (element == Element::f32) return bits;
  if (element == Element::bf16) return bits >> 16;
  const std::uint32_t sign = bits >> 16 & 0x8000u;
  if (std::isnan(x)) return sign | 0x7e00u;
  if (std::isinf(x)) return sign | 0x7c00u;
  if (x == 0) return sign;
  return sign | (((bits >> 23 & 255u) - 112u) << 10) | (bits >> 13 & 0x3ffu);
}

std::vector<std::byte> new_rows(const AppendCase& one, std::int32_t lanes, std::size_t salt) {
  const std::size_t count = one.tokens.size() * static_cast<std::size_t>(most(one.tokens)) *
                            static_cast<std::size_t>(one.kv_heads * lanes);
  const std::size_t size = element_bytes(one.element);
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t bits = encoded(one.element, number(i + salt));
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

float scale(const AppendCase& one, std::size_t at) {
  constexpr float kScales[] = {0.1F, 0.3F, 0.0F, -0.07F, 0.25F};
  return kScales[one.per_channel ? at % 5 : 0];
}

std::vector<float> scales(const AppendCase& one, std::int32_t lanes) {
  std::vector<float> all(one.per_channel ? static_cast<std::size_t>(one.kv_heads * lanes) : 1);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = scale(one, i);
  return all;
}

std::size_t stored_bytes(const AppendCase& one) {
  return one.int8 ? 1 : element_bytes(one.element);
}

std::size_t head_bytes(const AppendCase& one, std::int32_t lanes) {
  return static_cast<std::size_t>(one.rows * lanes) * stored_bytes(one);
}

std::size_t cache_bytes(const AppendCase& one, std::int32_t lanes) {
  return one.tokens.size() * static_cast<std::size_t>(one.kv_heads) * head_bytes(one, lanes);
}

/// The contract's code of one number, in double where that cannot round differently.
std::byte code(float x, float scale) {
  const float factor = scale == 0 ? 1.0F : 1.0F / scale;
  const float exact = x * factor;
  if (std::isnan(exact)) return std::byte{127};
  if (exact >= 127) return std::byte{127};
  if (exact <= -128) return std::byte{0x80};
  const double below = std::floor(static_cast<double>(exact));
  const double above = static_cast<double>(exact) - below;
  const bool up = above > 0.5 || (above == 0.5 && std::fmod(below, 2) != 0);
  return static_cast<std::byte>(static_cast<int>(below) + (up ? 1 : 0));
}

std::vector<std::byte> expected_half(const AppendCase& one, std::int32_t lanes, std::size_t salt) {
  std::vector<std::byte> cache(cache_bytes(one, lanes), kUntouched);
  const std::size_t size = stored_bytes(one);
  for (std::size_t b = 0; b < one.tokens.size(); ++b) {
    for (std::int64_t token = 0; token < one.tokens[b]; ++token) {
      for (std::int32_t lane = 0; lane < one.kv_heads * lanes; ++lane) {
        const std::size_t head = static_cast<std::size_t>(lane / lanes);
        const std::size_t from =
            (b * static_cast<std::size_t>(most(one.tokens)) + static_cast<std::size_t>(token)) *
                static_cast<std::size_t>(one.kv_heads * lanes) +
            static_cast<std::size_t>(lane);
        const std::size_t row = static_cast<std::size_t>(one.first_row[b] + token);
        std::byte* const to =
            cache.data() +
            (b * static_cast<std::size_t>(one.kv_heads) + head) * head_bytes(one, lanes) +
            (row * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(lane % lanes)) * size;
        const float x = number(from + salt);
        const std::uint32_t bits = encoded(one.element, x);
        if (one.int8) {
          *to = code(x, scale(one, static_cast<std::size_t>(lane)));
        } else {
          std::memcpy(to, &bits, size);
        }
      }
    }
  }
  return cache;
}

}  // namespace

Outcome run_append(const AppendCase& one, const KernelTable& kernels, simt::Order order) {
  using simt::Use;
  World world(order);
  const std::vector<std::byte> empty[] = {
      std::vector<std::byte>(cache_bytes(one, one.head_size), kUntouched),
      std::vector<std::byte>(cache_bytes(one, one.value_head_size), kUntouched)};
  std::byte* const key = world.put(empty[0], Use::read_write, "key cache", one.shift);
  std::byte* const value = world.put(empty[1], Use::read_write, "value cache", one.shift);
  const auto key_stride = static_cast<std::int64_t>(head_bytes(one, one.head_size));
  const auto value_stride = static_cast<std::int64_t>(head_bytes(one, one.value_head_size));
  std::vector<AppendEntry> entries;
  for (std::size_t b = 0; b < one.tokens.size(); ++b) {
    const auto heads = static_cast<std::int64_t>(b) * one.kv_heads;
    entries.push_back({key + heads * key_stride, value + heads * value_stride, key_stride,
                       value_stride, one.first_row[b], one.tokens[b]});
  }
  AppendParameters p{};
  p.entries = world.put(entries, Use::input, "entries");
  p.key = world.put(new_rows(one, one.head_size, 0), Use::input, "new keys");
  p.value = world.put(new_rows(one, one.value_head_size, 1000), Use::input, "new values");
  if (one.int8) {
    p.key_scale = world.put(scales(one, one.head_size), Use::input, "key scales");
    p.value_scale = world.put(scales(one, one.value_head_size), Use::input, "value scales");
  }
  p.tokens = most(one.tokens);
  p.batch = static_cast<std::int32_t>(one.tokens.size());
  p.kv_heads = one.kv_heads;
  p.head_size = one.head_size;
  p.value_head_size = one.value_head_size;
  p.element = one.element;
  p.per_channel = one.per_channel;
  kernels.append(world.queue(), p);
  Outcome outcome{world.get(key, empty[0].size()), world.queue().take_defects()};
  append_bytes(outcome.bytes, world.get(value, empty[1].size()));
  return outcome;
}

std::vector<std::byte> expected_append(const AppendCase& one) {
  std::vector<std::byte> bytes = expected_half(one, one.head_size, 0);
  append_bytes(bytes, expected_half(one, one.value_head_size, 1000));
  return bytes;
}

std::vector<AppendCase> append_cases() {
  std::vector<AppendCase> cases;
  for (const Element element : {Element::f32, Element::f16, Element::bf16}) {
    for (const bool int8 : {false, true}) {
      for (const bool per_channel : {false, true}) {
        if (per_channel && !int8) continue;
        AppendCase one;
        one.element = element;
        one.int8 = int8;
        one.per_channel = per_channel;
        cases.push_back(one);
        one.head_size = 5;  // Rows of 5, 10 or 20 bytes.
        one.value_head_size = 3;
        one.tokens = {2, 0, 5};
        one.first_row = {6, 1, 3};
        cases.push_back(one);
        one.head_size = 72;  // More than a warp takes at once.
        one.value_head_size = 136;
        one.kv_heads = 3;
        one.shift = 4;
        cases.push_back(one);
      }
    }
  }
  AppendCase large;  // Heads that lie more than 64 KiB apart.
  large.head_size = 64;
  large.rows = 300;
  large.first_row = {290};
  cases.push_back(large);
  return cases;
}

}  // namespace kvcheck::kernels::device

// Rows of data for simulated kernels: plain, designed, and adversarial.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>

#include "tests/model/simulated_kernel_arithmetic.h"
#include "tests/model/simulated_kernel_row.h"

namespace kvcheck::model {

enum class Storage { f32, f16, bf16, f64, int8, int4 };

enum class RowFill {
  random,         ///< N(0, 1) throughout.
  needles,        ///< Keys are +-1 codes, the query points at a few of them.
  position_code,  ///< Q = 0, V one-hot.
  cancelling,     ///< Values in pairs of opposite sign: the output is far below sum w|v|.
  loud,           ///< Logits 12 times as large.
  equal,          ///< One logit for all, values of one sign.
  spread,         ///< Logits over 100 units.
  ascending       ///< Every key raises the maximum.
};

inline constexpr std::array<std::pair<RowFill, std::string_view>, 8> kRowFills{
    {{RowFill::random, "random"},
     {RowFill::needles, "needles"},
     {RowFill::position_code, "code"},
     {RowFill::cancelling, "cancelling"},
     {RowFill::loud, "loud"},
     {RowFill::equal, "equal"},
     {RowFill::spread, "spread"},
     {RowFill::ascending, "ascending"}}};

class RowSource {
 public:
  explicit RowSource(std::uint64_t seed) : engine_(seed) {
    std::normal_distribution<double> normal;
    for (double& x : pool_) x = normal(engine_);
  }

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  double normal() { return pool_[static_cast<std::size_t>(between(0, kPool - 1))]; }

  /// A row of `count` keys; `extras`: biases, a softcap or a sink now and then.
  RowData row(RowFill fill, Storage storage, std::size_t count, std::size_t head_size,
              std::size_t lanes, bool extras) {
    RowData out;
    out.head_size = head_size;
    out.lanes = lanes;
    out.scale = 1 / std::sqrt(static_cast<double>(head_size));
    out.biases.assign(count, 0.0);
    fill_normal(out.query, head_size);
    fill_normal(out.keys, count * head_size);
    fill_normal(out.values, count * lanes);
    shape(fill, out);
    store(storage, out);
    if (extras) add_extras(out);
    return out;
  }

 private:
  /// From a pool, since drawing would take most of the time; a prime period fits no row.
  void fill_normal(std::vector<double>& data, std::size_t size) {
    auto at = static_cast<std::size_t>(between(0, kPool - 1));
    data.resize(size);
    for (double& x : data) {
      x = pool_[at];
      if (++at == pool_.size()) at = 0;
    }
  }

  /// Makes the logit of key j about `logit` times its noise, along the query.
  void aim(RowData& row, std::size_t j, double logit) {
    double square = 0;
    for (const double q : row.query) square += q * q;
    for (std::size_t c = 0; c < row.head_size; ++c) {
      row.keys[j * row.head_size + c] = row.query[c] * logit / (square * row.scale);
    }
  }

  void shape(RowFill fill, RowData& row) {
    const std::size_t n = row.count();
    switch (fill) {
      case RowFill::random:
        break;
      case RowFill::needles:
        point(row);
        break;
      case RowFill::position_code:
        std::fill(row.query.begin(), row.query.end(), 0.0);
        std::fill(row.values.begin(), row.values.end(), 0.0);
        for (std::size_t j = 0; j < n; ++j) row.values[j * row.lanes + j % row.lanes] = 1;
        break;
      case RowFill::cancelling:
        for (std::size_t i = row.lanes; i < row.values.size(); ++i) {
          if ((i / row.lanes) % 2 == 1) row.values[i] = -row.values[i - row.lanes];
        }
        for (double& k : row.keys) k *= 0.125;
        break;
      case RowFill::loud:
        for (double& q : row.query) q *= 12;
        break;
      case RowFill::equal:
        for (std::size_t j = 0; j < n; ++j) aim(row, j, 3);
        for (double& v : row.values) v = std::abs(v);
        break;
      case RowFill::spread:
        for (std::size_t j = 0; j < n; ++j) aim(row, j, static_cast<double>(between(-50, 50)));
        break;
      case RowFill::ascending:
        for (std::size_t j = 0; j < n; ++j) {
          aim(row, j, 8 * static_cast<double>(j) / static_cast<double>(n));
        }
        break;
    }
  }

  void point(RowData& row) {
    for (double& k : row.keys) k = chance(50) ? 1 : -1;
    std::fill(row.query.begin(), row.query.end(), 0.0);
    const auto last = static_cast<std::int64_t>(row.count()) - 1;
    for (int i = 0; i < 3; ++i) {
      const auto key = static_cast<std::size_t>(between(0, last));
      for (std::size_t c = 0; c < row.head_size; ++c) {
        row.query[c] += row.keys[key * row.head_size + c] * 8 * row.scale;
      }
    }
  }

  /// Rounds the data to what the storage holds.
  void store(Storage storage, RowData& row) {
    const auto to = [](const auto& rounding, std::vector<double>& data) {
      for (double& x : data) x = rounding.r(static_cast<float>(x));
    };
    const auto quantise = [](std::vector<double>& data, double most) {
      double widest = 0;
      for (const double x : data) widest = std::max(widest, std::abs(x));
      const double scale = widest == 0 ? 1 : round_to(ElementType::f32, widest / most);
      for (double& x : data) x = std::nearbyint(x / scale) * scale;
      return scale;
    };
    switch (storage) {
      case Storage::f64:
        return;
      case Storage::f32:
        for (auto* data : {&row.query, &row.keys, &row.values}) to(F32{}, *data);
        return;
      case Storage::f16:
        for (auto* data : {&row.query, &row.keys, &row.values}) to(F16{}, *data);
        return;
      case Storage::bf16:
        for (auto* data : {&row.query, &row.keys, &row.values}) to(Bf16{}, *data);
        return;
      case Storage::int8:
      case Storage::int4: {
        const double most = storage == Storage::int8 ? 127 : 7;
        to(F16{}, row.query);
        row.key_scale = quantise(row.keys, most);
        row.value_scale = quantise(row.values, most);
        return;
      }
    }
  }

  void add_extras(RowData& row) {
    if (chance(25)) {
      for (double& b : row.biases) b = round_to(ElementType::bf16, normal());
    }
    if (chance(20)) row.softcap = static_cast<double>(between(1, 40));
    if (chance(20)) row.sink = chance(30) ? 0 : round_to(ElementType::bf16, 4 * normal());
  }

  static constexpr std::int64_t kPool = 65521;

  std::mt19937_64 engine_;
  std::array<double, kPool> pool_{};
};

}  // namespace kvcheck::model

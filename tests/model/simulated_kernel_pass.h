// A simulated attention kernel for one row, whose arithmetic is dialled in.
//
// It shares nothing with the bound: every operation is rounded, in the order that real kernels
// use. Lanes run innermost.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "tests/model/simulated_kernel_row.h"
#include "tests/model/simulated_kernel_style.h"

namespace kvcheck::model {

template <class Arithmetic>
class RowKernel {
 public:
  using T = typename Arithmetic::T;

  RowKernel(const RowData& row, const RowStyle& style, std::uint64_t seed,
            Arithmetic arithmetic = {})
      : row_(row), style_(style), a_(arithmetic), noise_(seed) {}

  /// Output lanes as stored.
  std::vector<double> run() {
    prepare();
    for (std::size_t j = 0; j < row_.count(); ++j) logits_.push_back(logit(j));
    const std::size_t n = row_.count();
    const std::size_t splits = std::min(style_.splits, n);
    std::vector<Part> parts;
    for (std::size_t i = 0; i < splits; ++i) {
      parts.push_back(part(n * i / splits, n * (i + 1) / splits));
    }
    Part whole = style_.merges_by_lse && splits > 1 ? merge_by_lse(parts) : merge(parts);
    return finish(whole);
  }

  /// The row's log-sum-exp, after run(). Two-pass or merged in place only.
  double lse() const { return static_cast<double>(lse_); }

 private:
  struct Part {
    T top = -std::numeric_limits<T>::infinity();
    T sum = 0;
    std::vector<T> output;
  };

  T r(T x) const { return a_.r(x); }
  T constant(double x) const { return r(static_cast<T>(x)); }
  T narrow(const Narrowing& n, T x) const {
    return n.bits == 0 ? x : static_cast<T>(n(static_cast<double>(x)));
  }

  /// A factor of up to 1 + error, less the rounding that follows.
  double wobble(double error, std::size_t j) {
    const double room = std::max(0.0, error - unit_roundoff(style_.accumulator));
    const double drawn = static_cast<double>(noise_() >> 11) * 0x1p-52 - 1;
    return 1 + room * (row_.leans.empty() ? drawn : row_.leans[j % row_.leans.size()]);
  }

  T e(T x, std::size_t j) {
    if (x == 0) return 1;
    const auto wide = static_cast<double>(x);
    const double out = (style_.base_two ? std::exp2(wide) : std::exp(wide));
    return out < style_.flushes_below ? 0 : constant(out * wobble(style_.exp_error, j));
  }

  void prepare() {
    factor_ = style_.base_two ? constant(std::log2(std::exp(1.0))) : T(1);
    scale_ = constant(row_.scale);
    root_ = constant(std::sqrt(static_cast<double>(scale_)));
    const bool codes = row_.key_scale != 1;
    after_ = codes && !style_.dequantise_first;
    for (const double q : row_.query) {
      T x = static_cast<T>(q);
      if (style_.scale_on_operands) x = r(x * root_);
      if (style_.scale_on_query) x = r(x * scale_);
      query_.push_back(narrow(style_.operands, x));
    }
    keys_.resize(row_.keys.size());
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      T x = static_cast<T>(row_.keys[i] / row_.key_scale);
      if (codes && !after_) x = r(x * constant(row_.key_scale));
      if (style_.scale_on_operands) x = r(x * root_);
      keys_[i] = narrow(style_.operands, x);
    }
    values_.resize(row_.values.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      T x = static_cast<T>(row_.values[i] / row_.value_scale);
      if (row_.value_scale != 1 && !after_) x = r(x * constant(row_.value_scale));
      values_[i] = narrow(style_.operands, x);
    }
  }

  T dot(std::size_t j) {
    const std::size_t d = row_.head_size;
    const std::size_t size = style_.dot_block == 0 ? d : style_.dot_block;
    const T* key = keys_.data() + j * d;
    T total = 0;
    for (std::size_t begin = 0; begin < d; begin += size) {
      const std::size_t end = std::min(d, begin + size);
      std::size_t ways = std::min(style_.dot_ways, end - begin);
      chains_.assign(ways, T(0));
      for (std::size_t i = begin; i < end; ++i) {
        const std::size_t c = style_.backwards ? end - 1 - (i - begin) : i;
        T& sum = chains_[(i - begin) % ways];
        sum = style_.fma ? a_.fma(query_[c], key[c], sum) : r(sum + a_.product(query_[c], key[c]));
      }
      for (; ways > 1; ways = (ways + 1) / 2) {
        const std::size_t half = (ways + 1) / 2;
        for (std::size_t i = 0; i + half < ways; ++i)
          chains_[i] = r(chains_[i] + chains_[i + half]);
      }
      total = r(total + chains_[0]);
    }
    return total;
  }

  T logit(std::size_t j) {
    T x = dot(j);
    if (style_.fused_shift) return x;
    const bool scaled = style_.scale_on_operands || style_.scale_on_query;
    const bool folds = style_.base_two && row_.softcap == 0;
    T multiplier = scaled ? T(1) : scale_;
    if (folds) multiplier = r(multiplier * factor_);
    if (after_) multiplier = r(multiplier * constant(row_.key_scale));
    x = narrow(style_.logits, r(x * multiplier));
    if (row_.softcap > 0) {
      const T cap = constant(row_.softcap);
      x = style_.reciprocal ? r(x * r(1 / cap)) : r(x / cap);
      x = constant(std::tanh(static_cast<double>(x)) * wobble(style_.tanh_error, j));
      x = narrow(style_.logits, r(x * cap));
      if (style_.base_two) x = r(x * factor_);
    }
    if (row_.biases[j] == 0) return x;
    return narrow(style_.logits, r(x + r(constant(row_.biases[j]) * factor_)));
  }

  /// What is subtracted from logits whose maximum is `top`, as fused_shift rounds it.
  T exponent(T logit, T top) const {
    if (!style_.fused_shift) return r(logit - top);
    const T multiplier = r(scale_ * factor_);
    return a_.fma(logit, multiplier, -r(top * multiplier));
  }

  T rise(T from, T to) const {
    if (!style_.fused_shift) return r(from - to);
    return r(r(from - to) * r(scale_ * factor_));
  }

  Part part(std::size_t begin, std::size_t end) {
    Part p;
    p.output.assign(row_.lanes, T(0));
    const std::size_t tile = style_.tile > 0 ? style_.tile : std::max<std::size_t>(1, end - begin);
    const std::size_t tiles = (end - begin + tile - 1) / tile;
    for (std::size_t i = 0; i < tiles; ++i) {
      const std::size_t b = begin + tile * (style_.backwards ? tiles - 1 - i : i);
      const std::size_t stop = std::min(end, b + tile);
      const auto first = logits_.begin();
      const auto at = [&](std::size_t j) { return first + static_cast<std::ptrdiff_t>(j); };
      const T top = std::max(p.top, *std::max_element(at(b), at(stop)));
      if (i > 0 && top > p.top) rescale(p, e(rise(p.top, top), b));
      p.top = top;
      add_tile(p, b, stop);
    }
    return p;
  }

  void add_tile(Part& p, std::size_t begin, std::size_t end) {
    weights_.resize(row_.count());
    stored_.resize(row_.count());
    T sum = 0;
    for (std::size_t j = begin; j < end; ++j) {
      weights_[j] = e(exponent(logits_[j], p.top), j);
      if (style_.normalise_first) sum = r(sum + weights_[j]);
    }
    if (style_.normalise_first && row_.sink) sum = r(sum + e(r(sink() - p.top), begin));
    for (std::size_t j = begin; j < end; ++j) {
      const T weight = !style_.normalise_first ? weights_[j]
                       : style_.reciprocal     ? r(weights_[j] * r(1 / sum))
                                               : r(weights_[j] / sum);
      stored_[j] = narrow(style_.weights, weight);
      if (style_.sums_stored_weights) weights_[j] = stored_[j];
    }
    const std::size_t size = style_.value_block == 0 ? end - begin : style_.value_block;
    const std::size_t blocks = (end - begin + size - 1) / size;
    for (std::size_t i = 0; i < blocks; ++i) {
      const std::size_t b = begin + size * (style_.backwards ? blocks - 1 - i : i);
      add_block(p, b, std::min(end, b + size));
    }
    if (style_.normalise_first) p.sum = sum;
  }

  void add_block(Part& p, std::size_t begin, std::size_t end) {
    const std::size_t lanes = row_.lanes;
    const bool apart = style_.value_block > 0 || style_.value_ways > 1;
    std::size_t ways = apart ? std::min(style_.value_ways, end - begin) : 1;
    if (apart) sums_.assign(ways * lanes, T(0));
    chains_.assign(ways, T(0));
    if (!apart) chains_[0] = p.sum;
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t j = style_.backwards ? end - 1 - (i - begin) : i;
      const std::size_t way = (i - begin) % ways;
      chains_[way] = r(chains_[way] + weights_[j]);
      T* sum = apart ? sums_.data() + way * lanes : p.output.data();
      add_scaled(sum, stored_[j], values_.data() + j * lanes, lanes);
    }
    if (!apart) {
      p.sum = chains_[0];
      return;
    }
    for (; ways > 1; ways = (ways + 1) / 2) {
      const std::size_t half = (ways + 1) / 2;
      for (std::size_t i = 0; i + half < ways; ++i) {
        chains_[i] = r(chains_[i] + chains_[i + half]);
        add(sums_.data() + i * lanes, sums_.data() + (i + half) * lanes, lanes);
      }
    }
    p.sum = r(p.sum + chains_[0]);
    add(p.output.data(), sums_.data(), lanes);
  }

  void add_scaled(T* sum, T weight, const T* values, std::size_t lanes) const {
    if (style_.fma) {
      for (std::size_t c = 0; c < lanes; ++c) sum[c] = a_.fma(weight, values[c], sum[c]);
    } else {
      for (std::size_t c = 0; c < lanes; ++c) sum[c] = r(sum[c] + a_.product(weight, values[c]));
    }
  }

  void add(T* sum, const T* other, std::size_t lanes) const {
    for (std::size_t c = 0; c < lanes; ++c) sum[c] = r(sum[c] + other[c]);
  }

  void rescale(Part& p, T factor) const {
    p.sum = r(p.sum * factor);
    for (T& x : p.output) x = r(x * factor);
  }

  /// One split after the other into the first.
  Part merge(std::vector<Part>& parts) {
    Part whole = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const T top = std::max(whole.top, parts[i].top);
      rescale(whole, e(rise(whole.top, top), i));
      rescale(parts[i], e(rise(parts[i].top, top), i));
      whole.top = top;
      whole.sum = r(whole.sum + parts[i].sum);
      add(whole.output.data(), parts[i].output.data(), row_.lanes);
    }
    return whole;
  }

  T log_of(T sum, std::size_t split) {
    const auto wide = static_cast<double>(sum);
    return constant((style_.base_two ? std::log2(wide) : std::log(wide)) *
                    wobble(style_.exp_error, split));
  }

  /// Splits normalised on their own, then weighed by exp(lse_i - max lse).
  Part merge_by_lse(std::vector<Part>& parts) {
    Part whole;
    whole.output.assign(row_.lanes, T(0));
    std::vector<T> lses;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      Part& p = parts[i];
      const T top = style_.fused_shift ? r(p.top * r(scale_ * factor_)) : p.top;
      lses.push_back(r(top + log_of(p.sum, i)));
      for (T& x : p.output) x = r(x / p.sum);
    }
    whole.top = *std::max_element(lses.begin(), lses.end());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const T weight = e(r(lses[i] - whole.top), i);
      whole.sum = r(whole.sum + weight);
      for (std::size_t c = 0; c < row_.lanes; ++c) {
        whole.output[c] = r(whole.output[c] + r(weight * parts[i].output[c]));
      }
    }
    return whole;
  }

  T sink() const { return r(constant(*row_.sink) * factor_); }

  std::vector<double> finish(Part& p) {
    if (row_.sink && !style_.normalise_first) {
      const T top = style_.sink_in_maximum ? std::max(p.top, sink()) : p.top;
      if (top > p.top) rescale(p, e(r(p.top - top), 0));
      p.sum = r(p.sum + e(r(sink() - top), 0));
      p.top = top;
    }
    if (!style_.fused_shift) {
      lse_ = r(p.top + log_of(p.sum, 0));
      if (style_.base_two) lse_ = r(lse_ * constant(std::log(2.0)));
    }
    std::vector<double> out;
    const T reciprocal = r(1 / p.sum);
    for (T x : p.output) {
      if (!style_.normalise_first) x = style_.reciprocal ? r(x * reciprocal) : r(x / p.sum);
      if (after_ && row_.value_scale != 1) x = r(x * constant(row_.value_scale));
      out.push_back(style_.output(static_cast<double>(x)));
    }
    return out;
  }

  const RowData& row_;
  RowStyle style_;
  Arithmetic a_;
  std::mt19937_64 noise_;
  bool after_ = false;
  T factor_ = 1, scale_ = 1, root_ = 1, lse_ = 0;
  std::vector<T> query_, keys_, values_, logits_, weights_, stored_, chains_, sums_;
};

}  // namespace kvcheck::model

// Attention as the operators' documents spell it out, one query after the other.
#include "tests/properties/reference_target.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/cpu/element.h"
#include "properties/execution.h"
#include "tests/properties/model_target.h"
#include "tests/properties/reference_storage.h"

namespace kvcheck::properties {
namespace {

using kernels::Answer;
using kernels::Tensor;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Token {
  std::vector<Row> keys, values;  // [kv_heads]
};

class Reference final : public kernels::Session {
 public:
  Reference(const kernels::SessionConfig& config, std::string mistake)
      : c_(config),
        mistake_(std::move(mistake)),
        storage_(c_, mistake_),
        entries_(static_cast<std::size_t>(config.batch)) {}

  Answer<kernels::StepResult> step(const kernels::StepRequest& request) override {
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      const auto length = static_cast<std::int64_t>(entries_[b].size());
      if (overflows(length + request.tokens[b])) return kernels::Refusal{"the buffer is full"};
    }
    note_step(request);
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      for (std::int64_t i = 0; i < request.tokens[b]; ++i) append(request, b, i);
    }
    kernels::StepResult result;
    const std::int64_t queries = request.query.shape[1];
    result.output =
        Tensor::zeros(c_.element_type, {c_.batch, queries, c_.query_heads, c_.value_head_size});
    if (c_.qk_output != "none") {
      result.qk = Tensor::zeros(c_.element_type, {c_.batch, c_.query_heads, queries, columns()});
    }
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      for (std::int64_t i = 0; i < request.queries[b]; ++i) {
        for (std::int64_t h = 0; h < c_.query_heads; ++h) attend(request, b, i, h, result);
      }
    }
    if (request.want_rows) result.rows = rows();
    return result;
  }

  Answer<std::monostate> rollback(std::span<const std::int64_t> tokens) override {
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      const auto length = static_cast<std::int64_t>(entries_[b].size());
      if (tokens[b] > length) return kernels::Refusal{"there are fewer tokens"};
      if (c_.layout == "min_overflow" && tokens[b] == length) continue;
      if (resident(length - tokens[b]) != resident(length) - tokens[b]) {
        return kernels::Refusal{"the rollback is not exact"};
      }
    }
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      entries_[b].resize(entries_[b].size() - static_cast<std::size_t>(tokens[b]));
    }
    return std::monostate{};
  }

  Answer<std::monostate> load(const kernels::LoadRequest& request) override {
    for (const std::int64_t length : request.lengths) {
      if (overflows(length)) return kernels::Refusal{"the buffer has fewer rows"};
    }
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      const std::int64_t length = request.lengths[b];
      entries_[b].assign(static_cast<std::size_t>(length), Token{});
      for (std::int64_t p = length - resident(length); p < length; ++p) {
        const std::int64_t row = p - (length - resident(length));
        Token& token = entries_[b][static_cast<std::size_t>(p)];
        for (std::int64_t h = 0; h < c_.kv_heads; ++h) {
          token.keys.push_back(storage_.loaded(request.rows.key, b, h, row, true));
          token.values.push_back(storage_.loaded(request.rows.value, b, h, row, false));
        }
      }
    }
    return std::monostate{};
  }

  Answer<kernels::CacheRows> present() override { return rows(); }

 private:
  bool gqa() const { return c_.op == "gqa"; }
  bool overflows(std::int64_t length) const {
    return c_.layout == "full" && (gqa() || c_.nonpad_kv_seqlen) && length > c_.capacity;
  }

  std::int64_t resident(std::int64_t length) const {
    if (c_.layout == "full" || length <= c_.capacity) return length;
    if (c_.layout == "min_overflow") return c_.capacity;
    const std::int64_t block = c_.capacity - c_.window_size + 1;
    return c_.window_size + (length - c_.capacity - 1) % block;
  }

  std::int64_t longest() const {
    std::size_t length = 0;
    for (const auto& entry : entries_) length = std::max(length, entry.size());
    return static_cast<std::int64_t>(length);
  }
  std::int64_t columns() const { return c_.nonpad_kv_seqlen ? c_.capacity : longest(); }

  /// What the rotary embedding asks of a step as a whole.
  void note_step(const kernels::StepRequest& request) {
    width_ = std::max(request.query.shape[1], request.key.shape[1]);
    shared_ = std::all_of(request.tokens.begin(), request.tokens.end(),
                          [](std::int64_t n) { return n == 0; });
    first_prompt_ = true;
    pasts_.clear();
    std::int64_t longest = 0;
    std::vector<std::int64_t> lengths;
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      pasts_.push_back(static_cast<std::int64_t>(entries_[b].size()));
      lengths.push_back(pasts_[b] + request.tokens[b]);
      longest = std::max(longest, lengths[b]);
      if (lengths[b] == 0 || (!shared_ && pasts_[b] != 0)) first_prompt_ = false;
      if (c_.layout != "full" && lengths[b] != lengths[0]) first_prompt_ = false;
    }
    if (width_ != longest) first_prompt_ = false;
  }

  std::int64_t origin(const kernels::StepRequest& request, std::size_t b) const {
    const bool end = gqa() ? shared_ : c_.nonpad_kv_seqlen;
    return end ? static_cast<std::int64_t>(entries_[b].size()) - request.queries[b] : pasts_[b];
  }

  std::int64_t turn(const kernels::StepRequest& request, std::size_t b, std::int64_t token,
                    std::int64_t position) const {
    if (!request.position_ids) return position;
    const auto id = [&](std::int64_t flat) {
      std::int64_t value = 0;
      std::memcpy(&value, request.position_ids->bytes.data() + 8 * flat, 8);
      return value;
    };
    if (first_prompt_) return id(0) + token;
    return id(static_cast<std::int64_t>(b) * width_ + token);
  }

  /// Norm and rotary embedding.
  void prepare(Lanes& lanes, bool key, std::int64_t position) const {
    if (c_.qk_norm) {
      double squares = 0;
      for (const double x : lanes) squares += x * x;
      const double root =
          std::sqrt(squares / static_cast<double>(lanes.size()) + c_.qk_norm->epsilon);
      const Tensor& weight = key ? c_.qk_norm->key_weight : c_.qk_norm->query_weight;
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        lanes[i] /= root;
        if (mistake_ != "norm_without_weight") {
          lanes[i] *= element(weight, static_cast<std::int64_t>(i));
        }
      }
    }
    if (!c_.rotary) return;
    const std::int64_t pairs = c_.rotary->cos.shape[1];
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      const auto a = static_cast<std::size_t>(c_.rotary->interleaved ? 2 * pair : pair);
      const auto b = c_.rotary->interleaved ? a + 1 : a + static_cast<std::size_t>(pairs);
      const double cos = element(c_.rotary->cos, position * pairs + pair);
      const double sin = element(c_.rotary->sin, position * pairs + pair);
      const double x = lanes[a], y = lanes[b];
      lanes[a] = x * cos - y * sin;
      lanes[b] = y * cos + x * sin;
    }
  }

  static Lanes slice(const Tensor& tensor, std::int64_t b, std::int64_t i, std::int64_t head) {
    Lanes lanes(static_cast<std::size_t>(tensor.shape[3]));
    const std::int64_t first =
        ((b * tensor.shape[1] + i) * tensor.shape[2] + head) * tensor.shape[3];
    for (std::size_t c = 0; c < lanes.size(); ++c) {
      lanes[c] = element(tensor, first + static_cast<std::int64_t>(c));
    }
    return lanes;
  }

  void append(const kernels::StepRequest& request, std::size_t b, std::int64_t i) {
    Token token;
    const auto entry = static_cast<std::int64_t>(b);
    for (std::int64_t h = 0; h < c_.kv_heads; ++h) {
      Lanes key = slice(request.key, entry, i, h);
      const std::int64_t position = mistake_ == "rotary_by_row" ? i : pasts_[b] + i;
      prepare(key, true, turn(request, b, i, position));
      token.keys.push_back(storage_.stored(key, true, h));
      token.values.push_back(storage_.stored(slice(request.value, entry, i, h), false, h));
    }
    entries_[b].push_back(std::move(token));
  }

  bool in_reach(std::int64_t query, std::int64_t key) const {
    if (c_.causal && key > query) return false;
    if (c_.window_size >= 0 && key <= query - c_.window_size) return false;
    const bool limited = c_.right_window_size >= 0 && mistake_ != "right_window_off";
    return !limited || key <= query + c_.right_window_size;
  }

  /// What the mask adds; -infinity hides.
  double bias(const kernels::StepRequest& request, std::size_t b, std::int64_t head,
              std::int64_t query, std::int64_t key) const {
    if (!request.mask) return 0;
    const auto& shape = request.mask->shape;
    const std::int64_t at[] = {static_cast<std::int64_t>(b), head, query, key};
    std::int64_t flat = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t where = at[4 - shape.size() + d];
      if (d + 1 == shape.size() && where >= shape[d]) return -kInfinity;
      flat = flat * shape[d] + (d + 1 < shape.size() && shape[d] == 1 ? 0 : where);
    }
    const double cell = element(*request.mask, flat);
    if (request.mask->type != kernels::ElementType::boolean) return cell;
    return cell != 0 ? 0 : -kInfinity;
  }

  std::int64_t bias_column(std::size_t keys, std::int64_t key) const {
    if (mistake_ != "bias_from_oldest") return key;
    const auto length = static_cast<std::int64_t>(keys);
    return std::max<std::int64_t>(0, key - (length - resident(length)));
  }

  void attend(const kernels::StepRequest& request, std::size_t b, std::int64_t i, std::int64_t head,
              kernels::StepResult& result) const {
    const auto entry = static_cast<std::int64_t>(b);
    const std::int64_t position = origin(request, b) + i;
    const auto kv_head = static_cast<std::size_t>(head / (c_.query_heads / c_.kv_heads));
    Lanes query = slice(request.query, entry, i, head);
    prepare(query, false, turn(request, b, i, position));
    const double scale =
        c_.scale != 0 ? c_.scale : 1 / std::sqrt(static_cast<double>(c_.head_size));
    const std::size_t keys = entries_[b].size();
    Lanes raw(keys, 0), capped(keys), logits(keys), weights(keys, 0);
    std::vector<bool> reach(keys);
    const double sink = c_.head_sink        ? element(*c_.head_sink, head)
                        : c_.smooth_softmax ? 0.0
                                            : -kInfinity;
    const double summed = mistake_ == "sink_ignored" ? -kInfinity : sink;
    for (std::size_t j = 0; j < keys; ++j) {
      const auto key = static_cast<std::int64_t>(j);
      reach[j] = in_reach(position, key);
      if (!entries_[b][j].keys.empty()) {
        const Lanes& lanes = entries_[b][j].keys[kv_head].lanes;
        for (std::size_t c = 0; c < lanes.size(); ++c) raw[j] += query[c] * lanes[c];
      }
      raw[j] *= scale;
      const auto cap = [&](double x) {
        return c_.softcap > 0 ? c_.softcap * std::tanh(x / c_.softcap) : x;
      };
      capped[j] = mistake_ == "cap_before_scale" ? scale * cap(raw[j] / scale) : cap(raw[j]);
      const double added = bias(request, b, head, i, bias_column(keys, key));
      logits[j] = mistake_ == "cap_after_bias" && added > -kInfinity ? cap(raw[j] + added)
                                                                     : capped[j] + added;
      if (mistake_ == "sink_in_every_key" && c_.head_sink) logits[j] += sink;
      if (!reach[j]) logits[j] = -kInfinity;
    }
    double top = sink;
    for (const double logit : logits) top = std::max(top, logit);
    double sum = 0;
    if (top > -kInfinity) {
      sum = std::exp(summed - top);
      for (const double logit : logits) sum += std::exp(logit - top);
    }
    Lanes output(static_cast<std::size_t>(c_.value_head_size),
                 mistake_ == "sink_with_value" && sum > 0 ? std::exp(sink - top) / sum : 0.0);
    for (std::size_t j = 0; j < keys; ++j) {
      if (logits[j] == -kInfinity) continue;
      weights[j] = std::exp(logits[j] - top) / sum;
      const Lanes& value = entries_[b][j].values[kv_head].lanes;
      for (std::size_t c = 0; c < output.size(); ++c) output[c] += weights[j] * value[c];
    }
    const std::int64_t first =
        ((entry * result.output->shape[1] + i) * c_.query_heads + head) * c_.value_head_size;
    for (std::size_t c = 0; c < output.size(); ++c) {
      put(*result.output, first + static_cast<std::int64_t>(c), output[c]);
    }
    if (!result.qk) return;
    const std::int64_t row =
        ((entry * c_.query_heads + head) * result.qk->shape[2] + i) * result.qk->shape[3];
    for (std::size_t j = 0; j < keys; ++j) {
      double shown = c_.qk_output == "raw"             ? raw[j]
                     : c_.qk_output == "softcapped"    ? capped[j]
                     : c_.qk_output == "probabilities" ? weights[j]
                                                       : logits[j];
      if (mistake_ == "qk_before_softcap" && c_.qk_output == "biased") shown = raw[j];
      if (gqa() && !reach[j]) shown = 0;
      put(*result.qk, row + static_cast<std::int64_t>(j), shown);
    }
  }

  static void put(Tensor& tensor, std::int64_t at, double value) {
    kernels::encode_element(
        tensor.type, value,
        tensor.bytes.data() + static_cast<std::size_t>(at) * kernels::element_bytes(tensor.type));
  }

  kernels::CacheRows rows() const {
    const bool buffer = gqa() || c_.nonpad_kv_seqlen;
    const std::int64_t count = buffer ? c_.capacity : longest();
    kernels::CacheRows out;
    out.key = storage_.rows(count, c_.head_size);
    out.value = storage_.rows(count, c_.value_head_size);
    for (std::size_t b = 0; b < entries_.size(); ++b) {
      const auto length = static_cast<std::int64_t>(entries_[b].size());
      const std::int64_t first = length - resident(length);
      for (std::int64_t p = first; p < length; ++p) {
        const Token& token = entries_[b][static_cast<std::size_t>(p)];
        for (std::size_t h = 0; h < token.keys.size(); ++h) {
          const auto at =
              (b * static_cast<std::size_t>(c_.kv_heads) + h) * static_cast<std::size_t>(count) +
              static_cast<std::size_t>(p - first);
          const auto copy = [&](const std::vector<std::byte>& row, Tensor& to) {
            std::copy(row.begin(), row.end(),
                      to.bytes.begin() + static_cast<std::ptrdiff_t>(at * row.size()));
          };
          copy(token.keys[h].bytes, out.key);
          copy(token.values[h].bytes, out.value);
        }
      }
    }
    return out;
  }

  kernels::SessionConfig c_;
  std::string mistake_;
  ReferenceStorage storage_;
  std::vector<std::vector<Token>> entries_;
  std::vector<std::int64_t> pasts_;
  std::int64_t width_ = 0;
  bool shared_ = false, first_prompt_ = false;
};

class ReferenceTarget final : public kernels::Target {
 public:
  explicit ReferenceTarget(std::string_view mistake)
      : mistake_(mistake), claims_(all_capabilities()) {
    claims_.name = "reference";
    claims_.arithmetic.accumulator_roundoff = 0x1p-53;
    claims_.arithmetic.exp_error = 0x1p-50;
    claims_.arithmetic.tanh_error = 0x1p-50;
    claims_.features.insert({"nan_safe", "split_bits", "company_bits", "rollback_bits",
                             "repeat_bits", "window_bits", "capacity_bits"});
  }
  const kernels::Capabilities& capabilities() const override { return claims_; }
  Answer<std::unique_ptr<kernels::Session>> open(const kernels::SessionConfig& config) override {
    return std::make_unique<Reference>(config, mistake_);
  }

 private:
  std::string mistake_;
  kernels::Capabilities claims_;
};

}  // namespace

std::unique_ptr<kernels::Target> make_reference_target(std::string_view mistake) {
  return std::make_unique<ReferenceTarget>(mistake);
}

}  // namespace kvcheck::properties

// Sequences on a FlashEngine, and what attention over their rows is in double.
#include "tests/kernels/flash_sequence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/cache_format.h"
#include "kernels/cpu/element.h"

namespace kvcheck::kernels::flash {
namespace {

constexpr double kUnit = 0x1p-24;

std::uint32_t mixed(std::uint32_t x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

Tensor scales(std::int64_t heads, std::int64_t lanes, float about) {
  Tensor tensor = Tensor::zeros(ElementType::f32, {heads, lanes});
  for (std::int64_t i = 0; i < heads * lanes; ++i) {
    const float scale = about * (0.75f + static_cast<float>(i % 5) / 8);
    std::memcpy(tensor.bytes.data() + i * 4, &scale, sizeof scale);
  }
  return tensor;
}

double scale_at(const SessionConfig& config, const Tensor& tensor, std::int64_t head,
                std::int64_t lanes, std::int64_t lane) {
  if (!config.quantisation.quantised()) return 1;
  float scale = 0;
  std::memcpy(&scale, tensor.bytes.data() + (head * lanes + lane) * 4, sizeof scale);
  return scale;
}

double stored_roundoff(ElementType type) {
  if (type == ElementType::f16) return 0x1p-11;
  return type == ElementType::bf16 ? 0x1p-8 : 0x1p-23;
}

}  // namespace

SessionConfig flash_config(std::int64_t query_heads, std::int64_t kv_heads, std::int64_t head_size,
                           std::int64_t capacity, std::string_view storage) {
  SessionConfig config;
  config.query_heads = query_heads;
  config.kv_heads = kv_heads;
  config.head_size = config.value_head_size = head_size;
  config.capacity = capacity;
  if (const auto type = element_type_from(storage)) {
    config.element_type = *type;
  } else {
    const float about = storage == "int8" ? 1.0f / 127 : 1.0f / 7;
    config.quantisation = {std::string(storage), true, scales(kv_heads, head_size, about),
                           scales(kv_heads, head_size, about)};
  }
  return config;
}

SessionConfig windowed(SessionConfig config, std::int64_t window, std::int64_t capacity) {
  config.layout = "block";
  config.window_size = window;
  config.capacity = capacity;
  return config;
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class FlashSequence::PositionMask final : public MaskSource {
 public:
  PositionMask(const Bias& bias, Counts past) : bias_(bias), past_(std::move(past)) {}
  void fill(std::int64_t entry, std::int64_t query, std::int64_t head, std::int64_t first,
            std::int64_t count, float* added) const override {
    const std::int64_t position = past_[static_cast<std::size_t>(entry)] + query;
    for (std::int64_t i = 0; i < count; ++i) added[i] = bias_(position, head, first + i);
  }

 private:
  const Bias& bias_;
  Counts past_;
};

FlashSequence::FlashSequence(const SessionConfig& config, std::uint32_t first_seed,
                             const Kernels* kernels)
    : seed(first_seed),
      config_(config),
      engine_(config, kernels),
      numbers_(static_cast<std::size_t>(config.batch)) {}

/// In [-1, 1), or a code.
float FlashSequence::number(int kind, std::int64_t entry, std::int64_t position,
                            std::int64_t i) const {
  std::uint32_t bits = mixed(seed * 4 + static_cast<std::uint32_t>(kind));
  for (const std::int64_t part : {entry, position, i}) {
    bits = mixed(bits ^ static_cast<std::uint32_t>(part));
  }
  const float unit = static_cast<float>(bits >> 8) * 0x1p-23f - 1;
  const std::string& codes = config_.quantisation.kind;
  if (kind != 0 && codes == "int8") return std::floor(unit * 127);
  if (kind != 0 && codes == "int4") return std::floor(unit * 8);
  return unit;
}

void FlashSequence::make_rows(std::int64_t entry, std::int64_t position) {
  Numbers& rows = numbers_[static_cast<std::size_t>(entry)];
  const auto make = [&](Floats& to, int kind, std::int64_t count, float times) {
    to.resize(static_cast<std::size_t>((position + 1) * count));
    const auto& special = kind == 1 ? key : value;
    const auto found = kind == 0 ? special.end() : special.find(position);
    for (std::int64_t i = 0; i < count; ++i) {
      float lane =
          found == special.end() ? number(kind, entry, position, i) * times : found->second;
      if (kind == 0 || !config_.quantisation.quantised()) {
        std::byte element[8];
        encode_element(config_.element_type, lane, element);
        lane = static_cast<float>(decode_element(config_.element_type, element));
      }
      to[static_cast<std::size_t>(position * count + i)] = lane;
    }
  };
  // Six times makes logits with a deviation of about two.
  make(rows.query, 0, config_.query_heads * config_.head_size, 6);
  make(rows.key, 1, config_.kv_heads * config_.head_size, 1);
  make(rows.value, 2, config_.kv_heads * config_.value_head_size, 1);
}

/// Appends `heads` rows as the cache stores them, or as queries.
void FlashSequence::store(const Floats& row, std::int64_t heads, std::int64_t lanes,
                          ElementType type, std::vector<std::byte>& to) const {
  for (std::int64_t head = 0; head < heads; ++head) {
    const float* from = row.data() + head * lanes;
    if (type == ElementType::u8) {
      for (std::int64_t lane = 0; lane < lanes; lane += 2) {
        const int even = static_cast<int>(from[lane]) + 8;
        const int odd = lane + 1 < lanes ? static_cast<int>(from[lane + 1]) + 8 : 8;
        to.push_back(static_cast<std::byte>(even | odd << 4));
      }
    } else if (type == ElementType::i8) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        to.push_back(static_cast<std::byte>(static_cast<std::int8_t>(from[lane])));
      }
    } else {
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        std::byte element[8];
        encode_element(type, from[lane], element);
        to.insert(to.end(), element, element + element_bytes(type));
      }
    }
  }
}

Floats FlashSequence::append(const Counts& tokens, const Counts& queries) {
  const Counts past = engine_.cache().lengths();
  const std::int64_t most = *std::max_element(tokens.begin(), tokens.end());
  const std::int64_t asked = *std::max_element(queries.begin(), queries.end());
  std::vector<std::byte> query_bytes, key_bytes, value_bytes;
  const ElementType stored = cache_type(config_);
  for (std::size_t b = 0; b < past.size(); ++b) {
    const auto entry = static_cast<std::int64_t>(b);
    for (std::int64_t t = 0; t < std::max(most, asked); ++t) {
      make_rows(entry, past[b] + t);
      const auto row = [&](const Floats& all, std::int64_t size) {
        return Floats(all.end() - size, all.end());
      };
      const auto heads = config_.kv_heads;
      if (t < asked) {
        store(row(numbers_[b].query, config_.query_heads * config_.head_size), config_.query_heads,
              config_.head_size, config_.element_type, query_bytes);
      }
      if (t < most) {
        store(row(numbers_[b].key, heads * config_.head_size), heads, config_.head_size, stored,
              key_bytes);
        store(row(numbers_[b].value, heads * config_.value_head_size), heads,
              config_.value_head_size, stored, value_bytes);
      }
    }
  }
  const auto bytes = static_cast<std::int64_t>(element_bytes(config_.element_type));
  std::vector<std::byte> output(
      static_cast<std::size_t>(config_.batch * asked * row_size() * bytes));
  EngineStep step;
  step.tokens = tokens;
  step.queries = queries;
  step.rows = {RowSource::dense(key_bytes.data(), most, config_.kv_heads,
                                cache_row_bytes(config_, config_.head_size)),
               RowSource::dense(value_bytes.data(), most, config_.kv_heads,
                                cache_row_bytes(config_, config_.value_head_size))};
  step.query =
      RowSource::dense(query_bytes.data(), asked, config_.query_heads, config_.head_size * bytes);
  step.query_type = step.output_type = storage_of(config_.element_type);
  step.output = output.data();
  const PositionMask mask(bias, past);
  if (bias) step.mask = &mask;
  engine_.step(step);
  Floats real;
  for (std::size_t b = 0; b < past.size(); ++b) {
    const std::int64_t first = static_cast<std::int64_t>(b) * asked * row_size();
    for (std::int64_t i = first; i < first + queries[b] * row_size(); ++i) {
      real.push_back(
          static_cast<float>(decode_element(config_.element_type, output.data() + i * bytes)));
    }
  }
  return real;
}

Floats FlashSequence::append_in_steps(std::int64_t tokens, std::int64_t size) {
  Floats outputs;
  for (std::int64_t done = 0; done < tokens; done += size) {
    const Floats step = append({std::min(size, tokens - done)});
    outputs.insert(outputs.end(), step.begin(), step.end());
  }
  return outputs;
}

/// The logit of one key before the bias, and how far f32 may be from it: eight partial sums, three
/// more additions, a scale rounded and multiplied, and scales of channels.
double FlashSequence::logit(const Numbers& numbers, std::int64_t query, std::int64_t head,
                            std::int64_t at, double& error) const {
  const std::int64_t lanes = config_.head_size;
  const std::int64_t kv_head = head / (config_.query_heads / config_.kv_heads);
  const float* const q = numbers.query.data() + (query * config_.query_heads + head) * lanes;
  const float* const k = numbers.key.data() + (at * config_.kv_heads + kv_head) * lanes;
  double sum = 0, magnitude = 0;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    const double product = static_cast<double>(q[lane]) * k[lane] *
                           scale_at(config_, config_.quantisation.key_scale, kv_head, lanes, lane);
    sum += product;
    magnitude += std::abs(product);
  }
  const double scale =
      config_.scale == 0 ? 1 / std::sqrt(static_cast<double>(lanes)) : config_.scale;
  error = std::abs(scale) * magnitude * static_cast<double>(lanes / 8 + 8) * kUnit;
  double logit = scale * sum;
  if (config_.softcap != 0) {
    logit = config_.softcap * std::tanh(logit / config_.softcap);
    error += std::abs(logit) * (0x1p-21 + 3 * kUnit);
  }
  return logit;
}

ExpectedRow FlashSequence::expected(std::int64_t entry, std::int64_t position,
                                    std::int64_t head) const {
  const Numbers& numbers = numbers_[static_cast<std::size_t>(entry)];
  const std::int64_t lanes = config_.value_head_size;
  const std::int64_t kv_head = head / (config_.query_heads / config_.kv_heads);
  const std::int64_t first =
      config_.window_size < 0 ? 0 : std::max<std::int64_t>(0, position - config_.window_size + 1);
  std::vector<double> logits;
  double most = -std::numeric_limits<double>::infinity(), least = -most, error = 0;
  const auto take = [&](double x, double wrong) {
    logits.push_back(x);
    if (x == -std::numeric_limits<double>::infinity()) return;
    most = std::max(most, x);
    least = std::min(least, x);
    error = std::max(error, wrong + kUnit * std::abs(x));
  };
  for (std::int64_t at = first; at <= position; ++at) {
    double wrong = 0;
    const double x = logit(numbers, position, head, at, wrong);
    take(x + (bias ? bias(position, head, at) : 0), wrong);
  }
  if (config_.smooth_softmax) take(0, 0);
  if (config_.head_sink) {
    const auto at = static_cast<std::size_t>(head) * element_bytes(config_.head_sink->type);
    take(decode_element(config_.head_sink->type, config_.head_sink->bytes.data() + at), 0);
  }
  ExpectedRow row;
  row.output.assign(static_cast<std::size_t>(lanes), 0);
  row.bound = row.output;
  if (most == -std::numeric_limits<double>::infinity()) return row;
  double total = 0;
  for (double& x : logits) total += x = std::exp(x - most);
  // A weight is off by twice the error of a logit, by the rounding of its exponent and of those
  // of all rescales, whose differences add up to the range of the logits, and by an exp and two
  // products for each rescale; a sum of a chunk is off by one roundoff for each key in it.
  const double tiles = static_cast<double>((position - first) / kTile + 2);
  const double chunks = static_cast<double>((position - first) / kChunk + 2);
  const double weight_error =
      2 * error + 3 * kUnit * (most - least) + (tiles + chunks + 3) * (0x1p-23 + 3 * kUnit);
  const double sum_error = (static_cast<double>(kChunk) + chunks + 20) * kUnit;
  for (std::int64_t lane = 0; lane < lanes; ++lane) {
    double sum = 0, magnitude = 0;
    for (std::int64_t at = first; at <= position; ++at) {
      const double product =
          logits[static_cast<std::size_t>(at - first)] *
          numbers.value[static_cast<std::size_t>((at * config_.kv_heads + kv_head) * lanes + lane)];
      sum += product;
      magnitude += std::abs(product);
    }
    const double scale = scale_at(config_, config_.quantisation.value_scale, kv_head, lanes, lane);
    double& output = row.output[static_cast<std::size_t>(lane)];
    output = sum / total * scale;
    row.bound[static_cast<std::size_t>(lane)] =
        1.01 * (2 * weight_error + sum_error) * magnitude * scale / total +
        stored_roundoff(config_.element_type) * std::abs(output) + 0x1p-25;
  }
  return row;
}

}  // namespace kvcheck::kernels::flash

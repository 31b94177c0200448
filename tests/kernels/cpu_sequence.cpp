// A sequence of steps on cpu-naive with keys and values that tell their position.
#include "tests/kernels/cpu_sequence.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/cpu/element.h"
#include "kernels/cpu/planted/planted_target.h"
#include "kernels/registry.h"

namespace kvcheck::kernels {
namespace {

template <class T>
T must(Answer<T> answer) {
  if (const auto* refusal = std::get_if<Refusal>(&answer))
    throw std::runtime_error(refusal->reason);
  if (const auto* failure = std::get_if<Failure>(&answer))
    throw std::runtime_error(failure->detail);
  return std::get<T>(std::move(answer));
}

std::string naive_for(const SessionConfig& config) {
  if (config.quantisation.kind == "int8") return "cpu-naive-q8";
  return config.quantisation.kind == "int4" ? "cpu-naive-q4" : "cpu-naive";
}

/// nullptr where there is none.
std::unique_ptr<Target> target_named(const std::string& target, std::string_view fault) {
  if (!fault.empty()) return make_planted(target, fault);
  auto made = make_target(target, RegistryOptions{});
  auto* const healthy = std::get_if<std::unique_ptr<Target>>(&made);
  return healthy == nullptr ? nullptr : std::move(*healthy);
}

}  // namespace

Tensor tensor_of(ElementType type, std::vector<std::int64_t> shape, const Numbers& numbers) {
  Tensor tensor = Tensor::zeros(type, std::move(shape));
  if (tensor.elements() != static_cast<std::int64_t>(numbers.size())) {
    throw std::invalid_argument("numbers do not fit the shape");
  }
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    encode_element(type, numbers[i], tensor.bytes.data() + i * element_bytes(type));
  }
  return tensor;
}

Numbers numbers_of(const Tensor& tensor) {
  Numbers numbers(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = decode_element(tensor.type, tensor.bytes.data() + i * element_bytes(tensor.type));
  }
  return numbers;
}

SessionConfig full_cache(std::int64_t window) {
  SessionConfig config;
  config.head_size = config.value_head_size = 1;
  config.capacity = 16;
  config.window_size = window;
  return config;
}

SessionConfig block_cache(std::int64_t capacity, std::int64_t window) {
  SessionConfig config = full_cache(window);
  config.layout = "block";
  config.capacity = capacity;
  return config;
}

SessionConfig attention(bool causal) {
  SessionConfig config;
  config.op = "attention";
  config.opset = 23;
  config.head_size = config.value_head_size = 1;
  config.causal = causal;
  return config;
}

SessionConfig nonpad(std::int64_t capacity, bool causal) {
  SessionConfig config = attention(causal);
  config.opset = 24;
  config.nonpad_kv_seqlen = true;
  config.capacity = capacity;
  return config;
}

Sequence::Sequence(const SessionConfig& config, std::string_view fault, std::string_view target)
    : config_(config),
      target_(target_named(target.empty() ? naive_for(config) : std::string(target), fault)),
      lengths_(static_cast<std::size_t>(config.batch), 0) {
  if (!target_) throw std::invalid_argument("unknown fault");
  session_ = must(target_->open(config));
}

double Sequence::code(std::int64_t entry, std::int64_t head, std::int64_t position) const {
  return static_cast<double>(position + 100 * head + 1000 * entry) +
         0.5 * static_cast<double>(generation_);
}

StepRequest Sequence::request(const Counts& tokens, const Counts& queries) const {
  StepRequest step;
  step.tokens = tokens;
  step.queries = queries;
  const std::int64_t most = *std::max_element(tokens.begin(), tokens.end());
  const std::int64_t most_queries = *std::max_element(queries.begin(), queries.end());
  const ElementType type = config_.element_type;
  step.query =
      Tensor::zeros(type, {config_.batch, most_queries, config_.query_heads, config_.head_size});
  Numbers key, value;
  for (std::int64_t b = 0; b < config_.batch; ++b) {
    const auto entry = static_cast<std::size_t>(b);
    for (std::int64_t s = 0; s < most; ++s) {
      for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
        // Padding holds a number that no position has.
        const double number = s < tokens[entry] ? code(b, head, lengths_[entry] + s) : -9;
        key.insert(key.end(), static_cast<std::size_t>(config_.head_size), number);
        value.insert(value.end(), static_cast<std::size_t>(config_.value_head_size), number);
      }
    }
  }
  step.key = tensor_of(type, {config_.batch, most, config_.kv_heads, config_.head_size}, key);
  step.value =
      tensor_of(type, {config_.batch, most, config_.kv_heads, config_.value_head_size}, value);
  return step;
}

Tensor Sequence::mask(std::vector<std::int64_t> shape, const Numbers& numbers) const {
  const bool boolean = config_.mask == "boolean";
  return tensor_of(boolean ? ElementType::boolean : config_.element_type, std::move(shape),
                   numbers);
}

Numbers Sequence::run(const StepRequest& request) {
  const StepResult result = must(session_->step(request));
  qk_ = result.qk ? numbers_of(*result.qk) : Numbers{};
  const Tensor& output = result.output.value();
  const Numbers all = numbers_of(output);
  const std::int64_t per_query = config_.query_heads * config_.value_head_size;
  Numbers real;
  for (std::int64_t b = 0; b < config_.batch; ++b) {
    const auto entry = static_cast<std::size_t>(b);
    const auto first = all.begin() + b * output.shape[1] * per_query;
    real.insert(real.end(), first, first + request.queries[entry] * per_query);
    lengths_[entry] += request.tokens[entry];
  }
  return real;
}

void Sequence::reopen() {
  session_ = must(target_->open(config_));
  lengths_.assign(lengths_.size(), 0);
}

Numbers Sequence::append_one_by_one(std::int64_t tokens) {
  Numbers outputs;
  for (std::int64_t s = 0; s < tokens; ++s) {
    const Numbers output = append({1});
    outputs.insert(outputs.end(), output.begin(), output.end());
  }
  return outputs;
}

bool Sequence::rollback(const Counts& tokens) {
  if (std::holds_alternative<Refusal>(session_->rollback(tokens))) return false;
  for (std::size_t b = 0; b < lengths_.size(); ++b) lengths_[b] -= tokens[b];
  ++generation_;
  return true;
}

void Sequence::load(const Counts& lengths, const Counts& first_positions) {
  const bool buffer = config_.op == "gqa" || config_.nonpad_kv_seqlen;
  const std::int64_t rows = buffer ? config_.capacity : lengths[0];
  Numbers key, value;
  for (std::int64_t b = 0; b < config_.batch; ++b) {
    const auto entry = static_cast<std::size_t>(b);
    const std::int64_t first = first_positions.empty() ? 0 : first_positions[entry];
    for (std::int64_t head = 0; head < config_.kv_heads; ++head) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const double number = first + row < lengths[entry] ? code(b, head, first + row) : -7;
        key.insert(key.end(), static_cast<std::size_t>(config_.head_size), number);
        value.insert(value.end(), static_cast<std::size_t>(config_.value_head_size), number);
      }
    }
  }
  const ElementType type = config_.element_type;
  must(session_->load(
      {lengths,
       {tensor_of(type, {config_.batch, config_.kv_heads, rows, config_.head_size}, key),
        tensor_of(type, {config_.batch, config_.kv_heads, rows, config_.value_head_size},
                  value)}}));
  lengths_ = lengths;
}

Numbers Sequence::lane(const Tensor& rows, std::int64_t count, std::int64_t entry,
                       std::int64_t head) const {
  const Numbers all = numbers_of(rows);
  const std::int64_t width = rows.shape[3];
  Numbers lane;
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t at = ((entry * rows.shape[1] + head) * rows.shape[2] + row) * width;
    lane.push_back(all.at(static_cast<std::size_t>(at)));
  }
  return lane;
}

Numbers Sequence::keys(std::int64_t count, std::int64_t entry, std::int64_t head) const {
  return lane(must(session_->present()).key, count, entry, head);
}

Numbers Sequence::values(std::int64_t count, std::int64_t entry, std::int64_t head) const {
  return lane(must(session_->present()).value, count, entry, head);
}

}  // namespace kvcheck::kernels

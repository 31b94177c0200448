// Data, sizes and requests of a benchmark problem.
#include "kernels/bench/problem.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "kernels/cpu/element.h"

namespace kvcheck::kernels::bench {
namespace {

ElementType activation_type(const Problem& problem) {
  return problem.quantised() ? ElementType::f32
                             : element_type_from(problem.element_type).value_or(ElementType::f32);
}

double unit(const Problem& problem) { return problem.element_type == "int4" ? 1.0 / 8 : 1.0 / 128; }

void store(Tensor& tensor, std::int64_t at, int code, double scale) {
  std::byte* to = tensor.bytes.data() + static_cast<std::size_t>(at) * element_bytes(tensor.type);
  // Codes stand in a quantised cache as they are; elsewhere they are exact as numbers.
  encode_element(tensor.type, tensor.type == ElementType::i8 ? code : code * scale, to);
}

/// Row of head_size codes, as the cache's element type has them.
void row_codes(const Problem& problem, DataTensor tensor, std::int64_t head, std::int64_t token,
               std::span<std::int8_t> codes) {
  const std::int64_t row = tensor == DataTensor::query ? token * problem.query_heads + head
                                                       : head * problem.length + token;
  data_codes(problem.seed, tensor, row * problem.head_size, codes);
  if (tensor == DataTensor::query || problem.element_type != "int4") return;
  for (std::int8_t& code : codes) code = static_cast<std::int8_t>(code >> 4);
}

/// [1][tokens][heads][head_size]
Tensor tokens_tensor(const Problem& problem, DataTensor which, std::int64_t begin,
                     std::int64_t end) {
  const std::int64_t heads = which == DataTensor::query ? problem.query_heads : problem.kv_heads;
  Tensor tensor =
      Tensor::zeros(activation_type(problem), {1, end - begin, heads, problem.head_size});
  const double scale = which == DataTensor::query ? 1.0 / 128 : unit(problem);
  std::vector<std::int8_t> codes(static_cast<std::size_t>(problem.head_size));
  std::int64_t at = 0;
  for (std::int64_t token = begin; token < end; ++token) {
    for (std::int64_t head = 0; head < heads; ++head) {
      row_codes(problem, which, head, token, codes);
      for (const std::int8_t code : codes) store(tensor, at++, code, scale);
    }
  }
  return tensor;
}

/// [1][kv_heads][length][head_size] as a full cache holds it; rows from `tokens` on are 0.
Tensor cache_tensor(const Problem& problem, DataTensor which, std::int64_t tokens) {
  const bool packed = problem.element_type == "int4";
  const std::int64_t lanes = packed ? problem.head_size / 2 : problem.head_size;
  const ElementType type = packed                ? ElementType::u8
                           : problem.quantised() ? ElementType::i8
                                                 : activation_type(problem);
  Tensor tensor = Tensor::zeros(type, {1, problem.kv_heads, problem.length, lanes});
  std::vector<std::int8_t> codes(static_cast<std::size_t>(problem.head_size));
  for (std::int64_t head = 0; head < problem.kv_heads; ++head) {
    std::int64_t at = head * problem.length * lanes;
    for (std::int64_t token = 0; token < tokens; ++token) {
      row_codes(problem, which, head, token, codes);
      if (!packed) {
        for (const std::int8_t code : codes) store(tensor, at++, code, unit(problem));
        continue;
      }
      for (std::size_t lane = 0; lane + 1 < codes.size(); lane += 2) {
        tensor.bytes[static_cast<std::size_t>(at++)] =
            static_cast<std::byte>((codes[lane] + 8) | (codes[lane + 1] + 8) << 4);
      }
    }
  }
  return tensor;
}

}  // namespace

std::string Problem::shape() const {
  return fmt::format("{}/{}/{}", query_heads, kv_heads, head_size);
}

double flops(const Problem& problem) {
  const auto seen = [&] {
    if (problem.operation != "prefill") return static_cast<double>(problem.keys());
    const auto all = static_cast<double>(problem.length);
    const auto most = static_cast<double>(problem.keys());
    return most * (most + 1) / 2 + (all - most) * most;
  }();
  return 4 * static_cast<double>(problem.query_heads * problem.head_size) * seen;
}

double bytes_read(const Problem& problem) {
  double width = 4;
  if (problem.element_type == "f16" || problem.element_type == "bf16") width = 2;
  if (problem.element_type == "int8") width = 1;
  if (problem.element_type == "int4") width = .5;
  const std::int64_t tokens = problem.operation == "prefill" ? problem.length : problem.keys();
  return 2 * width * static_cast<double>(problem.kv_heads * problem.head_size * tokens);
}

void data_codes(std::uint64_t seed, DataTensor tensor, std::int64_t begin,
                std::span<std::int8_t> codes) {
  std::uint64_t place =
      static_cast<std::uint64_t>(begin) + ((seed * 4 + static_cast<std::uint64_t>(tensor)) << 40);
  for (std::int8_t& code : codes) {
    std::uint64_t x = place++ + 0x9E3779B97F4A7C15ull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    x ^= x >> 31;
    code = static_cast<std::int8_t>(std::max(static_cast<int>(x >> 56) - 128, -127));
  }
}

std::vector<double> data_row(const Problem& problem, DataTensor tensor, std::int64_t head,
                             std::int64_t token) {
  std::vector<std::int8_t> codes(static_cast<std::size_t>(problem.head_size));
  row_codes(problem, tensor, head, token, codes);
  const double scale = tensor == DataTensor::query ? 1.0 / 128 : unit(problem);
  std::vector<double> row;
  for (const std::int8_t code : codes) row.push_back(code * scale);
  return row;
}

SessionConfig session_config(const Problem& problem, int threads) {
  SessionConfig config;
  config.query_heads = problem.query_heads;
  config.kv_heads = problem.kv_heads;
  config.head_size = config.value_head_size = problem.head_size;
  config.element_type = activation_type(problem);
  config.layout = problem.layout;
  config.capacity = problem.capacity > 0 ? problem.capacity : problem.length;
  config.window_size = problem.window > 0 ? problem.window : -1;
  config.threads = threads;
  if (problem.quantised()) {
    config.quantisation.kind = problem.element_type;
    Tensor scale = Tensor::zeros(ElementType::f32, {1});
    const auto value = static_cast<float>(unit(problem));
    std::memcpy(scale.bytes.data(), &value, sizeof(value));
    config.quantisation.key_scale = config.quantisation.value_scale = scale;
  }
  return config;
}

LoadRequest load_request(const Problem& problem, std::int64_t tokens) {
  return {{tokens},
          {cache_tensor(problem, DataTensor::key, tokens),
           cache_tensor(problem, DataTensor::value, tokens)}};
}

StepRequest step_request(const Problem& problem, std::int64_t begin, std::int64_t end) {
  StepRequest request;
  request.tokens = request.queries = {end - begin};
  request.query = tokens_tensor(problem, DataTensor::query, begin, end);
  request.key = tokens_tensor(problem, DataTensor::key, begin, end);
  request.value = tokens_tensor(problem, DataTensor::value, begin, end);
  return request;
}

}  // namespace kvcheck::kernels::bench

// kvcheck_device_bench: times the kernels on a GPU against what the GPU can do at most. Not a test:
// it prints a table for device_check.sh, and compares each timed output with the unfused kernel's.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/gpu_machine.h"
#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/takes.h"

namespace kvcheck::kernels::device {
namespace {

constexpr int kRuns = 21;
constexpr std::int64_t kChunk = std::int64_t{64} << 20;

/// Products of registers alone: what the matrix units can do.
struct RateParameters {
  float* out;
  int rounds;
};

constexpr int kIndependent = 8;

KV_KERNEL void KV_LAUNCH_BOUNDS(256, 2) matrix_rate_kernel(RateParameters p) {
  unsigned a[4], b[2];
  KV_UNROLL
  for (unsigned i = 0; i < 4; ++i) a[i] = 0x3c003c01u + thread_index() * (i + 1);
  b[0] = 0x38003801u ^ thread_index();
  b[1] = 0x34003401u;
  float d[kIndependent][4] = {};
  for (int round = 0; round < p.rounds; ++round) {
    KV_UNROLL
    for (int i = 0; i < kIndependent; ++i) multiply_add<F16>(d[i], a, b);
  }
  float sum = 0;
  KV_UNROLL
  for (int i = 0; i < kIndependent; ++i) sum += d[i][0] + d[i][1] + d[i][2] + d[i][3];
  p.out[block_index().x * block_threads() + thread_index()] = sum;
}

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "kvcheck_device_bench: %s\n", what.c_str());
  std::exit(1);
}

void check(cudaError_t status, const char* what) {
  if (status != cudaSuccess) fail(std::string(what) + ": " + cudaGetErrorString(status));
}

cudaStream_t stream_of(Machine& machine) {
  return static_cast<GpuQueue&>(machine.queue()).stream();
}

/// Median of the milliseconds that `work` takes on the machine's stream.
template <class Work>
double median_ms(Machine& machine, const Work& work) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  for (int i = 0; i < 3; ++i) work();
  std::vector<double> times;
  for (int i = 0; i < kRuns; ++i) {
    check(cudaEventRecord(begin, stream_of(machine)), "event");
    work();
    check(cudaEventRecord(end, stream_of(machine)), "event");
    check(cudaEventSynchronize(end), "run");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "event");
    times.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}

/// TB/s of copies within the GPU's memory, counted both ways.
double copy_rate(Machine& machine) {
  const std::int64_t bytes = std::int64_t{1} << 30;
  const DeviceBuffer from(machine, bytes, Use::read_write, "from");
  const DeviceBuffer to(machine, bytes, Use::read_write, "to");
  const double ms = median_ms(machine, [&] {
    check(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes),
                          cudaMemcpyDeviceToDevice, stream_of(machine)),
          "copy");
  });
  return 2.0 * static_cast<double>(bytes) / ms / 1e9;
}

/// TFLOP/s of mma.m16n8k16 in f16 with f32 sums.
double matrix_rate(Machine& machine) {
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "device");
  const auto blocks = static_cast<std::uint32_t>(multiprocessors * 2);
  const DeviceBuffer out(machine, std::int64_t{blocks} * 256 * 4, Use::scratch, "sums");
  const RateParameters parameters{out.as<float>(), 20000};
  const double ms = median_ms(machine, [&] {
    launch(machine.queue(), matrix_rate_kernel, LaunchShape{{blocks, 1, 1}, 256, 0}, parameters);
  });
  const double products = double(blocks) * 8 * parameters.rounds * kIndependent;
  return products * 2 * 16 * 8 * 16 / ms / 1e9;
}

struct Case {
  const char* name;
  const char* kernel;
  std::int32_t batch, query_heads, kv_heads, head;
  std::int64_t tokens, queries;
  bool int8 = false;
};

constexpr Case kCases[] = {
    {"decode 32/8/128 T=8192 B=32", "decode", 32, 32, 8, 128, 8192, 1},
    {"decode 32/8/128 T=8192 B=32, matrix", "decode_matrix", 32, 32, 8, 128, 8192, 1},
    {"decode 64/8/128 T=8192 B=32, matrix", "decode_matrix", 32, 64, 8, 128, 8192, 1},
    {"decode 32/32/128 T=4096 B=16", "decode", 16, 32, 32, 128, 4096, 1},
    {"decode 64/8/64 T=8192 B=32", "decode", 32, 64, 8, 64, 8192, 1},
    {"decode 32/8/128 T=8192 B=32 int8", "decode", 32, 32, 8, 128, 8192, 1, true},
    {"decode 32/8/128 T=65536 B=1", "decode", 1, 32, 8, 128, 65536, 1},
    {"decode 32/8/128 T=1024 B=1", "decode", 1, 32, 8, 128, 1024, 1},
    {"prefill 32/8/128 S=2048 B=4", "prefill", 4, 32, 8, 128, 2048, 2048},
    {"prefill 32/8/128 S=8192 B=1", "prefill", 1, 32, 8, 128, 8192, 8192},
    {"prefill 16/16/64 S=8192 B=1", "prefill", 1, 16, 16, 64, 8192, 8192},
    {"prefill 16/4/256 S=4096 B=1", "prefill", 1, 16, 4, 256, 4096, 4096},
};

/// Memory of random 16-bit numbers in [-1, 1), or of random codes.
DeviceBuffer random_memory(Machine& machine, std::int64_t bytes, bool codes, Use use,
                           const char* name) {
  DeviceBuffer buffer(machine, bytes, use, name);
  if (buffer.data() == nullptr) fail(std::string("no memory for ") + name);
  std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(bytes, kChunk)));
  std::uint32_t state = 12345;
  for (std::size_t at = 0; at + 2 <= chunk.size(); at += 2) {
    state = state * 1664525u + 1013904223u;
    std::uint16_t bits = static_cast<std::uint16_t>(state >> 16);
    // Exponents of f16 up to that of 0.5.
    if (!codes) bits = static_cast<std::uint16_t>((bits & 0x83ff) | (10 + (bits >> 10) % 5) << 10);
    std::memcpy(chunk.data() + at, &bits, 2);
  }
  for (std::int64_t at = 0; at < bytes; at += kChunk) {
    const auto part = static_cast<std::size_t>(std::min(kChunk, bytes - at));
    machine.write(buffer.data() + at, std::span(chunk).first(part));
  }
  return buffer;
}

float number_of(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023);
  const float size =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

/// One case with its memory.
class Problem {
 public:
  Problem(Machine& machine, const Case& of) : machine_(machine), case_(of) {
    const std::int64_t element = of.int8 ? 1 : 2;
    const std::int64_t cache = std::int64_t{of.batch} * of.kv_heads * of.tokens * of.head * element;
    key_ = random_memory(machine, cache, of.int8, Use::read_write, "keys");
    value_ = random_memory(machine, cache, of.int8, Use::read_write, "values");
    rows_ = std::int64_t{of.batch} * of.queries * of.query_heads;
    query_ = random_memory(machine, rows_ * of.head * 2, false, Use::input, "queries");
    output_ = DeviceBuffer(machine, rows_ * of.head * 2, Use::output, "output");
    const float scale = 1.0f / 128;
    scale_ = uploaded(machine, std::span<const float>(&scale, 1), "scale");
    std::vector<EntryView> entries;
    for (std::int64_t b = 0; b < of.batch; ++b) {
      EntryView view{};
      const std::int64_t head_bytes = of.tokens * of.head * element;
      view.key = key_.data() + b * of.kv_heads * head_bytes;
      view.value = value_.data() + b * of.kv_heads * head_bytes;
      view.key_head_stride = view.value_head_stride = head_bytes;
      view.live = of.tokens;
      view.origin = of.tokens - of.queries;
      view.queries = of.queries;
      entries.push_back(view);
    }
    entries_ = uploaded(machine, std::span<const EntryView>(entries), "entries");
    fill_parameters();
  }

  void run() { launch_of(case_.kernel); }

  double bytes() const { return static_cast<double>(key_.bytes() + value_.bytes()); }
  /// Multiply-adds of visible keys, twice: Q.K and P.V.
  double flops() const {
    const double pairs =
        static_cast<double>(case_.queries) *
        (static_cast<double>(case_.tokens) - static_cast<double>(case_.queries - 1) / 2);
    return 4.0 * pairs * case_.batch * case_.query_heads * case_.head;
  }

  /// Largest difference to the unfused kernel.
  double difference() {
    const std::vector<float> found = outputs();
    launch_of("unfused");
    const std::vector<float> expected = outputs();
    double most = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double error = std::abs(static_cast<double>(found[i]) - expected[i]);
      if (!(error <= most)) most = error;  // NaN stays.
    }
    return most;
  }

 private:
  void fill_parameters() {
    AttentionParameters& p = parameters_;
    p.entries = entries_.as<EntryView>();
    p.query = query_.data();
    p.output = output_.data();
    if (case_.int8) p.key_scale = p.value_scale = scale_.as<float>();
    p.window = p.right = -1;
    p.queries = case_.queries;
    p.batch = case_.batch;
    p.query_heads = case_.query_heads;
    p.kv_heads = case_.kv_heads;
    p.head_size = p.value_head_size = case_.head;
    p.causal = true;
    p.scale = 1.0f / std::sqrt(static_cast<float>(case_.head));
    // Enough blocks for every multiprocessor, and no more partial results than that takes.
    const std::int64_t heads = std::int64_t{case_.batch} * case_.kv_heads;
    const std::int64_t wanted = std::max<std::int64_t>(1, 512 / heads);
    std::int64_t positions = (case_.tokens + wanted - 1) / wanted;
    positions = std::max(kSplitUnit, (positions + kSplitUnit - 1) / kSplitUnit * kSplitUnit);
    p.split_positions = positions;
    p.splits = std::string(case_.kernel) == "prefill" ? 1 : (case_.tokens - 1) / positions + 1;
    if (p.splits > 1) {
      const std::int64_t partial = rows_ * p.splits * 4;
      outputs_ = DeviceBuffer(machine_, partial * case_.head, Use::scratch, "partial outputs");
      maxima_ = DeviceBuffer(machine_, partial, Use::scratch, "partial maxima");
      sums_ = DeviceBuffer(machine_, partial, Use::scratch, "partial sums");
      p.partial_outputs = outputs_.as<float>();
      p.partial_maxima = maxima_.as<float>();
      p.partial_sums = sums_.as<float>();
    }
  }

  void launch_of(const std::string& kernel) {
    const KernelTable& kernels = machine_.kernels();
    const AttentionLaunch how{Element::f16, case_.int8};
    if (kernel == "unfused") {
      AttentionParameters p = parameters_;
      p.splits = 1;
      p.score_columns = case_.tokens;
      const DeviceBuffer scores(machine_, rows_ * case_.tokens * 4, Use::scratch, "scores");
      if (scores.data() == nullptr) fail("no memory for scores");
      p.scores = scores.as<float>();
      kernels.unfused(machine_.queue(), how, p);
      return;
    }
    const auto run = kernel == "decode"          ? kernels.decode
                     : kernel == "decode_matrix" ? kernels.decode_matrix
                                                 : kernels.prefill;
    run(machine_.queue(), how, parameters_);
  }

  std::vector<float> outputs() {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(output_.bytes() / 2));
    machine_.read(output_.data(), std::as_writable_bytes(std::span(bits)));
    if (const auto failure = machine_.finish()) fail(failure->detail);
    std::vector<float> numbers;
    numbers.reserve(bits.size());
    for (const std::uint16_t each : bits) numbers.push_back(number_of(each));
    return numbers;
  }

  Machine& machine_;
  const Case& case_;
  std::int64_t rows_ = 0;
  DeviceBuffer key_, value_, query_, output_, scale_, entries_;
  DeviceBuffer outputs_, maxima_, sums_;
  AttentionParameters parameters_{};
};

void print_table(Machine& machine) {
  const double copy = copy_rate(machine);
  const double matrix = matrix_rate(machine);
  std::printf("%s\n\ncopy %.2f TB/s (both ways), mma.m16n8k16 f16 %.0f TFLOP/s\n\n",
              gpu_name().c_str(), copy, matrix);
  std::printf(
      "| case | ms | TB/s | of the copy rate | TFLOP/s | of the mma rate | largest "
      "difference to unfused |\n|---|---|---|---|---|---|---|\n");
  for (const Case& each : kCases) {
    Problem problem(machine, each);
    const double ms = median_ms(machine, [&] { problem.run(); });
    const double bandwidth = problem.bytes() / ms / 1e9;
    const double rate = problem.flops() / ms / 1e9;
    std::printf("| %s | %.4f | %.2f | %.0f %% | %.0f | %.0f %% | %.2g |\n", each.name, ms,
                bandwidth, 100 * bandwidth / copy, rate, 100 * rate / matrix, problem.difference());
    std::fflush(stdout);
  }
  if (const auto failure = machine.finish()) fail(failure->detail);
}

}  // namespace
}  // namespace kvcheck::kernels::device

int main() {
  using namespace kvcheck::kernels::device;
  if (const std::string problem = gpu_problem(); !problem.empty()) {
    std::fprintf(stderr, "kvcheck_device_bench: %s\n", problem.c_str());
    return 77;
  }
  const auto machine = make_gpu_machine();
  print_table(*machine);
  return 0;
}

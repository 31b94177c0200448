// A GPU behind the CUDA runtime.
#include "kernels/cuda/gpu_machine.h"

#include <fmt/format.h>

#include "kernels/cuda/gpu_queue.h"

namespace kvcheck::kernels::device {
namespace {

/// Kernels use cp.async and mma.m16n8k16 of 16-bit operands.
constexpr int kLeastMajor = 8;

struct Found {
  std::string problem, name;
};

Found look() {
  Found found;
  int devices = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  if (status != cudaSuccess || devices == 0) {
    found.problem =
        fmt::format("needs a GPU: {}; run it on a machine with one and its driver",
                    status == cudaSuccess ? "there is none" : cudaGetErrorString(status));
    return found;
  }
  cudaDeviceProp properties{};
  int runtime = 0;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess) {
    found.problem =
        fmt::format("cannot read the GPU's properties: {}", cudaGetErrorString(cudaGetLastError()));
    return found;
  }
  if (properties.major < kLeastMajor) {
    found.problem = fmt::format("needs compute capability 8.0 or newer; {} has {}.{}",
                                properties.name, properties.major, properties.minor);
    return found;
  }
  found.name = fmt::format("{}, sm_{}{}, CUDA {}.{}", properties.name, properties.major,
                           properties.minor, runtime / 1000, runtime % 1000 / 10);
  return found;
}

const Found& found() {
  static const Found once = look();
  return once;
}

/// After a fault of a kernel every later call of the process fails as well, on whatever memory:
/// only a new process has a context again.
bool context_is_lost() {
  cudaGetLastError();  // Takes the errors that do not stay.
  return cudaDeviceSynchronize() != cudaSuccess;
}

class GpuMachine final : public Machine {
 public:
  GpuMachine() : queue_(made_stream()) {}
  ~GpuMachine() override { cudaStreamDestroy(queue_.stream()); }
  GpuMachine(const GpuMachine&) = delete;
  GpuMachine& operator=(const GpuMachine&) = delete;

  std::byte* allocate(std::int64_t bytes, Use use, std::string name) override {
    void* data = nullptr;
    const auto size = static_cast<std::size_t>(bytes);
    const cudaError_t status = cudaMallocAsync(&data, size, queue_.stream());
    if (status != cudaSuccess) {
      if (problem_.empty()) {
        problem_ = fmt::format("{} bytes for {}: {}", bytes, name, cudaGetErrorString(status));
      }
      return nullptr;
    }
    // Bytes of NaN in every element type, so that what nobody writes is seen.
    if (use == Use::output || use == Use::scratch) {
      queue_.note(cudaMemsetAsync(data, 0xff, size, queue_.stream()));
    }
    return static_cast<std::byte*>(data);
  }

  void release(std::byte* data) override { cudaFreeAsync(data, queue_.stream()); }

  void write(std::byte* to, std::span<const std::byte> from) override {
    if (from.empty()) return;
    // The source is pageable: it has been read when this returns.
    queue_.note(
        cudaMemcpyAsync(to, from.data(), from.size(), cudaMemcpyHostToDevice, queue_.stream()));
  }

  void read(const std::byte* from, std::span<std::byte> to) override {
    if (to.empty()) return;
    queue_.note(
        cudaMemcpyAsync(to.data(), from, to.size(), cudaMemcpyDeviceToHost, queue_.stream()));
    queue_.note(cudaStreamSynchronize(queue_.stream()));
  }

  Queue& queue() override { return queue_; }
  const KernelTable& kernels() const override { return *gpu_kernels(); }

  std::optional<Failure> finish() override {
    queue_.note(cudaStreamSynchronize(queue_.stream()));
    const cudaError_t error = queue_.take_error();
    if (error == cudaSuccess && problem_.empty()) return std::nullopt;
    std::string detail = problem_.empty() ? fmt::format("{} ({})", cudaGetErrorString(error),
                                                        cudaGetErrorName(error))
                                          : std::exchange(problem_, "");
    if (context_is_lost())
      detail += "; the context is lost, and with it every session of its process";
    return Failure{Failure::Kind::crash, std::move(detail)};
  }

 private:
  static cudaStream_t made_stream() {
    cudaStream_t stream = nullptr;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
  }

  GpuQueue queue_;
  std::string problem_;
};

}  // namespace

std::string gpu_problem() { return found().problem; }
std::string gpu_name() { return found().name; }

std::unique_ptr<Machine> make_gpu_machine() {
  if (!gpu_problem().empty()) return nullptr;
  return std::make_unique<GpuMachine>();
}

}  // namespace kvcheck::kernels::device

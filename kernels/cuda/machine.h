// What a session of kernels/cuda runs on: memory of a device, and launches on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernels/cuda/kernel_table.h"
#include "kernels/cuda/queue.h"
#include "kernels/simt/global_memory.h"
#include "kernels/target.h"

namespace kvcheck::kernels::device {

using simt::Use;

class Machine {
 public:
  virtual ~Machine() = default;

  /// Memory for a positive number of bytes, aligned to 256. Where the device has no more: a null
  /// pointer, and finish() says so.
  virtual std::byte* allocate(std::int64_t bytes, Use use, std::string name) = 0;
  virtual void release(std::byte* data) = 0;
  /// Copies between the host and the device; ordered with launches.
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void read(const std::byte* from, std::span<std::byte> to) = 0;

  /// Says that the launches up to the next finish() write all of these bytes. A machine that
  /// watches its memory holds them to it.
  virtual void expect_written(const std::byte* begin, std::int64_t bytes) {
    (void)begin, (void)bytes;
  }

  /// Which store of a kernel left the byte as it is, in the words of Session::last_store. Empty
  /// where the machine does not record stores.
  virtual std::string last_store(const std::byte* address) const {
    (void)address;
    return "";
  }

  virtual Queue& queue() = 0;
  virtual const KernelTable& kernels() const = 0;
  /// Waits for every launch so far. \return what went wrong since the last call
  virtual std::optional<Failure> finish() = 0;
};

/// Memory of a machine that is released with its owner. Empty where it has no bytes.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Machine& machine, std::int64_t bytes, Use use, std::string name)
      : machine_(&machine),
        data_(bytes > 0 ? machine.allocate(bytes, use, std::move(name)) : nullptr),
        bytes_(data_ == nullptr ? 0 : bytes) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(machine_, other.machine_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBuffer() {
    if (data_ != nullptr) machine_->release(data_);
  }

  std::byte* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  Machine* machine_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// A copy of host memory that kernels read.
template <class T>
DeviceBuffer uploaded(Machine& machine, std::span<const T> values, std::string name) {
  const auto bytes = std::as_bytes(values);
  DeviceBuffer buffer(machine, static_cast<std::int64_t>(bytes.size()), Use::input,
                      std::move(name));
  if (buffer.data() != nullptr) machine.write(buffer.data(), bytes);
  return buffer;
}

}  // namespace kvcheck::kernels::device

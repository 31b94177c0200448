// The vocabulary of kernels (device.h) in terms of the thread that runs.
#include "kernels/simt/device.h"

#include <bit>
#include <cstring>
#include <string>

#include "kernels/simt/collectives.h"
#include "kernels/simt/launch.h"
#include "kernels/simt/runner.h"

namespace kvcheck::kernels::device {
namespace {

using simt::DefectKind;
using simt::Lane;
using simt::Operation;
using simt::Runner;

Lane& self() { return *static_cast<Lane*>(simt::running.thread); }

using Complete = void (*)(Runner&, simt::Meeting&);

/// One operand of a lane for one result.
std::uint32_t exchange_word(Operation operation, unsigned mask, std::uint32_t word,
                            Complete complete, Site site) {
  Lane& lane = self();
  lane.exchanged.in[0] = word;
  lane.runner->meet(operation, mask, site, complete);
  return lane.exchanged.out[0];
}

Sums multiply_add_of(Operation operation, const Sums& d, const Words& a, const Words& b,
                     Site site) {
  Lane& lane = self();
  std::uint32_t* const in = lane.exchanged.in.data();
  std::memcpy(in, a.word, 16);
  std::memcpy(in + 4, b.word, 8);
  std::memcpy(in + 6, d.value, 16);
  lane.runner->meet(operation, kAllLanes, site, &simt::complete_multiply_add);
  Sums sums;
  std::memcpy(sums.value, lane.exchanged.out.data(), 16);
  return sums;
}

/// The access of a vocabulary function, checked before it is made.
void note(const void* address, std::size_t bytes, bool write, bool atomic, void* code, Site site) {
  simt::note_access({.address = address,
                     .bytes = bytes,
                     .write = write,
                     .atomic = atomic,
                     .code = reinterpret_cast<std::uintptr_t>(code),
                     .site = site});
}

template <class T, class Change>
T change_atomically(T* at, void* code, Site site, Change change) {
  note(at, sizeof(T), true, true, code, site);
  T old;
  std::memcpy(&old, at, sizeof(T));
  const T changed = change(old);
  std::memcpy(at, &changed, sizeof(T));
  return old;
}

}  // namespace

unsigned thread_index() { return static_cast<unsigned>(simt::running.thread->index); }
Index3 block_index() { return self().runner->block_index(); }
unsigned block_threads() { return self().runner->shape().threads; }
Index3 grid_size() { return self().runner->shape().grid; }
unsigned lane_index() { return static_cast<unsigned>(simt::running.thread->lane); }
unsigned warp_index() { return static_cast<unsigned>(simt::running.thread->warp); }
unsigned char* shared_bytes() {
  return reinterpret_cast<unsigned char*>(self().runner->shared().data());
}

void sync_block(Site site) { self().runner->block_barrier(site); }
void sync_warp(unsigned mask, Site site) {
  self().runner->meet(Operation::sync_warp, mask, site, &simt::complete_sync);
}

std::uint32_t exchange_bits(Exchange how, unsigned mask, std::uint32_t bits, unsigned argument,
                            Site site) {
  self().exchanged.in[1] = argument;
  Operation operation = Operation::shuffle;
  switch (how) {
    case Exchange::from_lane:
      operation = Operation::shuffle;
      break;
    case Exchange::with_xor:
      operation = Operation::shuffle_xor;
      break;
    case Exchange::from_above:
      operation = Operation::shuffle_down;
      break;
    case Exchange::from_below:
      operation = Operation::shuffle_up;
      break;
  }
  return exchange_word(operation, mask, bits, &simt::complete_exchange, site);
}

unsigned ballot(unsigned mask, bool predicate, Site site) {
  return exchange_word(Operation::ballot, mask, predicate, &simt::complete_vote, site);
}
bool any_of(unsigned mask, bool predicate, Site site) {
  return exchange_word(Operation::any_of, mask, predicate, &simt::complete_vote, site) != 0;
}
bool all_of(unsigned mask, bool predicate, Site site) {
  return exchange_word(Operation::all_of, mask, predicate, &simt::complete_vote, site) != 0;
}
unsigned match_any(unsigned mask, unsigned value, Site site) {
  return exchange_word(Operation::match_any, mask, value, &simt::complete_match, site);
}

Packet load_packet(const void* from, Site site) {
  note(from, sizeof(Packet), false, false, __builtin_return_address(0), site);
  Packet packet;
  std::memcpy(&packet, from, sizeof packet);
  return packet;
}
Packet load_packet_once(const void* from, Site site) {
  note(from, sizeof(Packet), false, false, __builtin_return_address(0), site);
  Packet packet;
  std::memcpy(&packet, from, sizeof packet);
  return packet;
}
void store_packet(void* to, const Packet& packet, Site site) {
  note(to, sizeof packet, true, false, __builtin_return_address(0), site);
  std::memcpy(to, &packet, sizeof packet);
}

void copy_async(void* shared, const void* global, int bytes, Site site) {
  simt::maybe_yield();
  Lane& lane = self();
  Runner& runner = *lane.runner;
  const simt::RuntimeScope scope;
  if (bytes < 0 || bytes > static_cast<int>(simt::kCopyBytes)) {
    runner.report(DefectKind::out_of_bounds, site,
                  "copy_async reads 0 to 16 bytes, not " + std::to_string(bytes));
    runner.give_up();
  }
  const auto code = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  if (!runner.monitor().copy_begins(lane.index, shared, global, static_cast<std::size_t>(bytes),
                                    code, site)) {
    runner.give_up();
  }
  lane.copies.issue({.shared = static_cast<std::byte*>(shared),
                     .global = static_cast<const std::byte*>(global),
                     .bytes = bytes,
                     .site = site},
                    runner.order(), runner.random());
}
void commit_copies() { self().copies.commit(); }
void wait_copies_until(int pending) {
  Lane& lane = self();
  const simt::RuntimeScope scope;
  lane.copies.wait(pending, [&](const simt::CopyQueue::Copy& copy) {
    lane.monitor->copy_ends(lane.index, copy.shared, copy.global,
                            static_cast<std::size_t>(copy.bytes));
  });
}

unsigned atomic_add(unsigned* at, unsigned value, Site site) {
  return change_atomically(at, __builtin_return_address(0), site,
                           [=](unsigned old) { return old + value; });
}
float atomic_add(float* at, float value, Site site) {
  return change_atomically(at, __builtin_return_address(0), site,
                           [=](float old) { return old + value; });
}
int atomic_max(int* at, int value, Site site) {
  return change_atomically(at, __builtin_return_address(0), site,
                           [=](int old) { return old < value ? value : old; });
}
// Accesses of the runtime are never reordered.
void fence_device() { simt::maybe_yield(); }

Words load_matrices(MatrixLoad how, const void* row, Site site) {
  Operation operation = Operation::load_matrix_x2;
  switch (how) {
    case MatrixLoad::x2:
      operation = Operation::load_matrix_x2;
      break;
    case MatrixLoad::x4:
      operation = Operation::load_matrix_x4;
      break;
    case MatrixLoad::x2_transposed:
      operation = Operation::load_matrix_x2_transposed;
      break;
    case MatrixLoad::x4_transposed:
      operation = Operation::load_matrix_x4_transposed;
      break;
  }
  Lane& lane = self();
  lane.exchanged.address = row;
  lane.exchanged.code = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  lane.runner->meet(operation, kAllLanes, site, &simt::complete_load_matrix);
  Words words;
  std::memcpy(words.word, lane.exchanged.out.data(), 16);
  return words;
}

Sums multiply_add_f16(Sums d, Words a, Words b, Site site) {
  return multiply_add_of(Operation::multiply_add_f16, d, a, b, site);
}
Sums multiply_add_bf16(Sums d, Words a, Words b, Site site) {
  return multiply_add_of(Operation::multiply_add_bf16, d, a, b, site);
}

void run_kernel(Queue& queue, void (*body)(const void*), const LaunchShape& shape,
                const void* parameters, const void* kernel) {
  static_cast<simt::SimtQueue&>(queue).run(body, shape, parameters, kernel);
}

}  // namespace kvcheck::kernels::device

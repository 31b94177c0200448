// Moves rows within a cache (compaction), where the two ranges may overlap in either direction, or
// from one buffer to another (a stage). Rows of a KV head lie next to each other, so that what is
// moved is one range of bytes for each KV head of keys and of values.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/parameters.h"
#include "kernels/cuda/planted.h"
#include "kernels/cuda/queue.h"

namespace kvcheck::kernels::device {
namespace {

constexpr unsigned kMoveThreads = 256;
/// Blocks that share one range; where it overlaps its destination one of them does it all.
constexpr unsigned kMoveParts = 8;
constexpr int kMoveUnits = 4;  ///< A thread's, in one chunk.

struct ByteRange {
  const unsigned char* from;
  unsigned char* to;
  std::int64_t bytes;
};

KV_DEVICE ByteRange move_range(const MoveParameters& p, const MoveEntry& e, int which,
                               std::int64_t head, std::int64_t more_rows) {
  const std::int64_t row = which == 0 ? p.key_row_bytes : p.value_row_bytes;
  const std::int64_t from_stride = which == 0 ? e.key_from_stride : e.value_from_stride;
  const std::int64_t to_stride = which == 0 ? e.key_to_stride : e.value_to_stride;
  return {static_cast<const unsigned char*>(which == 0 ? e.key_from : e.value_from) +
              head * from_stride + e.from * row,
          static_cast<unsigned char*>(which == 0 ? e.key_to : e.value_to) + head * to_stride +
              e.to * row,
          (e.rows + more_rows) * row};
}

template <class Unit>
KV_DEVICE Unit load_unit(const Unit* from) {
  return *from;
}
template <>
KV_DEVICE Packet load_unit<Packet>(const Packet* from) {
  return load_packet(from);
}
template <class Unit>
KV_DEVICE void store_unit(Unit* to, const Unit& unit) {
  *to = unit;
}
template <>
KV_DEVICE void store_unit<Packet>(Packet* to, const Packet& unit) {
  store_packet(to, unit);
}

template <class Unit>
KV_DEVICE void copy_disjoint(const Unit* from, Unit* to, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(grid_size().y) * block_threads();
  for (std::int64_t i =
           block_index().y * static_cast<std::int64_t>(block_threads()) + thread_index();
       i < count; i += stride) {
    store_unit(to + i, load_unit(from + i));
  }
}

/// In chunks, from the end that nothing is written over: a chunk is read whole before any of it is
/// written, and what it writes over is nothing that a later chunk reads.
template <class Unit, Fault kFault>
KV_DEVICE void copy_overlapping(const Unit* from, Unit* to, std::int64_t count, bool ascending) {
  const std::int64_t threads = block_threads();
  const std::int64_t chunk = threads * kMoveUnits;
  for (std::int64_t done = 0; done < count; done += chunk) {
    Unit held[kMoveUnits];
    const std::int64_t rest = count - done;
    const std::int64_t taken = rest < chunk ? rest : chunk;
    const std::int64_t first = ascending ? done : rest - taken;
    KV_UNROLL
    for (int i = 0; i < kMoveUnits; ++i) {
      const std::int64_t at = thread_index() + i * threads;
      if (at < taken) held[i] = load_unit(from + first + at);
    }
    if constexpr (has(kFault, Fault::move_barrier_in_a_branch)) {
      if (thread_index() < taken) sync_block();
    } else if constexpr (!has(kFault, Fault::move_barrier_removed)) {
      sync_block();
    }
    KV_UNROLL
    for (int i = 0; i < kMoveUnits; ++i) {
      const std::int64_t at = thread_index() + i * threads;
      if (at < taken) store_unit(to + first + at, held[i]);
    }
  }
}

template <class Unit, Fault kFault>
KV_DEVICE void move_bytes(const ByteRange& range) {
  const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(range.from);
  const std::uintptr_t to = reinterpret_cast<std::uintptr_t>(range.to);
  const std::uintptr_t bytes = static_cast<std::uintptr_t>(range.bytes);
  const Unit* const source = reinterpret_cast<const Unit*>(range.from);
  Unit* const target = reinterpret_cast<Unit*>(range.to);
  const std::int64_t count = range.bytes / static_cast<std::int64_t>(sizeof(Unit));
  if (to >= from + bytes || from >= to + bytes) return copy_disjoint(source, target, count);
  if (block_index().y != 0 || to == from) return;
  const bool ascending = has(kFault, Fault::move_ascending_only) || to < from;
  copy_overlapping<Unit, kFault>(source, target, count, ascending);
}

template <Fault kFault>
KV_KERNEL void KV_LAUNCH_BOUNDS(kMoveThreads, 1) move_kernel(MoveParameters p) {
  const std::int64_t head = block_index().x / 2 % p.kv_heads;
  const std::int64_t entry = block_index().x / 2 / p.kv_heads;
  const MoveEntry& e = p.entries[entry];
  if (e.rows <= 0) return;
  constexpr std::int64_t kMore = has(kFault, Fault::move_row_too_many) ? 1 : 0;
  const ByteRange range = move_range(p, e, static_cast<int>(block_index().x % 2), head, kMore);
  const std::uintptr_t ends = reinterpret_cast<std::uintptr_t>(range.from) |
                              reinterpret_cast<std::uintptr_t>(range.to) |
                              static_cast<std::uintptr_t>(range.bytes);
  if (ends % 16 == 0) {
    move_bytes<Packet, kFault>(range);
  } else if (ends % 4 == 0) {
    move_bytes<std::uint32_t, kFault>(range);
  } else {
    move_bytes<std::uint8_t, kFault>(range);
  }
}

/// \pre 2 * batch * kv_heads < 2^31
template <Fault kFault = Fault::none>
void launch_move(Queue& queue, const MoveParameters& p) {
  if (p.batch == 0) return;
  LaunchShape shape;
  shape.grid.x = 2u * static_cast<std::uint32_t>(p.batch) * static_cast<std::uint32_t>(p.kv_heads);
  shape.grid.y = kMoveParts;
  shape.threads = kMoveThreads;
  launch(queue, move_kernel<kFault>, shape, p);
}

}  // namespace
}  // namespace kvcheck::kernels::device

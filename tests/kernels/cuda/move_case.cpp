// Rows to move, and where they lie then, by plain loops.
#include "tests/kernels/cuda/move_case.h"

namespace kvcheck::kernels::device {
namespace {

std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

std::int64_t rows_to(const MoveCase& one) { return one.rows + (one.to_another_buffer ? 3 : 0); }

std::vector<std::byte> filled(const MoveCase& one, std::int64_t rows, std::int64_t row_bytes,
                              std::uint32_t salt) {
  const std::int64_t heads = one.kv_heads * static_cast<std::int64_t>(one.moves.size());
  std::vector<std::byte> bytes(index(heads * rows * row_bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>((static_cast<std::uint32_t>(i) + salt) * 2654435761u >> 24);
  }
  return bytes;
}

std::vector<std::byte> expected_half(const MoveCase& one, std::int64_t row_bytes,
                                     std::uint32_t salt) {
  const std::vector<std::byte> before = filled(one, one.rows, row_bytes, salt);
  std::vector<std::byte> after =
      one.to_another_buffer ? filled(one, rows_to(one), row_bytes, salt + 77) : before;
  for (std::size_t b = 0; b < one.moves.size(); ++b) {
    const MoveRows& move = one.moves[b];
    for (std::int64_t head = 0; head < one.kv_heads; ++head) {
      const std::int64_t number = static_cast<std::int64_t>(b) * one.kv_heads + head;
      for (std::int64_t i = 0; i < move.rows * row_bytes; ++i) {
        after[index((number * rows_to(one) + move.to) * row_bytes + i)] =
            before[index((number * one.rows + move.from) * row_bytes + i)];
      }
    }
  }
  return after;
}

}  // namespace

Outcome run_move(const MoveCase& one, const KernelTable& kernels, simt::Order order) {
  using simt::Use;
  World world(order);
  const std::int64_t row_bytes[] = {one.key_row_bytes, one.value_row_bytes};
  std::byte *from[2], *to[2];
  std::size_t bytes[2];
  for (std::size_t i = 0; i < 2; ++i) {
    const std::uint32_t salt = i == 0 ? 0 : 5;
    const auto source = filled(one, one.rows, row_bytes[i], salt);
    const auto target = filled(one, rows_to(one), row_bytes[i], salt + 77);
    from[i] = to[i] =
        world.put(source, one.to_another_buffer ? Use::input : Use::read_write, "cache", one.shift);
    if (one.to_another_buffer) to[i] = world.put(target, Use::read_write, "stage", one.shift);
    bytes[i] = target.size();
  }
  std::vector<MoveEntry> entries;
  for (std::size_t b = 0; b < one.moves.size(); ++b) {
    const std::int64_t heads = static_cast<std::int64_t>(b) * one.kv_heads;
    const auto place = [&](std::byte* first, std::int64_t rows, std::size_t i) {
      return first + heads * rows * row_bytes[i];
    };
    entries.push_back({place(from[0], one.rows, 0), place(to[0], rows_to(one), 0),
                       place(from[1], one.rows, 1), place(to[1], rows_to(one), 1),
                       one.rows * row_bytes[0], rows_to(one) * row_bytes[0],
                       one.rows * row_bytes[1], rows_to(one) * row_bytes[1], one.moves[b].from,
                       one.moves[b].to, one.moves[b].rows});
  }
  MoveParameters p{};
  p.entries = world.put(entries, Use::input, "entries");
  p.key_row_bytes = one.key_row_bytes;
  p.value_row_bytes = one.value_row_bytes;
  p.batch = static_cast<std::int32_t>(one.moves.size());
  p.kv_heads = one.kv_heads;
  kernels.move(world.queue(), p);
  Outcome outcome{world.get(to[0], bytes[0]), world.queue().take_defects()};
  append_bytes(outcome.bytes, world.get(to[1], bytes[1]));
  return outcome;
}

std::vector<std::byte> expected_move(const MoveCase& one) {
  std::vector<std::byte> bytes = expected_half(one, one.key_row_bytes, 0);
  append_bytes(bytes, expected_half(one, one.value_row_bytes, 5));
  return bytes;
}

std::vector<MoveCase> move_cases() {
  std::vector<MoveCase> cases;
  MoveCase one;
  one.moves = {{3, 0, 5}, {0, 0, 0}, {0, 2, 6}, {4, 0, 4}, {1, 1, 5}};
  cases.push_back(one);
  one.key_row_bytes = 20;
  one.value_row_bytes = 7;  // Bytes: no row of it is aligned.
  cases.push_back(one);
  one.shift = 2;
  cases.push_back(one);
  one.shift = 0;
  one.key_row_bytes = 256;
  one.value_row_bytes = 12;
  one.rows = 200;  // Several chunks of 256 threads x 4 units, and a last one that is not full.
  one.moves = {{1, 0, 199}, {0, 3, 190}, {70, 0, 130}};
  cases.push_back(one);
  one.to_another_buffer = true;
  one.moves = {{72, 0, 128}, {0, 3, 200}, {3, 0, 1}};
  cases.push_back(one);
  return cases;
}

}  // namespace kvcheck::kernels::device

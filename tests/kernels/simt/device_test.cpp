// Memory and matrix operations of the vocabulary, as kernels call them.
#include <cstdint>

#include "tests/kernels/simt/test_launch.h"

namespace kvcheck::kernels::device {
namespace {

constexpr const char* kFile = "tests/kernels/simt/device_test.cpp";

struct Arrays {
  std::uint32_t* to;
  const std::uint32_t* from;
};

KV_KERNEL void move_packets(Arrays p) {
  const unsigned thread = thread_index();
  const Packet first = load_packet(p.from + 8 * thread);
  const Packet second = load_packet_once(p.from + 8 * thread + 4);
  store_packet(p.to + 8 * thread, second);
  store_packet(p.to + 8 * thread + 4, first);
}

TEST(Device, PacketsAreSixteenBytes) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 1});
    auto* const from = test.allocate<std::uint32_t>(256, simt::Use::input);
    auto* const to = test.allocate<std::uint32_t>(256, simt::Use::output);
    for (std::uint32_t i = 0; i < 256; ++i) from[i] = i;
    launch(test.queue, move_packets, {.grid = {}, .threads = 32}, Arrays{to, from});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(to[i], i ^ 4U);
  }
}

constexpr int kFarLine = __LINE__ + 3;
KV_KERNEL void reads_far_away(Arrays p) {
  const std::uint64_t far = thread_index() == 7 ? std::uint64_t{1} << 40 : 0;
  p.to[0] = load_packet(p.from + far).word[0];
}

TEST(Device, AnAccessFarOutsideEndsTheLaunchNotTheProgram) {
  simt::TestQueue test;
  auto* const from = test.allocate<std::uint32_t>(4, simt::Use::input);
  auto* const to = test.allocate<std::uint32_t>(4);
  launch(test.queue, reads_far_away, {.grid = {3, 1, 1}, .threads = 32}, Arrays{to, from});
  const simt::Defect defect = simt::only_defect(test.queue);
  EXPECT_EQ(defect.kind, simt::DefectKind::out_of_bounds);
  EXPECT_EQ(defect.place.file, kFile);
  EXPECT_EQ(defect.place.line, kFarLine);
  EXPECT_EQ(defect.thread, 7);
}

struct Totals {
  unsigned* count;
  float* sum;
  int* most;
  unsigned* seen;  ///< [threads] what each found before it added.
};

KV_KERNEL void total(Totals p) {
  const unsigned thread = block_index().x * block_threads() + thread_index();
  p.seen[thread] = atomic_add(p.count, 1U);
  atomic_add(p.sum, 0.5F);
  atomic_max(p.most, static_cast<int>(thread * 7 % 257) - 300);
  fence_device();
}

TEST(Device, AtomicsLoseNothing) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 1});
    auto* const count = test.allocate<unsigned>(1);
    auto* const sum = test.allocate<float>(1);
    auto* const most = test.allocate<int>(1);
    *count = 0;
    *sum = 0;
    *most = -1000;
    std::vector<unsigned> seen(256);
    launch(test.queue, total, {.grid = {2, 1, 1}, .threads = 128},
           Totals{count, sum, most, seen.data()});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    EXPECT_EQ(*count, 256U);
    EXPECT_EQ(*sum, 128.0F);
    EXPECT_EQ(*most, -44);  // 256 - 300: thread 110 has 770 = 2 * 257 + 256.
    std::vector<bool> found(256);
    for (const unsigned x : seen) found[x] = true;
    EXPECT_EQ(found, std::vector<bool>(256, true));
  }
}

struct Loads {
  std::uint32_t* out;  ///< [lanes][12]
};

// Four matrices: element (r, c) of matrix i is 1000 i + 10 r + c, rows 32 bytes apart.
KV_KERNEL void load_all(Loads p) {
  KV_SHARED_BYTES(shared);
  const unsigned lane = lane_index();
  unsigned char* const row = shared + 32 * lane;
  const auto word = [&](unsigned c) {
    const unsigned value = 1000 * (lane / 8) + 10 * (lane % 8) + c;
    return value | (value + 1) << 16;
  };
  store_packet(row, {{word(0), word(2), word(4), word(6)}});
  sync_warp();
  unsigned four[4], two[2];
  std::uint32_t* const out = p.out + 12 * lane;
  load_matrix_x4(four, row);
  for (int i = 0; i < 4; ++i) out[i] = four[i];
  load_matrix_x4_transposed(four, row);
  for (int i = 0; i < 4; ++i) out[4 + i] = four[i];
  // Rows of lanes behind the last matrix are not read.
  load_matrix_x2(two, lane < 16 ? row : nullptr);
  for (int i = 0; i < 2; ++i) out[8 + i] = two[i];
  load_matrix_x2_transposed(two, lane < 16 ? row : nullptr);
  for (int i = 0; i < 2; ++i) out[10 + i] = two[i];
}

TEST(Device, LdmatrixHandsOutRowsOrColumns) {
  for (const simt::Order order : simt::kAllOrders) {
    simt::TestQueue test({order, 1});
    std::vector<std::uint32_t> out(32 * 12);
    launch(test.queue, load_all, {.grid = {}, .threads = 32, .shared_bytes = 1024},
           Loads{out.data()});
    EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      for (std::uint32_t i = 0; i < 4; ++i) {
        const std::uint32_t plain = 1000 * i + 10 * (lane / 4) + 2 * (lane % 4);
        const std::uint32_t across = 1000 * i + 10 * (2 * (lane % 4)) + lane / 4;
        const std::uint32_t* const at = out.data() + lane * 12;
        EXPECT_EQ(at[i], plain | (plain + 1) << 16);
        EXPECT_EQ(at[4 + i], across | (across + 10) << 16);
        if (i < 2) {
          EXPECT_EQ(at[8 + i], plain | (plain + 1) << 16);
          EXPECT_EQ(at[10 + i], across | (across + 10) << 16);
        }
      }
    }
  }
}

struct Row {
  std::uint32_t offset;  ///< Of lane 5's row.
  const void* instead;
};

constexpr int kRowLine = __LINE__ + 8;
KV_KERNEL void load_one(Row p) {
  KV_SHARED_BYTES(shared);
  const unsigned lane = lane_index();
  store_packet(shared + 16 * lane, {{1, 2, 3, 4}});
  sync_warp();
  unsigned r[4];
  const void* const odd = p.instead != nullptr ? p.instead : shared + 16 * lane + p.offset;
  load_matrix_x4(r, lane == 5 ? odd : shared + 16 * lane);
}

TEST(Device, RowsOfLdmatrixAreAlignedAndInSharedMemory) {
  const Packet outside{};
  for (const Row& row : {Row{8, nullptr}, Row{0, &outside}, Row{1 << 20, nullptr}}) {
    simt::TestQueue test;
    launch(test.queue, load_one, {.grid = {}, .threads = 32, .shared_bytes = 1024}, row);
    const simt::Defect defect = simt::only_defect(test.queue);
    EXPECT_EQ(defect.kind, simt::DefectKind::matrix_operands);
    EXPECT_EQ(defect.place.file, kFile);
    EXPECT_EQ(defect.place.line, kRowLine);
    EXPECT_EQ(defect.thread, 5);
    EXPECT_EQ(defect.detail, row.offset == 8
                                 ? "load_matrix_x4: the row of lane 5 is not aligned to 16 bytes"
                                 : "load_matrix_x4: the row of lane 5 is not in shared memory");
  }
}

struct Product {
  float* d;  ///< [16][8]
};

// a[m][k] = m - k, b[k][n] = k + 2 n, d = 1: fragments made from their documented places.
template <class E>
KV_KERNEL void multiply(Product p) {
  const int group = static_cast<int>(lane_index() / 4),
            pair = static_cast<int>(lane_index() % 4) * 2;
  const auto a = [](int m, int k) {
    return pack<E>(static_cast<float>(m - k), static_cast<float>(m - k - 1));
  };
  const auto b = [](int k, int n) {
    return pack<E>(static_cast<float>(k + 2 * n), static_cast<float>(k + 1 + 2 * n));
  };
  const unsigned left[4] = {a(group, pair), a(group + 8, pair), a(group, pair + 8),
                            a(group + 8, pair + 8)};
  const unsigned right[2] = {b(pair, group), b(pair + 8, group)};
  float d[4] = {1, 1, 1, 1};
  multiply_add<E>(d, left, right);
  p.d[group * 8 + pair] = d[0];
  p.d[group * 8 + pair + 1] = d[1];
  p.d[(group + 8) * 8 + pair] = d[2];
  p.d[(group + 8) * 8 + pair + 1] = d[3];
}

TEST(Device, MatrixProductsOfAWarp) {
  for (const simt::Order order : simt::kAllOrders) {
    for (auto* const kernel : {&multiply<F16>, &multiply<BF16>}) {
      simt::TestQueue test({order, 1});
      float d[128] = {};
      launch(test.queue, kernel, {.grid = {}, .threads = 32}, Product{d});
      EXPECT_EQ(simt::sentences_of(test.queue.take_defects()), std::vector<std::string>{});
      EXPECT_EQ(test.queue.counters().matrix_products, 1);
      for (int m = 0; m < 16; ++m) {
        for (int n = 0; n < 8; ++n) {
          int sum = 1;
          for (int k = 0; k < 16; ++k) sum += (m - k) * (k + 2 * n);
          EXPECT_EQ(d[m * 8 + n], static_cast<float>(sum)) << m << " " << n;
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device

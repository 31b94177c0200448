// Which kernel computes an entry, how its launch is cut, and that neither depends on the company
// or on the cache.
#include "kernels/cuda/device_attention.h"

#include <random>

#include <gtest/gtest.h>

#include "kernels/cpu/element.h"
#include "kernels/cuda/cuda_simt.h"
#include "kernels/cuda/takes.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels::device {
namespace {

struct Choice {
  const char* name;
  ElementType type;
  std::int64_t head_size;
  std::int64_t group;  ///< Query heads of the one KV head.
  std::int64_t queries;
  std::string asked;
  AttentionKernel kernel;
  bool int8 = false;
};

void PrintTo(const Choice& choice, std::ostream* out) { *out << choice.name; }

SessionConfig config_of(const Choice& choice) {
  SessionConfig config = full_cache();
  config.element_type = choice.type;
  config.query_heads = choice.group;
  config.head_size = config.value_head_size = choice.head_size;
  if (choice.int8) config.quantisation.kind = "int8";
  if (!choice.asked.empty()) config.launch = LaunchConfig{.kernel = choice.asked};
  return config;
}

using enum AttentionKernel;
constexpr auto kF32 = ElementType::f32, kF16 = ElementType::f16, kBf16 = ElementType::bf16;

// Rows of a tile = group x queries: 8 are enough for decode_matrix, 64 for prefill.
const Choice kChoices[] = {
    {"f32_has_one_kernel", kF32, 64, 8, 64, "", unfused},
    {"f32_whatever_is_asked_for", kF32, 64, 8, 64, "prefill", unfused},
    {"one_row", kF16, 64, 1, 1, "", decode},
    {"seven_rows", kF16, 64, 7, 1, "", decode},
    {"eight_heads", kF16, 64, 8, 1, "", decode_matrix},
    {"eight_rows_of_two_heads", kBf16, 64, 2, 4, "", decode_matrix},
    {"sixty_three_rows", kF16, 64, 1, 63, "", decode_matrix},
    {"sixty_four_rows", kF16, 64, 1, 64, "", prefill},
    {"sixty_four_rows_of_a_group", kF16, 64, 8, 8, "", prefill},
    {"heads_that_are_no_packet", kF16, 12, 8, 8, "", unfused},
    {"wide_heads_have_no_matrix_decode", kF16, 256, 8, 1, "", decode},
    {"wide_heads_have_prefill", kF16, 256, 8, 8, "", prefill},
    {"wider_heads_have_neither", kF16, 264, 8, 8, "", unfused},
    {"int8_has_decode_alone", kF16, 64, 8, 64, "", decode, true},
    {"int8_packets_are_wider", kF16, 72, 8, 1, "", unfused, true},
    {"asked_for_unfused", kF16, 64, 8, 8, "unfused", unfused},
    {"asked_for_prefill", kF16, 64, 1, 1, "prefill", prefill},
    {"asked_for_decode", kF16, 64, 8, 64, "decode", decode},
    {"asked_for_what_it_does_not_take", kF16, 64, 8, 1, "prefill", decode, true},
    {"asked_for_any", kF16, 64, 1, 1, "any", decode},
};

class ChosenKernel : public testing::TestWithParam<Choice> {};

TEST_P(ChosenKernel, IsTheFastestThatTakesTheEntry) {
  const Choice& choice = GetParam();
  EXPECT_EQ(to_string(chosen_kernel(config_of(choice), simt_kernels(), choice.queries)),
            to_string(choice.kernel));
}

TEST_P(ChosenKernel, DependsOnNeitherCompanyNorCache) {
  const Choice& choice = GetParam();
  SessionConfig other = config_of(choice);
  other.batch = 7;
  other.capacity = 1000;
  other.window_size = 3;
  other.layout = "block";
  other.share_buffers = false;
  EXPECT_EQ(chosen_kernel(other, simt_kernels(), choice.queries), choice.kernel);
}

INSTANTIATE_TEST_SUITE_P(All, ChosenKernel, testing::ValuesIn(kChoices),
                         [](const auto& choice) { return std::string(choice.param.name); });

TEST(DeviceAttention, ChoosesOfTheKernelsThatAWorldHas) {
  KernelTable table = simt_kernels();
  const SessionConfig config = config_of({"", kF16, 64, 1, 64, "prefill", unfused});
  table.prefill = nullptr;
  EXPECT_EQ(chosen_kernel(config, table, 64), decode_matrix);
  table.decode_matrix = nullptr;
  EXPECT_EQ(chosen_kernel(config, table, 64), decode);
  table.decode = nullptr;
  EXPECT_EQ(chosen_kernel(config, table, 64), unfused);
}

EntryView entry(std::int64_t first_position, std::int64_t live, std::int64_t queries = 1) {
  EntryView view{};
  view.first_position = first_position;
  view.live = live;
  view.queries = queries;
  view.origin = first_position + live - queries;
  return view;
}

void expect_splits(const Splits& found, std::int64_t positions, std::int64_t first,
                   std::int64_t count) {
  EXPECT_EQ(found.positions, positions);
  EXPECT_EQ(found.first, first);
  EXPECT_EQ(found.count, count);
}

Splits splits(const std::vector<EntryView>& entries, std::int64_t positions = 0,
              std::int64_t window = -1) {
  return splits_of(full_cache(window), entries, positions);
}

TEST(DeviceAttention, SplitsCoverThePositionsThatAreSeen) {
  expect_splits(splits({entry(0, 1)}), 512, 0, 1);
  expect_splits(splits({entry(0, 512)}), 512, 0, 1);
  expect_splits(splits({entry(0, 513)}), 512, 0, 2);
  expect_splits(splits({entry(0, 1025)}), 512, 0, 3);
  expect_splits(splits({entry(600, 500)}), 512, 1, 2);   // Positions 600 to 1099.
  expect_splits(splits({entry(1024, 100)}), 512, 2, 1);  // 1024 to 1123.
  expect_splits(splits({entry(0, 1), entry(1024, 100)}), 512, 0, 3);
}

TEST(DeviceAttention, SplitsAreMultiplesOfTheUnitWhateverIsAskedFor) {
  expect_splits(splits({entry(0, 1025)}, 1), 256, 0, 5);
  expect_splits(splits({entry(0, 1025)}, 256), 256, 0, 5);
  expect_splits(splits({entry(0, 1025)}, 257), 512, 0, 3);
  expect_splits(splits({entry(0, 1025)}, 4000), 4096, 0, 1);
}

TEST(DeviceAttention, SplitsStayWithinTheAxisOfAGrid) {
  constexpr std::int64_t kAxis = 65535;
  EXPECT_EQ(splits({entry(0, 33'000'000)}).positions, 512);
  for (const std::int64_t length : {34'000'000LL, 2'147'483'647LL}) {
    const Splits found = splits({entry(0, length)});
    EXPECT_LE(found.count, kAxis);
    EXPECT_GE(found.positions * found.count, length);
    EXPECT_EQ(found.positions % 256, 0);
  }
}

TEST(DeviceAttention, AWindowCutsTheSameSplitsInAnyCache) {
  // The query at 1299 sees 1290 to 1299, in rows of a full cache and of one of 12 rows.
  expect_splits(splits({entry(0, 1300)}, 0, 10), 512, 2, 1);
  expect_splits(splits({entry(1288, 12)}, 0, 10), 512, 2, 1);
  // Four queries at 1022 to 1025: the first sees 1013.
  expect_splits(splits({entry(0, 1026, 4)}, 0, 10), 512, 1, 2);
}

TEST(DeviceAttention, EntriesThatAskNothingAreNotCut) {
  expect_splits(splits({}), kSplitUnit, 0, 1);
  expect_splits(splits({entry(0, 5000, 0)}), kSplitUnit, 0, 1);
  expect_splits(splits({entry(0, 0)}), kSplitUnit, 0, 1);
  expect_splits(splits({entry(0, 100)}, 0, 0), kSplitUnit, 0, 1);  // Nothing is in sight.
  expect_splits(splits({entry(0, 5000, 0), entry(0, 100)}), 512, 0, 1);
}

/// Keys, values and queries of one entry: [tokens, 1, lanes].
struct Rows {
  Numbers query, key, value;
};

Rows random_rows(std::int64_t tokens, std::int64_t lanes, std::uint32_t seed) {
  std::mt19937 engine(seed);
  Rows rows;
  for (Numbers* numbers : {&rows.query, &rows.key, &rows.value}) {
    for (std::int64_t i = 0; i < tokens * lanes; ++i) {
      numbers->push_back(static_cast<double>(engine() % 2001) / 1000 - 1);
    }
  }
  return rows;
}

/// The first step of a session with one head: the bytes of the real outputs of every entry.
std::vector<std::vector<std::byte>> answers(const std::vector<Rows>& entries, std::int64_t lanes) {
  SessionConfig config = full_cache();
  config.element_type = kF16;
  config.batch = static_cast<std::int64_t>(entries.size());
  config.head_size = config.value_head_size = lanes;
  config.capacity = 70;
  config.launch = LaunchConfig{.order = "random", .seed = 5};
  StepRequest request;
  std::size_t most = 0;
  for (const Rows& rows : entries) {
    request.tokens.push_back(static_cast<std::int64_t>(rows.key.size()) / lanes);
    most = std::max(most, rows.key.size());
  }
  request.queries = request.tokens;
  const auto padded = [&](Numbers Rows::*member) {
    Numbers all;
    for (const Rows& rows : entries) {
      all.insert(all.end(), (rows.*member).begin(), (rows.*member).end());
      all.resize(all.size() + most - (rows.*member).size(), 7);
    }
    return tensor_of(kF16, {config.batch, static_cast<std::int64_t>(most) / lanes, 1, lanes}, all);
  };
  request.query = padded(&Rows::query);
  request.key = padded(&Rows::key);
  request.value = padded(&Rows::value);
  auto opened = make_cuda_simt()->open(config);
  auto answer = std::get<std::unique_ptr<Session>>(opened)->step(request);
  const Tensor& output = std::get<StepResult>(answer).output.value();
  std::vector<std::vector<std::byte>> found;
  for (std::size_t b = 0; b < entries.size(); ++b) {
    const auto begin = output.bytes.begin() + static_cast<std::ptrdiff_t>(b * most * 2);
    found.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(entries[b].key.size() * 2));
  }
  return found;
}

TEST(DeviceAttention, EntriesOfOneStepHaveKernelsOfTheirOwn) {
  // 64 queries are for prefill, 9 for decode_matrix, one for decode; each answers as if alone.
  constexpr std::int64_t kLanes = 8;
  const std::vector<Rows> entries = {random_rows(64, kLanes, 1), random_rows(9, kLanes, 2),
                                     random_rows(1, kLanes, 3)};
  const auto together = answers(entries, kLanes);
  for (std::size_t b = 0; b < entries.size(); ++b) {
    EXPECT_EQ(together[b], answers({entries[b]}, kLanes)[0]) << "entry " << b;
  }
}

}  // namespace
}  // namespace kvcheck::kernels::device

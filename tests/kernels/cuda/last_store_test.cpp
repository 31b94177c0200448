// What a session of cuda-simt says of the store behind an element: of outputs by each kernel, of
// rows that were appended, moved, staged or put there by the host, under every order of threads.
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "kernels/cuda/cuda_simt.h"
#include "kernels/cuda/takes.h"
#include "tests/kernels/cpu_sequence.h"

namespace kvcheck::kernels {
namespace {

using Of = ElementPlace::Of;

/// A session that records stores, and requests for it.
class Recorded {
 public:
  explicit Recorded(SessionConfig config) : target_(make_cuda_simt()), requests_(plain(config)) {
    config.record_stores = true;
    auto opened = target_->open(config);
    session_ = std::move(std::get<std::unique_ptr<Session>>(opened));
  }

  void append(const Counts& tokens, const Counts& queries) {
    const StepRequest request = requests_.request(tokens, queries);
    const auto answer = session_->step(request);
    EXPECT_TRUE(std::holds_alternative<StepResult>(answer));
    requests_.run(request);
  }
  void append(const Counts& tokens) { append(tokens, tokens); }

  std::string last(const ElementPlace& place) const { return session_->last_store(place); }
  Session& session() { return *session_; }

 private:
  static SessionConfig plain(SessionConfig config) {
    config.launch.reset();
    return config;
  }

  std::unique_ptr<Target> target_;
  Sequence requests_;
  std::unique_ptr<Session> session_;
};

SessionConfig heads(SessionConfig config, std::string order, std::string kernel = "any") {
  config.element_type = ElementType::f16;
  config.query_heads = 4;
  config.kv_heads = 2;
  config.head_size = config.value_head_size = 8;
  config.launch = LaunchConfig{.order = std::move(order), .seed = 3, .kernel = std::move(kernel)};
  return config;
}

constexpr const char* kOrders[] = {"lockstep", "random", "reverse", "priority", "starve"};

/// Whether the store is one of the kernel, which begins in the file.
testing::AssertionResult is_of(const std::string& store, const std::string& file,
                               const std::string& kernel) {
  if (store.starts_with("stored at kernels/cuda/") &&
      store.find(" of " + kernel + " (kernels/cuda/" + file + ":") < store.find(", launch ")) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << store;
}

TEST(LastStore, OfAnOutputIsInItsKernelUnderEveryOrder) {
  struct Kernel {
    const char* launch;
    const char* file;
    const char* kernel;
  };
  for (const Kernel& one : {Kernel{"unfused", "unfused.cuh", "unfused_values_kernel"},
                            Kernel{"decode", "decode.cuh", "decode_kernel"},
                            Kernel{"decode_matrix", "decode_matrix.cuh", "decode_matrix_kernel"},
                            Kernel{"prefill", "prefill.cuh", "prefill_kernel"}}) {
    for (const char* order : kOrders) {
      SessionConfig config = heads(full_cache(), order, one.launch);
      config.batch = 2;
      Recorded recorded(config);
      recorded.append({3, 5});
      for (std::int64_t lane = 0; lane < 8; ++lane) {
        EXPECT_TRUE(is_of(recorded.last({Of::output, 1, 3, 4, lane}), one.file, one.kernel))
            << order;
      }
    }
  }
}

TEST(LastStore, OfSplitsIsInTheMergeAfterTheirOwn) {
  SessionConfig config = heads(full_cache(), "lockstep", "decode");
  config.capacity = 2 * device::kSplitUnit;
  config.launch->split_positions = device::kSplitUnit;
  Recorded recorded(config);
  recorded.append({device::kSplitUnit + 1}, {0});
  recorded.append({1});
  const std::string merged = recorded.last({Of::output, 0, 0, 0, 0});
  EXPECT_TRUE(is_of(merged, "merge.cuh", "merge_kernel"));
  const std::string after = "after it had read what was ";
  ASSERT_NE(merged.find(after), std::string::npos) << merged;
  EXPECT_TRUE(
      is_of(merged.substr(merged.find(after) + after.size()), "decode.cuh", "decode_kernel"));
}

TEST(LastStore, OfARowIsTheAppendOrTheMove) {
  for (const char* order : kOrders) {
    Recorded recorded(heads(block_cache(6, 4), order));
    recorded.append({6});
    for (const Of of : {Of::key, Of::value}) {
      EXPECT_TRUE(is_of(recorded.last({of, 0, 1, 5, 7}), "append.cuh", "append_kernel")) << order;
    }
    recorded.append({1});  // Rows move to the front, and the new one is behind them.
    EXPECT_TRUE(is_of(recorded.last({Of::key, 0, 1, 0, 0}), "move.cuh", "move_kernel")) << order;
    EXPECT_TRUE(is_of(recorded.last({Of::key, 0, 1, 3, 0}), "append.cuh", "append_kernel"));
    // Nobody has written over what the move left behind.
    EXPECT_TRUE(is_of(recorded.last({Of::key, 0, 1, 5, 0}), "append.cuh", "append_kernel"));
    recorded.append({5});  // On a stage, and back.
    EXPECT_TRUE(is_of(recorded.last({Of::value, 0, 0, 0, 0}), "move.cuh", "move_kernel")) << order;
  }
}

TEST(LastStore, TellsRowsHeadsEntriesAndQueriesApart) {
  SessionConfig config = heads(full_cache(), "lockstep");
  config.batch = 2;
  Recorded recorded(config);
  std::set<std::string> stores;
  for (int step = 0; step < 3; ++step) recorded.append({1, 1});
  for (const Of of : {Of::key, Of::value}) {
    for (std::int64_t entry = 0; entry < 2; ++entry) {
      for (std::int64_t head = 0; head < 2; ++head) {
        for (std::int64_t row = 0; row < 3; ++row) {
          // A warp for each row, which one of its threads stores whole.
          const std::string store = recorded.last({of, entry, head, row, 7});
          EXPECT_TRUE(stores.insert(store).second) << store;
          EXPECT_EQ(recorded.last({of, entry, head, row, 0}), store);
          // Each step launches the append, and then attention.
          EXPECT_TRUE(store.ends_with(", launch " + std::to_string(1 + 2 * row))) << store;
        }
        EXPECT_EQ(recorded.last({of, entry, head, 3, 0}), "stored by no kernel");
      }
    }
  }
  recorded.append({2, 2});
  stores.clear();
  for (std::int64_t entry = 0; entry < 2; ++entry) {
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t query = 0; query < 2; ++query) {
        for (std::int64_t lane = 0; lane < 8; ++lane) {
          const std::string store = recorded.last({Of::output, entry, head, query, lane});
          EXPECT_TRUE(stores.insert(store).second) << store;
        }
      }
    }
  }
}

TEST(LastStore, OfWhatTheHostWroteIsNobodys) {
  Recorded recorded(heads(full_cache(), "lockstep"));
  recorded.append({2});
  EXPECT_EQ(recorded.last({Of::key, 0, 0, 2, 0}), "stored by no kernel");
  const auto shape = [&](std::int64_t rows) {
    return Tensor::zeros(ElementType::f16, {1, 2, rows, 8});
  };
  EXPECT_TRUE(std::holds_alternative<std::monostate>(
      recorded.session().load({{3}, {shape(16), shape(16)}})));
  EXPECT_EQ(recorded.last({Of::key, 0, 0, 0, 0}), "stored by no kernel");
}

TEST(LastStore, OfAnOutputIsKnownUntilTheNextStep) {
  Recorded recorded(heads(full_cache(), "lockstep"));
  EXPECT_EQ(recorded.last({Of::output, 0, 0, 0, 0}), "");
  recorded.append({2});
  EXPECT_NE(recorded.last({Of::output, 0, 0, 1, 0}), "");
  recorded.append({1}, {0});
  EXPECT_EQ(recorded.last({Of::output, 0, 0, 0, 0}), "");
}

TEST(LastStore, IsEmptyWhereThereIsNoSuchElement) {
  Recorded recorded(heads(full_cache(), "lockstep"));
  recorded.append({2});
  for (const ElementPlace& outside :
       {ElementPlace{Of::output, 1, 0, 0, 0}, ElementPlace{Of::output, 0, 4, 0, 0},
        ElementPlace{Of::output, 0, 0, 2, 0}, ElementPlace{Of::output, 0, 0, 0, 8},
        ElementPlace{Of::output, -1, 0, 0, 0}, ElementPlace{Of::key, 1, 0, 0, 0},
        ElementPlace{Of::key, 0, 2, 0, 0}, ElementPlace{Of::value, 0, 0, 16, 0},
        ElementPlace{Of::value, 0, 0, 0, 8}, ElementPlace{Of::value, 0, 0, -1, 0}}) {
    EXPECT_EQ(recorded.last(outside), "");
  }
}

TEST(LastStore, IsEmptyWhereNobodyAskedForIt) {
  const SessionConfig config = heads(full_cache(), "lockstep");
  const auto target = make_cuda_simt();
  EXPECT_TRUE(target->capabilities().has("last_store"));
  auto opened = target->open(config);
  Session& session = *std::get<std::unique_ptr<Session>>(opened);
  SessionConfig plain = config;
  plain.launch.reset();
  EXPECT_TRUE(std::holds_alternative<StepResult>(session.step(Sequence(plain).request({2}, {2}))));
  EXPECT_EQ(session.last_store({Of::key, 0, 0, 0, 0}), "");
  EXPECT_EQ(session.last_store({Of::output, 0, 0, 0, 0}), "");
  EXPECT_FALSE(make_cpu_naive()->capabilities().has("last_store"));
}

}  // namespace
}  // namespace kvcheck::kernels

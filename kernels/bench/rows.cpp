// The list of rows and its goals.
#include "kernels/bench/rows.h"

#include <algorithm>

#include <fmt/format.h>

namespace kvcheck::kernels::bench {
namespace {

struct Shape {
  std::int64_t query_heads, kv_heads, head_size;
};
constexpr Shape kWide{64, 8, 64}, kDeep{32, 8, 128};

constexpr std::int64_t kWindow = 128;
constexpr std::int64_t kWindowedLength = 1024;  // Long enough for every capacity to have evicted.
constexpr double kCacheBytes = 32 << 20;        // From here on a peer is bound by memory.
constexpr Goal kRoof{.65, .8};

Problem problem(Shape shape, std::string element_type, std::int64_t length,
                std::string operation = "decode") {
  Problem made;
  made.operation = std::move(operation);
  made.query_heads = shape.query_heads;
  made.kv_heads = shape.kv_heads;
  made.head_size = shape.head_size;
  made.element_type = std::move(element_type);
  made.length = length;
  return made;
}

Problem windowed(Shape shape, std::int64_t capacity, std::string layout = "block",
                 std::int64_t length = kWindowedLength) {
  Problem made = problem(shape, "f32", length, "windowed");
  made.window = kWindow;
  made.capacity = capacity;
  made.layout = std::move(layout);
  return made;
}

bool is_wide(const Problem& p) { return p.head_size == kWide.head_size; }

/// Against the fastest of the other libraries, whichever it is: each of them must be reached.
Goal fastest_goal(const Problem& p) {
  if (p.operation == "prefill") return {1, 1.1};
  return {1, bytes_read(p) < kCacheBytes ? 1.35 : 2.4};
}

Goal onnxruntime_decode_goal(const Problem& p) {
  if (p.element_type == "f16") return {6, 12};
  if (p.element_type == "int8") return is_wide(p) ? Goal{3.7, 6} : Goal{2.6, 4};
  if (p.element_type == "int4") return is_wide(p) ? Goal{3.5, 6} : Goal{3, 4};
  if (is_wide(p)) return {4, 5.5};
  return p.length <= 2048 ? Goal{3.7, 5} : Goal{2.7, 3.3};
}

class Rows {
 public:
  Row& add(std::string id, std::string what, Problem of) {
    rows_.push_back({std::move(id), std::move(what), std::move(of)});
    return rows_.back();
  }

  Row& add(std::string what, const Problem& of) {
    std::string id = fmt::format("{}.{}.{}.{}{}", what, of.element_type, of.shape(),
                                 of.operation == "prefill" ? 'S' : 'T', of.length);
    return add(std::move(id), std::move(what), of);
  }

  std::vector<Row> take() { return std::move(rows_); }

 private:
  std::vector<Row> rows_;
};

void add_decode(Rows& rows) {
  rows.add("overhead", problem(kWide, "f32", 2)).peers = {
      {"onnxruntime", {}}, {"openvino", {}}, {"jax", {}}};
  for (const Shape shape : {kWide, kDeep}) {
    for (const std::int64_t length : {128, 512, 2048, 8192, 32768}) {
      const Problem p = problem(shape, "f32", length);
      Row& row = rows.add("decode", p);
      row.peers = {{"onnxruntime", onnxruntime_decode_goal(p)},
                   {"openvino", fastest_goal(p)},
                   {"jax", fastest_goal(p)}};
      row.roof = kRoof;
      row.quick = length == 512 || length == 8192;
    }
    for (const std::int64_t length : {512, 2048, 8192, 32768}) {
      const Problem half = problem(shape, "f16", length);
      rows.add("decode", half).peers = {{"onnxruntime", onnxruntime_decode_goal(half)},
                                        {"openvino", {}}};
      rows.add("decode", problem(shape, "bf16", length)).peers = {{"openvino", {}}};
      const Problem byte = problem(shape, "int8", length);
      Row& row = rows.add("decode", byte);
      row.peers = {{"onnxruntime", onnxruntime_decode_goal(byte)},
                   {"openvino", fastest_goal(byte)}};
      row.quick = length == 2048;
      const Problem nibble = problem(shape, "int4", length);
      rows.add("decode", nibble).peers = {{"onnxruntime", onnxruntime_decode_goal(nibble)}};
    }
  }
}

void add_prefill(Rows& rows) {
  for (const Shape shape : {kWide, kDeep}) {
    for (const std::int64_t length : {512, 2048}) {
      const Problem p = problem(shape, "f32", length, "prefill");
      const double aim = is_wide(p) ? (length == 512 ? 2 : 1.5) : (length == 512 ? 1.6 : 1.3);
      Row& row = rows.add("prefill", p);
      row.peers = {{"onnxruntime", {1.2, aim}}, {"openvino", fastest_goal(p)}};
      row.roof = kRoof;
      row.quick = length == 512;
      for (const char* type : {"f16", "bf16"}) {
        Row& half = rows.add("prefill", problem(shape, type, length, "prefill"));
        half.peers = {{"openvino", {.8, 1.1}}};
        half.peer_element_type = "bf16";
        // By the processor's own dot products, which it has for bf16 alone.
        if (half.problem.element_type == "bf16") half.ours.target = "cpu-flash-dot";
      }
    }
  }
}

void add_windowed(Rows& rows) {
  for (const Shape shape : {kWide, kDeep}) {
    for (const std::int64_t capacity : {128, 132, 144, 160, 256, 384}) {
      const Problem p = windowed(shape, capacity);
      Row& row = rows.add(fmt::format("windowed.f32.{}.W{}.C{}", p.shape(), kWindow, capacity),
                          "windowed", p);
      row.peers = {{"onnxruntime", {3.5, capacity == 384 ? 8.0 : 5.0}}};
      row.quick = capacity == 144 || capacity == 384;
    }
  }
  for (const std::int64_t length : {4096, 16384}) {
    const Problem p = windowed(kWide, 384, "block", length);
    rows.add(fmt::format("windowed.f32.{}.W{}.C384.T{}", p.shape(), kWindow, length), "windowed",
             p);
  }
  Problem local = problem(kWide, "f32", 8192);
  local.window = kWindow;
  rows.add(fmt::format("local_window.f32.{}.W{}.T8192", local.shape(), kWindow), "local window",
           local)
      .peers = {{"onnxruntime", {100, 200}}, {"openvino", {}}};
}

void add_own(Rows& rows) {
  const auto against = [&](Row& row, std::string name, Problem other, OwnOptions options = {},
                           Goal goal = {}) {
    row.other = OwnPeer{std::move(name), std::move(other), std::move(options), goal};
  };
  for (const std::int64_t length : {2048, 8192, 32768}) {
    const Problem p = windowed(kWide, 384);
    Row& row = rows.add(
        fmt::format("windowed_against_full.f32.{}.W{}.C384.T{}", p.shape(), kWindow, length),
        "windowed against full", p);
    against(row, "own full cache", problem(kWide, "f32", length), {},
            length == 8192 ? Goal{8.4, 40} : Goal{});
    row.quick = length == 8192;
  }
  const Problem drifting = windowed(kWide, kWindow + 16);
  against(
      rows.add(fmt::format("layout.f32.{}.W{}.C{}", drifting.shape(), kWindow, drifting.capacity),
               "layout", drifting),
      "own cache compacted on every step", windowed(kWide, kWindow + 16, "min_overflow"), {},
      {1.35, 1.8});
  for (const std::int64_t length : {512, 2048}) {
    const Problem p = problem(kWide, "f32", length);
    OwnOptions naive;
    naive.target = "cpu-naive";
    against(rows.add("algorithm", p), "own full score matrix", p, naive);
  }
  const Problem prompt = problem(kWide, "f32", 512, "prefill");
  OwnOptions naive;
  naive.target = "cpu-naive";
  against(rows.add("algorithm", prompt), "own full score matrix", prompt, naive);
  const Problem long_cache = problem(kWide, "f32", 8192);
  Row& threads = rows.add("threads", long_cache);
  threads.ours.threads = 2;
  against(threads, "own one thread", long_cache, {}, {1.7, 1.9});
  for (const std::int64_t length : {8192, 32768}) {
    const Problem p = problem(kWide, "f32", length);
    OwnOptions small_pages;
    small_pages.huge_pages = false;
    against(rows.add("huge_pages", p), "own pages of 4 KiB", p, small_pages);
  }
  for (const Shape shape : {kWide, kDeep}) {
    const Problem p = problem(shape, "f32", 8192);
    OwnOptions apart;
    apart.share_group = false;
    against(rows.add("sharing", p), "own query heads one by one", p, apart);
  }
  for (const char* type : {"int8", "int4"}) {
    against(rows.add("types", problem(kWide, type, 8192)), "own f32 cache", long_cache);
  }
}

}  // namespace

std::vector<Row> all_rows() {
  Rows rows;
  add_decode(rows);
  add_prefill(rows);
  add_windowed(rows);
  add_own(rows);
  return rows.take();
}

bool matches(std::string_view pattern, std::string_view text) {
  // Where the newest star stood, and what it took in so far.
  std::size_t at = 0, star = std::string_view::npos, taken = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      taken = i;
    } else if (at < pattern.size() && (pattern[at] == '?' || pattern[at] == text[i])) {
      ++at, ++i;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      i = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

}  // namespace kvcheck::kernels::bench

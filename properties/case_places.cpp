// The mapped file.
#include "properties/case_places.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

namespace kvcheck::properties {
namespace {

constexpr int kPhaseWidth = 10;  // "targeted" with its quotes.
constexpr int kIndexWidth = 20;  // The largest index.

std::string empty_place() {
  return fmt::format(R"({{"phase": {:<{}}, "index": {:>{}}}})", "null", kPhaseWidth, 0,
                     kIndexWidth);
}

constexpr std::size_t kPhaseAt = std::string_view(R"({"phase": )").size();
constexpr std::size_t kIndexAt = kPhaseAt + kPhaseWidth + std::string_view(R"(, "index": )").size();

}  // namespace

CasePlaces::CasePlaces(const std::filesystem::path& file, const std::string& target,
                       std::uint64_t seed, std::size_t workers) {
  std::string text = fmt::format(
      R"({{"schema": 1, "target": {}, "seed": {}, "workers": [)",
      nlohmann::json(target).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace), seed);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    if (worker > 0) text += ", ";
    places_.push_back(text.size());
    text += empty_place();
  }
  text += "]}\n";
  const auto fail = [&] {
    throw std::filesystem::filesystem_error("cannot map", file,
                                            std::error_code(errno, std::generic_category()));
  };
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) fail();
  bytes_ = text.size();
  void* mapped = MAP_FAILED;
  if (::ftruncate(descriptor, static_cast<off_t>(bytes_)) == 0) {
    mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  ::close(descriptor);
  if (mapped == MAP_FAILED) fail();
  text_ = static_cast<char*>(mapped);
  std::memcpy(text_, text.data(), bytes_);
}

CasePlaces::~CasePlaces() { ::munmap(text_, bytes_); }

void CasePlaces::note(std::size_t worker, const Origin& origin) {
  char* place = text_ + places_[worker];
  char digits[kIndexWidth];
  std::memset(digits, ' ', sizeof digits);
  std::uint64_t rest = origin.index;
  int at = kIndexWidth;
  do {
    digits[--at] = static_cast<char>('0' + rest % 10);
    rest /= 10;
  } while (rest > 0);
  std::memcpy(place + kIndexAt, digits, sizeof digits);
  char phase[kPhaseWidth];
  std::memset(phase, ' ', sizeof phase);
  const std::string_view name = to_string(origin.phase);
  phase[0] = phase[name.size() + 1] = '"';
  std::copy(name.begin(), name.end(), phase + 1);
  std::memcpy(place + kPhaseAt, phase, sizeof phase);
}

}  // namespace kvcheck::properties

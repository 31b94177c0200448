// Allocations between red zones, and the pages of their shadows.
#include "kernels/simt/global_memory.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <link.h>
#include <sys/mman.h>

#include "kernels/simt/global_state.h"

namespace kvcheck::kernels::simt {
namespace {

constexpr std::size_t kRedZone = 256;
constexpr std::uint32_t kLateClock = 1u << 31;

/// NaN in each of f32, f16 and bf16, signalling in f32 and bf16.
void poison(std::byte* data, std::size_t bytes) {
  constexpr unsigned char kPattern[2] = {0xa7, 0x7f};
  for (std::size_t i = 0; i < bytes; ++i) data[i] = std::byte{kPattern[i % 2]};
}

std::size_t rounded(std::size_t bytes) { return (bytes + kRedZone - 1) / kRedZone * kRedZone; }

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

/// Adds the segments of one loaded file that can only be read.
int add_constants(dl_phdr_info* info, std::size_t, void* into) {
  auto& constants = *static_cast<std::vector<std::unique_ptr<Region>>*>(into);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const bool read_only = header.p_type == PT_LOAD && (header.p_flags & PF_W) == 0;
    if (!read_only && header.p_type != PT_GNU_RELRO) continue;
    auto region = std::make_unique<Region>();
    region->begin = info->dlpi_addr + header.p_vaddr;
    region->bytes = header.p_memsz;
    region->constant = true;
    constants.push_back(std::move(region));
  }
  return 0;
}

}  // namespace

ZeroPages::ZeroPages(std::size_t bytes) {
  if (bytes == 0) return;
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  data_ = pages;
  bytes_ = bytes;
}

ZeroPages::ZeroPages(ZeroPages&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ZeroPages& ZeroPages::operator=(ZeroPages&& other) noexcept {
  if (this == &other) return *this;
  release();
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void ZeroPages::release() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

void GlobalMemory::State::resize_shared(std::size_t words) {
  if (shared_words.size() < words) shared_words.resize(words);
  if (shared_marks.size() < words) shared_marks.resize(words);
}

void GlobalMemory::State::begin_launch(std::size_t shared_bytes) {
  resize_shared((shared_bytes + 3) / 4);
  if (now > kLateClock) {
    now = 0;
    std::fill(shared_words.begin(), shared_words.end(), Word{});
    for (auto& [begin, region] : regions) region->word_pages = ZeroPages();
  }
  for (auto& [begin, region] : regions) {
    const Use use = region->allocation.use;
    if (use != Use::input && region->word() == nullptr) {
      region->word_pages = ZeroPages(region->words() * sizeof(Word));
    }
    if ((use == Use::output || use == Use::scratch) && region->mark() == nullptr) {
      region->mark_pages = ZeroPages(region->words());
    }
    if (use != Use::output) continue;
    for (std::size_t i = 0; i < region->words(); ++i) {
      const Mark mark = region->mark()[i];
      region->mark()[i] = static_cast<Mark>((mark | mark << 4) & 0xf0);
    }
  }
}

Region* GlobalMemory::State::allocation_of(std::uintptr_t address) const {
  const auto after = regions.upper_bound(address);
  if (after == regions.begin()) return nullptr;
  Region* const region = std::prev(after)->second.get();
  return region->holds(address, 1) ? region : nullptr;
}

Region* GlobalMemory::State::find(std::uintptr_t address) {
  if (Region* const region = allocation_of(address)) return region;
  const auto holds = [address](const std::unique_ptr<Region>& region) {
    return region->holds(address, 1);
  };
  if (constants.empty()) ::dl_iterate_phdr(add_constants, &constants);
  const auto found = std::find_if(constants.begin(), constants.end(), holds);
  return found == constants.end() ? nullptr : found->get();
}

GlobalMemory::GlobalMemory() : state_(std::make_unique<State>()) {}

GlobalMemory::~GlobalMemory() {
  while (!state_->regions.empty()) release(state_->regions.begin()->second->allocation.data);
}

std::byte* GlobalMemory::allocate(std::size_t bytes, Use use, std::string name) {
  if (bytes > SIZE_MAX / 16) throw std::bad_alloc();
  const std::size_t whole = kRedZone + rounded(bytes) + kRedZone;
  auto* const base = static_cast<std::byte*>(::operator new (whole, std::align_val_t{kRedZone}));
  poison(base, whole);
  auto region = std::make_unique<Region>();
  region->allocation = {base + kRedZone, bytes, use, std::move(name)};
  region->begin = number_of(base + kRedZone);
  region->bytes = bytes;
  const std::uintptr_t begin = region->begin;
  state_->regions.emplace(begin, std::move(region));
  return base + kRedZone;
}

void GlobalMemory::release(std::byte* data) {
  if (data == nullptr) return;
  const auto at = state_->regions.find(number_of(data));
  if (at == state_->regions.end()) {
    throw std::invalid_argument("GlobalMemory::release: no allocation begins there");
  }
  ::operator delete (data - kRedZone, std::align_val_t{kRedZone});
  state_->regions.erase(at);
}

void GlobalMemory::begin_step() {
  for (auto& [begin, region] : state_->regions) {
    if (region->mark() != nullptr) std::fill_n(region->mark(), region->words(), Mark{0});
  }
}

std::optional<Defect> GlobalMemory::check_written(const void* begin, std::size_t bytes) const {
  const std::uintptr_t first = number_of(begin);
  const Region* const region = state_->allocation_of(first);
  if (region == nullptr || !region->holds(first, bytes) || region->allocation.use != Use::output) {
    throw std::invalid_argument("GlobalMemory::check_written: not within one output");
  }
  for (std::size_t i = first - region->begin, end = i + bytes; i < end; ++i) {
    const Mark mark = region->mark() == nullptr ? Mark{0} : region->mark()[i / 4];
    if (((mark | mark >> 4) >> i % 4 & 1) != 0) continue;
    Defect defect;
    defect.kind = DefectKind::not_written;
    defect.thread = -1;
    defect.detail = fmt::format("byte {} of {} of '{}' was to be written, and no launch did", i,
                                region->bytes, region->allocation.name);
    return defect;
  }
  return std::nullopt;
}

void GlobalMemory::record_stores() {
  if (state_->log == nullptr) state_->log = std::make_unique<StoreLog>();
}

std::uint32_t GlobalMemory::State::last_store(std::uintptr_t address) const {
  const Region* const region = allocation_of(address);
  return region == nullptr || region->stores.empty() ? 0 : region->stores[address - region->begin];
}

std::optional<LastStore> GlobalMemory::last_store(const void* address) const {
  const std::uint32_t number = state_->last_store(number_of(address));
  return number == 0 ? std::nullopt : std::optional(state_->log->at(number));
}

std::string GlobalMemory::last_store_words(const void* address) const {
  const std::uint32_t number = state_->last_store(number_of(address));
  if (number == 0) return "stored by no kernel";
  std::string words = "stored at " + state_->log->at(number).words();
  if (const std::uint32_t source = state_->log->source_of(number); source != 0) {
    words += ", after it had read what was stored at " + state_->log->at(source).words();
  }
  return words;
}

void GlobalMemory::forget_stores(const void* begin, std::size_t bytes) {
  Region* const region = state_->allocation_of(number_of(begin));
  if (region == nullptr || region->stores.empty()) return;
  const auto first = static_cast<std::ptrdiff_t>(number_of(begin) - region->begin);
  std::fill_n(region->stores.begin() + first, bytes, 0);
}

const Allocation* GlobalMemory::find(const void* address) const {
  const Region* const region = state_->allocation_of(number_of(address));
  return region == nullptr ? nullptr : &region->allocation;
}

const Allocation* GlobalMemory::nearest(const void* address) const {
  const std::uintptr_t at = number_of(address);
  const auto after = state_->regions.upper_bound(at);
  const Region* const above = after == state_->regions.end() ? nullptr : after->second.get();
  if (after == state_->regions.begin()) return above == nullptr ? nullptr : &above->allocation;
  const Region& below = *std::prev(after)->second;
  if (above == nullptr || below.holds(at, 1)) return &below.allocation;
  const bool nearer_below = at - (below.begin + below.bytes) < above->begin - at;
  return nearer_below ? &below.allocation : &above->allocation;
}

}  // namespace kvcheck::kernels::simt

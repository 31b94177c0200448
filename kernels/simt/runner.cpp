// Switches between the threads of a block, and where they meet.
#include "kernels/simt/runner.h"

#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

namespace kvcheck::kernels::simt {
namespace {

constexpr std::size_t kMargin = 256;  // Around shared memory, so that one byte too far is harmless.
constexpr std::int64_t kMostShuffled = std::int64_t{1} << 20;

std::uint32_t bit(int lane) { return 1U << lane; }

bool same_place(Site a, Site b) {
  return a.line() == b.line() &&
         (a.file_name() == b.file_name() || std::strcmp(a.file_name(), b.file_name()) == 0);
}

}  // namespace

Runner& Runner::of_this_thread() {
  static thread_local const std::unique_ptr<Runner> runner(new Runner);
  return *runner;
}

void Runner::run(void (*body)(const void*), const device::LaunchShape& shape,
                 const void* parameters, Order order, std::uint64_t seed, Monitor& monitor) {
  body_ = body;
  parameters_ = parameters;
  shape_ = &shape;
  monitor_ = &monitor;
  order_ = order;
  random_ = Random(seed);
  gave_up_ = false;
  failure_ = nullptr;
  make_room();
  const std::int64_t count = std::int64_t{shape.grid.x} * shape.grid.y * shape.grid.z;
  const std::vector<std::int64_t> drawn = draw_blocks(count);
  running.yield = &Runner::preempt;
  running.give_up = [] { static_cast<Lane*>(running.thread)->runner->give_up(); };
  running.accesses_until_yield = ready_.draw_slice(random_);
  for (std::int64_t i = 0; i < count && !gave_up_; ++i) {
    const bool down = order == Order::reverse;
    run_block(!drawn.empty() ? drawn[static_cast<std::size_t>(i)] : down ? count - 1 - i : i);
  }
  running = {};
  if (failure_ != nullptr) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Blocks in the order in which they run; empty where it is ascending or descending.
std::vector<std::int64_t> Runner::draw_blocks(std::int64_t count) {
  if (order_ == Order::lockstep || order_ == Order::reverse || count > kMostShuffled) return {};
  std::vector<std::int64_t> blocks(static_cast<std::size_t>(count));
  std::iota(blocks.begin(), blocks.end(), std::int64_t{0});
  for (std::size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[random_.below(i)]);
  return blocks;
}

void Runner::make_room() {
  while (lanes_.size() < shape_->threads) {
    auto stack = std::make_unique<Stack>(lanes_.size());
    Lane& lane = lanes_.emplace_back();
    lane.index = static_cast<int>(lanes_.size()) - 1;
    lane.warp = lane.index / 32;
    lane.lane = lane.index % 32;
    lane.stack_begin = reinterpret_cast<const std::byte*>(stack->begin());
    lane.stack_end = reinterpret_cast<const std::byte*>(stack->end());
    lane.runner = this;
    lane.stack = std::move(stack);
  }
  const std::size_t room = shape_->shared_bytes + 3 * kMargin;
  if (shared_room_ < room) {
    shared_memory_ = std::make_unique<std::byte[]>(room);
    shared_room_ = room;
  }
  std::byte* const begin = shared_memory_.get() + kMargin;
  shared_ = begin + (kMargin - reinterpret_cast<std::uintptr_t>(begin) % kMargin) % kMargin;
}

void Runner::run_block(std::int64_t block) {
  prepare_block(block);
  monitor_->begin_block(block, shared());
  self_ = nullptr;
  Lane& first = lanes_[static_cast<std::size_t>(ready_.take(-1, random_))];
  self_ = &first;
  first.state = Lane::State::runs;
  running.thread = &first;
  Fiber::switch_between(outside_, first.fiber);
  running.thread = nullptr;
  monitor_->end_block();
}

void Runner::prepare_block(std::int64_t block) {
  const device::Index3 grid = shape_->grid;
  block_index_ = {static_cast<std::uint32_t>(block % grid.x),
                  static_cast<std::uint32_t>(block / grid.x % grid.y),
                  static_cast<std::uint32_t>(block / grid.x / grid.y)};
  // What nobody has written is not a number in any format.
  constexpr std::uint16_t kNothing = 0x7fa1;
  for (std::size_t at = 0; at + 2 <= shape_->shared_bytes; at += 2) {
    std::memcpy(shared_ + at, &kNothing, 2);
  }
  const int threads = static_cast<int>(shape_->threads);
  live_ = threads;
  arrived_ = 0;
  ready_.begin_block(order_, threads, random_);
  for (int w = 0; w < threads / 32; ++w) {
    waiting_[static_cast<std::size_t>(w)].clear();
    alive_[static_cast<std::size_t>(w)] = ~0U;
  }
  for (int t = 0; t < threads; ++t) {
    Lane& lane = lanes_[static_cast<std::size_t>(t)];
    lane.monitor = monitor_;
    lane.block = block;
    lane.copies.clear();
    lane.fiber.prepare(*lane.stack, &Runner::thread_main, &lane);
    make_ready(lane);
  }
}

void Runner::thread_main(void* lane) {
  Runner& runner = *static_cast<Lane*>(lane)->runner;
  try {
    runner.body_(runner.parameters_);
  } catch (...) {
    runner.failure_ = std::current_exception();
  }
  if (runner.failure_ != nullptr) runner.give_up();
  runner.exit_thread();
}

void Runner::exit_thread() {
  Lane& me = self();
  if (const CopyQueue::Copy* copy = me.copies.unfinished()) {
    report(DefectKind::copy_in_flight, copy->site,
           "the thread exits before it has waited for the copy");
  }
  me.state = Lane::State::exited;
  --live_;
  alive_[static_cast<std::size_t>(me.warp)] &= ~bit(me.lane);
  auto& waiting = waiting_[static_cast<std::size_t>(me.warp)];
  for (std::size_t i = 0; i < waiting.size();) {
    if (!try_finish(me.warp, i)) ++i;
  }
  if (arrived_ > 0 && arrived_ == live_) complete_block_barrier();
  run_next();
  __builtin_trap();  // Nobody goes on with a thread that has exited.
}

void Runner::leave_block() {
  Lane& me = self();
  running.thread = nullptr;
  Fiber::switch_between(me.fiber, outside_);
  __builtin_trap();
}

void Runner::give_up() {
  gave_up_ = true;
  leave_block();
}

void Runner::preempt() {
  Runner& runner = *static_cast<Lane*>(running.thread)->runner;
  running.accesses_until_yield = runner.ready_.draw_slice(runner.random_);
  if (runner.order_ == Order::priority) runner.ready_.lower(runner.self().index);
  runner.yield();
}

void Runner::yield() {
  make_ready(self());
  run_next();
}

void Runner::make_ready(Lane& lane) {
  lane.state = Lane::State::ready;
  ready_.add(lane.index);
}

void Runner::run_next() {
  Lane& from = self();
  if (!from.copies.empty()) from.copies.drift(random_);
  const int next = ready_.take(from.index, random_);
  if (next < 0) {
    if (live_ > 0) {
      report_stuck();
      gave_up_ = true;
    }
    leave_block();
  }
  Lane& to = lanes_[static_cast<std::size_t>(next)];
  to.state = Lane::State::runs;
  if (&to == &from) return;
  self_ = &to;
  running.thread = &to;
  Fiber::switch_between(from.fiber, to.fiber);
}

void Runner::block_barrier(Site site) {
  Lane& me = self();
  if (arrived_ > 0 && !same_place(site, first_arrived_->site)) {
    report(DefectKind::barrier_divergence, site,
           "threads of one block wait at two different barriers", first_arrived_);
    give_up();
  }
  if (arrived_ == 0) first_arrived_ = &me;
  me.site = site;
  me.state = Lane::State::at_block_barrier;
  if (++arrived_ == live_) complete_block_barrier();
  run_next();
}

void Runner::complete_block_barrier() {
  const int exited = static_cast<int>(shape_->threads) - live_;
  if (exited > 0) {
    report(DefectKind::barrier_divergence, first_arrived_->site,
           std::to_string(exited) + " of " + std::to_string(shape_->threads) +
               " threads have exited and never arrive");
  }
  arrived_ = 0;
  monitor_->block_barrier();
  for (std::uint32_t t = 0; t < shape_->threads; ++t) {
    if (lanes_[t].state == Lane::State::at_block_barrier) make_ready(lanes_[t]);
  }
}

void Runner::meet(Operation operation, std::uint32_t mask, Site site,
                  void (*complete)(Runner&, Meeting&)) {
  Lane& me = self();
  if ((mask & bit(me.lane)) == 0) {
    report(DefectKind::warp_mask, site, mask_words(operation, mask) + " lacks the lane itself");
    give_up();
  }
  auto& waiting = waiting_[static_cast<std::size_t>(me.warp)];
  std::size_t index = 0;
  while (index < waiting.size() &&
         (waiting[index].meeting.operation != operation || waiting[index].meeting.mask != mask)) {
    ++index;
  }
  if (index == waiting.size()) {
    waiting.push_back({{operation, mask, 0, me.warp, {}}, complete});
  } else if (takes_whole_warp(operation)) {
    Meeting& meeting = waiting[index].meeting;
    const Lane& first = *meeting.lanes[static_cast<std::size_t>(std::countr_zero(meeting.arrived))];
    if (!same_place(site, first.site)) {
      report(DefectKind::matrix_operands, site,
             std::string("lanes of one warp call ") + to_string(operation) + " at two places",
             &first);
      give_up();
    }
  }
  me.operation = operation;
  me.mask = mask;
  me.site = site;
  me.state = Lane::State::in_warp;
  Meeting& meeting = waiting[index].meeting;
  meeting.arrived |= bit(me.lane);
  meeting.lanes[static_cast<std::size_t>(me.lane)] = &me;
  try_finish(me.warp, index);
  run_next();
}

bool Runner::try_finish(int warp, std::size_t index) {
  auto& waiting = waiting_[static_cast<std::size_t>(warp)];
  const Meeting& known = waiting[index].meeting;
  if ((known.mask & alive_[static_cast<std::size_t>(warp)]) != known.arrived) return false;
  Waiting ended = waiting[index];
  waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(index));
  Meeting& meeting = ended.meeting;
  if (takes_whole_warp(meeting.operation) && meeting.arrived != ~0U) {
    const int lane = std::countr_zero(meeting.arrived);
    report(DefectKind::matrix_operands, meeting.lanes[static_cast<std::size_t>(lane)]->site,
           std::string(to_string(meeting.operation)) + " takes all lanes, and " +
               std::to_string(32 - std::popcount(meeting.arrived)) + " have exited");
    give_up();
  }
  ended.complete(*this, meeting);
  for (std::uint32_t left = meeting.arrived; left != 0; left &= left - 1) {
    make_ready(*meeting.lanes[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  return true;
}

void Runner::report(DefectKind kind, Site site, std::string detail, const Lane* other) {
  report_of(self(), kind, site, std::move(detail), other);
}

void Runner::report_of(const Lane& lane, DefectKind kind, Site site, std::string detail,
                       const Lane* other) {
  Defect defect;
  defect.kind = kind;
  defect.place = place_of(site);
  defect.block = lane.block;
  defect.thread = lane.index;
  if (other != nullptr) {
    defect.other = place_of(other->site);
    defect.other_thread = other->index;
  }
  defect.detail = std::move(detail);
  monitor_->report(std::move(defect));
}

}  // namespace kvcheck::kernels::simt

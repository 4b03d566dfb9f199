#include "tests/proofs/interleavings/scheduler.hpp"

#include <charconv>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/random.hpp"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEMEL_PROOFS_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define SEMEL_PROOFS_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SEMEL_PROOFS_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define SEMEL_PROOFS_TSAN 1
#endif
#ifdef SEMEL_PROOFS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SEMEL_PROOFS_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace semel::proofs {

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;

/// The stack belongs to the Fiber.
struct BorrowedStack {
  // NOLINTNEXTLINE: the name is Boost's.
  void deallocate(boost::context::stack_context&) noexcept {}
};

constexpr std::uint64_t fold(std::uint64_t hash, std::uint64_t value) noexcept {
  return base::mix_bits(hash * 0x9e37'79b9'7f4a'7c15U + value + 1);
}

}  // namespace

// --- fibers ----------------------------------------------------------------------------------

Fiber& Fiber::take(std::function<void()> job) {
  // Reachable for ever, or a leak checker would complain about what lies on abandoned stacks.
  static auto* const all = new std::vector<std::unique_ptr<Fiber>>;
  Fiber* idle = nullptr;
  for (const auto& each : *all) {
    if (!each->is_taken_ && !each->in_job_) idle = each.get();
  }
  if (idle == nullptr) idle = all->emplace_back(new Fiber).get();
  idle->is_taken_ = true;
  idle->job_ = std::move(job);
  return *idle;
}

void Fiber::give_back() noexcept {
  is_taken_ = false;
}

Fiber::Fiber() : stack_(std::make_unique<std::byte[]>(stack_bytes)) {
  boost::context::stack_context context;
  context.size = stack_bytes;
  context.sp = stack_.get() + stack_bytes;
  const boost::context::preallocated place{context.sp, context.size, context};
  inside_ = boost::context::fiber{std::allocator_arg, place, BorrowedStack{},
                                  [this](boost::context::fiber&& caller) -> boost::context::fiber {
                                    caller_ = std::move(caller);
                                    run_jobs();
                                  }};
#ifdef SEMEL_PROOFS_TSAN
  sanitizer_fiber_ = __tsan_create_fiber(0);
#endif
}

void Fiber::run_jobs() {
#ifdef SEMEL_PROOFS_ASAN
  __sanitizer_finish_switch_fiber(nullptr, &caller_stack_, &caller_stack_bytes_);
#endif
  for (;;) {
    job_();
    in_job_ = false;
    suspend();
  }
}

// ThreadSanitizer is notified in the function that switches the stack: it counts calls and returns.

void Fiber::resume() {
  in_job_ = true;
#ifdef SEMEL_PROOFS_ASAN
  __sanitizer_start_switch_fiber(&caller_fake_stack_, stack_.get(), stack_bytes);
#endif
#ifdef SEMEL_PROOFS_TSAN
  sanitizer_caller_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(sanitizer_fiber_, 0);
#endif
  inside_ = std::move(inside_).resume();
#ifdef SEMEL_PROOFS_ASAN
  __sanitizer_finish_switch_fiber(caller_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::suspend() {
#ifdef SEMEL_PROOFS_ASAN
  __sanitizer_start_switch_fiber(&fake_stack_, caller_stack_, caller_stack_bytes_);
#endif
#ifdef SEMEL_PROOFS_TSAN
  __tsan_switch_to_fiber(sanitizer_caller_, 0);
#endif
  caller_ = std::move(caller_).resume();
#ifdef SEMEL_PROOFS_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, &caller_stack_, &caller_stack_bytes_);
#endif
}

// --- states ----------------------------------------------------------------------------------

/// Hashes of states with the preemptions used (up to 7) when they were met. 60 bits of hash: among
/// 10^7 states the chance that two are taken for one is one in 20,000.
class Explorer::States {
 public:
  /// True if `hash` was met with no more preemptions used; otherwise it is noted.
  bool met(std::uint64_t hash, std::uint64_t used) {
    if (size_ * 2 >= slots_.size()) grow();
    hash = (hash | (std::uint64_t{1} << 63)) & ~std::uint64_t{7};
    std::uint64_t& slot = find(slots_, hash);
    if (slot != 0 && (slot & 7) <= used) return true;
    if (slot == 0) ++size_;
    slot = hash | used;
    return false;
  }
  void clear() {
    slots_.assign(slots_.size() > 65'536 ? 1'024 : slots_.size(), 0);
    size_ = 0;
  }

 private:
  static std::uint64_t& find(std::vector<std::uint64_t>& slots, std::uint64_t hash) {
    std::size_t at = (hash >> 3) & (slots.size() - 1);
    while (slots[at] != 0 && (slots[at] & ~std::uint64_t{7}) != hash) {
      at = (at + 1) & (slots.size() - 1);
    }
    return slots[at];
  }
  void grow() {
    std::vector<std::uint64_t> larger(slots_.size() * 2);
    for (const std::uint64_t slot : slots_) {
      if (slot != 0) find(larger, slot & ~std::uint64_t{7}) = slot;
    }
    slots_.swap(larger);
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(1'024);
  std::size_t size_ = 0;
};

// --- the explorer ----------------------------------------------------------------------------

Explorer::Explorer(Subject& subject)
    : subject_(subject),
      memory_(subject.memory().data()),
      count_(subject.fiber_count()),
      states_(std::make_unique<States>()) {
  const std::size_t units = subject.memory().size() / 4 + 1;
  seen_.resize(units);
  hot_.resize(units);
  private_.resize(units);
  replace_broken_fibers();
}

Explorer::~Explorer() {
  for (Fiber* const fiber : fibers_) {
    if (fiber != nullptr) fiber->give_back();
  }
}

void Explorer::replace_broken_fibers() {
  for (unsigned i = 0; i < count_ + (subject_.has_ghost() ? 1U : 0U); ++i) {
    if (fibers_[i] != nullptr && !fibers_[i]->in_job()) continue;
    fibers_[i] = &Fiber::take([this, i] { subject_.run(i); });
  }
}

Explorer::Result Explorer::explore(const Limits& limits) {
  limits_ = limits;
  replaying_ = false;
  Result result;
  for (;;) {
    run_once();
    ++result.schedules;
    if (!failure_.empty()) {
      result.failure = failure_;
      result.schedule = schedule_text();
      break;
    }
    if (hot_grew_) {
      hot_grew_ = false;
      path_.clear();
      states_->clear();
      result.schedules = merged_count_ = 0;
    } else if (result.schedules >= limits_.schedules_max) {
      result.complete = false;
      break;
    } else if (!next_path()) {
      break;
    }
  }
  result.merged = merged_count_;
  return result;
}

Explorer::Result Explorer::replay(const std::string& schedule, std::FILE* trace) {
  Result result;
  wanted_.clear();
  for (std::size_t at = 0; at < schedule.size();) {
    std::size_t end = schedule.find(',', at);
    if (end == std::string::npos) end = schedule.size();
    Switch wanted{no_fiber, 0};
    const char* const last = schedule.data() + end;
    auto [rest, error] = std::from_chars(schedule.data() + at, last, wanted.fiber);
    if (error == std::errc{} && rest != last && *rest == '@') {
      std::tie(rest, error) = std::tuple{std::from_chars(rest + 1, last, wanted.step).ptr, error};
    }
    if (rest != last || wanted.fiber >= count_) {
      result.failure = "not a schedule: " + schedule;
      return result;
    }
    wanted_.push_back(wanted);
    at = end + 1;
  }
  replaying_ = true;
  trace_ = trace;
  wanted_at_ = 0;
  run_once();
  trace_ = nullptr;
  result.schedules = 1;
  result.failure = failure_;
  result.schedule = schedule_text();
  return result;
}

void Explorer::run_once() {
  at_ = 0;
  ended_ = preemptions_ = step_ = events_ = 0;
  event_hash_ = memory_hash_ = 0;
  for (std::uint64_t& known : known_) known = 0;
  merged_ = false;
  switches_.clear();
  failure_.clear();
  current_ = no_fiber;
  running_ = this;
  subject_.reset();
  if (subject_.has_ghost()) run_ghost_until_it_stops();
  if (failure_.empty()) run_fibers();
  if (failure_.empty()) finish();
  running_ = nullptr;
  if (!failure_.empty()) replace_broken_fibers();
}

void Explorer::run_ghost_until_it_stops() {
  is_ghost_ = true;
  current_ = count_;
  fibers_[count_]->resume();
  is_ghost_ = false;
  if (failure_.empty() && !fibers_[count_]->in_job()) failure_ = "the ghost did not stop";
}

void Explorer::run_fibers() {
  current_ = next_fiber();
  for (;;) {
    fibers_[current_]->resume();
    if (!failure_.empty()) return;
    if (fibers_[current_]->in_job()) {
      current_ = next_;
      continue;
    }
    ended_ |= 1U << current_;
    if (ended_ == (1U << count_) - 1) return;
    current_ = next_fiber();
  }
}

void Explorer::finish() {
  running_ = nullptr;
  current_ = no_fiber;
  if (subject_.has_ghost()) {
    failure_ = subject_.check(false);
    if (!failure_.empty()) return;
    running_ = this;
    current_ = count_;
    ended_ |= 1U << count_;  // from here on it is let run
    fibers_[count_]->resume();
    running_ = nullptr;
    current_ = no_fiber;
    if (!failure_.empty()) return;
  }
  failure_ = subject_.check(true);
}

/// The fiber that begins, or goes on when another has ended.
unsigned Explorer::next_fiber() {
  unsigned ready = 0;
  unsigned order[fibers_max] = {};
  for (unsigned i = 0; i < count_; ++i) {
    if (!has_ended(i)) order[ready++] = i;
  }
  unsigned chosen = order[0];
  if (replaying_) {
    if (wanted_at_ < wanted_.size() && wanted_[wanted_at_].step == 0) {
      chosen = wanted_[wanted_at_++].fiber;
      if (has_ended(chosen)) chosen = order[0];
    }
  } else if (ready > 1 && !merged_) {
    if (at_ == path_.size() && step_ != 0 && met_before()) {
      merged_ = true;
    } else {
      chosen = order[choose(ready)];
    }
  }
  switches_.push_back({chosen, 0});
  return chosen;
}

void Explorer::decide() {
  if (merged_ || preemptions_ == limits_.preemptions) return;
  unsigned others = 0;
  unsigned order[fibers_max] = {};
  for (unsigned i = 0; i < count_; ++i) {
    if (i != current_ && !has_ended(i)) order[others++] = i;
  }
  if (others == 0) return;
  if (at_ == path_.size() && met_before()) {
    merged_ = true;
    return;
  }
  const unsigned pick = choose(1 + others);
  if (pick == 0) return;
  ++preemptions_;
  switch_to(order[pick - 1], step_);
}

void Explorer::switch_to(unsigned fiber, std::uint32_t step) {
  const unsigned self = current_;
  next_ = fiber;
  switches_.push_back({fiber, step});
  fibers_[self]->suspend();
}

unsigned Explorer::choose(unsigned count) {
  if (at_ == path_.size()) path_.push_back({0, static_cast<std::uint8_t>(count)});
  return path_[at_++].taken;
}

bool Explorer::next_path() {
  while (!path_.empty()) {
    if (++path_.back().taken < path_.back().count) return true;
    path_.pop_back();
  }
  return false;
}

bool Explorer::met_before() {
  std::uint64_t hash = fold(memory_hash_, event_hash_);
  for (unsigned i = 0; i < count_; ++i) hash = fold(hash, known_[i]);
  hash = fold(hash, has_ended(current_) ? no_fiber : current_);
  if (!states_->met(hash, preemptions_)) return false;
  ++merged_count_;
  return true;
}

// --- steps -----------------------------------------------------------------------------------

std::size_t Explorer::unit(const void* address) const noexcept {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_) / 4;
}

bool Explorer::is_hot(std::uint32_t seen) const noexcept {
  const auto by = [seen](Access kind) { return seen >> (static_cast<unsigned>(kind) * 8) & 0xff; };
  const std::uint32_t readers = by(Access::read);
  const std::uint32_t setters = by(Access::set_bits);
  const std::uint32_t writers = by(Access::write);
  const std::uint32_t anyone = readers | setters | writers | by(Access::add);
  const auto conflict = [](std::uint32_t one, std::uint32_t other) {
    return one != 0 && other != 0 && ((one | other) & ((one | other) - 1)) != 0;
  };
  return conflict(writers, anyone) || conflict(by(Access::add), readers) ||
         (limits_.bits_are_changes && conflict(setters, readers));
}

void Explorer::step(const void* address, Access kind) {
  if (current_ == no_fiber) return;  // reset()
  ++step_;
  if (step_ > steps_max) fail("no progress: a fiber cannot finish while another is stopped");
  const std::size_t at = unit(address);
  if (private_[at] != 0 && private_[at] != current_ + 1) {
    fail("touches memory that is private to another: " + subject_.describe(address));
  }
  if (trace_ != nullptr) {
    static constexpr const char* kinds[] = {"reads", "writes", "sets bits of", "adds to"};
    std::fprintf(trace_, "%5u  fiber %u %s %s\n", step_, current_,
                 kinds[static_cast<unsigned>(kind)], subject_.describe(address).c_str());
  }
  if (current_ == count_) {
    if (is_ghost_ && subject_.ghost_stops(address, kind)) fibers_[count_]->suspend();
    return;
  }
  if (replaying_) {
    if (wanted_at_ < wanted_.size() && wanted_[wanted_at_].step == step_) {
      switch_to(wanted_[wanted_at_++].fiber, step_);
    }
    return;
  }
  if (private_[at] != 0) return;
  const std::uint32_t seen =
      seen_[at] | (std::uint32_t{1} << (static_cast<unsigned>(kind) * 8 + current_));
  if (seen != seen_[at]) {
    seen_[at] = seen;
    if (hot_[at] == 0 && is_hot(seen)) {
      hot_[at] = 1;
      hot_grew_ = true;
    }
  }
  if (hot_[at] != 0) decide();
  known_[current_] = fold(known_[current_], 0);  // even two steps at one word are two places
}

void Explorer::saw(std::uint64_t result) {
  if (current_ == no_fiber) return;
  known_[current_] = fold(known_[current_], result);
  if (trace_ != nullptr) {
    std::fprintf(trace_, "         -> %#llx\n", static_cast<unsigned long long>(result));
  }
}

void Explorer::wrote(const void* address, std::uint64_t old, std::uint64_t fresh) {
  if (current_ == no_fiber) return;
  const std::uint64_t place = unit(address);
  memory_hash_ ^= fold(place, old) ^ fold(place, fresh);
  if (trace_ != nullptr && old != fresh) {
    std::fprintf(trace_, "         %#llx becomes %#llx\n", static_cast<unsigned long long>(old),
                 static_cast<unsigned long long>(fresh));
  }
  if (const char* const wrong = subject_.wrote(address, old, fresh)) {
    fail(wrong + (": " + subject_.describe(address)));
  }
}

unsigned Explorer::event() {
  event_hash_ = fold(event_hash_, current_);
  known_[current_] = fold(known_[current_], 0);
  return ++events_;
}

void Explorer::fail(std::string reason) {
  failure_ = std::move(reason);
  // run_once() ends the schedule and never comes back.
  for (;;) fibers_[current_]->suspend();
}

void Explorer::set_private(const void* begin, std::size_t bytes, unsigned owner) {
  std::memset(&private_[unit(begin)], owner == no_fiber ? 0 : static_cast<int>(owner) + 1,
              bytes / 4);
}

std::string Explorer::schedule_text() const {
  std::string text;
  for (const Switch& each : switches_) {
    if (!text.empty()) text += ',';
    text += std::to_string(each.fiber);
    if (each.step != 0) text += '@' + std::to_string(each.step);
  }
  return text;
}

}  // namespace semel::proofs

#include "net/scripts/scripts.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/assert.hpp"
#include "base/checked.hpp"
#include "net/commands/command.hpp"
#include "net/scripts/script_check.hpp"

namespace semel::net {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;

std::int64_t ns_of(std::int64_t ms) noexcept {
  return base::checked_mul(ms, ns_per_ms).value_or(std::numeric_limits<std::int64_t>::max());
}

/// An address to listen on that only this machine reaches.
bool is_loopback(std::string_view address) noexcept {
  if (address.starts_with('-')) address.remove_prefix(1);
  return address.starts_with("127.") || address == "::1" || address == "localhost";
}

}  // namespace

std::string_view word_of(ScriptPolicy policy) noexcept {
  switch (policy) {
    case ScriptPolicy::automatic:
      return "auto";
    case ScriptPolicy::off:
      return "off";
    case ScriptPolicy::known:
      return "known";
    case ScriptPolicy::any:
      break;
  }
  return "any";
}

std::string_view what_runs(ScriptPolicy policy) noexcept {
  switch (policy) {
    case ScriptPolicy::off:
      return "no script and no function runs; EVAL, EVALSHA, SCRIPT LOAD, FUNCTION LOAD and FCALL "
             "are refused";
    case ScriptPolicy::known:
      return "scripts of the node's catalogue run (locks, tokens and counters of known libraries, "
             "and a single command); EVAL and SCRIPT LOAD of others and FUNCTION LOAD are "
             "refused; --scripts any lets all run";
    case ScriptPolicy::automatic:
    case ScriptPolicy::any:
      break;
  }
  return "all scripts and functions run";
}

Scripts::Scripts(Settings& settings)
    : settings_(settings),
      native_(new std::atomic<std::uint64_t>[lua::known_catalogue().size() + 1] {}) {
  const auto follow = [this] {
    policy_.store(read_policy(), std::memory_order_relaxed);  // mo: relaxed: a setting
  };
  follow();
  settings.on_change(Setting::scripts, follow);
}

SharedScript Scripts::find(std::string_view sha) const {
  const base::MutexLock lock{mutex_};
  const auto found = scripts_.find(sha);
  return found == scripts_.end() ? nullptr : found->second;
}

SharedScript Scripts::add(SharedScript script, bool loaded) {
  const base::MutexLock lock{mutex_};
  const auto [place, is_new] = scripts_.emplace(script->sha, script);
  const SharedScript& kept = place->second;
  if (is_new) {
    kept->number = ++numbers_;
    // mo: relaxed: it may have been forgotten since it was looked up.
    kept->forgotten.store(false, std::memory_order_relaxed);
  }
  // mo: relaxed: written under the mutex; no reader outside of it needs an order.
  const bool was_loaded = kept->loaded.load(std::memory_order_relaxed);
  if (loaded && !was_loaded) {
    kept->loaded.store(true, std::memory_order_relaxed);
    SEMEL_ASSERT(is_new || evaluated_ != 0);
    if (!is_new) --evaluated_;
  } else if (is_new && !loaded) {
    ++evaluated_;
    SharedScript held = kept;
    if (evaluated_ > evaluated_max) make_room();
    return held;
  }
  return kept;
}

void Scripts::make_room() {
  auto oldest = scripts_.end();
  // mo: relaxed: of uses at the same time any may be the last.
  const auto used = [](const auto& place) {
    return std::pair{place->second->used_ns.load(std::memory_order_relaxed), place->second->number};
  };
  for (auto place = scripts_.begin(); place != scripts_.end(); ++place) {
    // mo: relaxed: written under the mutex, which is held
    if (place->second->loaded.load(std::memory_order_relaxed)) continue;
    if (oldest == scripts_.end() || used(place) < used(oldest)) oldest = place;
  }
  if (oldest == scripts_.end()) return;
  // mo: relaxed: a run at the same time may be ordered before.
  oldest->second->forgotten.store(true, std::memory_order_relaxed);
  scripts_.erase(oldest);
  SEMEL_ASSERT(evaluated_ != 0);
  --evaluated_;
  generation_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in generation()
}

void Scripts::flush() {
  const base::MutexLock lock{mutex_};
  for (const auto& [sha, script] : scripts_) {
    // mo: relaxed: a run at the same time may be ordered before.
    script->forgotten.store(true, std::memory_order_relaxed);
  }
  scripts_.clear();
  evaluated_ = 0;
  // mo: relaxed: as in generation()
  generation_.fetch_add(forgotten_many, std::memory_order_relaxed);
}

Scripts::Totals Scripts::totals() const {
  Totals found;
  const base::MutexLock lock{mutex_};
  found.count = scripts_.size();
  for (const auto& [sha, script] : scripts_) {
    found.bytes += sizeof(Script) + script->sha.size() + script->text.size();
  }
  for (const auto& each : interpreters_) {
    // mo: relaxed: a statistic.
    if (const auto totals = each.lock()) {
      found.interpreter_bytes += totals->bytes.load(std::memory_order_relaxed);
    }
  }
  return found;
}

void Scripts::show(const std::shared_ptr<InterpreterMetrics>& totals) {
  const base::MutexLock lock{mutex_};
  std::erase_if(interpreters_, [](const auto& each) { return each.expired(); });
  interpreters_.push_back(totals);
}

ScriptPolicy Scripts::read_policy() const {
  const auto set = settings_.choice<ScriptPolicy>(Setting::scripts);
  if (set != ScriptPolicy::automatic) return set;
  if (settings_.integer(Setting::port) < 0 && settings_.integer(Setting::tls_port) < 0) {
    return ScriptPolicy::any;
  }
  const std::vector<std::string> addresses = settings_.list(Setting::bind);
  return std::all_of(addresses.begin(), addresses.end(), is_loopback) ? ScriptPolicy::any
                                                                      : ScriptPolicy::known;
}

void Scripts::ran_native(const lua::ScriptShape& shape) noexcept {
  const auto catalogue = lua::known_catalogue();
  const std::size_t index = shape.entry == nullptr
                                ? catalogue.size()
                                : static_cast<std::size_t>(shape.entry - catalogue.data());
  SEMEL_ASSERT(index <= catalogue.size());
  native_[index].fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: a statistic
}

std::vector<std::pair<std::string_view, std::uint64_t>> Scripts::native_counts() const {
  const auto catalogue = lua::known_catalogue();
  std::map<std::string_view, std::uint64_t> by_name;
  for (std::size_t i = 0; i <= catalogue.size(); ++i) {
    // mo: relaxed: a statistic
    const std::uint64_t count = native_[i].load(std::memory_order_relaxed);
    if (count == 0) continue;
    by_name[i == catalogue.size() ? "one command" : catalogue[i].name] += count;
  }
  return {by_name.begin(), by_name.end()};
}

Status Scripts::check_new(std::string_view what, std::span<const lua::SentCommand> sent) {
  enum class Unknown : std::uint8_t { refuse, run };
  if (settings_.choice<Unknown>(Setting::script_unknown_commands) == Unknown::run) {
    return Done{};
  }
  Status checked = check_commands(what, sent);
  if (!checked) refused();
  return checked;
}

bool Scripts::allows(const CommandRow& row) const noexcept {
  if (!row.is(flag_noscript)) return true;
  // mo: relaxed: of a test, which knows when it has set it.
  if (!allows_test_commands_.load(std::memory_order_relaxed)) return false;
  return row.has(fact_for_tests);
}

lua::Bounds Scripts::bounds() const noexcept {
  lua::Bounds bounds;
  bounds.steps = static_cast<std::uint64_t>(settings_.integer(Setting::script_steps_max));
  bounds.memory_bytes = static_cast<std::size_t>(settings_.integer(Setting::script_memory_max));
  bounds.reply_bytes = bounds.memory_bytes;
  return bounds;
}

std::int64_t Scripts::busy_after_ns() const noexcept {
  const std::int64_t ms = settings_.integer(Setting::busy_reply_threshold);
  return ms == 0 ? std::numeric_limits<std::int64_t>::max() : ns_of(ms);
}
std::int64_t Scripts::time_max_ns() const noexcept {
  return ns_of(settings_.integer(Setting::script_time_max));
}

}  // namespace semel::net

// See namespaces.hpp.
#include "engine/core/namespaces.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "engine/core/core.hpp"

namespace semel {

Claims::Namespace::Namespace(Bytes name, const Policy& policy) : prefix_(name) {
  prefix_.push_back(':');
  prefix_.copy(prefix_head_.data(), prefix_head_.size());
  write(policy);
}

void Claims::Namespace::write(const Policy& policy) noexcept {
  std::array<std::uint64_t, word_count> words{};
  std::memcpy(words.data(), &policy, sizeof policy);
  // mo: relaxed: written under the registry's mutex, or by the constructor.
  const std::uint32_t sequence = sequence_.load(std::memory_order_relaxed) + 1;
  Words& copy = copies_[sequence & 1];
  for (std::size_t i = 0; i < word_count; ++i) {
    copy[i].store(words[i], std::memory_order_release);  // mo: release [namespaces.policy]
  }
  // mo: release [namespaces.policy]: the copy is complete.
  sequence_.store(sequence, std::memory_order_release);
  // mo: relaxed: written under the registry's mutex, as above
  write_brief(policy, state_.load(std::memory_order_relaxed));
}

void Claims::Namespace::move_to(State state) noexcept {
  state_.store(state, std::memory_order_release);  // mo: release [namespaces.state]
  write_brief(policy(), state);
}

void Claims::Namespace::write_brief(const Policy& policy, State state) noexcept {
  const bool is_usual = state == State::open && !policy.fair;
  const std::uint64_t word = policy.db | (is_usual ? 0 : unusual_bit) |
                             static_cast<std::uint64_t>(policy.retry_after_max.count())
                                 << brief_shift;
  brief_.store(word, std::memory_order_release);  // mo: release [namespaces.state]
}

std::size_t Claims::Namespace::bytes_of(Bytes name) noexcept {
  // The object with its counters, a node in each of the two maps, and what malloc adds to each.
  constexpr std::size_t nodes = (16 + 48 + 16) + (64 + 16) + 16;
  constexpr std::size_t inside_string = 15;
  const std::size_t outside = name.size() + 1 > inside_string ? name.size() + 2 + 16 : 0;
  return sizeof(Namespace) + nodes + outside;
}

void Claims::NamespaceRef::keep() noexcept {
  if (names_ != nullptr) names_->keep();
}

void Claims::NamespaceRef::let_go() noexcept {
  if (names_ != nullptr && names_->let_go()) delete names_;
}

namespace engine {

std::size_t Namespaces::NameHash::operator()(Bytes name) const noexcept {
  return core->keys().hash_of(0, name).bits;
}

namespace {

constexpr std::size_t walked_at_once = 256;  // declarations come in between

[[nodiscard]] Error dropped_now(Bytes name) {
  return {ErrorCode::namespace_dropped, std::string{name} + " is being dropped"};
}

[[nodiscard]] Error no_journal() {
  return {ErrorCode::refused, "the journal takes no writes"};
}

[[nodiscard]] Mutation mutation_of(const Claims::Namespace& names, Mutation::Type type,
                                   Version version, Bytes value) {
  Mutation mutation;
  mutation.type = type;
  mutation.kind = Kind::name_space;
  mutation.db = namespace_db;
  mutation.version = version;
  mutation.key = names.name();
  mutation.value = value;
  return mutation;
}

}  // namespace

// --- declared, changed, dropped
// -------------------------------------------------------------------

Status Namespaces::check_journal() const {
  if (core_.options().replicated && core_.context().decision == nullptr) {
    return Error{ErrorCode::refused, "a replica is changed by its log alone"};
  }
  if (core_.versions().next() > limits::version_max) {
    return Error{ErrorCode::versions_exhausted, {}};
  }
  Journal* const journal = core_.journal();
  if (journal != nullptr && !journal->accepts_writes()) return no_journal();
  return Done{};
}

bool Namespaces::append_mutation(Mutation::Type type, Claims::Namespace& names,
                                 const Policy& policy, Ticket& ticket) {
  const std::string value = type == Mutation::Type::put ? encode_policy(policy) : std::string{};
  const Version before = std::exchange(names.version, core_.versions().take(core_.context()));
  Journal* const journal = core_.journal();
  if (journal == nullptr) return true;
  const Mutation mutation = mutation_of(names, type, names.version, value);
  ticket = journal->append({&mutation, 1});
  if (ticket == 0) {
    names.version = before;
    return false;
  }
  names.ticket = ticket;
  return true;
}

bool Namespaces::insert(const NamespaceHandle& made) {
  // All that may fail comes first, so that none is half there.
  ByName name{1, NameHash{&core_}};
  name.emplace(made->name(), made);
  BySerial serial;
  serial.emplace(next_serial_, made);
  const auto fits = static_cast<float>(by_name_.bucket_count()) * by_name_.max_load_factor();
  if (static_cast<float>(by_name_.size() + 1) > fits) by_name_.reserve(2 * by_name_.size() + 8);
  const std::size_t bytes = Claims::Namespace::bytes_of(made->name());
  if (!core_.upkeep().try_charge(bytes)) return false;
  bytes_ += bytes;
  made->serial = next_serial_++;
  by_name_.insert(name.extract(name.begin()));
  by_serial_.insert(by_serial_.end(), serial.extract(serial.begin()));
  return true;
}

void Namespaces::remove(const Claims::Namespace& names) {
  const std::size_t bytes = Claims::Namespace::bytes_of(names.name());
  by_serial_.erase(names.serial);
  by_name_.erase(names.name());  // may be the last that holds it
  bytes_ -= bytes;
  core_.region().charge(-static_cast<std::ptrdiff_t>(bytes));
}

Result<NamespaceHandle> Namespaces::same_or_error(const NamespaceHandle& known,
                                                  const Policy& policy, Ticket& ticket) const {
  if (known->state() != Claims::Namespace::State::open) return dropped_now(known->name());
  std::string differs = differences(known->policy(), policy);
  if (!differs.empty()) {
    return Error{ErrorCode::namespace_differs,
                 std::string{known->name()} + " is declared with other terms: " + differs};
  }
  ticket = known->ticket;
  return known;
}

Result<NamespaceHandle> Namespaces::declare(Bytes name, const Policy& policy, Ticket& ticket) {
  SEMEL_CHECK(check_namespace_name(name));
  SEMEL_CHECK(check_policy(policy));
  {
    const base::SharedLock lock{mutex_};
    const auto known = by_name_.find(name);
    if (known != by_name_.end()) return same_or_error(known->second, policy, ticket);
  }
  SEMEL_CHECK(check_journal());
  NamespaceHandle made{new Claims::Namespace(name, policy)};
  const base::ExclusiveLock lock{mutex_};
  const auto known = by_name_.find(name);
  if (known != by_name_.end()) return same_or_error(known->second, policy, ticket);
  if (!insert(made)) {
    core_.context().bump(Count::refused);
    return Error{ErrorCode::memory_full, "for namespace " + std::string{name}};
  }
  // Before it can be found: mutations that depend on it follow it in the journal.
  if (!append_mutation(Mutation::Type::put, *made, policy, ticket)) {
    remove(*made);
    return no_journal();
  }
  return made;
}

Result<std::string> Namespaces::change(Bytes name, const Policy& policy, Ticket& ticket) {
  SEMEL_CHECK(check_policy(policy));
  SEMEL_CHECK(check_journal());
  const base::ExclusiveLock lock{mutex_};
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return Error{ErrorCode::bad_namespace, std::string{name}};
  Claims::Namespace& names = *known->second;
  if (names.state() != Claims::Namespace::State::open) return dropped_now(name);
  const Policy before = names.policy();
  std::string differs = differences(before, policy);
  ticket = names.ticket;
  if (differs.empty()) return differs;
  if (std::string forgotten = what_is_forgotten(before, policy); !forgotten.empty()) {
    return Error{ErrorCode::namespace_differs, std::string{name} + ": " + forgotten};
  }
  if (!append_mutation(Mutation::Type::put, names, policy, ticket)) return no_journal();
  names.write(policy);
  return differs;
}

Status Namespaces::begin_drop(Claims::Namespace& names) {
  const base::ExclusiveLock lock{mutex_};
  if (names.state() != Claims::Namespace::State::open) return dropped_now(names.name());
  names.move_to(Claims::Namespace::State::closing);
  return Done{};
}

void Namespaces::give_up_drop(Claims::Namespace& names) {
  const base::ExclusiveLock lock{mutex_};
  names.move_to(Claims::Namespace::State::open);
}

Status Namespaces::finish_drop(Claims::Namespace& names, Ticket& ticket) {
  const base::ExclusiveLock lock{mutex_};
  if (!check_journal() || !append_mutation(Mutation::Type::erase, names, {}, ticket)) {
    names.move_to(Claims::Namespace::State::open);
    return no_journal();
  }
  names.move_to(Claims::Namespace::State::dropped);
  ++dropped_;
  remove(names);
  return Done{};
}

// --- looked up
// ------------------------------------------------------------------------------------

NamespaceHandle Namespaces::find(Bytes name) const {
  const base::SharedLock lock{mutex_};
  const auto known = by_name_.find(name);
  return known == by_name_.end() ? NamespaceHandle{} : known->second;
}

NamespaceHandle Namespaces::find_by_key(Bytes table_key) const {
  const std::size_t colon = table_key.substr(0, limits::namespace_name_max + 1).find(':');
  return colon == Bytes::npos ? NamespaceHandle{} : find(table_key.substr(0, colon));
}

std::vector<std::string> Namespaces::names() const {
  std::vector<std::string> names;
  {
    const base::SharedLock lock{mutex_};
    names.reserve(by_name_.size());
    for (const auto& [name, space] : by_name_) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t Namespaces::list(
    std::uint64_t cursor, std::size_t count,
    const std::function<void(Bytes name, const Policy& policy)>& visit) const {
  std::vector<NamespaceHandle> page;
  bool more = false;
  {
    const base::SharedLock lock{mutex_};
    auto next = by_serial_.upper_bound(cursor);
    for (; next != by_serial_.end() && page.size() < count; ++next) page.push_back(next->second);
    more = next != by_serial_.end();
  }
  if (page.empty()) return 0;
  const std::uint64_t last = page.back()->serial;
  for (const NamespaceHandle& names : page) visit(names->name(), names->policy());
  return more ? last : 0;
}

Namespaces::Figures Namespaces::figures() const {
  const base::SharedLock lock{mutex_};
  return {by_name_.size(), dropped_, bytes_};
}

// --- written down and put back
// --------------------------------------------------------------------

void Namespaces::for_each_mutation(const std::function<void(const Mutation&)>& visit) const {
  struct Declared {
    NamespaceHandle names;
    Version version;
    std::string value;
  };
  std::vector<Declared> page;
  std::uint64_t cursor = 0;
  do {
    page.clear();
    {
      const base::SharedLock lock{mutex_};
      auto next = by_serial_.upper_bound(cursor);
      for (; next != by_serial_.end() && page.size() < walked_at_once; ++next) {
        const NamespaceHandle& names = next->second;
        page.push_back({names, names->version, encode_policy(names->policy())});
        cursor = next->first;
      }
    }
    for (const Declared& seen : page) {
      visit(mutation_of(*seen.names, Mutation::Type::put, seen.version, seen.value));
    }
  } while (page.size() == walked_at_once);
}

void Namespaces::append_again(Journal& journal) const {
  std::uint64_t cursor = 0;
  for (bool more = true; more;) {
    const base::SharedLock lock{mutex_};
    auto next = by_serial_.upper_bound(cursor);
    for (std::size_t i = 0; i < walked_at_once && next != by_serial_.end(); ++i, ++next) {
      const Claims::Namespace& names = *next->second;
      const std::string value = encode_policy(names.policy());
      const Mutation put = mutation_of(names, Mutation::Type::put, names.version, value);
      static_cast<void>(journal.append({&put, 1}));  // one that is not taken fails the journal
      cursor = next->first;
    }
    more = next != by_serial_.end();
  }
}

Status Namespaces::restore(const Mutation& mutation, Timestamp now) {
  SEMEL_CHECK(check_namespace_name(mutation.key));
  const base::ExclusiveLock lock{mutex_};
  forget_delete_markers(now);
  if (mutation.type == Mutation::Type::put) return restore_put(mutation);
  if (mutation.type == Mutation::Type::erase) restore_erase(mutation, now);
  return Done{};
}

Status Namespaces::restore_put(const Mutation& mutation) {
  const std::optional<Policy> policy = decode_policy(mutation.value);
  if (!policy) {
    return Error{ErrorCode::storage_damaged, "the terms of namespace " + std::string{mutation.key}};
  }
  const auto marker = delete_markers_.find(std::string{mutation.key});
  if (marker != delete_markers_.end() && marker->second.version >= mutation.version) return Done{};
  const auto known = by_name_.find(mutation.key);
  if (known != by_name_.end()) {
    if (known->second->version >= mutation.version) return Done{};
    known->second->version = mutation.version;
    known->second->write(*policy);
    return Done{};
  }
  NamespaceHandle made{new Claims::Namespace(mutation.key, *policy)};
  made->version = mutation.version;
  if (insert(made)) return Done{};
  return Error{ErrorCode::memory_full, "for namespace " + std::string{mutation.key}};
}

void Namespaces::restore_erase(const Mutation& mutation, Timestamp now) {
  const auto known = by_name_.find(mutation.key);
  if (known != by_name_.end()) {
    if (known->second->version >= mutation.version) return;
    known->second->move_to(Claims::Namespace::State::dropped);
    remove(*NamespaceHandle{known->second});
  }
  DeleteMarker& marker = delete_markers_[std::string{mutation.key}];
  marker.version = std::max(marker.version, mutation.version);
  marker.end = now + delete_marker_ttl;
  delete_marker_ends_.emplace_back(marker.end, mutation.key);
}

void Namespaces::forget_delete_markers(Timestamp now) {
  for (; !delete_marker_ends_.empty() && delete_marker_ends_.front().first <= now;
       delete_marker_ends_.pop_front()) {
    const auto marker = delete_markers_.find(delete_marker_ends_.front().second);
    if (marker != delete_markers_.end() && marker->second.end <= now) delete_markers_.erase(marker);
  }
}

}  // namespace engine
}  // namespace semel

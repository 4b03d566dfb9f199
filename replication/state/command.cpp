// Commands as bytes. A command is its place in the variant, then its fields; a flag precedes an
// optional field, which may be absent. A change here is a new format of entries (entry.hpp).
#include "replication/state/command.hpp"

#include <algorithm>
#include <string>

#include "base/assert.hpp"
#include "engine/core/namespace_terms.hpp"
#include "replication/state/fields.hpp"
#include "replication/state/library_fields.hpp"

namespace semel::replication {
namespace {

using engine::HashVerb;
using engine::OwnerVerb;

constexpr std::uint8_t db_last = limits::db_count - 1;

template <class Fields>
void database(Fields& fields, std::uint8_t& db) {
  fields.small(db, db_last);
}

void expiry(FieldWriter& fields, const Expiry& value) {
  fields.small(static_cast<std::uint8_t>(value.mode()), 3);
  fields.number(value.ttl().count());
}
void expiry(FieldReader& fields, Expiry& value) {
  Expiry::Mode mode = Expiry::Mode::clear;
  choice(fields, mode, Expiry::Mode::at);
  std::int64_t ms = 0;
  fields.number(ms);
  switch (mode) {
    case Expiry::Mode::clear:
      value = Expiry::clear();
      break;
    case Expiry::Mode::keep:
      value = Expiry::keep();
      break;
    case Expiry::Mode::in:
      value = Expiry::in(Millis{ms});
      break;
    case Expiry::Mode::at:
      value = Expiry::at(Timestamp{Millis{ms}});
      break;
  }
}

template <class Fields>
void arithmetic(Fields& fields, Arithmetic& value) {
  fields.flag(value.use_float);
  fields.flag(value.has_lower);
  fields.flag(value.has_upper);
  fields.flag(value.saturate);
  fields.flag(value.expiry_only_without_ttl);
  fields.number(value.lower);
  fields.number(value.upper);
  fields.real(value.by_float);
  fields.real(value.lower_float);
  fields.real(value.upper_float);
}

template <class Fields>
void all(Fields&, TimeCommand&) {}

template <class Fields>
void all(Fields& fields, StoreCommand& command) {
  StoreOp& op = command.op;
  choice(fields, op.verb, Verb::persist);
  database(fields, op.db);
  choice(fields, op.condition, Condition::if_version);
  fields.flag(op.get);
  fields.flag(op.rule.only_without_ttl);
  fields.flag(op.rule.only_with_ttl);
  fields.flag(op.rule.only_later);
  fields.flag(op.rule.only_earlier);
  expiry(fields, op.expiry);
  fields.bytes(op.key);
  fields.bytes(op.value);
  fields.bytes(op.operand);
  fields.number(op.expected);
  fields.number(op.amount);
  fields.number(op.end);
  perhaps(fields, command.arithmetic, [](auto& f, Arithmetic& a) { arithmetic(f, a); });
  const bool counts = op.verb == Verb::incr_by_float || op.verb == Verb::increx;
  if (!is_write(op.verb) || counts != command.arithmetic.has_value()) fields.fail();
}

template <class Fields>
void pairs(Fields& fields, std::vector<KeyValue>& items) {
  list(fields, items, [](auto& f, KeyValue& item) {
    f.bytes(item.key);
    f.bytes(item.value);
  });
}

template <class Fields>
void keys(Fields& fields, std::vector<Bytes>& items) {
  list(fields, items, [](auto& f, Bytes& item) { f.bytes(item); });
}

template <class Fields>
void all(Fields& fields, SetManyCommand& command) {
  database(fields, command.db);
  choice(fields, command.condition, Condition::if_present);
  expiry(fields, command.expiry);
  pairs(fields, command.pairs);
}

template <class Fields>
void all(Fields& fields, DeleteManyCommand& command) {
  database(fields, command.db);
  keys(fields, command.keys);
}

template <class Fields>
void all(Fields& fields, TransferCommand& command) {
  choice(fields, command.what, TransferCommand::What::move);
  database(fields, command.db);
  database(fields, command.to_db);
  fields.bytes(command.from);
  fields.bytes(command.to);
}

/// Its place among the writes.
template <class Fields>
void write_verb(Fields& fields, HashVerb& verb) {
  constexpr auto first = static_cast<std::uint8_t>(HashVerb::set);
  constexpr auto last = static_cast<std::uint8_t>(engine::last_logged_hash_verb);
  static_assert(last - first == 4);
  auto place = static_cast<std::uint8_t>(static_cast<std::uint8_t>(verb) - first);
  fields.small(place, last - first);
  verb = static_cast<HashVerb>(place + first);
}

template <class Fields>
void all(Fields& fields, HashCommand& command) {
  write_verb(fields, command.verb);
  database(fields, command.db);
  fields.bytes(command.key);
  list(fields, command.pairs, [](auto& f, FieldValue& item) {
    f.bytes(item.field);
    f.bytes(item.value);
  });
  keys(fields, command.fields);
  fields.number(command.amount);
  fields.real(command.by_float);
  const bool has_one = command.verb != HashVerb::set && command.verb != HashVerb::del;
  if (has_one && command.pairs.size() != 1) fields.fail();
}

template <class Fields>
void request(Fields& fields, ClaimRequest& request) {
  fields.bytes(request.key);
  perhaps(fields, request.lease, [](auto& f, auto& value) { millis(f, value); });
  fields.small(request.fingerprint.algorithm, 255);
  if (request.fingerprint.algorithm != 0) fields.array(request.fingerprint.digest);
  perhaps(fields, request.claim_id, [](auto& f, ClaimId& value) { f.array(value); });
  perhaps(fields, request.first_sent_unix_ms,
          [](auto& f, std::int64_t& value) { f.number(value); });
  fields.bytes(request.owner);
  perhaps(fields, request.session, [](auto& f, SessionId& value) { f.number(value); });
}

template <class Fields>
void all(Fields& fields, ClaimCommand& command) {
  choice(fields, command.what, ClaimCommand::What::all_or_none);
  fields.bytes(command.name);
  list(fields, command.requests, [](auto& f, ClaimRequest& item) { request(f, item); });
}

/// One that had to end memos has a number of its own, behind those of the verbs.
template <class Fields>
void owner_verb(Fields& fields, OwnerCommand& command) {
  constexpr auto with_memos = static_cast<std::uint8_t>(OwnerVerb::release) + 1;
  static_assert(with_memos == 4);
  SEMEL_ASSERT(!command.has_memos || command.verb == OwnerVerb::complete);
  auto number =
      command.has_memos ? std::uint8_t{with_memos} : static_cast<std::uint8_t>(command.verb);
  fields.small(number, with_memos);
  command.has_memos = number == with_memos;
  command.verb = command.has_memos ? OwnerVerb::complete : static_cast<OwnerVerb>(number);
}

template <class Fields>
void all(Fields& fields, OwnerCommand& command) {
  OwnerCall& call = command.call;
  owner_verb(fields, command);
  fields.bytes(command.name);
  fields.bytes(call.key);
  fields.number(call.epoch);
  fields.bytes(call.payload);
  perhaps(fields, call.lease, [](auto& f, auto& value) { millis(f, value); });
  choice(fields, call.keeping, ResultKeeping::none);
  perhaps(fields, call.on_failure,
          [](auto& f, Policy::OnFailure& value) { choice(f, value, Policy::OnFailure::in_doubt); });
}

template <class Fields>
void all(Fields& fields, MemoCommand& command) {
  fields.bytes(command.name);
  fields.bytes(command.key);
  fields.number(command.epoch);
  fields.bytes(command.step);
  fields.bytes(command.bytes);
}

template <class Fields>
void all(Fields& fields, OperatorCommand& command) {
  choice(fields, command.what, OperatorCommand::What::resolve_as_released);
  fields.bytes(command.name);
  fields.bytes(command.key);
  fields.bytes(command.result);
  perhaps(fields, command.ttl, [](auto& f, Millis& value) { millis(f, value); });
}

void policy(FieldWriter& fields, const Policy& value) {
  if (!engine::check_policy(value)) fields.fail();
  fields.bytes(engine::encode_policy(value));
}
void policy(FieldReader& fields, Policy& value) {
  Bytes bytes;
  fields.bytes(bytes);
  if (!fields.is_good()) return;
  const std::optional<Policy> found = engine::decode_policy(bytes);
  if (!found) return fields.fail();
  value = *found;
}

template <class Fields>
void all(Fields& fields, NamespaceCommand& command) {
  choice(fields, command.what, NamespaceCommand::What::drop);
  fields.bytes(command.name);
  if (command.what != NamespaceCommand::What::drop) policy(fields, command.policy);
}

template <class Fields>
void all(Fields& fields, DatabaseCommand& command) {
  choice(fields, command.what, DatabaseCommand::What::swap);
  database(fields, command.one);
  database(fields, command.other);
}

template <class Fields>
void all(Fields& fields, SessionCommand& command) {
  choice(fields, command.what, SessionCommand::What::close_former);
  fields.number(command.session);
  fields.number(command.node);
  fields.number(command.life);
}

template <class Fields>
void all(Fields& fields, RequestCommand& command) {
  database(fields, command.db);
  fields.small(command.dialect, 3);
  fields.flag(command.is_transaction);
  fields.number(command.session);
  list(fields, command.watched, [](auto& f, RequestCommand::Watched& item) {
    database(f, item.db);
    f.bytes(item.key);
    f.number(item.version);
  });
  list(fields, command.requests, [](auto& f, std::vector<Bytes>& words) { keys(f, words); });
  const auto is_empty = [](const std::vector<Bytes>& words) { return words.empty(); };
  const std::vector<std::vector<Bytes>>& requests = command.requests;
  if (command.dialect < 2 || std::any_of(requests.begin(), requests.end(), is_empty)) {
    fields.fail();
  }
}

template <class Fields>
void all(Fields& fields, FeatureLevelCommand& command) {
  fields.number(command.level);
  if (command.level == 0) fields.fail();
}

template <class Fields>
void all(Fields& fields, LibraryCommand& command) {
  using What = LibraryChange::What;
  choice(fields, command.what, What::flush);
  fields.bytes(command.name);
  list(fields, command.libraries,
       [](auto& f, LibraryCommand::Library& library) { all(f, library); });
  const bool has_one = command.what == What::load || command.what == What::load_and_replace;
  const bool has_none = command.what == What::remove || command.what == What::flush;
  const std::size_t count = command.libraries.size();
  if ((has_one && count != 1) || (has_none && count != 0)) fields.fail();
}

void put(FieldWriter& fields, const Command& command);
bool get(FieldReader& fields, Command& command, bool in_section);

[[nodiscard]] bool may_be_in_section(const Command& command) noexcept {
  return !std::holds_alternative<SectionCommand>(command.what) &&
         !std::holds_alternative<FeatureLevelCommand>(command.what) &&
         !std::holds_alternative<LibraryCommand>(command.what);
}

void all(FieldWriter& fields, SectionCommand& command) {
  static_cast<void>(fields.count(command.commands.size()));
  for (const Command& each : command.commands) {
    if (!may_be_in_section(each)) return fields.fail();
    put(fields, each);
  }
}

/// Sets `command` to the alternative of this place in the variant, and reads its fields.
template <std::size_t Place = 0>
void get_at(FieldReader& fields, Command& command, std::size_t place, bool in_section) {
  if constexpr (Place < std::variant_size_v<decltype(Command::what)>) {
    if (place != Place) return get_at<Place + 1>(fields, command, place, in_section);
    auto& made = command.what.emplace<Place>();
    if constexpr (std::is_same_v<std::remove_reference_t<decltype(made)>, SectionCommand>) {
      if (in_section) return fields.fail();
      const std::size_t count = fields.count(0);
      for (std::size_t i = 0; i < count && fields.is_good(); ++i) {
        get(fields, made.commands.emplace_back(), true);
      }
    } else {
      all(fields, made);
    }
  } else {
    fields.fail();
  }
}

constexpr std::size_t last_place = std::variant_size_v<decltype(Command::what)> - 1;

bool get(FieldReader& fields, Command& command, bool in_section) {
  std::uint8_t place = 0;
  fields.small(place, last_place);
  if (!fields.is_good()) return false;
  get_at(fields, command, place, in_section);
  if (in_section && !may_be_in_section(command)) fields.fail();
  return fields.is_good();
}

void put(FieldWriter& fields, const Command& command) {
  fields.small(static_cast<std::uint8_t>(command.what.index()), last_place);
  // The description is one for both directions, and the writer changes nothing.
  std::visit([&](auto& what) { all(fields, what); }, const_cast<Command&>(command).what);
}

struct Versions {
  std::size_t operator()(const TimeCommand&) const noexcept { return 0; }
  std::size_t operator()(const StoreCommand&) const noexcept { return 1; }
  std::size_t operator()(const SetManyCommand& c) const noexcept { return c.pairs.size(); }
  std::size_t operator()(const DeleteManyCommand& c) const noexcept { return c.keys.size(); }
  std::size_t operator()(const TransferCommand&) const noexcept { return 2; }
  std::size_t operator()(const HashCommand&) const noexcept { return 1; }
  std::size_t operator()(const ClaimCommand& c) const noexcept { return c.requests.size(); }
  std::size_t operator()(const OwnerCommand&) const noexcept { return 1; }
  std::size_t operator()(const MemoCommand&) const noexcept { return 1; }
  std::size_t operator()(const OperatorCommand&) const noexcept { return 1; }
  std::size_t operator()(const NamespaceCommand&) const noexcept { return 1; }
  std::size_t operator()(const DatabaseCommand&) const noexcept { return 1; }
  std::size_t operator()(const SessionCommand&) const noexcept { return 1; }
  /// No command changes more records than it has words twice, but for a few.
  std::size_t operator()(const RequestCommand& c) const noexcept {
    constexpr std::size_t besides = 8;
    std::size_t all = 0;
    for (const std::vector<Bytes>& words : c.requests) all += 2 * words.size() + besides;
    return all;
  }
  std::size_t operator()(const FeatureLevelCommand&) const noexcept { return 0; }
  std::size_t operator()(const LibraryCommand&) const noexcept { return 0; }
  std::size_t operator()(const SectionCommand& c) const noexcept {
    std::size_t all = 0;
    for (const Command& command : c.commands) all += versions_of(command);
    return all;
  }
};

}  // namespace

FeatureLevel level_of(const Command& command) noexcept {
  if (std::holds_alternative<LibraryCommand>(command.what)) return feature_level_libraries;
  if (std::holds_alternative<MemoCommand>(command.what)) return feature_level_memos;
  if (const auto* const owner = std::get_if<OwnerCommand>(&command.what)) {
    return owner->has_memos ? feature_level_memos : feature_level_first;
  }
  if (const auto* const space = std::get_if<NamespaceCommand>(&command.what)) {
    const bool is_sliding = space->policy.sliding_max != Millis{0};
    return is_sliding ? feature_level_sliding : feature_level_first;
  }
  FeatureLevel most = feature_level_first;
  if (const auto* const section = std::get_if<SectionCommand>(&command.what)) {
    for (const Command& each : section->commands) most = std::max(most, level_of(each));
  }
  return most;
}

std::size_t versions_of(const Command& command) noexcept {
  return std::visit(Versions{}, command.what);
}

bool encode(const Command& command, std::string& to) {
  FieldWriter fields{to};
  put(fields, command);
  return fields.is_good();
}

Result<Command> decode(Bytes& from) {
  FieldReader fields{from};
  Command command;
  if (!get(fields, command, false)) {
    return Error{ErrorCode::bad_encoding,
                 "command " +
                     std::to_string(from.empty() ? 0U : static_cast<unsigned char>(from[0])) +
                     " of an entry of the log, with " + std::to_string(fields.rest().size()) +
                     " bytes before the entry's end"};
  }
  from = fields.rest();
  return command;
}

}  // namespace semel::replication

#include "replication/state/entry.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace semel::replication {
namespace {

constexpr char entry_format = 1;
constexpr std::size_t header_bytes = 1 + 8 + 8;

void put_number(std::string& to, std::uint64_t number) {
  for (unsigned shift = 0; shift < 64; shift += 8) to.push_back(static_cast<char>(number >> shift));
}

std::uint64_t number_at(Bytes bytes, std::size_t at) noexcept {
  std::uint64_t number = 0;
  for (unsigned i = 0; i < 8; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return number;
}

Error damaged(const std::string& what) {
  return {ErrorCode::bad_encoding, "entry of the log: " + what};
}

Result<Origin> take_origin(Bytes& from) {
  FieldReader fields{from};
  Origin origin;
  all(fields, origin);
  if (!fields.is_good()) return damaged("who has proposed a command cannot be read");
  from = fields.rest();
  return origin;
}

Result<std::size_t> checked_versions(const Command& command) {
  const std::size_t versions = versions_of(command);
  if (versions <= entry_versions_max) return versions;
  return Error{ErrorCode::too_many_keys, std::to_string(versions) + " changes in one command, " +
                                             std::to_string(entry_versions_max) + " at most"};
}

}  // namespace

EntryBuilder::EntryBuilder(std::int64_t unix_ms, std::uint64_t secret) {
  SEMEL_ASSERT(unix_ms >= 0);
  bytes_.push_back(entry_format);
  put_number(bytes_, static_cast<std::uint64_t>(unix_ms));
  put_number(bytes_, secret);
}

Result<PreparedCommand> prepare(const Command& command) {
  SEMEL_TRY(versions, checked_versions(command));
  constexpr std::size_t usual_bytes = 128;  // one allocation for most commands
  std::string bytes;
  bytes.reserve(usual_bytes);
  // Every replica would stop at an entry that it cannot read.
  if (!encode(command, bytes)) {
    return Error{ErrorCode::bad_encoding, "command " + std::to_string(command.what.index()) +
                                              " of the log: one of its values is out of its range"};
  }
  return PreparedCommand{std::move(bytes), versions};
}

Result<PreparedCommand> prepare(const Command& command, std::string bytes) {
  SEMEL_TRY(versions, checked_versions(command));
  return PreparedCommand{std::move(bytes), versions};
}

void EntryBuilder::reserve(std::size_t commands, std::size_t bytes) {
  constexpr std::size_t origin_bytes = 16;  // a usual one
  const std::size_t origins = origin_bytes * std::min(commands, entry_commands_max);
  bytes_.reserve(header_bytes + origins + std::min(bytes, entry_bytes_max));
}

bool EntryBuilder::add(const PreparedCommand& command, Origin origin) {
  SEMEL_ASSERT(command.versions <= entry_versions_max && !command.bytes.empty());
  if (commands_ == entry_commands_max || versions_ + command.versions > entry_versions_max) {
    return false;
  }
  const std::size_t before = bytes_.size();
  FieldWriter fields{bytes_};
  all(fields, origin);
  if (commands_ != 0 && bytes_.size() + command.bytes.size() > entry_bytes_max) {
    bytes_.resize(before);
    return false;
  }
  bytes_ += command.bytes;
  ++commands_;
  versions_ += command.versions;
  return true;
}

Result<bool> EntryBuilder::add(const Command& command, const Origin& origin) {
  SEMEL_TRY(prepared, prepare(command));
  return add(prepared, origin);
}

Result<Entry> read_entry(Bytes bytes) {
  if (bytes.empty()) return damaged("it has no bytes");
  if (bytes[0] != entry_format) {
    return Error{ErrorCode::storage_newer,
                 "entry of the log: format " +
                     std::to_string(static_cast<unsigned>(static_cast<unsigned char>(bytes[0])))};
  }
  if (bytes.size() <= header_bytes) return damaged("it has no commands");
  Entry entry;
  entry.unix_ms = static_cast<std::int64_t>(number_at(bytes, 1));
  entry.secret = number_at(bytes, 9);
  if (entry.unix_ms < 0) return damaged("its time is beyond all times");
  std::size_t versions = 0;
  for (Bytes rest = bytes.substr(header_bytes); !rest.empty();) {
    if (entry.commands.size() == entry_commands_max) return damaged("it has too many commands");
    SEMEL_TRY(origin, take_origin(rest));
    SEMEL_TRY(command, decode(rest));
    versions += versions_of(command);
    if (versions > entry_versions_max) return damaged("its commands need too many versions");
    entry.commands.push_back(std::move(command));
    entry.origins.push_back(origin);
  }
  return entry;
}

}  // namespace semel::replication

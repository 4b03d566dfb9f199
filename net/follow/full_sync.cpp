#include "net/follow/full_sync.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/object_api/whole_record.hpp"
#include "net/dump/dumped_record.hpp"
#include "net/follow/partial_copy.hpp"
#include "net/rdb/dump_reader.hpp"
#include "net/time/held_clock.hpp"
#include "semel/limits.hpp"
#include "semel/store.hpp"

namespace semel::net {

namespace {

/// Keys may be any bytes, and the text is for a log and for INFO.
std::string printable_key(std::string_view key) {
  constexpr std::size_t bytes_max = 64;
  std::string text{key.substr(0, bytes_max)};
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "'" + text + "'";
}

std::string_view why(DumpFault fault) noexcept {
  switch (fault) {
    case DumpFault::none:
      break;
    case DumpFault::footer:
    case DumpFault::format:
      return "has a value that cannot be read";
    case DumpFault::too_large:
      return "has a value that is too long";
  }
  return {};
}

}  // namespace

bool has_claims(Engine& engine) {
  if (engine.namespaces().empty()) return false;
  const HeldClock::Hold hold;
  bool found = false;
  std::uint64_t cursor = 0;
  do {
    const auto next =
        engine.scan(cursor, {.kind = Kind::claim, .count = limits::scan_count_max, .vacant = true},
                    [&](const ScanItem&) { found = true; });
    if (!next.ok()) return true;  // a record that cannot be seen may be one
    cursor = *next;
  } while (cursor != 0 && !found);
  return found;
}

FullSync::FullSync(Node& node, StreamRunner& runner, const MasterDialog& dialog)
    : node_(node), runner_(runner), length_(dialog.length()), mark_(dialog.mark()) {}

Status FullSync::begin() {
  if (has_claims(node_.engine())) {
    return Error{ErrorCode::refused,
                 "there are claims in this node, and a full sync would remove them"};
  }
  SEMEL_CHECK(begin_partial_copy(node_));
  node_.role.become(NodeRole::State::loads);
  constexpr std::array<std::string_view, 1> all{"FLUSHALL"};
  constexpr std::array<std::string_view, 2> functions{"FUNCTION", "FLUSH"};
  for (const std::span<const std::string_view> words :
       {std::span<const std::string_view>{all}, std::span<const std::string_view>{functions}}) {
    if (std::string error = runner_.run_words(words); !error.empty()) {
      return Error{ErrorCode::refused, "the node cannot be emptied: " + error};
    }
  }
  return Done{};
}

FullSync::Progress FullSync::take(std::string_view bytes) {
  taken_ += bytes.size();
  if (file_has_ended_) return take_mark(bytes);
  if (length_ == 0) return take_file(bytes);
  const std::uint64_t behind = taken_ > length_ ? taken_ - length_ : 0;
  const std::size_t of_file =
      bytes.size() - static_cast<std::size_t>(std::min<std::uint64_t>(behind, bytes.size()));
  const Progress progress = take_file(bytes.substr(0, of_file));
  if (progress == Progress::done) rest_.append(bytes.substr(of_file));
  return progress;
}

FullSync::Progress FullSync::take_file(std::string_view bytes) {
  reader_.feed(bytes);
  for (;;) {
    switch (reader_.next()) {
      case RdbProgress::more:
        if (length_ == 0 || taken_ < length_) return Progress::more;
        return fail("the RDB file is longer than the master said");
      case RdbProgress::item:
        if (!put(reader_.item())) return Progress::failed;
        break;
      case RdbProgress::fault:
        return fail("the RDB file: " + reader_.fault_text());
      case RdbProgress::end:
        file_has_ended_ = true;
        if (length_ == 0) return take_mark(std::string{reader_.rest()});
        if (reader_.rest().empty() && taken_ >= length_) return Progress::done;
        return fail("the RDB file is shorter than the master said");
    }
  }
}

FullSync::Progress FullSync::take_mark(std::string_view bytes) {
  rest_.append(bytes);
  if (rest_.size() < mark_.size()) return Progress::more;
  if (!rest_.starts_with(mark_)) return fail("the RDB file does not end with the master's mark");
  rest_.erase(0, mark_.size());
  return Progress::done;
}

bool FullSync::put(const RdbItem& item) {
  switch (item.what) {
    case RdbItem::What::fact:
    case RdbItem::What::sizes:
    case RdbItem::What::module_data:
      return true;
    case RdbItem::What::key:
      return put_key(item);
    case RdbItem::What::library: {
      const std::array<std::string_view, 4> words{"FUNCTION", "LOAD", "REPLACE", item.text};
      error_ = runner_.run_words(words);
      if (!error_.empty()) error_.insert(0, "a library of functions: ");
      return error_.empty();
    }
    case RdbItem::What::module_key:
      error_ = "the key " + printable_key(item.key) + " has a value of the module type '" +
               std::string{item.name} + "'";
      return false;
  }
  return true;
}

bool FullSync::put_key(const RdbItem& item) {
  const auto refused = [&](std::string_view reason) {
    error_ = "the key " + printable_key(item.key) + " " + std::string{reason};
    return false;
  };
  if (item.db < 0 || item.db >= node_.settings.integer(Setting::databases)) {
    return refused("is in database " + std::to_string(item.db) +
                   ", which is beyond the setting databases");
  }
  DumpValue value;
  const DumpFault fault = read_value(item.type, item.value, limits::value_bytes_max, value);
  if (fault != DumpFault::none) return refused(why(fault));
  const KeyRef key{static_cast<std::uint8_t>(item.db), item.key};
  // An ended key stays until the DEL of the master.
  const HeldClock::Hold nothing_ends;
  Timestamp end = no_end;
  if (item.end_ms) end = node_.engine().store(key.db).from_unix_ms(*item.end_ms);
  auto bytes = record_of(node_.engine(), key, value, end);
  if (!bytes) return refused("has an element twice");
  const Timestamp due = engine::due_of_record(value.kind, *bytes, end);
  const Status put = engine::replace_whole(
      node_.engine(), key, {.kind = value.kind, .due = due, .value = *std::move(bytes)});
  if (!put) return refused("cannot be stored: " + put.error().message());
  ++keys_;
  return true;
}

FullSync::Progress FullSync::fail(std::string error) {
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace semel::net

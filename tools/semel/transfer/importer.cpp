#include "tools/semel/transfer/importer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "base/ascii.hpp"
#include "net/rdb/dump_reader.hpp"
#include "net/rdb/rdb_writer.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

namespace {

constexpr std::size_t batch_requests = 128;
constexpr std::size_t batch_bytes = std::size_t{4} << 20;

/// Of replies that every other request would get as well.
constexpr std::array<std::string_view, 9> endings{"OOM ",    "READONLY ",    "NOAUTH ",
                                                  "NOPERM ", "MISCONF ",     "LOADING ",
                                                  "MOVED ",  "CLUSTERDOWN ", "MASTERDOWN "};

/// An append-only file has commands that change records; these do something else.
constexpr std::array<std::string_view, 26> refused_commands{
    "acl",        "auth",      "bgrewriteaof", "bgsave",  "client", "cluster",  "config",
    "debug",      "failover",  "hello",        "migrate", "module", "monitor",  "psubscribe",
    "psync",      "quit",      "replicaof",    "reset",   "save",   "shutdown", "slaveof",
    "ssubscribe", "subscribe", "swapdb",       "sync",    "wait"};

std::string plural_of(Kind kind) {
  switch (kind) {
    case Kind::string:
      return "strings";
    case Kind::list:
      return "lists";
    case Kind::set:
      return "sets";
    case Kind::sorted_set:
      return "sorted sets";
    case Kind::hash:
      return "hashes";
    case Kind::stream:
      return "streams";
    default:
      return "others";
  }
}

}  // namespace

std::string Importer::name_of_key(std::string_view key) const {
  return fmt::format("key {} of database {}", shown_name(key), db_.value_or(0));
}

Status Importer::take(const net::RdbItem& item, unsigned version) {
  using What = net::RdbItem::What;
  switch (item.what) {
    case What::fact:
    case What::sizes:
      return Done{};
    case What::library:
      return add({"FUNCTION", "LOAD", "REPLACE", std::string{item.text}},
                 {.name = "a library of functions", .kind = "libraries"});
    case What::module_data:
      tally_.refuse("what a module keeps besides keys", "module type " + std::string{item.name});
      return Done{};
    case What::key:
    case What::module_key:
      break;
  }
  if (static_cast<std::uint64_t>(item.db) != db_) {
    SEMEL_CHECK(select(static_cast<std::uint64_t>(item.db)));
  }
  if (item.what == What::key) return take_key(item, version);
  tally_.refuse(name_of_key(item.key), "module type " + std::string{item.name});
  return Done{};
}

Status Importer::take_key(const net::RdbItem& item, unsigned version) {
  if (!db_error_.empty()) {
    tally_.refuse(name_of_key(item.key), db_error_);
    return Done{};
  }
  const auto kind = net::kind_of_type(item.type);
  Words request{"RESTORE", std::string{item.key},
                // 0 would be for ever; either has ended long ago.
                item.end_ms ? std::to_string(std::max<std::int64_t>(*item.end_ms, 1)) : "0",
                net::dump_of_value(item.type, item.value, version), "ABSTTL"};
  if (options_.replaces) request.emplace_back("REPLACE");
  if (item.idle_s && *item.idle_s < static_cast<std::uint64_t>(INT32_MAX)) {
    request.insert(request.end(), {"IDLETIME", std::to_string(*item.idle_s)});
  } else if (item.frequency) {
    request.insert(request.end(), {"FREQ", std::to_string(*item.frequency)});
  }
  const std::int64_t now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                  std::chrono::system_clock::now().time_since_epoch())
                                  .count();
  const bool has_ended = item.end_ms && *item.end_ms <= now_ms;
  return add(std::move(request), {.name = name_of_key(item.key),
                                  .kind = has_ended ? "ended"
                                          : kind    ? plural_of(*kind)
                                                    : "others",
                                  .may_exist = true});
}

Status Importer::command(std::span<const std::string_view> words, std::uint64_t offset) {
  if (words.empty()) return Done{};
  const std::string name = base::lower_of(words.front());
  const std::string shown = fmt::format("{} at byte {}", shown_name(name), offset);
  if (name == "select" && words.size() == 2) {
    std::uint64_t db = 0;
    const std::string_view digits = words[1];
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), db);
    if (error != std::errc{} || end != digits.data() + digits.size()) {
      return data_error(shown + ": no number of a database");
    }
    return select(db);
  }
  if (std::find(refused_commands.begin(), refused_commands.end(), name) != refused_commands.end()) {
    tally_.refuse(shown, "command " + name + ", which is not taken from a file");
    return Done{};
  }
  if (!db_error_.empty()) {
    tally_.refuse(shown, db_error_);
    return Done{};
  }
  if (name == "multi") in_transaction_ = true;
  if (name == "exec" || name == "discard") in_transaction_ = false;
  return add(Words{words.begin(), words.end()}, {.name = shown, .kind = "commands"});
}

Status Importer::finish() {
  if (in_transaction_) {
    tally_.refuse("a transaction without an end", "cut transaction");
    SEMEL_CHECK(add({"DISCARD"}, {}));
    in_transaction_ = false;
  }
  SEMEL_CHECK(send());
  return to_.finish();
}

Status Importer::select(std::uint64_t db) {
  SEMEL_CHECK(send());
  SEMEL_TRY(reply, to_.ask_one({"SELECT", std::to_string(db)}));
  db_ = db;
  db_error_ = reply.is_error() ? fmt::format("database {}: {}", db, reply.text) : "";
  return Done{};
}

Status Importer::add(Words request, Sent sent) {
  for (const std::string& word : request) bytes_ += word.size();
  requests_.push_back(std::move(request));
  sent_.push_back(std::move(sent));
  return requests_.size() < batch_requests && bytes_ < batch_bytes ? Status{Done{}} : send();
}

Status Importer::send() {
  if (requests_.empty()) return Done{};
  auto replies = to_.ask(requests_);
  const std::vector<Sent> sent = std::exchange(sent_, {});
  requests_.clear();
  bytes_ = 0;
  if (!replies) return replies.error();
  for (std::size_t i = 0; i < sent.size(); ++i) SEMEL_CHECK(note((*replies)[i], sent[i]));
  return Done{};
}

Status Importer::note(const Reply& reply, const Sent& sent) {
  // The replies within a transaction come with its EXEC.
  for (const Reply& each : reply.items) {
    if (each.is_error()) SEMEL_CHECK(note(each, {.name = sent.name}));
  }
  if (!reply.is_error()) {
    if (!sent.kind.empty()) tally_.add(sent.kind);
    return Done{};
  }
  if (sent.may_exist && reply.text.starts_with("BUSYKEY")) {
    tally_.add("kept that were there");
    return Done{};
  }
  for (const std::string_view ending : endings) {
    if (!reply.text.starts_with(ending)) continue;
    const std::string text = sent.name + ": " + reply.text;
    return ending == "OOM " ? memory_error(text) : file_error(text);
  }
  tally_.refuse(sent.name, reply.text);
  return Done{};
}

}  // namespace semel::tool

#include "tools/semel/transfer/file_export.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "net/rdb/rdb_format.hpp"
#include "net/rdb/rdb_writer.hpp"
#include "tools/semel/dedup/blocks/key_hash.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

namespace {

constexpr std::size_t write_bytes = std::size_t{1} << 20;

struct Database {
  std::uint64_t number = 0;
  std::uint64_t keys = 0;
  std::uint64_t ends = 0;
};

std::uint64_t number_behind(std::string_view text, std::string_view name) {
  const std::size_t at = text.find(name);
  std::uint64_t number = 0;
  if (at != std::string_view::npos) {
    std::from_chars(text.data() + at + name.size(), text.data() + text.size(), number);
  }
  return number;
}

/// 128 bits that stand for a key.
struct Digest {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
};
struct DigestHash {
  std::size_t operator()(const Digest& digest) const noexcept { return digest.low; }
};

/// Lines "db0:keys=3,expires=1,.." of INFO.
std::vector<Database> databases_of(std::string_view info) {
  std::vector<Database> databases;
  while (!info.empty()) {
    const std::string_view line = info.substr(0, info.find('\n'));
    info.remove_prefix(std::min(info.size(), line.size() + 1));
    if (!line.starts_with("db") || line.find(":keys=") == std::string_view::npos) continue;
    databases.push_back({.number = number_behind(line, "db"),
                         .keys = number_behind(line, "keys="),
                         .ends = number_behind(line, "expires=")});
  }
  return databases;
}

class Exporter {
 public:
  Exporter(Endpoint& from, OutputFile& file, Tally& tally, const ExportProgress& progress)
      : from_(from), file_(file), tally_(tally), progress_(progress) {}

  [[nodiscard]] Status run() {
    SEMEL_TRY(info, from_.ask_one({"INFO", "keyspace"}));
    if (info.is_error()) return file_error("INFO: " + info.text);
    const std::vector<Database> databases = databases_of(info.text);
    for (const Database& each : databases) total_ += each.keys;
    SEMEL_CHECK(write_libraries());
    for (const Database& each : databases) SEMEL_CHECK(write_database(each));
    writer().end();
    return write();
  }

 private:
  /// Of the format of the first payload, which is that of all but hashes whose fields have a ttl.
  net::RdbWriter& writer(unsigned version = 10) {
    if (writer_) return *writer_;
    version_ = version;
    writer_.emplace(version);
    writer_->fact("redis-ver", version > 10 ? "7.2.0" : "7.0.0");
    writer_->fact("redis-bits", "64");
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    writer_->fact("ctime",
                  std::to_string(std::chrono::duration_cast<std::chrono::seconds>(now).count()));
    return *writer_;
  }

  [[nodiscard]] Status write() {
    const std::string bytes = writer_->take();
    for (std::string_view rest = bytes; !rest.empty();) {
      const ssize_t count = ::write(file_.descriptor(), rest.data(), rest.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return file_error(file_.path() + ": " + std::strerror(errno));
      rest.remove_prefix(static_cast<std::size_t>(count));
    }
    return Done{};
  }

  [[nodiscard]] Status write_libraries() {
    SEMEL_TRY(dump, from_.ask_one({"FUNCTION", "DUMP"}));
    if (dump.is_error()) return Done{};  // before 7.0 there are none
    const auto body = net::body_of_dump(dump.text);
    if (!body || (!body->bytes.empty() &&
                  static_cast<unsigned char>(body->bytes.front()) != net::rdb_function)) {
      tally_.refuse("libraries of functions", "a dump of functions that is not redis-server's");
      return Done{};
    }
    SEMEL_TRY(list, from_.ask_one({"FUNCTION", "LIST"}));
    for (std::size_t i = 0; i < list.items.size(); ++i) tally_.add("libraries");
    writer(body->version).libraries(body->bytes);
    return Done{};
  }

  [[nodiscard]] Status write_database(const Database& database) {
    SEMEL_TRY(selected, from_.ask_one({"SELECT", std::to_string(database.number)}));
    if (selected.is_error()) return file_error("SELECT: " + selected.text);
    seen_.clear();
    is_begun_ = false;
    std::string cursor = "0";
    do {
      SEMEL_TRY(scanned, from_.ask_one({"SCAN", cursor, "COUNT", "64"}));
      if (scanned.items.size() != 2) return file_error("SCAN: " + scanned.text);
      cursor = scanned.items[0].text;
      SEMEL_CHECK(write_keys(database, scanned.items[1].items));
      if (!progress_(written_, total_)) return Error{ErrorCode::refused, "stopped"};
    } while (cursor != "0");
    return Done{};
  }

  /// A few at a time, as values may be large.
  [[nodiscard]] Status write_keys(const Database& database, const std::vector<Reply>& found) {
    constexpr std::size_t keys_max = 8;
    std::vector<std::string> keys;
    for (const Reply& each : found) {
      // A scan may show a key twice; in a file it would be refused.
      Digest digest;
      char bytes[KeyHash::digest_bytes];
      hash_.digest(each.text, bytes);
      std::memcpy(&digest, bytes, sizeof digest);
      if (!seen_.insert(digest).second) continue;
      keys.push_back(each.text);
      if (keys.size() < keys_max) continue;
      SEMEL_CHECK(write_some(database, std::exchange(keys, {})));
    }
    return write_some(database, keys);
  }

  [[nodiscard]] Status write_some(const Database& database, const std::vector<std::string>& keys) {
    if (keys.empty()) return Done{};
    constexpr std::size_t requests_each = 4;
    std::vector<Words> requests;
    for (const std::string& key : keys) {
      // Value and end of one instant.
      requests.insert(requests.end(), {{"MULTI"}, {"PEXPIRETIME", key}, {"DUMP", key}, {"EXEC"}});
    }
    SEMEL_TRY(replies, from_.ask(requests));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      SEMEL_CHECK(write_key(database, keys[i], replies[i * requests_each + 3]));
    }
    return writer_ && writer_->bytes() >= write_bytes ? write() : Status{Done{}};
  }

  [[nodiscard]] Status write_key(const Database& database, const std::string& key,
                                 const Reply& reply) {
    const std::string name = fmt::format("key {} of database {}", shown_name(key), database.number);
    if (reply.items.size() != 2) return file_error(name + ": " + reply.text);
    const Reply& end = reply.items[0];
    const Reply& dump = reply.items[1];
    if (end.is_error() || dump.is_error()) {
      tally_.refuse(name, dump.is_error() ? dump.text : end.text);
      return Done{};
    }
    if (dump.is_null()) return Done{};  // gone since it was found
    const auto body = net::body_of_dump(dump.text);
    if (!body || body->bytes.empty()) {
      tally_.refuse(name, "a dump of a later release");
      return Done{};
    }
    net::RdbWriter& to = writer(body->version);
    if (body->version > version_) {
      tally_.refuse(name, "an RDB file of version " + std::to_string(version_) +
                              " has no place for it: its fields may have a ttl");
      return Done{};
    }
    if (!std::exchange(is_begun_, true)) {
      to.database(database.number, database.keys, database.ends);
    }
    to.key(key, body->bytes, end.integer >= 0 ? std::optional{end.integer} : std::nullopt);
    tally_.add("keys");
    if (end.integer >= 0) tally_.add("with a ttl");
    ++written_;
    return Done{};
  }

  Endpoint& from_;
  OutputFile& file_;
  Tally& tally_;
  const ExportProgress& progress_;
  std::optional<net::RdbWriter> writer_;
  unsigned version_ = 0;
  const KeyHash hash_;
  std::unordered_set<Digest, DigestHash> seen_;  // of the database
  bool is_begun_ = false;                        // whether the database stands in the file
  std::uint64_t written_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace

Status export_rdb(Endpoint& from, OutputFile& file, Tally& tally, const ExportProgress& progress) {
  return Exporter{from, file, tally, progress}.run();
}

}  // namespace semel::tool

// Puts the keys, libraries and commands of a file into an endpoint, in batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/rdb/rdb_reader.hpp"
#include "tools/semel/transfer/endpoint.hpp"
#include "tools/semel/transfer/tally.hpp"

namespace semel::tool {

class Importer {
 public:
  struct Options {
    bool replaces = false;  ///< keys that are there already; else they stay
  };
  Importer(Endpoint& to, Options options, Tally& tally)
      : to_(to), options_(options), tally_(tally) {}

  // Each may send a batch. Refusals of single keys are counted. Errors end the import: those of
  // Endpoint::ask(), memory_full (the other side has no memory left), refused (it refuses all).

  [[nodiscard]] Status take(const net::RdbItem& item, unsigned version);
  /// Of an append-only file, at `offset`.
  [[nodiscard]] Status command(std::span<const std::string_view> words, std::uint64_t offset);
  /// Sends the rest. A transaction of an append-only file that has no end is dropped.
  [[nodiscard]] Status finish();

 private:
  /// How a request counts.
  struct Sent {
    std::string name{};  ///< for a refusal
    std::string kind{};  ///< for the summary; empty: nothing is counted
    bool may_exist = false;
  };

  [[nodiscard]] Status add(Words request, Sent sent);
  [[nodiscard]] Status send();
  [[nodiscard]] Status select(std::uint64_t db);
  [[nodiscard]] Status note(const Reply& reply, const Sent& sent);
  [[nodiscard]] Status take_key(const net::RdbItem& item, unsigned version);
  [[nodiscard]] std::string name_of_key(std::string_view key) const;

  Endpoint& to_;
  const Options options_;
  Tally& tally_;
  std::vector<Words> requests_;
  std::vector<Sent> sent_;
  std::size_t bytes_ = 0;
  std::optional<std::uint64_t> db_;  // selected at the other side
  std::string db_error_;             // why that one cannot be selected
  bool in_transaction_ = false;
};

}  // namespace semel::tool

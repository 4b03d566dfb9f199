// Replaces what the node has by the RDB file of a master, while the file arrives.
//
//   begin() -> take() ... until it answers done -> rest() is the beginning of the stream
//
// From begin() to the end the node answers LOADING. One that is left in the middle stays so until
// clear_databases() or the next begin(): no client reads a part of a database.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/follow/master_dialog.hpp"
#include "net/follow/stream_runner.hpp"
#include "net/node/node.hpp"
#include "net/rdb/rdb_reader.hpp"
#include "semel/result.hpp"

namespace semel::net {

class FullSync {
 public:
  enum class Progress : std::uint8_t { more, done, failed };

  /// By `dialog`, which has ended with transfer. `node` and `runner` must outlive this.
  FullSync(Node& node, StreamRunner& runner, const MasterDialog& dialog);

  /// Empties the databases. Errors: refused (there are claims, and they stay; or the node cannot
  /// remove its records now).
  [[nodiscard]] Status begin();
  /// Takes all of `bytes`. After failed, error() says why. std::bad_alloc.
  [[nodiscard]] Progress take(std::string_view bytes);
  /// The bytes behind the file, after done.
  [[nodiscard]] std::string_view rest() const noexcept { return rest_; }
  [[nodiscard]] const std::string& error() const noexcept { return error_; }

  [[nodiscard]] std::uint64_t bytes_taken() const noexcept { return taken_; }
  [[nodiscard]] std::uint64_t keys() const noexcept { return keys_; }

 private:
  [[nodiscard]] Progress take_file(std::string_view bytes);
  [[nodiscard]] Progress take_mark(std::string_view bytes);
  /// False: error_ says why.
  [[nodiscard]] bool put(const RdbItem& item);
  [[nodiscard]] bool put_key(const RdbItem& item);
  [[nodiscard]] Progress fail(std::string error);

  Node& node_;
  StreamRunner& runner_;
  const std::uint64_t length_;  // 0: up to mark_
  const std::string mark_;
  RdbReader reader_;
  bool file_has_ended_ = false;
  std::uint64_t taken_ = 0;
  std::uint64_t keys_ = 0;
  std::string rest_;
  std::string error_;
};

/// Whether the node has claims, in any namespace. Progress: walks over the records, if there are
/// namespaces.
[[nodiscard]] bool has_claims(Engine& engine);
}  // namespace semel::net

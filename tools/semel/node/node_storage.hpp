// The storage of a node, if the program is built with one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/settings/settings.hpp"
#include "semel/engine.hpp"
#include "semel/journal.hpp"
#include "semel/result.hpp"
#include "semel/storage.hpp"

namespace semel::tool {

/// Must outlive the engine. `file` is the path of the configuration file, or empty.
class NodeStorage {
 public:
  NodeStorage(const net::Settings& settings, const std::string& file, const Clock& clock);
  ~NodeStorage();
  NodeStorage(const NodeStorage&) = delete;
  NodeStorage& operator=(const NodeStorage&) = delete;

  /// Whether the program has one at all.
  [[nodiscard]] static bool is_built() noexcept;
  /// Opens it and sets it in `options`.
  [[nodiscard]] Status open(Options& options);
  /// Restores its records. It must be open.
  [[nodiscard]] Result<RecoveryReport> recover(
      Engine& engine, const std::function<void(const RecoveryProgress&)>& progress);
  [[nodiscard]] bool is_open() const noexcept { return storage_ != nullptr; }
  /// How long one of its threads has been at one piece of work; 0 if it is not open.
  [[nodiscard]] Millis busy_for() const noexcept;
  /// Runs Storage::backup() with the settings; files of the newest backup in `folder` are linked
  /// from it. The storage must be open. From any thread.
  [[nodiscard]] Status backup(const std::string& folder, const std::string& directory,
                              const std::function<bool(const BackupProgress&)>& progress);
  /// None: it was not opened. From any thread.
  [[nodiscard]] std::optional<StorageStats> stats() const;

 private:
  [[maybe_unused]] const net::Settings& settings_;
  [[maybe_unused]] const std::string& file_;
  [[maybe_unused]] const Clock& clock_;
  std::unique_ptr<Journal> storage_;
};

}  // namespace semel::tool

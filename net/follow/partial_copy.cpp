#include "net/follow/partial_copy.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include "net/time/held_clock.hpp"

namespace semel::net {

namespace {

/// Empty: there is no storage.
std::string path_of(Node& node) {
  if (!node.settings.boolean(Setting::storage_enabled)) return {};
  return node.settings.text(Setting::dir) + "/partial-copy";
}

}  // namespace

bool has_partial_copy(Node& node) {
  const std::string path = path_of(node);
  std::error_code unknown;
  return !path.empty() && std::filesystem::exists(path, unknown);
}

Status begin_partial_copy(Node& node) {
  const std::string path = path_of(node);
  if (path.empty()) return Done{};
  const auto& replace = node.hooks.replace_file;
  if (replace && replace(path, "a full sync from another server is under way\n")) return Done{};
  return Error{ErrorCode::storage_failed, "the file " + path + " cannot be written"};
}

void end_partial_copy(Node& node) {
  const std::string path = path_of(node);
  if (path.empty() || !node.engine().confirm(Durability::synced)) return;
  std::error_code unknown;
  std::filesystem::remove(path, unknown);
}

Status clear_databases(Node& node) {
  const HeldClock::Hold hold;
  const auto flushed = node.engine().flush(std::nullopt);
  node.watches.all_touched();
  return flushed.ok() ? Status{Done{}} : Status{flushed.error()};
}

}  // namespace semel::net

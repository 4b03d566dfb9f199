#include "tools/semel/node/node_storage.hpp"

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.hpp"
#include "semel/storage_tools.hpp"
#include "tools/semel/node/node_libraries.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

using net::Setting;

namespace {

/// The names in `directory` of files that belong to settings and to the configuration file `file`.
std::vector<std::string> own_files(const net::Settings& settings, const std::string& file,
                                   const std::string& directory) {
  constexpr std::array paths{Setting::unix_socket,     Setting::ready_file,
                             Setting::backup_dir,      Setting::requirepass_file,
                             Setting::aclfile,         Setting::tls_cert_file,
                             Setting::tls_key_file,    Setting::tls_ca_cert_file,
                             Setting::tls_ca_cert_dir, Setting::log_file};
  std::vector<std::string> texts{file};
  for (const Setting each : paths) texts.push_back(settings.text(each));
  std::vector<std::string> names{libraries_file};
  for (const std::string& text : texts) {
    std::filesystem::path path{text};
    if (!path.has_filename()) path = path.parent_path();  // "backups/"
    std::error_code code;
    if (!text.empty() && std::filesystem::equivalent(
                             path.has_parent_path() ? path.parent_path() : ".", directory, code)) {
      names.push_back(path.filename());
    }
  }
  return names;
}

}  // namespace

NodeStorage::NodeStorage(const net::Settings& settings, const std::string& file, const Clock& clock)
    : settings_(settings), file_(file), clock_(clock) {}
NodeStorage::~NodeStorage() = default;

bool NodeStorage::is_built() noexcept {
  return true;
}

Status NodeStorage::open(Options& options) {
  const std::string directory = settings_.text(Setting::dir);
  if (directory.empty()) return usage_error("storage-enabled needs a directory: set dir");
  auto opened = Storage::open(
      {.directory = directory,
       .sync_every = std::chrono::duration_cast<Millis>(settings_.duration(Setting::sync_every)),
       .own_files = own_files(settings_, file_, directory),
       .clock_ahead_max =
           std::chrono::duration_cast<Millis>(settings_.duration(Setting::clock_ahead_max)),
       .accept_unknown_namespaces = settings_.boolean(Setting::accept_unknown_namespaces)},
      clock_);
  if (!opened) return with_whole_text(opened.error(), directory);
  auto storage = *std::move(opened);
  options.journal = storage.get();
  options.first_version = storage->first_version();
  const std::string level = settings_.text(Setting::durability);
  options.durability = level == "synced"   ? Durability::synced
                       : level == "logged" ? Durability::logged
                                           : Durability::memory;
  storage_ = std::move(storage);
  return Done{};
}

Result<RecoveryReport> NodeStorage::recover(
    Engine& engine, const std::function<void(const RecoveryProgress&)>& progress) {
  SEMEL_ASSERT(storage_ != nullptr);
  auto recovered = static_cast<Storage&>(*storage_).recover(engine, progress);
  if (!recovered) return with_whole_text(recovered.error(), settings_.text(Setting::dir));
  return recovered;
}

Millis NodeStorage::busy_for() const noexcept {
  return storage_ == nullptr ? Millis{0} : static_cast<const Storage&>(*storage_).busy_for();
}

Status NodeStorage::backup(const std::string& folder, const std::string& directory,
                           const std::function<bool(const BackupProgress&)>& progress) {
  SEMEL_ASSERT(storage_ != nullptr);
  SEMEL_CHECK(static_cast<Storage&>(*storage_).backup(
      directory,
      {.bytes_per_second = static_cast<std::uint64_t>(settings_.integer(Setting::backup_rate)),
       .copies = settings_.boolean(Setting::backup_copies),
       .base = folder,
       .progress = progress}));
  // Only the client removes a backup under a name that it chose.
  constexpr std::string_view own_prefix = "bgsave-";
  const auto keep = static_cast<std::size_t>(settings_.integer(Setting::bgsave_keep));
  if (keep == 0 || !directory.substr(folder.size() + 1).starts_with(own_prefix)) return Done{};
  const Status kept = keep_newest_backups(directory, std::string{own_prefix}, keep);
  if (kept) return Done{};
  return Error{kept.error().code,
               "this backup is complete; an older one stays: " + kept.error().detail};
}

std::optional<StorageStats> NodeStorage::stats() const {
  if (storage_ == nullptr) return std::nullopt;
  return static_cast<const Storage&>(*storage_).stats();
}

}  // namespace semel::tool

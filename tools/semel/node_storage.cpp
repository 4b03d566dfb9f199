#include "tools/semel/node_storage.hpp"

#include <utility>

#include "semel/storage.hpp"

namespace semel::tool {
namespace {

std::string text_of(const Error& error) {
  std::string text{sentence_of(error.code)};
  return error.detail.empty() ? text : text + ": " + error.detail;
}

}  // namespace

NodeStorage::NodeStorage(net::Settings& settings, const Clock& clock)
    : settings_(settings), clock_(clock) {}
NodeStorage::~NodeStorage() = default;

std::string NodeStorage::open(Options& options) {
  using net::Setting;
  const std::string directory = settings_.text(Setting::dir);
  if (directory.empty()) return "storage-enabled needs a directory: set dir";
  auto opened = Storage::open(
      {.directory = directory,
       .sync_every = std::chrono::duration_cast<Millis>(settings_.duration(Setting::sync_every))},
      clock_);
  if (!opened) return directory + ": " + text_of(opened.error());
  auto storage = *std::move(opened);
  options.journal = storage.get();
  options.first_version = storage->first_version();
  const std::string level = settings_.text(Setting::durability);
  options.durability = level == "synced"   ? Durability::synced
                       : level == "logged" ? Durability::logged
                                           : Durability::memory;
  storage_ = std::move(storage);
  return {};
}

std::string NodeStorage::recover(Engine& engine) {
  if (storage_ == nullptr) return {};
  const auto report = static_cast<Storage&>(*storage_).recover(engine);
  return report ? std::string{}
                : settings_.text(net::Setting::dir) + ": " + text_of(report.error());
}

std::unique_ptr<Journal> NodeStorage::take() {
  return std::move(storage_);
}

}  // namespace semel::tool

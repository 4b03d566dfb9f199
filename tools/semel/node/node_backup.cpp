#include "tools/semel/node/node_backup.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <system_error>

#include "base/ascii.hpp"

namespace semel::tool {
namespace {

constexpr std::size_t name_bytes_max = 128;
constexpr std::size_t short_text_bytes = 15;  // a string of so many bytes needs no memory

/// A client's name must not lead out of the directory.
bool is_sound_name(const std::string& name) {
  return !name.empty() && name.size() <= name_bytes_max && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return base::is_letter(c) || base::is_digit(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

NodeBackup::NodeBackup(const Clock& clock, Make make, Ended ended)
    : clock_(clock), make_(std::move(make)), ended_(std::move(ended)) {}

NodeBackup::~NodeBackup() {
  std::thread last;
  {
    const base::MutexLock lock{mutex_};
    last = std::move(thread_);
    is_cancelled_ = true;
  }
  if (last.joinable()) last.join();
}

Status NodeBackup::start(const std::string& folder, const std::string& name,
                         std::uint64_t changes) {
  if (folder.empty()) return Error{ErrorCode::bad_option, "backup-dir is not set"};
  if (!is_sound_name(name)) {
    return Error{
        ErrorCode::bad_option,
        "the name of a backup has 1 to 128 letters, digits, '-', '_' and '.', and does not "
        "begin with '.'"};
  }
  const std::string directory = folder + "/" + name;
  const base::MutexLock lock{mutex_};
  if (state_.stage == net::BackupState::Stage::running) {
    return Error{ErrorCode::refused, "backup '" + state_.name + "' is running"};
  }
  if (thread_.joinable()) thread_.join();  // it has said that it ended
  net::BackupState begun = state_;         // what it says of those before
  begun.stage = net::BackupState::Stage::running;
  begun.name = name;
  begun.started_unix_ms = clock_.unix_ms();
  begun.started_changes = changes;
  begun.seconds = 0;
  begun.error.clear();
  begun.bytes = begun.bytes_total = 0;
  try {
    thread_ = std::thread{[this, folder, directory] { run(folder, directory); }};
  } catch (const std::system_error& error) {
    return Error{ErrorCode::refused, std::string{"no thread for a backup: "} + error.what()};
  }
  is_cancelled_ = false;
  state_ = std::move(begun);  // run() waits for the mutex before it changes it
  return Done{};
}

Status NodeBackup::cancel() {
  const base::MutexLock lock{mutex_};
  if (state_.stage != net::BackupState::Stage::running) {
    return Error{ErrorCode::refused, "no backup is running"};
  }
  is_cancelled_ = true;
  return Done{};
}

bool NodeBackup::step(std::uint64_t bytes, std::uint64_t bytes_total) {
  const base::MutexLock lock{mutex_};
  state_.bytes = bytes;
  state_.bytes_total = bytes_total;
  return !is_cancelled_;
}

/// An exception (there is no memory) ends the backup, not the node.
void NodeBackup::run(const std::string& folder, const std::string& directory) noexcept {
  using Stage = net::BackupState::Stage;
  Stage stage = Stage::failed;
  std::string error;
  try {
    const Status made =
        make_(folder, directory, [this](std::uint64_t bytes, std::uint64_t bytes_total) {
          return step(bytes, bytes_total);
        });
    if (made) {
      stage = Stage::done;
    } else {
      error = made.error().message();
    }
  } catch (const std::exception& thrown) {
    error.assign(thrown.what(), std::min(std::strlen(thrown.what()), short_text_bytes));
  }
  {
    const base::MutexLock lock{mutex_};
    const std::int64_t now_ms = clock_.unix_ms();
    state_.stage = stage;
    state_.last_seconds = state_.seconds = (now_ms - state_.started_unix_ms) / 1000;
    state_.last_failed = stage == Stage::failed;
    if (stage == Stage::done) {
      ++state_.done;
      state_.done_unix_ms = now_ms;
      state_.done_changes = state_.started_changes;
    }
    state_.error = std::move(error);
  }
  try {
    ended_(state());
  } catch (const std::exception&) {
    // The log has no line for it; SEMEL.BACKUP STATUS has the result.
  }
}

net::BackupState NodeBackup::state() const {
  const base::MutexLock lock{mutex_};
  net::BackupState state = state_;
  if (state.stage == net::BackupState::Stage::running) {
    state.seconds = (clock_.unix_ms() - state.started_unix_ms) / 1000;
  }
  return state;
}

}  // namespace semel::tool

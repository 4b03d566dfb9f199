#include "storage/sync/checkpoint_keeper.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/assert.hpp"

namespace semel::storage {

bool CheckpointKeeper::describes_this() const noexcept {
  if (files_.has_old_segments()) return false;
  // An earlier process that wrote none has left nothing.
  return files_.earlier().checkpoint.sequence == 0 || files_.is_recovered();
}

CheckpointContent CheckpointKeeper::content_now() const noexcept {
  CheckpointContent content = written_;
  content.storage_id = context_.storage_id;
  content.format = format_version;
  content.segment_bytes = log_.extent().segment_bytes();
  content.begin = log_begin_;
  // Read before the tail, so that it is not behind it.
  content.whole = log_.written().whole();
  content.tail = log_.extent().used();
  content.synced = sync_.synced();
  content.drained = files_.drained();
  content.rocks_sequence = files_.rocks_sequence();
  SEMEL_ASSERT(content.begin <= content.synced && content.synced <= log_.tail());
  SEMEL_ASSERT(content.whole <= log_.tail() && content.drained <= log_.tail());
  const ClockReading at = read_clocks(context_.clock);
  content.line_ms = context_.line_ms(at);
  content.engine_ms = at.now.time_since_epoch().count();
  content.unix_ms = at.unix_ms;
  std::memset(content.boot_id, 0, sizeof content.boot_id);
  context_.boot_id.copy(content.boot_id, sizeof content.boot_id - 1);
  return content;
}

/// That of the earlier process, whose journal is not drained yet. The journal of this process
/// follows once it has a change: a segment of it that is gone is missed as well. Before its first
/// change it needs none, and a start that is refused leaves none.
CheckpointContent CheckpointKeeper::content_of_earlier() const noexcept {
  CheckpointContent content = written_;
  const LogOffset used = log_.extent().used();
  if (used > log_begin_) content.tail = std::max(content.tail, used);
  return content;
}

bool CheckpointKeeper::is_news(const CheckpointContent& content) const noexcept {
  // If only the time has changed, write rarely: the disk of an idle storage may sleep.
  constexpr std::int64_t time_at_least_every_ms = 60'000;
  // A step of the wall clock is recorded at once: after the next boot it must not count as time
  // that passed.
  const bool is_stepped =
      std::abs((content.unix_ms - content.line_ms) - (written_.unix_ms - written_.line_ms)) > 1'000;
  return content.begin != written_.begin || content.tail != written_.tail ||
         content.whole != written_.whole || content.synced != written_.synced ||
         content.drained != written_.drained || content.rocks_sequence != written_.rocks_sequence ||
         content.line_ms - written_.line_ms >= time_at_least_every_ms || is_stepped;
}

CheckpointContent CheckpointKeeper::next() const noexcept {
  return describes_this() ? content_now() : content_of_earlier();
}

bool CheckpointKeeper::write() noexcept {
  const CheckpointContent content = next();
  return !is_news(content) || replace(content);
}

bool CheckpointKeeper::replace(CheckpointContent content) noexcept {
  if (!checkpoint_->write(content)) return false;
  written_ = content;
  is_unsynced_ = true;
  return true;
}

Status CheckpointKeeper::sync() {
  if (!std::exchange(is_unsynced_, false)) return Done{};
  return checkpoint_->sync();
}

Status CheckpointKeeper::begin() {
  if (!write()) return system_error("writing " + checkpoint_->path());
  return checkpoint_->sync();
}

void CheckpointKeeper::end() noexcept {
  const CheckpointContent content = next();
  // A start that was refused leaves that of the earlier process as it is.
  if (describes_this() || is_news(content)) static_cast<void>(replace(content));
  try {
    static_cast<void>(checkpoint_->sync());
  } catch (...) {
  }
}

}  // namespace semel::storage

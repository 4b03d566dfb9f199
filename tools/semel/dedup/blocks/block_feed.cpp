#include "tools/semel/dedup/blocks/block_feed.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

BlockFeed::BlockFeed(const std::vector<FeedInput>& inputs, const LineRule& rule,
                     std::uint64_t total, const StopSignals& stop, std::function<void()> on_wait)
    : inputs_(inputs),
      rule_(rule),
      total_(total),
      stop_(stop),
      on_wait_(std::move(on_wait)),
      cancelled_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

BlockFeed::~BlockFeed() {
  if (cancelled_ >= 0) ::close(cancelled_);
}

void BlockFeed::cancel() const noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(cancelled_, &one, sizeof one));  // a full counter is readable too
}

std::string BlockFeed::name_of(std::size_t input) const {
  const std::string& path = inputs_[input].path;
  return path == "-" ? "standard input" : path;
}

/// Where the last complete record of `text` ends; 0: there is none.
std::size_t BlockFeed::end_of_records(Bytes text, bool begins_input) const noexcept {
  if (text.empty()) return 0;
  const bool has_quotes = rule_.is_csv && text.find('"') != Bytes::npos;
  if (!has_quotes) {
    const void* const end = memrchr(text.data(), rule_.terminator, text.size());
    if (end == nullptr) return 0;
    return static_cast<std::size_t>(static_cast<const char*>(end) - text.data()) + 1;
  }
  std::size_t at = 0;
  while (at < text.size()) {
    const Bytes left = text.substr(at);
    const std::size_t size =
        at == 0 && begins_input ? first_record_size(rule_, left) : record_size(rule_, left);
    // The last record may continue in bytes that are not read yet.
    if (size == 0 || text[at + size - 1] != '\n') break;
    at += size;
  }
  return at;
}

Status BlockFeed::open() {
  const FeedInput& input = inputs_[input_];
  at_end_ = is_inside_ = false;
  offset_ = 0;
  begins_input_ = true;
  carry_.size = 0;
  if (input.store >= 0 && !input.is_stored) {
    SEMEL_CHECK(source_.open_stored(input.store, name_of(input_)));
  } else {
    SEMEL_CHECK(source_.open(input.path));
  }
  if (start_.offset > 0) {
    SEMEL_CHECK(source_.skip(start_.offset));
    offset_ = std::exchange(start_.offset, 0);
    begins_input_ = false;
  }
  is_open_ = true;
  return Done{};
}

Result<bool> BlockFeed::next(Block& block) {
  if (!is_open_ && start_.input > input_) input_ = start_.input;
  while (!stopped_) {
    if (error_) return *error_;
    if (!is_open_) {
      if (input_ == inputs_.size() || stop_.received() != 0) return false;
      SEMEL_CHECK(open());
    }
    SEMEL_TRY(filled, fill(block));
    if (filled == Filled::block) return true;
    if (filled == Filled::stopped) return false;
    SEMEL_CHECK(source_.tail());
    source_.close();
    is_open_ = false;
    ++input_;
  }
  return false;
}

bool BlockFeed::is_ready(Millis wait) const {
  if (source_.has_waiting_input()) return true;
  pollfd waiting[] = {
      {source_.descriptor(), POLLIN, 0}, {stop_.descriptor(), POLLIN, 0}, {cancelled_, POLLIN, 0}};
  // After an error or a hang-up read() does not block either. poll() ignores -1.
  const int count = ::poll(waiting, 3, static_cast<int>(wait.count()));
  return count < 0 ? false : waiting[0].revents != 0;
}

/// Waits for input: a pipe may have none for hours. False: a signal has come.
bool BlockFeed::wait_for_input() {
  while (stop_.received() == 0) {
    if (is_ready(Millis{1000})) return true;
    pollfd cancelled{cancelled_, POLLIN, 0};
    if (::poll(&cancelled, 1, 0) > 0) return false;
    on_wait_();
  }
  return false;
}

/// False: the input has ended.
Result<bool> BlockFeed::read_more(Block& block) {
  RawBuffer& bytes = block.bytes;
  SEMEL_TRY(chunk, source_.read(bytes.data() + bytes.size, limit_ - bytes.size));
  if (chunk.kind == ByteSource::Chunk::Kind::end) return false;
  if (chunk.kind == ByteSource::Chunk::Kind::nothing_yet) return true;
  const FeedInput& input = inputs_[input_];
  Bytes fresh{bytes.data() + bytes.size, chunk.size};
  bytes.size += chunk.size;
  while (input.is_stored && !fresh.empty()) {
    const ssize_t written = ::write(input.store, fresh.data(), fresh.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return file_error(
          fmt::format("cannot store '{}' to read it twice: {}. TMPDIR names another "
                      "directory",
                      name_of(input_), std::strerror(errno)));
    }
    fresh.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Result<BlockFeed::Filled> BlockFeed::fill(Block& block) {
  RawBuffer& bytes = block.bytes;
  // Not the buffer's capacity: the end of a block must depend on the input alone (--resume).
  limit_ = block_bytes;
  while (limit_ <= carry_.size && limit_ < line_bytes_max) limit_ *= 2;
  bytes.grow_to(limit_);
  bytes.append(carry_.bytes());
  carry_.size = 0;
  while (!at_end_) {
    const bool is_full = bytes.size == limit_;
    if (is_full || !is_ready(Millis{0})) {
      const std::size_t whole = end_of_records(bytes.bytes(), begins_input_);
      if (whole > 0) {
        hand_out(block, whole);
        return Filled::block;
      }
      if (is_full && limit_ >= line_bytes_max) {
        block.is_long_part = true;
        hand_out(block, bytes.size);
        is_inside_ = true;
        return Filled::block;
      }
      if (is_full) bytes.grow_to(limit_ *= 2);
      if (!is_full && !wait_for_input()) break;
    }
    if (stop_.received() != 0) break;
    const Result<bool> is_more = read_more(block);
    if (!is_more.ok()) {
      error_ = is_more.error();
      break;
    }
    at_end_ = !*is_more;
  }
  if (!at_end_) {  // a signal, or damage: the complete records are handed out
    const std::size_t whole = end_of_records(bytes.bytes(), begins_input_);
    held_ = bytes.size - whole;
    if (error_ && whole == 0) return *error_;
    if (!error_) stopped_ = true;
    if (whole == 0) return Filled::stopped;
    bytes.size = whole;
  }
  if (bytes.size == 0) return Filled::end_of_input;
  hand_out(block, bytes.size);
  return Filled::block;
}

void BlockFeed::hand_out(Block& block, std::size_t size) {
  SEMEL_ASSERT(size <= block.bytes.size);
  carry_.append(block.bytes.bytes().substr(size));
  block.bytes.size = size;
  block.input = input_;
  block.begins_input = std::exchange(begins_input_, false);
  block.begins_inside = std::exchange(is_inside_, false);
  offset_ += size;
  block.place = {input_, offset_};
  // Compressed bytes, so a little ahead of the lines.
  block.share =
      total_ == 0 ? 0
                  : std::min(1.0, static_cast<double>(bytes_read()) / static_cast<double>(total_));
  block.bytes_read = bytes_read();
}

}  // namespace semel::tool

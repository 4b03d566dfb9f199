#include "tools/semel/dedup/block_reader.hpp"

#include <poll.h>

#include <cstring>
#include <utility>

namespace semel::tool {

// Uninitialised on purpose: read() writes a block before it is used.
BlockReader::BlockReader() : buffer_(new char[block_bytes]) {}

Status BlockReader::open(const std::string& path, char terminator) {
  terminator_ = terminator;
  begin_ = end_ = 0;
  at_end_ = false;
  return source_.open(path);
}

bool BlockReader::make_space() {
  SEMEL_ASSERT(begin_ <= end_ && end_ <= capacity_);
  if (begin_ > 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ < capacity_) return true;
  if (capacity_ >= line_bytes_max) return false;
  std::unique_ptr<char[]> larger{new char[capacity_ * 2]};
  std::memcpy(larger.get(), buffer_.get(), end_);
  buffer_ = std::move(larger);
  capacity_ *= 2;
  return true;
}

Result<BlockReader::Piece> BlockReader::next() {
  if (at_end_) {
    if (begin_ == end_) return Piece{Piece::Kind::end};
    const Bytes rest{buffer_.get() + begin_, end_ - begin_};
    begin_ = end_;
    return Piece{Piece::Kind::block, rest};
  }
  if (!make_space()) {
    begin_ = end_;
    return Piece{Piece::Kind::part, Bytes{buffer_.get(), end_}};
  }
  SEMEL_TRY(chunk, source_.read(buffer_.get() + end_, capacity_ - end_));
  if (chunk.kind == ByteSource::Chunk::Kind::nothing_yet) return Piece{};
  if (chunk.kind == ByteSource::Chunk::Kind::end) {
    at_end_ = true;
    return next();
  }
  const std::size_t fresh = end_;
  end_ += chunk.size;
  SEMEL_ASSERT(end_ <= capacity_);
  // Only the fresh bytes can hold a newline: the rest before them is part of one line or record.
  const void* const newline = memrchr(buffer_.get() + fresh, terminator_, chunk.size);
  if (newline == nullptr) return Piece{};
  const std::size_t size =
      static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get()) + 1;
  begin_ = size;
  return Piece{Piece::Kind::block, Bytes{buffer_.get(), size}};
}

bool BlockReader::ready(Millis wait, int stop) const {
  if (at_end_ || source_.has_waiting_input()) return true;
  pollfd waiting[] = {{source_.descriptor(), POLLIN, 0}, {stop, POLLIN, 0}};
  // After an error or a hang-up next() does not block either. poll() ignores -1.
  const int count = ::poll(waiting, 2, static_cast<int>(wait.count()));
  return count < 0 ? false : waiting[0].revents != 0;
}

}  // namespace semel::tool

#include "tools/semel/block_reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/semel/units.hpp"

namespace semel::tool {

// Uninitialised on purpose: a block is written by read() before it is looked at.
BlockReader::BlockReader() : buffer_(new char[block_bytes]) {}

BlockReader::~BlockReader() {
  close();
}

void BlockReader::close() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  descriptor_ = -1;
}

bool BlockReader::open(const std::string& path, Failure& failure) {
  close();
  begin_ = end_ = 0;
  at_end_ = false;
  if (path == "-") {
    name_ = "standard input";
    descriptor_ = STDIN_FILENO;
    return true;
  }
  name_ = path;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    failure = {Exit::file, fmt::format("cannot read '{}': {}", path, std::strerror(errno))};
    return false;
  }
  // Only a hint to the kernel: without it the run is slower, not wrong.
  static_cast<void>(posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL));
  return true;
}

bool BlockReader::make_room() {
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

BlockReader::Next BlockReader::next(Bytes& block, Failure& failure) {
  while (!at_end_) {
    if (!make_room()) {
      failure = {Exit::data, fmt::format("{}: a line is longer than the limit of {}", name_,
                                         format_bytes(line_bytes_max))};
      return Next::failed;
    }
    const ssize_t got = ::read(descriptor_, buffer_.get() + end_, capacity_ - end_);
    if (got < 0) {
      if (errno == EINTR) continue;
      failure = {Exit::file, fmt::format("cannot read '{}': {}", name_, std::strerror(errno))};
      return Next::failed;
    }
    const std::size_t fresh = end_;
    end_ += static_cast<std::size_t>(got);
    bytes_read_ += static_cast<std::uint64_t>(got);
    at_end_ = got == 0;
    // Only the fresh bytes can hold a newline: what was left over is part of one line.
    const void* const newline = memrchr(buffer_.get() + fresh, '\n', static_cast<std::size_t>(got));
    if (newline == nullptr) continue;
    const std::size_t size =
        static_cast<std::size_t>(static_cast<const char*>(newline) - buffer_.get()) + 1;
    block = Bytes{buffer_.get(), size};
    begin_ = size;
    return Next::block;
  }
  if (begin_ == end_) return Next::end;
  block = Bytes{buffer_.get() + begin_, end_ - begin_};
  begin_ = end_;
  return Next::block;
}

bool BlockReader::ready(Millis wait) const {
  pollfd waiting{descriptor_, POLLIN, 0};
  // An error or a hang-up is something next() will not wait for either.
  return at_end_ || ::poll(&waiting, 1, static_cast<int>(wait.count())) != 0;
}

}  // namespace semel::tool

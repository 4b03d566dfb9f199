#include "tools/semel/records/line_writer.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

LineWriter::LineWriter(int descriptor, std::string name)
    : buffer_(new char[capacity]), name_(std::move(name)), descriptor_(descriptor) {}

LineWriter::~LineWriter() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

void LineWriter::flush() {
  write_out(Bytes{buffer_.get(), size_});
  size_ = 0;
}

void LineWriter::finish() {
  flush();
  if (descriptor_ <= STDERR_FILENO) return;
  if (::close(std::exchange(descriptor_, -1)) != 0 && state_ == State::good) {
    error_ = errno;
    state_ = State::failed;
  }
}

void LineWriter::put_large(Bytes bytes) {
  flush();
  if (bytes.size() >= capacity) return write_out(bytes);
  std::memcpy(buffer_.get(), bytes.data(), bytes.size());
  size_ = bytes.size();
}

void LineWriter::write_out(Bytes bytes) {
  // After the first error nothing more is written: a hole in the output would look like a result.
  while (state_ == State::good && !bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Another process made the terminal or the pipe non-blocking; wait as if it were not.
      pollfd waiting{descriptor_, POLLOUT, 0};
      static_cast<void>(::poll(&waiting, 1, -1));
    } else if (errno != EINTR) {
      error_ = errno;
      state_ = error_ == EPIPE ? State::reader_left : State::failed;
    }
  }
}

Error LineWriter::error() const {
  return file_error(fmt::format("cannot write '{}': {}", name_, std::strerror(error_)));
}

}  // namespace semel::tool

#include "tools/semel/records/line_writer.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

LineWriter::LineWriter(int descriptor, std::string name, Form form)
    : buffer_(new char[capacity]),
      name_(std::move(name)),
      descriptor_(descriptor),
      form_(form),
      compressor_(Compressor::of(form.compression)) {}

LineWriter::~LineWriter() {
  if (descriptor_ > STDERR_FILENO) ::close(descriptor_);
}

void LineWriter::flush() {
  encode(Bytes{buffer_.get(), size_}, false);
  size_ = 0;
}

void LineWriter::end_stream() {
  encode(Bytes{buffer_.get(), size_}, true);
  size_ = 0;
}

void LineWriter::finish() {
  end_stream();
  if (descriptor_ <= STDERR_FILENO) return;
  if (::close(std::exchange(descriptor_, -1)) != 0 && state_ == State::good) {
    reason_ = std::strerror(errno);
    state_ = State::failed;
  }
}

void LineWriter::put_large(Bytes bytes) {
  flush();
  if (bytes.size() >= capacity) return encode(bytes, false);
  std::memcpy(buffer_.get(), bytes.data(), bytes.size());
  size_ = bytes.size();
}

void LineWriter::encode(Bytes bytes, bool ends) {
  if (compressor_ == nullptr) return write_out(bytes);
  const Status done =
      compressor_->write(bytes, ends, [this](Bytes compressed) { write_out(compressed); });
  if (!done && state_ == State::good) {
    reason_ = done.error().detail;
    state_ = State::failed;
  }
}

void LineWriter::write_out(Bytes bytes) {
  // After the first error nothing more is written: a hole in the output would look like a result.
  while (state_ == State::good && !bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
      bytes_out_ += static_cast<std::uint64_t>(written);
    } else if (errno == EAGAIN) {
      // Another process made the terminal or the pipe non-blocking; wait as if it were not.
      pollfd waiting{descriptor_, POLLOUT, 0};
      static_cast<void>(::poll(&waiting, 1, -1));
    } else if (errno != EINTR) {
      state_ = errno == EPIPE ? State::reader_left : State::failed;
      reason_ = std::strerror(errno);
    }
  }
}

Error LineWriter::error() const {
  return file_error(fmt::format("cannot write '{}': {}", name_, reason_));
}

}  // namespace semel::tool

#include "tools/semel/dedup/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace semel::tool {
namespace {

constexpr std::size_t input_bytes = std::size_t{128} << 10;

}  // namespace

ByteSource::ByteSource() : input_(input_bytes) {}

ByteSource::~ByteSource() {
  close();
}

void ByteSource::close() {
  if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
  descriptor_ = -1;
}

bool ByteSource::open(const std::string& path, Failure& failure) {
  close();
  begun_ = at_end_ = may_make_more_ = false;
  decompressor_.reset();
  input_begin_ = input_end_ = 0;
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

ByteSource::Got ByteSource::fill(char* into, std::size_t room, std::size_t& size,
                                 Failure& failure) {
  while (true) {
    const ssize_t got = ::read(descriptor_, into, room);
    if (got < 0) {
      if (errno == EINTR) continue;
      failure = {Exit::file, fmt::format("cannot read '{}': {}", name_, std::strerror(errno))};
      return Got::failed;
    }
    size = static_cast<std::size_t>(got);
    bytes_read_ += size;
    at_end_ = got == 0;
    return at_end_ ? Got::end : Got::bytes;
  }
}

ByteSource::Got ByteSource::begin(char* output, std::size_t room, std::size_t& size,
                                  Failure& failure) {
  std::size_t got = 0;
  const Got how = fill(input_.data() + input_end_, input_.size() - input_end_, got, failure);
  if (how == Got::failed) return how;
  input_end_ += got;
  const Bytes known{input_.data(), input_end_};
  // A pipe may bring its first bytes one by one. A line's end among them: it is text.
  if (known.size() < Decompressor::beginning_bytes && !at_end_ && known.find('\n') == Bytes::npos) {
    return Got::nothing_yet;
  }
  begun_ = true;
  decompressor_ = Decompressor::for_input(known);
  return read(output, room, size, failure);
}

ByteSource::Got ByteSource::decompress(char* output, std::size_t room, std::size_t& size,
                                       Failure& failure) {
  if (input_begin_ == input_end_ && !may_make_more_) {
    input_begin_ = input_end_ = 0;
    std::size_t got = 0;
    const Got how = at_end_ ? Got::end : fill(input_.data(), input_.size(), got, failure);
    if (how == Got::failed) return how;
    input_end_ = got;
    if (how == Got::end) {
      if (decompressor_->is_between_streams()) return how;
      failure = {Exit::data, fmt::format("{}: the compressed data ends too early", name_)};
      return Got::failed;
    }
  }
  const Bytes input{input_.data() + input_begin_, input_end_ - input_begin_};
  Decompressor::Step step = decompressor_->step(input, output, room);
  if (!step.error.empty()) {
    failure = {Exit::data,
               fmt::format("{}: the compressed data is damaged: {}", name_, step.error)};
    return Got::failed;
  }
  input_begin_ += step.taken;
  may_make_more_ = step.made == room;
  size = step.made;
  return size == 0 ? Got::nothing_yet : Got::bytes;
}

ByteSource::Got ByteSource::read(char* output, std::size_t room, std::size_t& size,
                                 Failure& failure) {
  size = 0;
  if (!begun_) return begin(output, room, size, failure);
  if (decompressor_ != nullptr) return decompress(output, room, size, failure);
  if (input_begin_ < input_end_) {
    size = std::min(room, input_end_ - input_begin_);
    std::memcpy(output, input_.data() + input_begin_, size);
    input_begin_ += size;
    return Got::bytes;
  }
  return at_end_ ? Got::end : fill(output, room, size, failure);
}

}  // namespace semel::tool

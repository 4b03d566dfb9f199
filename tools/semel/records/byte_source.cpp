#include "tools/semel/records/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/assert.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

constexpr std::size_t input_bytes = std::size_t{128} << 10;

}  // namespace

ByteSource::ByteSource() : input_(input_bytes) {}

ByteSource::~ByteSource() {
  close();
}

void ByteSource::close() {
  if (descriptor_ > STDIN_FILENO && !is_borrowed_) ::close(descriptor_);
  descriptor_ = -1;
  is_borrowed_ = false;
}

Status ByteSource::open_stored(int descriptor, const std::string& name) {
  close();
  if (lseek(descriptor, 0, SEEK_SET) != 0) {
    return file_error(
        fmt::format("cannot read what was stored of '{}': {}", name, std::strerror(errno)));
  }
  name_ = name;
  descriptor_ = descriptor;
  reset();
  is_borrowed_ = begun_ = true;
  return Done{};
}

void ByteSource::reset() {
  begun_ = at_end_ = may_make_more_ = false;
  decompressor_.reset();
  damage_ = nullptr;
  tail_ = Done{};
  input_begin_ = input_end_ = 0;
}

Status ByteSource::skip(std::uint64_t bytes) {
  std::vector<char> passed(input_bytes);
  while (bytes > 0) {
    if (begun_ && !is_compressed()) {
      struct stat file {};
      const std::uint64_t size = fstat(descriptor_, &file) == 0 && S_ISREG(file.st_mode)
                                     ? static_cast<std::uint64_t>(file.st_size)
                                     : 0;
      const std::uint64_t at =
          static_cast<std::uint64_t>(lseek(descriptor_, 0, SEEK_CUR)) - (input_end_ - input_begin_);
      if (bytes <= size - std::min(size, at)) {
        input_begin_ = input_end_ = 0;
        lseek(descriptor_, static_cast<off_t>(at + bytes), SEEK_SET);
        bytes_read_ = at + bytes;
        return Done{};
      }
    }
    SEMEL_TRY(chunk, read(passed.data(), std::min<std::uint64_t>(passed.size(), bytes)));
    if (chunk.kind == Chunk::Kind::end) {
      return data_error(
          fmt::format("{}: {} bytes are missing of those that were read before", name_, bytes));
    }
    bytes -= chunk.size;
  }
  return Done{};
}

Status ByteSource::open(const std::string& path) {
  close();
  reset();
  if (path == "-") {
    name_ = "standard input";
    descriptor_ = STDIN_FILENO;
    return Done{};
  }
  name_ = path;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    return file_error(fmt::format("cannot read '{}': {}", path, std::strerror(errno)));
  }
  // Only a hint to the kernel: without it the run is slower, not wrong.
  static_cast<void>(posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL));
  return Done{};
}

Result<ByteSource::Chunk> ByteSource::fill(char* into, std::size_t capacity) {
  while (true) {
    const ssize_t got = ::read(descriptor_, into, capacity);
    if (got < 0) {
      if (errno == EINTR) continue;
      return file_error(fmt::format("cannot read '{}': {}", name_, std::strerror(errno)));
    }
    const auto size = static_cast<std::size_t>(got);
    bytes_read_ += size;
    at_end_ = got == 0;
    return Chunk{at_end_ ? Chunk::Kind::end : Chunk::Kind::bytes, size};
  }
}

Result<ByteSource::Chunk> ByteSource::begin(char* output, std::size_t capacity) {
  SEMEL_TRY(chunk, fill(input_.data() + input_end_, input_.size() - input_end_));
  input_end_ += chunk.size;
  const Bytes known{input_.data(), input_end_};
  // The first bytes of a pipe may arrive one at a time. A newline among them: it is text.
  if (known.size() < Decompressor::beginning_bytes && !at_end_ && known.find('\n') == Bytes::npos) {
    return Chunk{};
  }
  begun_ = true;
  decompressor_ = Decompressor::for_input(known);
  return read(output, capacity);
}

Result<ByteSource::Chunk> ByteSource::decompress(char* output, std::size_t capacity) {
  if (damage_ != nullptr) {
    return data_error(fmt::format("{}: the compressed data is damaged: {}", name_, damage_));
  }
  if (!tail_.ok()) return Chunk{Chunk::Kind::end};
  if (input_begin_ == input_end_ && !may_make_more_) {
    input_begin_ = input_end_ = 0;
    if (!at_end_) {
      SEMEL_TRY(chunk, fill(input_.data(), input_.size()));
      input_end_ = chunk.size;
    }
    if (at_end_) {
      if (decompressor_->is_between_streams()) return Chunk{Chunk::Kind::end};
      return data_error(fmt::format("{}: the compressed data ends too early", name_));
    }
  }
  const Bytes input{input_.data() + input_begin_, input_end_ - input_begin_};
  const Decompressor::Step step = decompressor_->step(input, output, capacity);
  SEMEL_ASSERT(step.bytes_read <= input.size() && step.bytes_written <= capacity);
  input_begin_ += step.bytes_read;
  // After damage the next call has the error, without a wait for more input.
  may_make_more_ = step.bytes_written == capacity || step.damage != nullptr;
  if (step.is_foreign) {
    tail_ = data_error(fmt::format("{}: {}", name_, step.damage));
  } else {
    damage_ = step.damage;
  }
  if (step.bytes_written == 0) return Chunk{};
  return Chunk{Chunk::Kind::bytes, step.bytes_written};
}

Result<ByteSource::Chunk> ByteSource::read(char* output, std::size_t capacity) {
  if (!begun_) return begin(output, capacity);
  if (decompressor_ != nullptr) return decompress(output, capacity);
  if (input_begin_ < input_end_) {
    const std::size_t size = std::min(capacity, input_end_ - input_begin_);
    std::memcpy(output, input_.data() + input_begin_, size);
    input_begin_ += size;
    return Chunk{Chunk::Kind::bytes, size};
  }
  if (at_end_) return Chunk{Chunk::Kind::end};
  return fill(output, capacity);
}

}  // namespace semel::tool

// Writes lines in large pieces. A line that came without its newline (the last of an input) goes
// out without one, unless another line follows: two lines never run together.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "base/assert.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::tool {

class LineWriter {
 public:
  LineWriter(int descriptor, std::string name);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// `lines`: one line or several that follow each other, newlines included.
  void write(Bytes lines) {
    SEMEL_ASSERT(!lines.empty());
    if (owes_newline_) put("\n");
    put(lines);
    owes_newline_ = lines.back() != '\n';
  }

  /// Another part of the line whose beginning was written last.
  void append(Bytes part) {
    SEMEL_ASSERT(!part.empty());
    put(part);
    owes_newline_ = part.back() != '\n';
  }

  void flush();
  /// flush(), and closes a file that this opened: some file systems report a full disk only then.
  void finish();

  enum class State { good, reader_left, failed };
  [[nodiscard]] State state() const noexcept { return state_; }
  /// Of a state that is not `good`.
  [[nodiscard]] Error error() const;

 private:
  void put(Bytes bytes) {
    SEMEL_ASSERT(size_ <= capacity);
    if (bytes.size() > capacity - size_) return put_large(bytes);
    std::memcpy(buffer_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void put_large(Bytes bytes);
  void write_out(Bytes bytes);

  static constexpr std::size_t capacity = std::size_t{1} << 20;
  std::unique_ptr<char[]> buffer_;
  std::size_t size_ = 0;
  std::string name_;
  int descriptor_;
  int error_ = 0;
  State state_ = State::good;
  bool owes_newline_ = false;
};

}  // namespace semel::tool

// Writes lines in large pieces, compressed if asked. A line that came without its newline (the last
// of an input) goes out without one, unless another line follows: two lines never run together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/assert.hpp"
#include "semel/result.hpp"
#include "semel/types.hpp"
#include "tools/semel/records/compressor.hpp"

namespace semel::tool {

class LineWriter {
 public:
  struct Form {
    char terminator = '\n';  ///< of a line
    Compression compression = Compression::none;
  };
  /// Closes `descriptor`, unless it is one of the standard ones.
  LineWriter(int descriptor, std::string name, Form form);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// `lines`: one line or several that follow each other, newlines included.
  void write(Bytes lines) {
    SEMEL_ASSERT(!lines.empty());
    if (owes_newline_) put({&form_.terminator, 1});
    put(lines);
    owes_newline_ = lines.back() != form_.terminator;
  }

  /// Writes another part of the line begun last.
  void append(Bytes part) {
    SEMEL_ASSERT(!part.empty());
    put(part);
    owes_newline_ = part.back() != form_.terminator;
  }

  /// Passes the output to the system, as far as a compressor releases it.
  void flush();
  /// flush(), and ends the compressed stream: the next line begins another one.
  void end_stream();
  /// end_stream(), and closes a file that this opened: some file systems report a full disk only
  /// then.
  void finish();

  enum class State { good, reader_left, failed };
  [[nodiscard]] State state() const noexcept { return state_; }
  /// The error, if state() is not `good`.
  [[nodiscard]] Error error() const;
  /// The bytes that the system took, after compression.
  [[nodiscard]] std::uint64_t bytes_out() const noexcept { return bytes_out_; }
  [[nodiscard]] bool owes_newline() const noexcept { return owes_newline_; }
  /// Continues the output of another run, whose last line lacks its newline.
  void continue_after(bool owes_newline) noexcept { owes_newline_ = owes_newline; }

 private:
  void put(Bytes bytes) {
    SEMEL_ASSERT(size_ <= capacity);
    if (bytes.size() > capacity - size_) return put_large(bytes);
    std::memcpy(buffer_.get() + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  void put_large(Bytes bytes);
  void encode(Bytes bytes, bool ends);
  void write_out(Bytes bytes);

  static constexpr std::size_t capacity = std::size_t{1} << 20;
  std::unique_ptr<char[]> buffer_;
  std::size_t size_ = 0;
  std::string name_;
  int descriptor_;
  Form form_;
  std::unique_ptr<Compressor> compressor_;
  std::uint64_t bytes_out_ = 0;
  std::string reason_;
  State state_ = State::good;
  bool owes_newline_ = false;
};

}  // namespace semel::tool

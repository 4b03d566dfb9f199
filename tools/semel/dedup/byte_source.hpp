// The bytes of one input: as they are, or what gzip or Zstandard made of them. Which of these it
// is, its first bytes say, not its name. Memory is bounded whatever the input says: 32 KiB of a
// gzip stream's past, 8 MiB of a Zstandard stream's (its own default limit, 128 MiB, for --long
// ones).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "semel/types.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

/// Turns compressed bytes into those that were compressed; several streams after each other are
/// one.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  struct Step {
    std::size_t taken = 0;  ///< bytes of the input
    std::size_t made = 0;   ///< bytes of the output
    std::string error{};    ///< not empty: the input is damaged
  };
  [[nodiscard]] virtual Step step(Bytes input, char* output, std::size_t room) = 0;
  /// True where a stream has ended and no other has begun.
  [[nodiscard]] virtual bool is_between_streams() const noexcept = 0;

  /// For an input that begins with these bytes; null: it is not compressed.
  [[nodiscard]] static std::unique_ptr<Decompressor> for_input(Bytes beginning);
  static constexpr std::size_t beginning_bytes = 4;
};

class ByteSource {
 public:
  ByteSource();
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// `path` "-": standard input.
  [[nodiscard]] bool open(const std::string& path, Failure& failure);
  void close();

  enum class Got { bytes, end, nothing_yet, failed };
  /// Reads up to `room` bytes. `nothing_yet`: what was read made no bytes; ask again.
  [[nodiscard]] Got read(char* output, std::size_t room, std::size_t& size, Failure& failure);
  /// True if read() need not wait for the writer of a pipe.
  [[nodiscard]] bool has_waiting_input() const noexcept {
    return begun_ && (input_begin_ < input_end_ || may_make_more_ || (at_end_ && is_compressed()));
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// As they were read, of all inputs.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  [[nodiscard]] bool is_compressed() const noexcept { return decompressor_ != nullptr; }
  [[nodiscard]] Got fill(char* into, std::size_t room, std::size_t& size, Failure& failure);
  [[nodiscard]] Got begin(char* output, std::size_t room, std::size_t& size, Failure& failure);
  [[nodiscard]] Got decompress(char* output, std::size_t room, std::size_t& size, Failure& failure);

  std::string name_;
  int descriptor_ = -1;
  bool begun_ = false;  ///< its first bytes were looked at
  bool at_end_ = false;
  bool may_make_more_ = false;  ///< the last step filled all the room it had
  std::unique_ptr<Decompressor> decompressor_;
  std::vector<char> input_;  ///< compressed bytes, or the first ones
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace semel::tool

// The bytes of one input, decompressed if its first bytes are those of gzip or Zstandard; its name
// does not matter. Memory is bounded for every input: a window of 32 KiB for gzip, 8 MiB for
// Zstandard (128 MiB, its own default limit, for --long streams).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "semel/result.hpp"
#include "semel/types.hpp"

namespace semel::tool {

/// Decompresses; several streams after each other count as one.
class Decompressor {
 public:
  virtual ~Decompressor() = default;
  struct Step {
    std::size_t bytes_read = 0;     ///< of the input
    std::size_t bytes_written = 0;  ///< to the output, also before damage
    const char* damage = nullptr;   ///< the reason, if the input is damaged here; no step follows
    bool is_foreign = false;        ///< damage: complete streams, followed by bytes of no stream
  };
  /// Decompresses until the input is read or `capacity` bytes of `output` are written, or fewer.
  [[nodiscard]] virtual Step step(Bytes input, char* output, std::size_t capacity) = 0;
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
  [[nodiscard]] Status open(const std::string& path);
  /// Reads an open file from its beginning, uncompressed; the descriptor stays its owner's.
  [[nodiscard]] Status open_stored(int descriptor, const std::string& name);
  /// Skips `bytes` of the output of read(). Error: there are fewer.
  [[nodiscard]] Status skip(std::uint64_t bytes);
  void close();

  struct Chunk {
    enum class Kind : std::uint8_t { bytes, end, nothing_yet };
    Kind kind = Kind::nothing_yet;
    std::size_t size = 0;  ///< of `bytes`
  };
  /// Reads up to `capacity` bytes. `nothing_yet`: the input read so far yields no output; call
  /// again. Bytes before damage are returned before its error.
  [[nodiscard]] Result<Chunk> read(char* output, std::size_t capacity);
  /// At the end: an error if the compressed data are followed by other bytes. The bytes read are
  /// complete.
  [[nodiscard]] const Status& tail() const noexcept { return tail_; }
  /// True if read() need not wait for the writer of a pipe.
  [[nodiscard]] bool has_waiting_input() const noexcept {
    return begun_ && (input_begin_ < input_end_ || may_make_more_ || (at_end_ && is_compressed()));
  }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  /// The bytes read from all inputs, as they are stored.
  [[nodiscard]] std::uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  [[nodiscard]] bool is_compressed() const noexcept { return decompressor_ != nullptr; }
  [[nodiscard]] Result<Chunk> fill(char* into, std::size_t capacity);
  [[nodiscard]] Result<Chunk> begin(char* output, std::size_t capacity);
  [[nodiscard]] Result<Chunk> decompress(char* output, std::size_t capacity);
  void reset();

  std::string name_;
  int descriptor_ = -1;
  bool is_borrowed_ = false;
  bool begun_ = false;  ///< its first bytes were looked at
  bool at_end_ = false;
  bool may_make_more_ = false;  ///< the last step filled the whole output buffer
  std::unique_ptr<Decompressor> decompressor_;
  const char* damage_ = nullptr;  ///< behind the bytes read
  Status tail_ = Done{};
  std::vector<char> input_;  ///< compressed bytes, or the first ones
  std::size_t input_begin_ = 0;
  std::size_t input_end_ = 0;
  std::uint64_t bytes_read_ = 0;
};

}  // namespace semel::tool

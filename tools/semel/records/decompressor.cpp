// gzip by zlib, Zstandard by its own library.
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>

#include "tools/semel/records/byte_source.hpp"

namespace semel::tool {
namespace {

constexpr Bytes gzip_beginning{"\x1f\x8b", 2};
constexpr Bytes zstd_beginning{"\x28\xb5\x2f\xfd", 4};
constexpr const char* no_memory = "no memory for it";
constexpr const char* foreign = "bytes that are not compressed data follow the compressed data";

/// Whether a frame of Zstandard begins with these bytes, as far as they go: one of data, or one to
/// skip, with which some programs begin their files.
bool may_begin_frame(Bytes bytes) noexcept {
  bytes = bytes.substr(0, zstd_beginning.size());
  if (bytes.empty() || zstd_beginning.starts_with(bytes)) return true;
  constexpr Bytes skipped{"\x2a\x4d\x18", 3};
  return (static_cast<unsigned char>(bytes.front()) & 0xf0) == 0x50 &&
         skipped.starts_with(bytes.substr(1));
}

class Gzip final : public Decompressor {
 public:
  Gzip() { good_ = inflateInit2(&stream_, window_bits) == Z_OK; }
  ~Gzip() override {
    if (good_) inflateEnd(&stream_);
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  [[nodiscard]] Step step(Bytes input, char* output, std::size_t capacity) override {
    if (!good_) return {.damage = no_memory};
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    if (is_between_) {
      // Tapes and block devices pad files with zeros, as gzip knows as well.
      const std::size_t padding = std::min(input.find_first_not_of('\0'), input.size());
      if (padding > 0 || input.empty()) return {.bytes_read = padding};
      if (input.front() != gzip_beginning.front()) return {.damage = foreign, .is_foreign = true};
      inflateReset(&stream_);
      is_between_ = false;
      is_first_ = false;
    }
    const auto given = static_cast<uInt>(std::min(input.size(), most));
    const auto wanted = static_cast<uInt>(std::min(capacity, most));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(output);
    stream_.avail_out = wanted;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    Step step{.bytes_read = given - stream_.avail_in, .bytes_written = wanted - stream_.avail_out};
    if (result == Z_STREAM_END) {
      is_between_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      step.damage = stream_.msg != nullptr ? stream_.msg : "not gzip";
      // The head of a stream is refused before it has made anything.
      step.is_foreign = !is_first_ && stream_.total_out == 0 && stream_.total_in <= 2;
      if (step.is_foreign) step.damage = foreign;
    }
    return step;
  }
  [[nodiscard]] bool is_between_streams() const noexcept override { return is_between_; }

 private:
  static constexpr int window_bits = 15 + 16;  // + 16: with the head and the sum of gzip
  z_stream stream_{};
  bool good_ = false;
  bool is_between_ = false;
  bool is_first_ = true;
};

class Zstandard final : public Decompressor {
 public:
  Zstandard() : context_(ZSTD_createDCtx()) {}
  ~Zstandard() override { ZSTD_freeDCtx(context_); }
  Zstandard(const Zstandard&) = delete;
  Zstandard& operator=(const Zstandard&) = delete;

  [[nodiscard]] Step step(Bytes input, char* output, std::size_t capacity) override {
    if (context_ == nullptr) return {.damage = no_memory};
    if (is_between_ && !may_begin_frame(input)) return {.damage = foreign, .is_foreign = true};
    // No more than the next block: a call that meets damage shows nothing of what it made before.
    ZSTD_inBuffer in{input.data(), std::min(input.size(), wanted_), 0};
    ZSTD_outBuffer out{output, capacity, 0};
    const std::size_t left = ZSTD_decompressStream(context_, &out, &in);
    if (ZSTD_isError(left) != 0) return {.damage = ZSTD_getErrorName(left)};
    if (in.pos != 0 || out.pos != 0) is_between_ = left == 0;
    wanted_ = left == 0 ? first_wanted : left;
    return {.bytes_read = in.pos, .bytes_written = out.pos};
  }
  [[nodiscard]] bool is_between_streams() const noexcept override { return is_between_; }

 private:
  static constexpr std::size_t first_wanted = 5;  // shows how long the head of a frame is
  ZSTD_DCtx* context_;
  std::size_t wanted_ = first_wanted;
  bool is_between_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> Decompressor::for_input(Bytes beginning) {
  if (beginning.starts_with(gzip_beginning)) return std::make_unique<Gzip>();
  if (beginning.size() >= zstd_beginning.size() && may_begin_frame(beginning)) {
    return std::make_unique<Zstandard>();
  }
  return nullptr;
}

}  // namespace semel::tool

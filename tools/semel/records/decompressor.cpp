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

Error damaged(const char* reason) {
  return {ErrorCode::syntax, reason};
}

class Gzip final : public Decompressor {
 public:
  Gzip() { good_ = inflateInit2(&stream_, window_bits) == Z_OK; }
  ~Gzip() override {
    if (good_) inflateEnd(&stream_);
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;

  [[nodiscard]] Result<Step> step(Bytes input, char* output, std::size_t capacity) override {
    if (!good_) return damaged("no memory for it");
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    if (is_between_ && !input.empty()) {
      inflateReset(&stream_);
      is_between_ = false;
    }
    const auto given = static_cast<uInt>(std::min(input.size(), most));
    const auto wanted = static_cast<uInt>(std::min(capacity, most));
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input.data()));
    stream_.avail_in = given;
    stream_.next_out = reinterpret_cast<Bytef*>(output);
    stream_.avail_out = wanted;
    const int result = is_between_ ? Z_OK : inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      is_between_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return damaged(stream_.msg != nullptr ? stream_.msg : "not gzip");
    }
    return Step{.bytes_read = given - stream_.avail_in,
                .bytes_written = wanted - stream_.avail_out};
  }
  [[nodiscard]] bool is_between_streams() const noexcept override { return is_between_; }

 private:
  static constexpr int window_bits = 15 + 16;  // + 16: with the head and the sum of gzip
  z_stream stream_{};
  bool good_ = false;
  bool is_between_ = false;
};

class Zstandard final : public Decompressor {
 public:
  Zstandard() : context_(ZSTD_createDCtx()) {}
  ~Zstandard() override { ZSTD_freeDCtx(context_); }
  Zstandard(const Zstandard&) = delete;
  Zstandard& operator=(const Zstandard&) = delete;

  [[nodiscard]] Result<Step> step(Bytes input, char* output, std::size_t capacity) override {
    if (context_ == nullptr) return damaged("no memory for it");
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer out{output, capacity, 0};
    const std::size_t left = ZSTD_decompressStream(context_, &out, &in);
    if (ZSTD_isError(left) != 0) return damaged(ZSTD_getErrorName(left));
    if (in.pos != 0 || out.pos != 0) is_between_ = left == 0;
    return Step{.bytes_read = in.pos, .bytes_written = out.pos};
  }
  [[nodiscard]] bool is_between_streams() const noexcept override { return is_between_; }

 private:
  ZSTD_DCtx* context_;
  bool is_between_ = false;
};

}  // namespace

std::unique_ptr<Decompressor> Decompressor::for_input(Bytes beginning) {
  if (beginning.starts_with(gzip_beginning)) return std::make_unique<Gzip>();
  if (beginning.starts_with(zstd_beginning)) return std::make_unique<Zstandard>();
  return nullptr;
}

}  // namespace semel::tool

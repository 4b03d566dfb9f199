#include "tools/semel/records/compressor.hpp"

#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

constexpr std::size_t output_bytes = std::size_t{256} << 10;

class GzipWriter final : public Compressor {
 public:
  GzipWriter() : output_(output_bytes) {
    constexpr int window_bits = 15 + 16;  // + 16: with the head and the sum of gzip
    constexpr int memory_level = 8;       // the default
    good_ = deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, window_bits, memory_level,
                         Z_DEFAULT_STRATEGY) == Z_OK;
  }
  ~GzipWriter() override {
    if (good_) deflateEnd(&stream_);
  }
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  [[nodiscard]] Status write(Bytes bytes, bool ends, const Sink& sink) override {
    if (!good_) return memory_error("no memory for the compression of the output");
    do {
      const auto given = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
      stream_.avail_in = static_cast<uInt>(given);
      bytes.remove_prefix(given);
      run(ends && bytes.empty() ? Z_FINISH : Z_NO_FLUSH, sink);
    } while (!bytes.empty());
    if (ends) deflateReset(&stream_);
    return Done{};
  }

 private:
  void run(int flush, const Sink& sink) {
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(output_.data());
      stream_.avail_out = static_cast<uInt>(output_.size());
      static_cast<void>(deflate(&stream_, flush));  // fails only for arguments that are never given
      const std::size_t size = output_.size() - stream_.avail_out;
      if (size > 0) sink({output_.data(), size});
    } while (stream_.avail_out == 0);
  }

  std::vector<char> output_;
  z_stream stream_{};
  bool good_ = false;
};

class ZstandardWriter final : public Compressor {
 public:
  ZstandardWriter() : output_(output_bytes), context_(ZSTD_createCCtx()) {
    if (context_ != nullptr) ZSTD_CCtx_setParameter(context_, ZSTD_c_checksumFlag, 1);
  }
  ~ZstandardWriter() override { ZSTD_freeCCtx(context_); }
  ZstandardWriter(const ZstandardWriter&) = delete;
  ZstandardWriter& operator=(const ZstandardWriter&) = delete;

  [[nodiscard]] Status write(Bytes bytes, bool ends, const Sink& sink) override {
    if (context_ == nullptr) return memory_error("no memory for the compression of the output");
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer out{output_.data(), output_.size(), 0};
      left = ZSTD_compressStream2(context_, &out, &in, ends ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) {
        return memory_error(std::string{"the output cannot be compressed: "} +
                            ZSTD_getErrorName(left));
      }
      if (out.pos > 0) sink({output_.data(), out.pos});
    } while (ends ? left != 0 : in.pos < in.size);
    return Done{};
  }

 private:
  std::vector<char> output_;
  ZSTD_CCtx* context_;
};

}  // namespace

Compression compression_of(const std::string& path) noexcept {
  const Bytes name{path};
  if (name.ends_with(".gz")) return Compression::gzip;
  if (name.ends_with(".zst")) return Compression::zstd;
  return Compression::none;
}

std::unique_ptr<Compressor> Compressor::of(Compression compression) {
  if (compression == Compression::gzip) return std::make_unique<GzipWriter>();
  if (compression == Compression::zstd) return std::make_unique<ZstandardWriter>();
  return nullptr;
}

}  // namespace semel::tool

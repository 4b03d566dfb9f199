// Mutations collected for files of the database, by the span in which they may be forgotten.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "storage/archive/storage_keys.hpp"

namespace semel::storage {

class BlobSet {
 public:
  static constexpr std::size_t blob_bytes = std::size_t{64} << 10;

  struct Blob {
    BlobKey key;
    std::string bytes;
  };

  /// `offset` must not decrease from call to call, also across clear().
  void add(SpanNumber span, LogOffset offset, std::string_view mutation);
  void clear() noexcept {
    spans_.clear();
    bytes_ = 0;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::map<SpanNumber, std::vector<Blob>>& spans() const noexcept {
    return spans_;
  }

 private:
  std::map<SpanNumber, std::vector<Blob>> spans_;
  std::map<SpanNumber, BlobKey> last_;  // the last key given to each span
  std::size_t bytes_ = 0;
};

}  // namespace semel::storage

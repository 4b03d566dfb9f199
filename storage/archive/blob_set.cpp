#include "storage/archive/blob_set.hpp"

#include "base/assert.hpp"

namespace semel::storage {

void BlobSet::add(SpanNumber span, LogOffset offset, std::string_view mutation) {
  std::vector<Blob>& blobs = spans_[span];
  SEMEL_ASSERT(blobs.empty() || blobs.back().key.offset <= offset);
  if (blobs.empty() || blobs.back().bytes.size() >= blob_bytes) {
    const auto [last, is_first] = last_.try_emplace(span, BlobKey{span, offset, 0});
    SEMEL_ASSERT(last->second.offset <= offset);
    if (!is_first) {
      const std::uint32_t number = last->second.offset == offset ? last->second.number + 1 : 0;
      last->second = {span, offset, number};
    }
    blobs.push_back({last->second, {}});
    blobs.back().bytes.reserve(blob_bytes + mutation.size());
  }
  blobs.back().bytes.append(mutation);
  bytes_ += mutation.size();
}

}  // namespace semel::storage

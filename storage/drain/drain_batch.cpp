#include "storage/drain/drain_batch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/assert.hpp"
#include "semel/engine_host.hpp"

namespace semel::storage {

void DrainBatch::add(const LogRecord& record) {
  if (record.offset < files_.floor()) return;
  Bytes payload = record.payload;
  std::optional<std::string> whole;
  if (record.type == RecordType::part) {
    whole = parts_.add(payload);
    if (!whole) return;
    payload = *whole;
  }
  if (record.offset < from_) return;
  while (!payload.empty()) {
    MutationExtent extent;
    if (!extent_of(payload, extent, record.base)) {
      is_damaged_ = true;  // nothing of the batch is archived, and the group's bytes go
      candidates_.clear();
      return;
    }
    const Bytes mutation = payload.substr(0, extent.bytes);
    payload.remove_prefix(extent.bytes);
    largest_ = std::max(largest_, extent.version);
    if (extent.keep_until_ms <= ended_ms_) {
      ++counts_.ended;
      continue;
    }
    candidates_.push_back({record.offset, mutation, record.base, extent});
    if (candidates_.size() == EngineHost::superseded_max) skip_superseded();
  }
  if (whole) skip_superseded();  // its bytes go now
}

/// The newest record of the key may be a delta that follows on it. Asked before the engine, whose
/// newest record is then not older than what the chains name.
bool DrainBatch::may_be_needed(const MutationExtent& extent) {
  if (!extent.is_delta && !is_object_kind(extent.kind)) return false;
  if (!extent.is_delta && extent.bytes < limits::trail_record_bytes_min) return false;
  return engine_.chains().whole_version(extent.db, extent.key) <= extent.version;
}

/// The bits of candidates.
std::uint32_t DrainBatch::superseded() {
  std::array<HeldMutation, EngineHost::superseded_max> asked;
  std::array<std::uint8_t, EngineHost::superseded_max> index{};
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const MutationExtent& extent = candidates_[i].extent;
    const bool is_record =
        extent.type == Mutation::Type::put || extent.type == Mutation::Type::erase;
    if (!is_record || extent.kind == Kind::name_space || extent.db >= limits::db_count) continue;
    if (may_be_needed(extent)) continue;
    index[count] = static_cast<std::uint8_t>(i);
    asked[count++] = {extent.db, extent.key, extent.version,
                      context_.durable_clock.from_durable_ms(extent.keep_until_ms)};
  }
  const std::uint32_t found = engine_.superseded({asked.data(), count});
  std::uint32_t dropped = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if ((found >> i & 1) != 0) dropped |= std::uint32_t{1} << index[i];
  }
  return dropped;
}

void DrainBatch::skip_superseded() {
  SEMEL_ASSERT(candidates_.size() <= EngineHost::superseded_max);
  if (candidates_.empty()) return;
  const std::uint64_t now_ms = context_.durable_now();
  const std::uint32_t dropped = drops_ && engine_.may_drop() ? superseded() : 0;
  std::string wide;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    if ((dropped >> i & 1) != 0) {
      ++counts_.superseded;
      continue;
    }
    ++counts_.mutations;
    Bytes bytes = candidate.bytes;
    if (candidate.base != nullptr) {  // files have the full form alone
      wide.clear();
      if (!widen(bytes, *candidate.base, wide)) is_damaged_ = true;
      bytes = wide;
    }
    blobs_.add(span_of(candidate.extent.keep_until_ms, now_ms, context_.options.span),
               candidate.offset, bytes);
  }
  candidates_.clear();
}

}  // namespace semel::storage

// What stays the same while a storage is open: its settings, its disk, its clocks, its identity.
//
// The opening fills it before any thread runs; the storage keeps it as a constant.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "semel/clock.hpp"
#include "semel/storage.hpp"
#include "storage/journal/log.hpp"
#include "storage/log/disk.hpp"
#include "storage/log/durable_clock.hpp"

namespace semel::storage {

struct Context {
  Context(const StorageOptions& storage_options, const Clock& engine_clock)
      : options(storage_options),
        clock(engine_clock),
        own_disk(options.disk != nullptr ? nullptr : std::make_unique<Disk>()),
        disk(options.disk != nullptr ? *options.disk : *own_disk) {}

  [[nodiscard]] std::size_t segment_bytes() const noexcept {
    return std::bit_floor(options.log_bytes / LogExtent::segment_count);
  }
  /// What opening needs: a segment that is written, one that is ready, RocksDB's small files.
  [[nodiscard]] std::size_t reserve_bytes() const noexcept {
    return 2 * segment_bytes() + (std::size_t{4} << 20);
  }
  [[nodiscard]] std::string reserve_path() const { return options.directory + "/reserve"; }

  [[nodiscard]] std::int64_t line_ms(const ClockReading& at) const noexcept {
    return static_cast<std::int64_t>(durable_clock.to_durable_ms(at.now));
  }
  [[nodiscard]] std::uint64_t durable_now() const noexcept {
    return durable_clock.to_durable_ms(clock.now());
  }
  [[nodiscard]] Anchor anchor_now() const {
    const ClockReading at = read_clocks(clock);
    return {line_ms(at), at.now.time_since_epoch().count(), at.unix_ms, boot_id};
  }

  const StorageOptions options;
  const Clock& clock;
  std::unique_ptr<Disk> own_disk;  // null: the caller's is used
  Disk& disk;
  DurableClock durable_clock{0};
  std::string boot_id;  // empty: unknown
  std::uint64_t storage_id = 0;
  Version first_version = 1;  // larger than any that was handed out before
};

}  // namespace semel::storage

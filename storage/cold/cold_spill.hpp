// Writes the parts of a spill to the disk, and drops ended generations.
//
//   begin_generation -> add .. -> write_part -> reveal -> end_part, and again from add
//                                           '-> abandon
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "semel/cold.hpp"
#include "storage/cold/catalogs.hpp"
#include "storage/cold/cold_clock.hpp"
#include "storage/cold/cold_files.hpp"
#include "storage/cold/cold_identity.hpp"
#include "storage/cold/cold_settings.hpp"
#include "storage/cold/collected_records.hpp"
#include "storage/cold/flush_marks.hpp"

namespace semel::storage {

/// Belongs to the spiller. The functions are those of ColdStore.
class ColdSpill {
 public:
  struct Parts {
    const ColdSettings& settings;
    const ColdClock& clock;
    const FlushMarks& flushes;
    Catalogs& catalogs;
    ColdFiles& files;
    ColdIdentity& identity;
  };
  explicit ColdSpill(const Parts& parts) noexcept
      : settings_(parts.settings),
        clock_(parts.clock),
        flushes_(parts.flushes),
        catalogs_(parts.catalogs),
        files_(parts.files),
        identity_(parts.identity),
        collected_(parts.clock) {}
  ColdSpill(const ColdSpill&) = delete;
  ColdSpill& operator=(const ColdSpill&) = delete;

  /// Once: the largest number of a part that is on the disk.
  void begin_behind(std::uint64_t last_part) noexcept { next_part_ = last_part + 1; }

  [[nodiscard]] Status begin_generation();
  [[nodiscard]] CollectedRecords& collected() noexcept { return collected_; }
  [[nodiscard]] const CollectedRecords& collected() const noexcept { return collected_; }
  [[nodiscard]] Status write_part(std::uint64_t first, std::uint64_t last);
  void reveal() noexcept;
  void end_part() noexcept;
  void abandon() noexcept;
  [[nodiscard]] Status drop_ended(Timestamp now);

  /// Invariant: a part is fresh exactly while the catalog before it is kept.
  void check_invariants() const noexcept;

 private:
  [[nodiscard]] Status write_file(ColdPart& part, const std::string& path)
      SEMEL_REQUIRES(files_.writes);
  [[nodiscard]] Status delete_part(std::uint64_t number) SEMEL_EXCLUDES(files_.writes);
  [[nodiscard]] Status delete_dropped();

  const ColdSettings& settings_;
  const ColdClock& clock_;
  const FlushMarks& flushes_;
  Catalogs& catalogs_;
  ColdFiles& files_;
  ColdIdentity& identity_;
  CollectedRecords collected_;
  std::uint64_t next_part_ = 1;
  std::shared_ptr<ColdPart> fresh_;  // written, not yet revealed or ended
  std::shared_ptr<const Catalog> before_fresh_;
  /// Dropped generations whose files could not be deleted yet, oldest first: parts by generation.
  std::map<std::uint64_t, std::vector<std::uint64_t>> undeleted_;
};

}  // namespace semel::storage

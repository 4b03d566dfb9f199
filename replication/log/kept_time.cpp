#include "replication/log/kept_time.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace semel::replication {
namespace {

/// It may grow by so much without a sync, and so much earlier a record may end after a power cut.
constexpr std::int64_t synced_step_ms = 10;

/// Of this boot, and of the namespace that says since when CLOCK_BOOTTIME counts. 0: not known.
std::uint64_t this_boot(storage::Disk& disk) {
  const std::string id = disk.boot_id();
  if (id.empty()) return 0;
  char space[64] = {};
  // Without such namespaces there is no link, and one time for all.
  static_cast<void>(readlink("/proc/self/ns/time", space, sizeof space - 1));
  const std::string both = id + " " + space;
  return XXH3_64bits(both.data(), both.size());
}

}  // namespace

KeptTime KeptTime::open(const std::string& directory, std::uint64_t cluster_id,
                        storage::Disk& disk) {
  KeptTime made;
  const std::uint64_t boot = this_boot(disk);
  if (boot == 0) return made;
  auto file = File::open(disk, directory + "/time");
  if (!file.ok()) return made;
  TimeContent content;
  const auto what = (*file)->read(content);
  if (what.ok() && *what == File::Found::content) {
    // A slot that was left by another cluster must not count as the newer one.
    made.next_.sequence = content.sequence;
    if (content.cluster_id == cluster_id) made.found_ = content;
    made.synced_behind_ =
        made.found_ ? std::max<std::int64_t>(content.behind, 0) : 0;  // opening it has synced it
  }
  made.next_.cluster_id = cluster_id;
  made.next_.boot = boot;
  made.file_ = *std::move(file);
  return made;
}

void KeptTime::write(const TimeContent& known) {
  if (file_ == nullptr) return;
  next_.boot_ms = known.boot_ms;
  next_.offset = known.offset;
  next_.term = known.term;
  next_.behind = known.behind;
  if (known.behind < synced_behind_ + synced_step_ms) {
    // A power cut may leave this one, so a later growth counts from it.
    synced_behind_ = std::clamp<std::int64_t>(known.behind, 0, synced_behind_);
    static_cast<void>(file_->write(next_));
  } else if (file_->write_and_sync(next_).ok()) {
    synced_behind_ = known.behind;
  }
}

}  // namespace semel::replication

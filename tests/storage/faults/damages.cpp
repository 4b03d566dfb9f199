#include "tests/storage/faults/damages.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "tests/storage/boot_disk.hpp"

namespace semel::faults {
namespace {

namespace fs = std::filesystem;

constexpr int damages_each = 8;  // of a place at a time
constexpr std::size_t sector_bytes = 512;

/// Paths in `root`; RocksDB's empty file LOCK means nothing.
std::vector<std::string> files_in(const std::string& root) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator{root}) {
    if (!entry.is_regular_file() || entry.path().filename() == "LOCK") continue;
    files.push_back(entry.path().lexically_relative(root).string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// The name without its number: "storage/rocksdb/.sst".
std::string kind_of(const std::string& file) {
  const std::size_t name = file.rfind('/') + 1;
  std::string kind = file.substr(0, name);
  if (kind == "storage/log/") return kind + "*";
  std::copy_if(file.begin() + static_cast<std::ptrdiff_t>(name), file.end(),
               std::back_inserter(kind),
               [](unsigned char letter) { return std::isdigit(letter) == 0; });
  return kind;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

bool tells_offset(const std::string& text) {
  for (const char* const word : {"offset ", "at ", "byte "}) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
      const std::size_t next = at + std::string_view{word}.size();
      if (next < text.size() && std::isdigit(text[next]) != 0) return true;
    }
  }
  return false;
}

}  // namespace

/// Each kind of file as often as any other, and mostly where something is written: most of a
/// segment is zeros.
Damages::Damage Damages::draw() {
  const std::vector<std::string> files = files_in(copy_);
  std::set<std::string> kinds;
  for (const std::string& file : files) kinds.insert(kind_of(file));
  const std::string& kind =
      *std::next(kinds.begin(), static_cast<std::ptrdiff_t>(random_.below(kinds.size())));
  std::string file;
  do {
    file = files[random_.below(files.size())];
  } while (kind_of(file) != kind);
  const std::string path = copy_ + "/" + file;
  std::string bytes = bytes_of(path);
  const std::size_t written = bytes.find_last_not_of('\0') + 1;
  const std::size_t size = random_.chance(4, 5) ? written : bytes.size();
  const std::uint64_t how = random_.below(19);
  if (how == 0 || size == 0) {
    fs::remove(path);
    return {file, "removed " + file};
  }
  const std::size_t at = random_.below(size);
  const std::string where = " at " + std::to_string(at) + " of " + file;
  if (how < 3) {
    fs::resize_file(path, at);
    return {file, "cut" + where};
  }
  std::size_t from = at;
  std::size_t to = bytes.size();
  if (how < 5) {
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(at), bytes.end(), '\0');
  } else if (how < 9) {
    from = at - at % sector_bytes;
    to = std::min(bytes.size(), from + sector_bytes);
    std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(from),
              bytes.begin() + static_cast<std::ptrdiff_t>(to), '\0');
  } else {
    to = at + 1;
    const std::uint64_t change =
        how < 13 ? random_.between(1, 255) : std::uint64_t{1} << random_.below(8);
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ change);
  }
  std::fstream out{path, std::ios::binary | std::ios::in | std::ios::out};
  out.seekp(static_cast<std::streamoff>(from));
  out.write(bytes.data() + from, static_cast<std::streamsize>(to - from));
  return {file, (to - from == 1 ? "one byte" : std::to_string(to - from) + " zeros") + where, true};
}

Damages::Verdict Damages::judge(Place& copy, const Damage& damage, MachineTime& time,
                                const std::string& boot, std::string& said) {
  tests::BootDisk disk{boot};
  auto world =
      open_world(options_of(copy, disk), time.wall(), Durability::logged, Joins::no, copy.cold());
  const auto say = [&](const std::string& what) {
    if (said.empty()) said = what;
  };
  const Result<Found> found = world ? compare(*world, copy.promise.ledger, time.clock(),
                                              Timestamp::max(), say, time.slack())
                                    : world.error();
  if (found) return found->right() ? Verdict::same : Verdict::changed;
  said = found.error().message();
  // RocksDB's own texts name a file, or one that is missing, or the directory alone. Where the log
  // of a cold store, or the storage's, has lost its end, it is told that they do not fit.
  std::vector<std::string> names = files_in(copy_);
  names.insert(names.end(),
               {damage.file, "MANIFEST", "CURRENT", copy.storage() + "/rocksdb: Corruption",
                copy.cold() + "/cold: Corruption"});
  if (damage.file.starts_with("cold/")) names.emplace_back("cold part ");  // by a lookup
  if (copy.is_tiered && damage.file.ends_with(".log")) {
    names.insert(names.end(), {"not used together last", "were spilled to a cold store, and this"});
  }
  const bool names_file = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return said.find(name[0] == '/' ? name : name.substr(name.rfind('/') + 1)) != std::string::npos;
  });
  const bool is_own = damage.file.find("/rocksdb/") == std::string::npos &&
                      damage.file.compare(0, 8, "storage/") == 0;
  const bool is_told = names_file && (!is_own || !damage.has_offset || tells_offset(said));
  return is_told ? Verdict::refused : Verdict::vague;
}

void Damages::meet(const Place& place, MachineTime& time) {
  if (place.stamp == 0) return;  // no process has made all of it yet
  for (int i = 0; i < damages_each; ++i) {
    Place copy = place;
    copy.root = copy_;
    fs::create_directory(copy_);
    fs::copy(place.storage(), copy.storage(), fs::copy_options::recursive);
    if (place.is_tiered && fs::exists(place.cold())) {
      fs::copy(place.cold(), copy.cold(), fs::copy_options::recursive);
    }
    // The mark does not know of the last syncs yet, so damage behind it looks like an earlier kill.
    copy.promise = place.promise.as_of(place.promise.marked(), time.clock().unix_ms());
    const bool was_closed = place.promise.marked() == Timestamp::max();
    const bool boots = was_closed && random_.chance(1, 3);
    if (boots) copy.promise.outlive_boot();
    const Damage damage = draw();
    std::string said;
    const Verdict verdict =
        judge(copy, damage, time, time.boot_id() + (boots ? ", later" : ""), said);
    ++counts_[kind_of(damage.file)][static_cast<std::size_t>(verdict)];
    refused_ += verdict == Verdict::refused ? 1 : 0;
    if (verdict == Verdict::vague) findings_.wrong(damage.what + ": it is not said where: " + said);
    if (verdict == Verdict::changed) findings_.lost(damage.what + ": " + said);
    fs::remove_all(copy_);
  }
}

void Damages::print(const std::string& name) const {
  std::printf("%s: %-32s     same  refused    vague  changed\n", name.c_str(), "damaged");
  for (const auto& [kind, counts] : counts_) {
    std::printf("%s: %-32s", name.c_str(), kind.c_str());
    for (const std::uint64_t count : counts) {
      std::printf("%9llu", static_cast<unsigned long long>(count));
    }
    std::printf("\n");
  }
}

}  // namespace semel::faults

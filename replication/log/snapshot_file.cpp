#include "replication/log/snapshot_file.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "replication/core/log_identity.hpp"
#include "replication/state/fields.hpp"
#include "replication/state/library_fields.hpp"
#include "storage/log/mutation_codec.hpp"

namespace semel::replication {
namespace {

constexpr std::uint64_t magic = 0x31504e53'4c4d4553;  // "SEMLSNP1"
/// 2: libraries behind the level.
constexpr std::uint32_t format_first = 1;
constexpr std::uint32_t format_newest = 2;
constexpr std::size_t block_bytes = std::size_t{256} << 10;
/// A block has one mutation more than that at most.
constexpr std::size_t block_bytes_max = block_bytes + limits::value_bytes_max + (1U << 20);
constexpr std::size_t front_bytes_max_first = std::size_t{64} << 20;
constexpr std::string_view prefix = "snapshot-";
constexpr std::string_view unfinished = ".part";

/// Times are the replicated log's already.
const storage::DurableClock& log_times() {
  static const storage::DurableClock clock{0};
  return clock;
}
/// A lease of a remote owner goes on as it was: it is measured by the replicated log's time, not by
/// this process.
constexpr Timestamp never = no_end;

template <class Number>
void put(std::string& to, Number number) {
  to.append(reinterpret_cast<const char*>(&number), sizeof number);
}
template <class Number>
[[nodiscard]] Number get(const char* from) noexcept {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

/// A node of an earlier release reads the snapshots of a group that has not been upgraded.
std::uint32_t format_of(FeatureLevel level) noexcept {
  return level < feature_level_libraries ? format_first : format_newest;
}
/// Libraries count for more than they have bytes here.
std::size_t front_bytes_max(std::uint32_t format) noexcept {
  return front_bytes_max_first + (format < format_newest ? 0 : LibraryTable::bytes_max);
}

template <class Fields>
void member(Fields& fields, Member& value) {
  fields.number(value.id);
  auto role = static_cast<std::uint8_t>(value.role);
  fields.small(role, 1);
  value.role = static_cast<MemberRole>(role);
}

std::string front_bytes(const SnapshotFront& front) {
  std::string bytes;
  FieldWriter fields{bytes};
  fields.number(front.cluster_id);
  fields.number(front.id.index);
  fields.number(front.id.term);
  fields.number(front.id.configuration_index);
  fields.number(std::uint64_t{front.id.configuration.size()});
  for (Member each : front.id.configuration) {
    member(fields, each);
    const std::string address = full_address(each);
    fields.bytes(address);
  }
  fields.number(front.state.applied);
  fields.number(front.state.unix_ms);
  fields.number(std::uint64_t{front.state.sessions.size()});
  for (const engine::OpenSession& session : front.state.sessions) {
    fields.number(session.id);
    fields.number(session.owner.node);
    fields.number(session.owner.life);
  }
  fields.bytes(front.state.answers);
  fields.number(front.state.level);
  if (format_of(front.state.level) < format_newest) return bytes;
  fields.number(std::uint64_t{front.state.libraries.size()});
  for (const SharedLibraryText& each : front.state.libraries) {
    LibraryCommand::Library library = view_of(*each);
    all(fields, library);
  }
  return bytes;
}

void read_libraries(FieldReader& fields, std::vector<SharedLibraryText>& libraries) {
  std::uint64_t count = 0;
  fields.number(count);
  if (count > fields.rest().size()) fields.fail();
  for (std::uint64_t i = 0; i < count && fields.is_good(); ++i) {
    LibraryCommand::Library library;
    all(fields, library);
    if (fields.is_good()) libraries.push_back(text_of(library));
  }
}

std::optional<SnapshotFront> read_front(Bytes bytes, std::uint32_t format) {
  FieldReader fields{bytes};
  SnapshotFront front;
  fields.number(front.cluster_id);
  fields.number(front.id.index);
  fields.number(front.id.term);
  fields.number(front.id.configuration_index);
  const std::size_t members = fields.count(0);
  for (std::size_t i = 0; i < members && fields.is_good(); ++i) {
    Member& each = front.id.configuration.emplace_back();
    member(fields, each);
    Bytes address;
    fields.bytes(address);
    set_full_address(each, std::string{address});
  }
  fields.number(front.state.applied);
  fields.number(front.state.unix_ms);
  std::uint64_t sessions = 0;
  fields.number(sessions);
  if (sessions > fields.rest().size()) fields.fail();
  for (std::uint64_t i = 0; i < sessions && fields.is_good(); ++i) {
    engine::OpenSession& session = front.state.sessions.emplace_back();
    fields.number(session.id);
    fields.number(session.owner.node);
    fields.number(session.owner.life);
  }
  Bytes answers;
  fields.bytes(answers);
  front.state.answers = answers;
  fields.number(front.state.level);
  if (format >= format_newest) read_libraries(fields, front.state.libraries);
  if (!fields.is_good() || !fields.rest().empty()) return std::nullopt;
  return front;
}

/// Reads a file from its begin to its end.
class Reader {
 public:
  explicit Reader(const std::string& path)
      : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~Reader() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  [[nodiscard]] bool is_open() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  [[nodiscard]] Status take(std::size_t count, std::string& to) {
    to.resize(count);
    for (std::size_t got = 0; got < count;) {
      const ssize_t now = ::read(descriptor_, to.data() + got, count - got);
      if (now < 0 && errno == EINTR) continue;
      if (now < 0 && errno != EIO) return storage::system_error("reading " + path_);
      if (now <= 0)
        return storage::damage_at(path_, offset_ + got, now == 0 ? "it ends here" : "unreadable");
      got += static_cast<std::size_t>(now);
    }
    offset_ += count;
    return Done{};
  }

 private:
  const std::string& path_;
  const int descriptor_;
  std::uint64_t offset_ = 0;
};

}  // namespace

std::string snapshot_name(const SnapshotId& id) {
  char name[64];
  std::snprintf(name, sizeof name, "snapshot-%016llx-%016llx",
                static_cast<unsigned long long>(id.index),
                static_cast<unsigned long long>(id.term));
  return name;
}

Result<SnapshotNames> find_snapshots(const std::string& directory) {
  SEMEL_TRY(names, storage::list_directory(directory));
  SnapshotNames found;
  std::sort(names.begin(), names.end());
  for (std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    if (name.ends_with(unfinished)) {
      found.others.push_back(std::move(name));
      continue;
    }
    if (found.newest) found.others.push_back(std::move(*found.newest));
    found.newest = std::move(name);
  }
  return found;
}

Result<std::unique_ptr<SnapshotWriter>> SnapshotWriter::create(storage::Disk& disk,
                                                               const std::string& directory,
                                                               const SnapshotFront& front) {
  const std::string name = directory + "/" + snapshot_name(front.id);
  std::string path = name + std::string{unfinished};
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
  if (descriptor < 0) return storage::system_error(path);
  std::unique_ptr<SnapshotWriter> made{new SnapshotWriter{disk, std::move(path), name, descriptor}};
  const std::string bytes = front_bytes(front);
  const std::uint32_t format = format_of(front.state.level);
  SEMEL_ASSERT(bytes.size() <= front_bytes_max(format));
  std::string header;
  put(header, magic);
  put(header, format);
  put(header, static_cast<std::uint32_t>(bytes.size()));
  header += bytes;
  put(header, XXH3_64bits(header.data(), header.size()));
  SEMEL_CHECK(made->write(header));
  return made;
}

SnapshotWriter::~SnapshotWriter() {
  close(descriptor_);
  if (!is_finished_) unlink(path_.c_str());
}

Status SnapshotWriter::write(Bytes bytes) {
  bytes_ += bytes.size();
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return storage::system_error("writing " + path_);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return behind_.grew(descriptor_, path_, bytes_);
}

Status SnapshotWriter::add(const Mutation& mutation) {
  if (block_.empty()) block_.assign(8, '\0');  // its head, set by end_block()
  const std::size_t at = block_.size();
  block_.resize(at + storage::encoded_bytes(mutation, never));
  const char* const end = storage::encode(mutation, log_times(), never, block_.data() + at);
  SEMEL_ASSERT(end == block_.data() + block_.size());
  ++in_block_;
  ++mutations_;
  return block_.size() < block_bytes ? Status{Done{}} : end_block();
}

Status SnapshotWriter::end_block() {
  if (in_block_ == 0) return Done{};
  const auto bytes = static_cast<std::uint32_t>(block_.size() - 8);
  std::memcpy(block_.data(), &bytes, 4);
  std::memcpy(block_.data() + 4, &in_block_, 4);
  put(block_, XXH3_64bits_withSeed(block_.data(), block_.size(), blocks_));
  SEMEL_CHECK(write(block_));
  block_.clear();
  in_block_ = 0;
  ++blocks_;
  return Done{};
}

Result<std::string> SnapshotWriter::finish() {
  SEMEL_CHECK(end_block());
  std::string end(8, '\0');
  put(end, mutations_);
  put(end, XXH3_64bits_withSeed(end.data(), end.size(), blocks_));
  SEMEL_CHECK(write(end));
  SEMEL_CHECK(disk_.sync(descriptor_, path_));
  SEMEL_CHECK(disk_.rename(path_, final_path_));
  is_finished_ = true;
  return final_path_;
}

namespace {

Status read_header(Reader& file, const std::string& path, SnapshotFront& front) {
  std::string head;
  SEMEL_CHECK(file.take(16, head));
  if (get<std::uint64_t>(head.data()) != magic)
    return storage::damage_at(path, 0, "it is not a snapshot");
  const auto found = get<std::uint32_t>(head.data() + 8);
  if (found > format_newest) {
    return Error{ErrorCode::storage_newer, path + ": format " + std::to_string(found) +
                                               ", this release reads " +
                                               std::to_string(format_newest)};
  }
  const auto bytes = get<std::uint32_t>(head.data() + 12);
  if (bytes > front_bytes_max(found))
    return storage::damage_at(path, 12, "its header has too many bytes");
  std::string rest;
  SEMEL_CHECK(file.take(bytes + sizeof(std::uint64_t), rest));
  const auto sum = get<std::uint64_t>(rest.data() + bytes);
  rest.resize(bytes);
  head += rest;
  if (XXH3_64bits(head.data(), head.size()) != sum) {
    return storage::damage_at(path, 0, "its header has another checksum");
  }
  const std::optional<SnapshotFront> read = read_front(rest, found);
  if (!read) return storage::damage_at(path, 16, "its header cannot be read");
  front = *read;
  return Done{};
}

Status read_block(Bytes block, std::uint32_t count, const std::string& path, std::uint64_t offset,
                  std::vector<Mutation>& mutations) {
  mutations.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (!storage::decode(block, log_times(), never, mutations.emplace_back())) {
      return storage::damage_at(path, offset, "a mutation cannot be read");
    }
  }
  if (!block.empty())
    return storage::damage_at(path, offset, "a block has more bytes than mutations");
  return Done{};
}

}  // namespace

Status read_snapshot(const std::string& path,
                     const std::function<Status(const SnapshotFront&)>& front,
                     const std::function<Status(std::span<const Mutation>)>& mutations) {
  Reader file{path};
  if (!file.is_open()) return storage::system_error(path);
  SnapshotFront found;
  SEMEL_CHECK(read_header(file, path, found));
  SEMEL_CHECK(front(found));
  std::string head;
  std::string block;
  std::vector<Mutation> some;
  std::uint64_t all = 0;
  for (std::uint64_t number = 0;; ++number) {
    const std::uint64_t offset = file.offset();
    SEMEL_CHECK(file.take(8, head));
    const auto bytes = get<std::uint32_t>(head.data());
    const auto count = get<std::uint32_t>(head.data() + 4);
    const bool is_end = count == 0;
    if (bytes > block_bytes_max || (is_end && bytes != 0) || count > bytes) {
      return storage::damage_at(path, offset, "a block of " + std::to_string(bytes) + " bytes");
    }
    const std::size_t content = is_end ? sizeof(std::uint64_t) : bytes;
    SEMEL_CHECK(file.take(content + sizeof(std::uint64_t), block));
    const auto sum = get<std::uint64_t>(block.data() + content);
    block.resize(content);
    head += block;
    if (XXH3_64bits_withSeed(head.data(), head.size(), number) != sum) {
      return storage::damage_at(path, offset, "a block has another checksum");
    }
    if (is_end) {
      if (get<std::uint64_t>(block.data()) == all) return Done{};
      return storage::damage_at(path, offset, "mutations are missing");
    }
    SEMEL_CHECK(read_block(block, count, path, offset, some));
    all += count;
    SEMEL_CHECK(mutations(some));
  }
}

}  // namespace semel::replication

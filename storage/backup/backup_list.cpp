#include "storage/backup/backup_list.hpp"

#include <xxhash.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <optional>

#include "base/file_text.hpp"
#include "storage/archive/rocks_status.hpp"
#include "storage/backup/backup_io.hpp"
#include "storage/log/directory.hpp"
#include "storage/log/disk.hpp"

namespace semel::storage {
namespace {

constexpr std::string_view first_line = "semel-backup 1\n";
constexpr std::string_view notice =
    "This directory is a backup of a Semel storage. Do not open it: two storages would hand out\n"
    "the same epochs. Make a storage of it: semel restore BACKUP DIR\n";
constexpr std::string_view digest_word = "digest ";

std::string hex(std::uint64_t number) {
  std::array<char, 16> digits{};
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, number >>= 4) {
    *digit = "0123456789abcdef"[number & 15];
  }
  return {digits.begin(), digits.end()};
}

std::optional<std::uint64_t> number_of(std::string_view text, int base) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Takes the text before the next `end` from `text`; none: there is no such character.
std::optional<std::string_view> take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at + 1);
  return taken;
}

/// A path that leads out of the directory is not followed.
bool stays_inside(std::string_view name) {
  for (const std::filesystem::path& part : std::filesystem::path{name}) {
    if (part == ".." || part.is_absolute()) return false;
  }
  return !name.empty();
}

bool take_file(std::string_view line, BackupList& list) {
  const auto bytes = take_until(line, ' ');
  const auto digest = take_until(line, ' ');
  if (!bytes || !digest || !stays_inside(line)) return false;
  const auto size = number_of(*bytes, 10);
  BackupFile file{std::string{line}, size.value_or(0), number_of(*digest, 16)};
  if (!size || (!file.digest && *digest != "-")) return false;
  list.files.push_back(std::move(file));
  return true;
}

bool take_line(std::string_view line, BackupList& list) {
  const auto word = take_until(line, ' ');
  if (word == "file") return take_file(line, list);
  if (word == "state") {
    list.complete = line == "complete";
    return list.complete || line == "incomplete";
  }
  if (word == "files") {
    list.has_files = false;
    return line == "unknown";
  }
  const bool is_id = word == "storage" || word == "incarnation";
  const auto number = number_of(line, is_id ? 16 : 10);
  if (!number || !(is_id || word == "unix_ms")) return false;
  if (word == "storage") list.storage_id = *number;
  if (word == "incarnation") list.incarnation = *number;
  if (word == "unix_ms") list.unix_ms = static_cast<std::int64_t>(*number);
  return true;
}

}  // namespace

std::string text_of(const BackupList& list) {
  std::string text{first_line};
  text += notice;
  text += list.complete ? "state complete\n" : "state incomplete\n";
  text += "storage " + hex(list.storage_id) + "\n";
  text += "incarnation " + hex(list.incarnation) + "\n";
  text += "unix_ms " + std::to_string(list.unix_ms) + "\n";
  if (!list.has_files) text += "files unknown\n";
  for (const BackupFile& file : list.files) {
    text += "file " + std::to_string(file.bytes) + " " +
            (file.digest ? hex(*file.digest) : std::string{"-"}) + " " + file.name + "\n";
  }
  return text + std::string{digest_word} + hex(XXH3_64bits(text.data(), text.size())) + "\n";
}

std::optional<BackupList> backup_list_of(std::string_view text) {
  if (text == notice) {  // all that release 0.1 wrote, before anything else
    BackupList list;
    list.complete = true;
    list.has_files = false;
    return list;
  }
  const std::size_t digest_bytes = digest_word.size() + 16 + 1;
  if (!text.starts_with(first_line) || text.size() < digest_bytes) return std::nullopt;
  std::string_view lines = text.substr(0, text.size() - digest_bytes);
  const std::string digest =
      std::string{digest_word} + hex(XXH3_64bits(lines.data(), lines.size())) + "\n";
  if (text.substr(lines.size()) != digest) return std::nullopt;
  lines.remove_prefix(first_line.size());
  if (!lines.starts_with(notice)) return std::nullopt;
  lines.remove_prefix(notice.size());
  BackupList list;
  while (!lines.empty()) {
    const auto line = take_until(lines, '\n');
    if (!line || !take_line(*line, list)) return std::nullopt;
  }
  return list;
}

Result<BackupList> read_backup_list(const std::string& directory) {
  const std::string path = directory + backup_file;
  const std::optional<std::string> read = base::read_file(path);
  if (!read) {
    return Error{ErrorCode::storage_failed,
                 directory + ": is not a backup, as it has no readable file 'backup'"};
  }
  const std::string& text = *read;
  // The first line of the list that a backup begins with, or a part of it, and nothing behind.
  auto list = backup_list_of(text);
  if (!list && !text.empty() && !first_line.starts_with(text)) {
    return Error{ErrorCode::storage_damaged,
                 path + ", offset 0: has not the checksum that it names"};
  }
  if (!list || !list->complete) {
    return Error{ErrorCode::storage_failed,
                 directory + ": is a backup that was not completed; delete it, and make another"};
  }
  return *std::move(list);
}

Result<std::string> newest_backup(const std::string& folder, std::uint64_t storage_id) {
  SEMEL_TRY(names, list_directory(folder));
  std::string newest;
  std::int64_t newest_ms = 0;
  for (const std::string& name : names) {
    const std::string directory = folder + "/" + name;
    const auto list = read_backup_list(directory);
    if (!list || !list->has_files || list->storage_id != storage_id) continue;
    if (!newest.empty() && list->unix_ms < newest_ms) continue;
    newest = directory;
    newest_ms = list->unix_ms;
  }
  return newest;
}

Status write_backup_list(rocksdb::Env& env, const std::string& directory, const BackupList& list) {
  const std::string path = directory + backup_file;
  const std::string next = path + ".new";
  const std::string text = text_of(list);
  rocksdb::Status status = rocksdb::WriteStringToFile(&env, text, next, true);
  if (status.ok()) status = env.RenameFile(next, path);
  if (!status.ok()) return error_of(status, path);
  return sync_backup_directory(env, directory);
}

Result<std::vector<BackupDamage>> check_backup(const std::string& directory) {
  SEMEL_TRY(list, read_backup_list(directory));
  std::vector<BackupDamage> found;
  for (const BackupFile& file : list.files) {
    const std::string path = directory + "/" + file.name;
    std::error_code code;
    const auto bytes = std::filesystem::file_size(path, code);
    std::string what;
    if (code) {
      what = code.message();
    } else if (bytes != file.bytes) {
      what = "has " + std::to_string(bytes) + " bytes, and had " + std::to_string(file.bytes) +
             " in the backup";
    } else if (file.digest) {
      const auto digest = digest_of_file(path);
      if (!digest.ok()) what = digest.error().detail;
      if (digest.ok() && *digest != *file.digest) what = "is not the file that the backup had";
    }
    if (!what.empty()) found.push_back({path, what, file.bytes});
  }
  return found;
}

}  // namespace semel::storage

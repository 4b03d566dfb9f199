#include "tools/semel/transfer/file_import.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/file_text.hpp"
#include "net/resp/resp_parser.hpp"
#include "tools/semel/records/byte_source.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {

namespace {

constexpr std::size_t piece_bytes = std::size_t{256} << 10;

/// A file in pieces.
class Pieces {
 public:
  [[nodiscard]] Status open(const std::string& path) {
    path_ = path;
    return source_.open(path);
  }
  /// Empty: the end.
  [[nodiscard]] Result<std::string_view> next() {
    for (;;) {
      SEMEL_TRY(chunk, source_.read(buffer_.get(), piece_bytes));
      if (chunk.kind == ByteSource::Chunk::Kind::end) return std::string_view{};
      if (chunk.size == 0) continue;
      read_ += chunk.size;
      return std::string_view{buffer_.get(), chunk.size};
    }
  }
  [[nodiscard]] std::uint64_t read() const noexcept { return read_; }
  [[nodiscard]] Error damaged(const std::string& why) const {
    return data_error(path_ + ": " + why);
  }

 private:
  std::string path_;
  ByteSource source_;
  const std::unique_ptr<char[]> buffer_{new char[piece_bytes]};
  std::uint64_t read_ = 0;
};

Error stopped() {
  return Error{ErrorCode::refused, "stopped"};
}

/// Reads an RDB file to its end. Returns the bytes behind it that were read already.
Result<std::string> read_rdb(Pieces& pieces, std::string_view first, Importer& importer,
                             const ImportProgress& progress) {
  net::RdbReader reader;
  std::string_view piece = first;
  for (;;) {
    reader.feed(piece);
    net::RdbProgress step = reader.next();
    for (; step == net::RdbProgress::item; step = reader.next()) {
      SEMEL_CHECK(importer.take(reader.item(), reader.version()));
    }
    if (step == net::RdbProgress::end) return std::string{reader.rest()};
    if (step == net::RdbProgress::more) {
      if (!progress(pieces.read())) return stopped();
      SEMEL_TRY(next, pieces.next());
      piece = next;
      if (!piece.empty()) continue;
      step = reader.finish();
    }
    return pieces.damaged(reader.fault_text());
  }
}

/// Commands of an append-only file.
class CommandReader {
 public:
  CommandReader(Importer& importer, std::uint64_t offset) : importer_(importer), offset_(offset) {}

  /// Takes the commands that are whole, and keeps the rest.
  [[nodiscard]] Status feed(std::string_view piece) {
    buffer_.append(piece);
    std::string_view rest = buffer_;
    while (!rest.empty()) {
      if (rest.front() == '#') {  // a time, on a line of its own
        const std::size_t end = rest.find('\n');
        if (end == std::string_view::npos) break;
        drop(rest, end + 1);
        continue;
      }
      if (rest.front() != '*') return data_error("no command" + at());
      const auto step = parser_.parse(rest, limits_);
      if (step == net::RespParser::Step::incomplete) break;
      if (step != net::RespParser::Step::command) return data_error(parser_.error() + at());
      SEMEL_CHECK(importer_.command(parser_.arguments(), offset_));
      drop(rest, parser_.consumed());
    }
    buffer_.erase(0, buffer_.size() - rest.size());
    return Done{};
  }
  [[nodiscard]] bool is_whole() const noexcept { return buffer_.empty(); }
  [[nodiscard]] std::string at() const { return " at byte " + std::to_string(offset_); }

 private:
  void drop(std::string_view& rest, std::size_t bytes) noexcept {
    rest.remove_prefix(bytes);
    offset_ += bytes;
  }

  static constexpr net::RequestLimits limits_{};
  Importer& importer_;
  net::RespParser parser_;
  std::string buffer_;
  std::uint64_t offset_;
};

/// A line of a manifest: "file NAME seq N type T".
Status read_manifest_line(const std::string& line, std::vector<std::string>& base,
                          std::vector<std::pair<std::uint64_t, std::string>>& increments) {
  std::istringstream words{line};
  std::string name;
  std::string type;
  std::uint64_t sequence = 0;
  for (std::string word, value; words >> word >> value;) {
    if (word == "file") name = value;
    if (word == "type") type = value;
    if (word == "seq") sequence = std::strtoull(value.c_str(), nullptr, 10);
  }
  if (name.empty() || type.empty() || name.find_first_of("/\"\\") != std::string::npos) {
    return data_error("the manifest has the line '" + line + "'");
  }
  if (type == "b") base.push_back(name);
  if (type == "i") increments.emplace_back(sequence, name);
  return Done{};  // type h: replaced files
}

}  // namespace

Status import_rdb(const std::string& path, Importer& importer, const ImportProgress& progress) {
  Pieces pieces;
  SEMEL_CHECK(pieces.open(path));
  SEMEL_TRY(first, pieces.next());
  SEMEL_TRY(rest, read_rdb(pieces, first, importer, progress));
  if (rest.empty()) {
    SEMEL_TRY(more, pieces.next());
    if (more.empty()) return importer.finish();
  }
  SEMEL_CHECK(importer.finish());
  return pieces.damaged("bytes behind the end of the RDB file: an append-only file needs --aof");
}

Status import_aof(const std::string& path, Importer& importer, const ImportProgress& progress) {
  Pieces pieces;
  SEMEL_CHECK(pieces.open(path));
  SEMEL_TRY(piece, pieces.next());
  std::string rest;
  if (piece.starts_with("REDIS")) {
    SEMEL_TRY(behind, read_rdb(pieces, piece, importer, progress));
    rest = std::move(behind);
    piece = rest;
  }
  CommandReader commands{importer, pieces.read() - piece.size()};
  while (!piece.empty()) {
    if (const Status fed = commands.feed(piece); !fed) {
      if (fed.error().code != ErrorCode::syntax) return fed;
      SEMEL_CHECK(importer.finish());
      return pieces.damaged(fed.error().detail);
    }
    if (!progress(pieces.read())) return stopped();
    SEMEL_TRY(next, pieces.next());
    piece = next;
  }
  SEMEL_CHECK(importer.finish());
  return commands.is_whole() ? Status{Done{}} : pieces.damaged("cut" + commands.at());
}

Result<std::vector<std::string>> aof_files(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  if (!fs::is_directory(path, code)) return std::vector{path};
  std::vector<fs::path> manifests;
  for (const auto& entry : fs::directory_iterator{path, code}) {
    if (entry.path().extension() == ".manifest") manifests.push_back(entry.path());
  }
  if (code) return file_error(path + ": " + code.message());
  if (manifests.size() != 1) {
    return file_error(path + ": there is " + (manifests.empty() ? "no" : "more than one") +
                      " file .manifest");
  }
  const auto text = base::read_file(manifests.front());
  if (!text) return file_error(manifests.front().string() + " cannot be read");
  std::vector<std::string> names;
  std::vector<std::pair<std::uint64_t, std::string>> increments;
  std::istringstream lines{*text};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.front() == '#') continue;
    SEMEL_CHECK(read_manifest_line(line, names, increments));
  }
  if (names.size() > 1) return data_error(manifests.front().string() + ": more than one base");
  std::sort(increments.begin(), increments.end());
  for (auto& [sequence, name] : increments) names.push_back(std::move(name));
  for (std::string& name : names) name = (fs::path{path} / name).string();
  return names;
}

}  // namespace semel::tool

#include "net/scripts/function_dump.hpp"

#include <cstdint>
#include <optional>

#include "net/rdb/dump_bytes.hpp"
#include "net/rdb/dump_writer.hpp"
#include "net/rdb/rdb_format.hpp"
#include "net/rdb/rdb_writer.hpp"
#include "net/resp/text.hpp"

namespace semel::net {

namespace {

// --- before 0.2: the head, for each library its length (8 bytes, little-endian) and its code, and
// the first 16 hex digits of the SHA-1 of all that.

constexpr std::string_view old_head = "semel functions 1\n";

std::optional<std::vector<std::string>> codes_of_old(std::string_view dump) {
  constexpr std::size_t old_sum_bytes = 16;
  constexpr std::size_t length_bytes = 8;
  if (dump.size() < old_head.size() + old_sum_bytes) return std::nullopt;
  const std::string_view whole = dump.substr(0, dump.size() - old_sum_bytes);
  if (sha1_hex(whole).substr(0, old_sum_bytes) != dump.substr(whole.size())) return std::nullopt;
  std::vector<std::string> codes;
  for (std::string_view rest = whole.substr(old_head.size()); !rest.empty();) {
    if (rest.size() < length_bytes) return std::nullopt;
    const std::uint64_t length = little_number(rest.substr(0, length_bytes));
    rest.remove_prefix(length_bytes);
    if (length > rest.size()) return std::nullopt;
    codes.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return codes;
}

Error wrong(std::string text) {
  return {ErrorCode::syntax, std::move(text)};
}

}  // namespace

std::string dump_of(const std::vector<SharedLibraryText>& libraries) {
  DumpWriter to;
  for (const SharedLibraryText& library : libraries) {
    to.raw({reinterpret_cast<const char*>(&rdb_function), 1});
    to.string(library->code);
  }
  return to.take();
}

std::string dump_of(const std::vector<SharedLibrary>& libraries) {
  std::vector<SharedLibraryText> texts;
  for (const SharedLibrary& library : libraries) texts.push_back(library->text);
  return dump_of(texts);
}

Result<std::vector<std::string>> codes_of(std::string_view dump) {
  const char* const damaged = "ERR DUMP payload version or checksum are wrong";
  if (dump.starts_with(old_head)) {
    auto codes = codes_of_old(dump);
    if (!codes) return wrong(damaged);
    return *std::move(codes);
  }
  const auto body = body_of_dump(dump);
  if (!body) return wrong(damaged);
  std::vector<std::string> codes;
  // As much as all libraries may have, before any is compiled.
  DumpBytes in{body->bytes, replication::LibraryTable::bytes_max};
  while (!in.rest().empty()) {
    if (in.byte() != rdb_function) return wrong("ERR given type is not a function");
    in.string(codes.emplace_back());
    if (!in.good()) return wrong("ERR failed loading the given functions payload");
  }
  return codes;
}

}  // namespace semel::net

#include "net/scripts/function_store.hpp"

#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "net/resp/text.hpp"

namespace semel::net {
namespace {

constexpr std::string_view dump_head = "semel functions 1\n";
constexpr std::size_t length_bytes = 8;
constexpr std::size_t sum_bytes = 16;  // as hex digits
constexpr unsigned byte_bits = 8;

std::string sum_of(std::string_view bytes) {
  return sha1_hex(bytes).substr(0, sum_bytes);
}

}  // namespace

std::string error_of(LibraryChange::What what, const LibraryVerdict& verdict) {
  using What = LibraryChange::What;
  const bool is_load = what == What::load || what == What::load_and_replace;
  const std::string quote = is_load ? "'" : "";
  switch (verdict.fault) {
    case LibraryVerdict::Fault::library_exists:
      return "ERR Library " + quote + verdict.name + quote + " already exists";
    case LibraryVerdict::Fault::function_exists:
      return "ERR Function " + verdict.name + " already exists";
    case LibraryVerdict::Fault::too_many_bytes:
      return "ERR all libraries would exceed " +
             std::to_string(replication::LibraryTable::bytes_max) + " bytes";
    case LibraryVerdict::Fault::no_such:
    case LibraryVerdict::Fault::none:
      break;
  }
  return "ERR Library not found";
}

std::string FunctionStore::new_id() {
  const base::MutexLock lock{mutex_};
  return std::to_string(++ids_);
}

/// Their functions, in small letters.
void FunctionStore::note(std::string_view name, std::vector<std::string>& functions) const {
  const auto found = libraries_.find(name);
  if (found == libraries_.end()) return;
  for (const LibraryFunction& each : found->second->text->functions) {
    functions.push_back(base::lower_of(each.name));
  }
}

LibraryVerdict FunctionStore::change(const LibraryChange& change,
                                     const std::vector<SharedLibrary>& made) {
  using What = LibraryChange::What;
  const base::MutexLock lock{mutex_};
  // What takes memory comes before the decision: behind it nothing fails.
  std::map<std::string, SharedLibrary, std::less<>> libraries;
  std::map<std::string, Found, std::less<>> functions;
  std::vector<std::string> going;
  if (change.what == What::remove) note(change.name, going);
  for (std::size_t i = 0; i < change.libraries.size(); ++i) {
    const SharedLibraryText& text = change.libraries[i];
    note(text->name, going);
    const bool is_made = i < made.size() && made[i]->text == text;
    SharedLibrary library =
        is_made ? made[i] : std::make_shared<const Library>(Library{std::to_string(++ids_), text});
    for (const LibraryFunction& each : text->functions) {
      functions[base::lower_of(each.name)] = {library, &each};
    }
    libraries[text->name] = std::move(library);
  }
  LibraryVerdict verdict = table_.change(change);
  if (verdict.fault != LibraryVerdict::Fault::none) return verdict;
  if (change.what == What::flush || change.what == What::restore_and_flush) {
    libraries_.clear();
    functions_.clear();
  }
  for (const std::string& each : going) functions_.erase(each);
  if (change.what == What::remove) libraries_.erase(change.name);
  for (const auto& [name, library] : libraries) libraries_.erase(name);
  libraries_.merge(libraries);
  functions_.merge(functions);
  SEMEL_ASSERT(libraries.empty() && functions.empty());
  // mo: relaxed: as in generation()
  if (change.what != What::load) generation_.fetch_add(1, std::memory_order_relaxed);
  return verdict;
}

FunctionStore::Found FunctionStore::find(std::string_view function) const {
  const std::string name = base::lower_of(function);
  const base::MutexLock lock{mutex_};
  const auto found = functions_.find(name);
  return found == functions_.end() ? Found{} : found->second;
}

std::vector<SharedLibrary> FunctionStore::all() const {
  std::vector<SharedLibrary> found;
  const base::MutexLock lock{mutex_};
  for (const auto& [name, library] : libraries_) found.push_back(library);
  return found;
}

FunctionStore::Totals FunctionStore::totals() const {
  const base::MutexLock lock{mutex_};
  return {libraries_.size(), functions_.size(), table_.bytes()};
}

bool FunctionStore::has(std::string_view name) const {
  const base::MutexLock lock{mutex_};
  return libraries_.contains(name);
}

bool FunctionStore::has_id(std::string_view name, std::string_view id) const {
  const base::MutexLock lock{mutex_};
  const auto found = libraries_.find(name);
  return found != libraries_.end() && found->second->id == id;
}

std::string dump_of(const std::vector<SharedLibrary>& libraries) {
  std::string bytes{dump_head};
  for (const SharedLibrary& library : libraries) {
    std::uint64_t length = library->text->code.size();
    for (std::size_t i = 0; i < length_bytes; ++i, length >>= byte_bits) {
      bytes += static_cast<char>(length & 0xffU);
    }
    bytes += library->text->code;
  }
  return bytes + sum_of(bytes);
}

std::optional<std::vector<std::string>> codes_of(std::string_view dump) {
  if (dump.size() < dump_head.size() + sum_bytes || !dump.starts_with(dump_head)) {
    return std::nullopt;
  }
  const std::string_view whole = dump.substr(0, dump.size() - sum_bytes);
  if (sum_of(whole) != dump.substr(whole.size())) return std::nullopt;
  std::vector<std::string> codes;
  for (std::string_view rest = whole.substr(dump_head.size()); !rest.empty();) {
    if (rest.size() < length_bytes) return std::nullopt;
    std::uint64_t length = 0;
    for (std::size_t i = length_bytes; i-- > 0;) {
      length = length << byte_bits | static_cast<unsigned char>(rest[i]);
    }
    rest.remove_prefix(length_bytes);
    if (length > rest.size()) return std::nullopt;
    codes.emplace_back(rest.substr(0, length));
    rest.remove_prefix(length);
  }
  return codes;
}

}  // namespace semel::net

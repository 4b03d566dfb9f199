#include "net/function_store.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "net/text.hpp"

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

std::string library_exists(std::string_view name) {
  return "ERR Library '" + std::string{name} + "' already exists";
}

std::string FunctionStore::new_id() {
  const std::lock_guard lock{mutex_};
  return std::to_string(++ids_);
}

std::optional<std::string> FunctionStore::problem(const ByName& libraries, const Library& library) {
  std::unordered_map<std::string, const LibraryFunction*> ours;
  for (const LibraryFunction& function : library.functions)
    ours.emplace(lower_of(function.name), &function);
  for (const auto& [name, other] : libraries) {
    for (const LibraryFunction& theirs : other->functions) {
      const auto found = ours.find(lower_of(theirs.name));
      if (found != ours.end()) return "ERR Function " + found->second->name + " already exists";
    }
  }
  return std::nullopt;
}

void FunctionStore::take(ByName&& libraries) {
  libraries_ = std::move(libraries);
  functions_.clear();
  for (const auto& [name, library] : libraries_) {
    for (const LibraryFunction& function : library->functions) {
      functions_[lower_of(function.name)] = {library, &function};
    }
  }
  generation_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in generation()
}

std::optional<std::string> FunctionStore::add(const SharedLibrary& library, bool replace) {
  const std::lock_guard lock{mutex_};
  ByName libraries = libraries_;
  if (libraries.contains(library->name)) {
    if (!replace) return library_exists(library->name);
    libraries.erase(library->name);
  }
  if (auto wrong = problem(libraries, *library)) return wrong;
  libraries[library->name] = library;
  take(std::move(libraries));
  return std::nullopt;
}

std::optional<std::string> FunctionStore::restore(const std::vector<SharedLibrary>& restored,
                                                  RestorePolicy policy) {
  const std::lock_guard lock{mutex_};
  ByName libraries = policy == RestorePolicy::flush ? ByName{} : libraries_;
  for (const SharedLibrary& library : restored) {
    if (libraries.contains(library->name)) {
      if (policy != RestorePolicy::replace) {
        return "ERR Library " + library->name + " already exists";
      }
      libraries.erase(library->name);
    }
  }
  for (const SharedLibrary& library : restored) {
    if (auto wrong = problem(libraries, *library)) return wrong;
    libraries[library->name] = library;
  }
  take(std::move(libraries));
  return std::nullopt;
}

bool FunctionStore::remove(std::string_view name) {
  const std::lock_guard lock{mutex_};
  ByName libraries = libraries_;
  const auto found = libraries.find(name);
  if (found == libraries.end()) return false;
  libraries.erase(found);
  take(std::move(libraries));
  return true;
}

void FunctionStore::flush() {
  const std::lock_guard lock{mutex_};
  take({});
}

FunctionStore::Found FunctionStore::find(std::string_view function) const {
  const std::string name = lower_of(function);
  const std::lock_guard lock{mutex_};
  const auto found = functions_.find(name);
  return found == functions_.end() ? Found{} : found->second;
}

std::vector<SharedLibrary> FunctionStore::all() const {
  std::vector<SharedLibrary> found;
  const std::lock_guard lock{mutex_};
  for (const auto& [name, library] : libraries_) found.push_back(library);
  return found;
}

std::size_t FunctionStore::function_count() const {
  const std::lock_guard lock{mutex_};
  return functions_.size();
}

bool FunctionStore::has(std::string_view name) const {
  const std::lock_guard lock{mutex_};
  return libraries_.contains(name);
}

bool FunctionStore::has_id(std::string_view name, std::string_view id) const {
  const std::lock_guard lock{mutex_};
  const auto found = libraries_.find(name);
  return found != libraries_.end() && found->second->id == id;
}

std::string dump_of(const std::vector<SharedLibrary>& libraries) {
  std::string bytes{dump_head};
  for (const SharedLibrary& library : libraries) {
    std::uint64_t length = library->code.size();
    for (std::size_t i = 0; i < length_bytes; ++i, length >>= byte_bits) {
      bytes += static_cast<char>(length & 0xffU);
    }
    bytes += library->code;
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

#include "net/scripts/function_store.hpp"

#include <unordered_set>
#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"
#include "net/resp/reply_error.hpp"
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

Error too_much_code() {
  return reply_error("ERR the code of all libraries would exceed " +
                     std::to_string(FunctionStore::code_bytes_max) + " bytes");
}

Error function_exists(const LibraryFunction& function) {
  return reply_error("ERR Function " + function.name + " already exists");
}

}  // namespace

Error library_exists(std::string_view name) {
  return reply_error("ERR Library '" + std::string{name} + "' already exists");
}

std::string FunctionStore::new_id() {
  const base::MutexLock lock{mutex_};
  return std::to_string(++ids_);
}

Status FunctionStore::check(const Library& library, const Replaced& replaced) const {
  for (const LibraryFunction& function : library.functions) {
    const auto found = functions_.find(base::lower_of(function.name));
    if (found == functions_.end()) continue;
    const std::string& owner = found->second.library->name;
    if (owner == library.name || replaced.contains(owner)) continue;
    return function_exists(function);
  }
  return Done{};
}

void FunctionStore::put(const SharedLibrary& library) {
  drop(library->name);
  for (const LibraryFunction& function : library->functions) {
    functions_[base::lower_of(function.name)] = {library, &function};
  }
  code_bytes_ += library->code.size();
  libraries_[library->name] = library;
}

bool FunctionStore::drop(std::string_view name) {
  const auto found = libraries_.find(name);
  if (found == libraries_.end()) return false;
  for (const LibraryFunction& function : found->second->functions) {
    functions_.erase(base::lower_of(function.name));
  }
  SEMEL_ASSERT(code_bytes_ >= found->second->code.size());
  code_bytes_ -= found->second->code.size();
  libraries_.erase(found);
  generation_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in generation()
  return true;
}

Status FunctionStore::add(const SharedLibrary& library, bool replace) {
  const base::MutexLock lock{mutex_};
  if (!replace && libraries_.contains(library->name)) return library_exists(library->name);
  SEMEL_CHECK(check(*library, {}));
  const auto old = libraries_.find(library->name);
  const std::size_t freed = old == libraries_.end() ? 0 : old->second->code.size();
  if (code_bytes_ - freed + library->code.size() > code_bytes_max) return too_much_code();
  put(library);
  return Done{};
}

Status FunctionStore::restore(const std::vector<SharedLibrary>& libraries, RestorePolicy policy) {
  const base::MutexLock lock{mutex_};
  Replaced replaced;
  if (policy == RestorePolicy::flush) {
    for (const auto& [name, library] : libraries_) replaced.insert(name);
  }
  std::unordered_set<std::string> names;
  std::unordered_set<std::string> functions;
  for (const SharedLibrary& library : libraries) {
    const bool is_there = libraries_.contains(library->name) && !replaced.contains(library->name);
    const bool is_twice = !names.insert(library->name).second;
    if (is_twice || (is_there && policy != RestorePolicy::replace)) {
      return reply_error("ERR Library " + library->name + " already exists");
    }
  }
  // Those that go make room for what comes, in whatever order the bytes name them.
  for (const std::string& name : names) replaced.insert(name);
  for (const SharedLibrary& library : libraries) {
    SEMEL_CHECK(check(*library, replaced));
    for (const LibraryFunction& function : library->functions) {
      if (functions.insert(base::lower_of(function.name)).second) continue;
      return function_exists(function);
    }
  }
  std::size_t bytes = code_bytes_;
  for (const std::string_view name : replaced) {
    const auto old = libraries_.find(name);
    if (old != libraries_.end()) bytes -= old->second->code.size();
  }
  for (const SharedLibrary& library : libraries) bytes += library->code.size();
  if (bytes > code_bytes_max) return too_much_code();
  for (const std::string_view name : replaced) static_cast<void>(drop(name));
  for (const SharedLibrary& library : libraries) put(library);
  return Done{};
}

bool FunctionStore::remove(std::string_view name) {
  const base::MutexLock lock{mutex_};
  return drop(name);
}

void FunctionStore::flush() {
  const base::MutexLock lock{mutex_};
  code_bytes_ = 0;
  libraries_.clear();
  functions_.clear();
  generation_.fetch_add(1, std::memory_order_relaxed);  // mo: relaxed: as in generation()
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

std::size_t FunctionStore::function_count() const {
  const base::MutexLock lock{mutex_};
  return functions_.size();
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

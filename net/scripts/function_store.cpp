#include "net/scripts/function_store.hpp"

#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"

namespace semel::net {

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

Result<LibraryVerdict> FunctionStore::change(const LibraryChange& change,
                                             const std::vector<SharedLibrary>& made) {
  const base::MutexLock one_at_a_time{changing_};
  if (keep_) {
    // Decided by a copy, kept, and only then seen by calls: a call never runs what a restart loses.
    replication::LibraryTable copy = [this] {
      const base::MutexLock lock{mutex_};
      return table_;
    }();
    const LibraryVerdict verdict = copy.change(change);
    if (verdict.fault != LibraryVerdict::Fault::none) return verdict;
    SEMEL_CHECK(keep_(copy.all()));
  }
  return apply(change, made);
}

void FunctionStore::keep_by(Keep keep) {
  const base::MutexLock one_at_a_time{changing_};
  keep_ = std::move(keep);
}

LibraryVerdict FunctionStore::apply(const LibraryChange& change,
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

}  // namespace semel::net

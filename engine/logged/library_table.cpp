#include "engine/logged/library_table.hpp"

#include <algorithm>
#include <utility>

#include "base/ascii.hpp"
#include "base/assert.hpp"

namespace semel::replication {

using Fault = LibraryVerdict::Fault;

bool is_library_name(std::string_view name) noexcept {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return base::is_digit(c) || base::is_letter(c) || c == '_';
  });
}

std::size_t LibraryTable::bytes_of(const LibraryText& library) noexcept {
  std::size_t bytes = library_bytes + library.name.size() + library.code.size();
  for (const LibraryFunction& each : library.functions) {
    bytes += function_bytes + each.name.size();
    if (each.description) bytes += each.description->size();
  }
  return bytes;
}

void LibraryTable::note(std::string_view name, Going& going) {
  const auto found = libraries_.find(name);
  if (found == libraries_.end()) return;
  for (const LibraryFunction& each : found->second->functions) {
    const auto owner = owners_.find(base::lower_of(each.name));
    SEMEL_ASSERT(owner != owners_.end() && owner->second == found->second);
    going.functions.push_back(owner);
  }
  going.libraries.push_back(found);
  going.bytes += bytes_of(*found->second);
}

void LibraryTable::drop(const Going& going) noexcept {
  for (const Owners::iterator each : going.functions) owners_.erase(each);
  for (const Libraries::iterator each : going.libraries) libraries_.erase(each);
  SEMEL_ASSERT(bytes_ >= going.bytes);
  bytes_ -= going.bytes;
}

void LibraryTable::clear() noexcept {
  libraries_.clear();
  owners_.clear();
  bytes_ = 0;
}

LibraryVerdict LibraryTable::remove(std::string_view name) {
  Going going;
  note(name, going);
  drop(going);
  return {going.libraries.empty() ? Fault::no_such : Fault::none, {}};
}

LibraryVerdict LibraryTable::put(const std::vector<SharedLibraryText>& libraries, bool replaces,
                                 bool flushes) {
  Libraries fresh;
  Owners owners;
  Going going;
  std::size_t bytes = 0;
  for (const SharedLibraryText& each : libraries) {
    const bool is_taken = !replaces && !flushes && libraries_.contains(each->name);
    if (is_taken || !fresh.emplace(each->name, each).second) {
      return {Fault::library_exists, each->name};
    }
    bytes += bytes_of(*each);
    // Replaced libraries make room for the new ones, in whatever order the change names them.
    if (replaces) note(each->name, going);
  }
  for (const SharedLibraryText& library : libraries) {
    for (const LibraryFunction& each : library->functions) {
      std::string name = base::lower_of(each.name);
      const auto owner = owners_.find(name);
      const bool is_taken =
          owner != owners_.end() && !flushes && !fresh.contains(owner->second->name);
      if (is_taken || !owners.emplace(std::move(name), library).second) {
        return {Fault::function_exists, each.name};
      }
    }
  }
  const std::size_t left = flushes ? 0 : bytes_ - going.bytes;
  if (bytes > bytes_max || left + bytes > bytes_max) return {Fault::too_many_bytes, {}};
  flushes ? clear() : drop(going);
  libraries_.merge(fresh);
  owners_.merge(owners);
  SEMEL_ASSERT(fresh.empty() && owners.empty());
  bytes_ += bytes;
  return {};
}

LibraryVerdict LibraryTable::change(const LibraryChange& change) {
  using What = LibraryChange::What;
  switch (change.what) {
    case What::load:
    case What::restore:
      return put(change.libraries, false, false);
    case What::load_and_replace:
    case What::restore_and_replace:
      return put(change.libraries, true, false);
    case What::restore_and_flush:
      return put(change.libraries, false, true);
    case What::remove:
      return remove(change.name);
    case What::flush:
      clear();
      break;
  }
  return {};
}

bool LibraryTable::restore(const std::vector<SharedLibraryText>& libraries) {
  SEMEL_ASSERT(libraries_.empty());
  return put(libraries, false, false).fault == Fault::none;
}

std::vector<SharedLibraryText> LibraryTable::all() const {
  std::vector<SharedLibraryText> found;
  found.reserve(libraries_.size());
  for (const auto& [name, library] : libraries_) found.push_back(library);
  return found;
}

}  // namespace semel::replication

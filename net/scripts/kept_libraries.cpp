#include "net/scripts/kept_libraries.hpp"

#include <utility>

#include "net/scripts/function_dump.hpp"
#include "net/scripts/script_thread.hpp"

namespace semel::net {

Status load_libraries(Scripts& scripts, const TickSource& ticks, std::string_view dump) {
  const auto codes = codes_of(dump);
  if (!codes) return Error{ErrorCode::storage_damaged, "it is no dump of functions"};
  if (!codes->empty() && scripts.policy() != ScriptPolicy::any) {
    return Error{ErrorCode::bad_option,
                 "the setting 'scripts' lets no libraries in: set it to 'any'"};
  }
  ScriptThread thread{scripts};
  LibraryChange change{.what = LibraryChange::What::restore_and_flush, .name = {}, .libraries = {}};
  for (const std::string& each : *codes) {
    auto library = thread.make_library(each, ticks);
    if (!library) return Error{ErrorCode::bad_option, library.error().detail};
    change.libraries.push_back((*library)->text);
    thread.forget(*library);
  }
  SEMEL_TRY(verdict, scripts.functions.change(change));
  if (verdict.fault == LibraryVerdict::Fault::none) return Done{};
  return Error{ErrorCode::bad_option, error_of(change.what, verdict)};
}

}  // namespace semel::net

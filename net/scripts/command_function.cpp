// FUNCTION and FCALL.
#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/function_dump.hpp"
#include "net/scripts/script_call.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"
#include "net/session/busy_scripts.hpp"
#include "net/session/group_library.hpp"
#include "net/session/memory_guard.hpp"
#include "net/time/ticks.hpp"

namespace semel::net {
namespace {

constexpr std::int64_t ns_per_ms = 1'000'000;
// Of all libraries of one FUNCTION RESTORE, during which this thread serves no other client.
constexpr std::int64_t restore_ns_max = 5'000 * ns_per_ms;

void fail_words(Call& call) {
  call.fail("ERR unknown subcommand or wrong number of arguments for '" +
            std::string{call.args[1]} + "'. Try FUNCTION HELP.");
}

/// Whether the setting lets libraries in: none is known by its text.
bool takes_libraries(Call& call) {
  if (scripts_are_off(call)) return false;
  if (call.services.scripts.policy() == ScriptPolicy::any) return true;
  call.services.scripts.refused();
  call.fail(
      "ERR functions are not taken: only scripts of the node's catalogue run here, by the setting "
      "'scripts' ('known', or 'auto' on an address that others reach); 'any' lets them in");
  return false;
}

void call_function(Call& call, bool read_only) {
  if (scripts_are_off(call)) return;
  // Another node of the group may have let it in.
  if (call.services.group != nullptr && !takes_libraries(call)) return;
  const FunctionStore::Found found = call.services.scripts.functions.find(call.args[1]);
  if (found.library == nullptr) return call.fail("ERR Function not found");
  const auto key_count = key_count_of(call, "ERR Bad number of keys provided");
  if (!key_count) return;
  const bool only_reads = (found.function->flags & script_no_writes) != 0;
  const bool allows_oom = (found.function->flags & script_allow_oom) != 0;
  const std::string_view refusal = refusal_of_run(call, found.function->flags);
  if (!refusal.empty()) return call.fail(refusal);
  if (read_only && !only_reads) {
    return call.fail("ERR Can not execute a script with write flag using *_ro command.");
  }
  call.client.scripts->run.start(call,
                                 {.library = found.library,
                                  .function = found.function,
                                  .read_only = read_only || only_reads,
                                  .allows_oom = allows_oom},
                                 *key_count);
}

void write_function(RespWriter& reply, const LibraryFunction& function) {
  constexpr std::size_t fields = 3;
  reply.map(fields);
  reply.bulk("name");
  reply.bulk(function.name);
  reply.bulk("description");
  function.description ? reply.bulk(*function.description) : reply.null();
  reply.bulk("flags");
  const std::vector<std::string_view> flags = script_flag_words(function.flags);
  reply.set(flags.size());
  for (const std::string_view word : flags) reply.simple(word);
}

void write_library(RespWriter& reply, const LibraryText& library, bool with_code) {
  constexpr std::size_t fields = 3;
  reply.map(fields + (with_code ? 1 : 0));
  reply.bulk("library_name");
  reply.bulk(library.name);
  reply.bulk("engine");
  reply.bulk("LUA");
  reply.bulk("functions");
  reply.array(library.functions.size());
  for (const LibraryFunction& function : library.functions) write_function(reply, function);
  if (!with_code) return;
  reply.bulk("library_code");
  reply.bulk(library.code);
}

void write_running(Call& call) {
  const auto running = call.services.busy_scripts.function();
  if (running == nullptr) return call.reply.null();
  constexpr std::size_t fields = 3;
  call.reply.map(fields);
  call.reply.bulk("name");
  call.reply.bulk(running->name);
  call.reply.bulk("command");
  call.reply.array(running->words.size());
  for (const std::string& word : running->words) call.reply.bulk(word);
  call.reply.bulk("duration_ms");
  call.reply.integer((call.services.ticks().ns() - running->began_ns) / ns_per_ms);
}

struct Listing {
  std::optional<std::string_view> pattern;
  bool with_code = false;
};

/// None: an error has been written.
std::optional<Listing> read_listing(Call& call) {
  Listing listing;
  for (std::size_t i = 2; i < call.args.size(); ++i) {
    if (!listing.with_code && is_word(call.args[i], "withcode")) {
      listing.with_code = true;
    } else if (!listing.pattern && is_word(call.args[i], "libraryname")) {
      if (++i == call.args.size()) {
        call.fail("ERR library name argument was not given");
        return std::nullopt;
      }
      listing.pattern = call.args[i];
    } else {
      call.fail("ERR Unknown argument " + std::string{call.args[i]});
      return std::nullopt;
    }
  }
  return listing;
}

/// None: an error has been written.
std::optional<LibraryChange::What> read_policy(Call& call) {
  if (call.args.size() == 3) return LibraryChange::What::restore;
  if (is_word(call.args[3], "append")) return LibraryChange::What::restore;
  if (is_word(call.args[3], "replace")) return LibraryChange::What::restore_and_replace;
  if (is_word(call.args[3], "flush")) return LibraryChange::What::restore_and_flush;
  call.fail("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  return std::nullopt;
}

// --- changes -------------------------------------------------------------------------------------

void reply_to_change(Call& call, const LibraryChange& change, const LibraryVerdict& verdict) {
  using What = LibraryChange::What;
  if (verdict.fault != LibraryVerdict::Fault::none) {
    return call.fail(error_of(change.what, verdict));
  }
  const bool is_load = change.what == What::load || change.what == What::load_and_replace;
  is_load ? call.reply.bulk(change.libraries.front()->name) : call.reply.ok();
}

/// The second call of a change that the group decides. False: there is more to do.
bool is_decided(Call& call) {
  const GroupLibrary* const library = call.context().library;
  if (library == nullptr || !library->is_decided) return false;
  if (!library->error.empty()) {
    call.fail(library->error);
  } else {
    reply_to_change(call, library->change, library->verdict);
  }
  return true;
}

/// `made`: of the change's libraries, as this thread has compiled them.
void change_libraries(Call& call, LibraryChange change,
                      const std::vector<SharedLibrary>& made = {}) {
  const auto forget = [&] {
    for (const SharedLibrary& each : made) call.client.scripts->thread.forget(each);
  };
  if (call.context().library != nullptr) {
    forget();  // each node compiles what it calls
    call.context().library->change = std::move(change);
    return;
  }
  if (call.services.group != nullptr) {
    forget();
    return call.fail("ERR in a group the libraries of functions are not changed in this way");
  }
  const auto verdict = call.services.scripts.functions.change(change, made);
  if (!verdict || verdict->fault != LibraryVerdict::Fault::none) forget();
  if (!verdict) return call.fail(verdict.error());
  reply_to_change(call, change, *verdict);
}

/// Before its code is run, as in Redis. Of a group only its log knows.
bool is_taken(const Call& call, std::string_view code, std::string& name) {
  if (call.services.group != nullptr) return false;
  const Result<LibraryHead> head = read_library_head(code);
  if (!head.ok() || !is_word(head->engine, "lua")) return false;
  name = head->name;
  return call.services.scripts.functions.has(name);
}

}  // namespace

namespace handlers {

void fcall(Call& call) {
  call_function(call, false);
}
void fcall_ro(Call& call) {
  call_function(call, true);
}

void function_load(Call& call) {
  if (is_decided(call)) return;
  LibraryChange change;
  const std::size_t last = call.args.size() - 1;
  for (std::size_t i = 2; i < last; ++i) {
    if (!is_word(call.args[i], "replace")) {
      return call.fail("ERR Unknown option given: " + std::string{call.args[i]});
    }
    change.what = LibraryChange::What::load_and_replace;
  }
  if (!takes_libraries(call)) return;
  const bool replaces = change.what == LibraryChange::What::load_and_replace;
  if (std::string name; !replaces && is_taken(call, call.args[last], name)) {
    return call.fail(error_of(change.what, {LibraryVerdict::Fault::library_exists, name}));
  }
  const Result<SharedLibrary> library =
      call.client.scripts->thread.make_library(call.args[last], call.services.ticks());
  if (!library) return call.fail(library.error().detail);
  change.libraries.push_back((*library)->text);
  change_libraries(call, std::move(change), {*library});
}

void function_list(Call& call) {
  const auto listing = read_listing(call);
  if (!listing) return;
  std::vector<SharedLibrary> libraries = call.services.scripts.functions.all();
  if (listing->pattern) {
    const std::string pattern = base::lower_of(*listing->pattern);
    std::erase_if(libraries, [&](const SharedLibrary& library) {
      return !glob_match(pattern, base::lower_of(library->name()));
    });
  }
  call.reply.array(libraries.size());
  for (const SharedLibrary& library : libraries) {
    write_library(call.reply, *library->text, listing->with_code);
  }
}

void function_stats(Call& call) {
  if (call.services.busy_scripts.any() && call.services.busy_scripts.function() == nullptr) {
    return call.fail(call.services.busy_scripts.text());
  }
  call.reply.map(2);
  call.reply.bulk("running_script");
  write_running(call);
  call.reply.bulk("engines");
  call.reply.map(1);
  call.reply.bulk("LUA");
  call.reply.map(2);
  call.reply.bulk("libraries_count");
  const FunctionStore::Totals totals = call.services.scripts.functions.totals();
  call.reply.integer(static_cast<std::int64_t>(totals.libraries));
  call.reply.bulk("functions_count");
  call.reply.integer(static_cast<std::int64_t>(totals.functions));
}

void function_delete(Call& call) {
  if (is_decided(call)) return;
  change_libraries(
      call,
      {.what = LibraryChange::What::remove, .name = std::string{call.args[2]}, .libraries = {}});
}

void function_flush(Call& call) {
  if (is_decided(call)) return;
  if (call.args.size() > 3) return fail_words(call);
  if (call.args.size() == 3 && !is_word(call.args[2], "async") && !is_word(call.args[2], "sync")) {
    return call.fail("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  change_libraries(call, {.what = LibraryChange::What::flush, .name = {}, .libraries = {}});
}

void function_kill(Call& call) {
  const Status killed = call.services.busy_scripts.kill(ScriptKind::function);
  killed ? call.reply.ok() : call.fail(killed.error().detail);
}

void function_dump(Call& call) {
  call.reply.bulk(dump_of(call.services.scripts.functions.all()));
}

void function_restore(Call& call) {
  if (is_decided(call)) return;
  if (call.args.size() > 4) return fail_words(call);
  const auto policy = read_policy(call);
  if (!policy || !takes_libraries(call)) return;
  const auto codes = codes_of(call.args[2]);
  if (!codes) return call.fail(codes.error().detail);
  LibraryChange change{.what = *policy, .name = {}, .libraries = {}};
  std::vector<SharedLibrary> made;
  const auto give_up = [&](std::string_view error) {
    for (const SharedLibrary& each : made) call.client.scripts->thread.forget(each);
    call.fail(error);
  };
  const std::int64_t began_ns = call.services.ticks().ns();
  for (const std::string& code : *codes) {
    if (call.services.ticks().ns() - began_ns > restore_ns_max) {
      return give_up("ERR the libraries' code ran for longer than " +
                     std::to_string(restore_ns_max / ns_per_ms) + " ms");
    }
    Result<SharedLibrary> library =
        call.client.scripts->thread.make_library(code, call.services.ticks());
    if (!library) return give_up(library.error().detail);
    change.libraries.push_back((*library)->text);
    made.push_back(*std::move(library));
  }
  change_libraries(call, std::move(change), made);
}

}  // namespace handlers
}  // namespace semel::net

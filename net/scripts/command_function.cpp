// FUNCTION and FCALL.
#include <algorithm>
#include <array>

#include "base/ascii.hpp"
#include "net/commands/busy_scripts.hpp"
#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/scripts/script_call.hpp"
#include "net/scripts/script_host.hpp"
#include "net/scripts/scripts.hpp"
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

void call_function(Call& call, bool read_only) {
  if (scripts_are_off(call)) return;
  const FunctionStore::Found found = call.services.scripts.functions.find(call.args[1]);
  if (found.library == nullptr) return call.fail("ERR Function not found");
  const auto key_count = key_count_of(call, "ERR Bad number of keys provided");
  if (!key_count) return;
  const bool only_reads = (found.function->flags & script_no_writes) != 0;
  if (read_only && !only_reads) {
    return call.fail("ERR Can not execute a script with write flag using *_ro command.");
  }
  call.client.scripts->run.start(
      call,
      {.library = found.library, .function = found.function, .read_only = read_only || only_reads},
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
  reply.set(function.flag_words.size());
  for (const std::string& word : function.flag_words) reply.simple(word);
}

void write_library(RespWriter& reply, const Library& library, bool with_code) {
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
std::optional<RestorePolicy> read_policy(Call& call) {
  if (call.args.size() == 3) return RestorePolicy::append;
  if (is_word(call.args[3], "append")) return RestorePolicy::append;
  if (is_word(call.args[3], "replace")) return RestorePolicy::replace;
  if (is_word(call.args[3], "flush")) return RestorePolicy::flush;
  call.fail("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.");
  return std::nullopt;
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

}  // namespace

namespace handlers {

void fcall(Call& call) {
  call_function(call, false);
}
void fcall_ro(Call& call) {
  call_function(call, true);
}

void function_load(Call& call) {
  bool replaces = false;
  const std::size_t last = call.args.size() - 1;
  for (std::size_t i = 2; i < last; ++i) {
    if (!is_word(call.args[i], "replace")) {
      return call.fail("ERR Unknown option given: " + std::string{call.args[i]});
    }
    replaces = true;
  }
  if (!takes_libraries(call)) return;
  const Result<SharedLibrary> library =
      call.client.scripts->thread.make_library(call.args[last], !replaces, call.services.ticks());
  if (!library) return call.fail(library.error().detail);
  const Status added = call.services.scripts.functions.add(*library, replaces);
  added ? call.reply.bulk((*library)->name) : call.fail(added.error().detail);
}

void function_list(Call& call) {
  const auto listing = read_listing(call);
  if (!listing) return;
  std::vector<SharedLibrary> libraries = call.services.scripts.functions.all();
  if (listing->pattern) {
    const std::string pattern = base::lower_of(*listing->pattern);
    std::erase_if(libraries, [&](const SharedLibrary& library) {
      return !glob_match(pattern, base::lower_of(library->name));
    });
  }
  call.reply.array(libraries.size());
  for (const SharedLibrary& library : libraries) {
    write_library(call.reply, *library, listing->with_code);
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
  call.reply.integer(static_cast<std::int64_t>(call.services.scripts.functions.all().size()));
  call.reply.bulk("functions_count");
  call.reply.integer(static_cast<std::int64_t>(call.services.scripts.functions.function_count()));
}

void function_delete(Call& call) {
  if (!call.services.scripts.functions.remove(call.args[2])) {
    return call.fail("ERR Library not found");
  }
  call.reply.ok();
}

void function_flush(Call& call) {
  if (call.args.size() > 3) return fail_words(call);
  if (call.args.size() == 3 && !is_word(call.args[2], "async") && !is_word(call.args[2], "sync")) {
    return call.fail("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
  }
  call.services.scripts.functions.flush();
  call.reply.ok();
}

void function_kill(Call& call) {
  const Status killed = call.services.busy_scripts.kill(ScriptKind::function);
  killed ? call.reply.ok() : call.fail(killed.error().detail);
}

void function_dump(Call& call) {
  call.reply.bulk(dump_of(call.services.scripts.functions.all()));
}

void function_restore(Call& call) {
  if (call.args.size() > 4) return fail_words(call);
  const auto policy = read_policy(call);
  if (!policy || !takes_libraries(call)) return;
  const auto codes = codes_of(call.args[2]);
  if (!codes) return call.fail("ERR DUMP payload version or checksum are wrong");
  std::vector<SharedLibrary> libraries;
  const std::int64_t began_ns = call.services.ticks().ns();
  for (const std::string& code : *codes) {
    if (call.services.ticks().ns() - began_ns > restore_ns_max) {
      return call.fail("ERR the libraries' code ran for longer than " +
                       std::to_string(restore_ns_max / ns_per_ms) + " ms");
    }
    Result<SharedLibrary> library =
        call.client.scripts->thread.make_library(code, false, call.services.ticks());
    if (!library) return call.fail(library.error().detail);
    libraries.push_back(*std::move(library));
  }
  const Status restored = call.services.scripts.functions.restore(libraries, *policy);
  restored ? call.reply.ok() : call.fail(restored.error().detail);
}

}  // namespace handlers
}  // namespace semel::net

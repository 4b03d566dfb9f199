#include "tools/semel/dedup/dedup_command.hpp"

#include "tools/semel/dedup/dedup.hpp"
#include "tools/semel/dedup/dedup_options.hpp"
#include "tools/semel/dedup/dedup_resolver.hpp"
#include "tools/semel/shared/output.hpp"

namespace semel::tool {

Exit DedupCommand::run() const {
  DedupOptions options;
  if (const Status resolved = DedupResolver{*app_, flags_}.resolve(options); !resolved) {
    print_error("semel dedup: {}\nTry 'semel dedup --help'.\n", resolved.error().detail);
    return Exit::usage;
  }
  return run_dedup(options);
}

}  // namespace semel::tool

#include "engine/core/core_update.hpp"

namespace semel::engine {

ErrorCode decide_any_at(Core& core, Operation& operation, const KeyLocation& location, KeyRef key,
                        Timestamp& now, DecideRef decide, Version& version, MutationSink* sink,
                        const TableProbe& first) {
  return decide_at(core, operation, location, key, now, decide, version, sink, first);
}

ErrorCode update(Core& core, KeyRef key, Timestamp& now, DecideRef decide, Version& version) {
  return update_inline(core, key, now, decide, version);
}

ErrorCode update_exclusive(Core& core, KeyRef key, Timestamp now, DecideRef decide,
                           Version& version, MutationSink& sink) {
  if (const ErrorCode bad = core.keys().check(key.db, key.key); bad != ErrorCode::ok) [[unlikely]]
    return bad;
  // The section keeps others out, but memory is still given back by epochs.
  Operation operation{core, core.context()};
  const KeyLocation location = core.keys().location_of(key);
  return decide_any_at(core, operation, location, key, now, decide, version, &sink);
}

}  // namespace semel::engine

#include "tools/semel/node/node_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "base/file_text.hpp"
#include "net/claims/claim_spaces.hpp"
#include "net/settings/memory_plan.hpp"
#include "net/stats/process_facts.hpp"
#include "tools/semel/node/node_options.hpp"
#include "tools/semel/shared/exit_code.hpp"

namespace semel::tool {
namespace {

using net::Setting;

/// The limit up to which CONFIG SET can raise maxmemory: the memory of the machine.
std::size_t memory_room(std::size_t memory_bytes) {
  const std::uint64_t machine = net::process_facts().system_memory_bytes;
  return std::clamp<std::size_t>(machine, memory_bytes, limits::memory_bytes_max);
}

}  // namespace

NodeEngine::NodeEngine(const net::Settings& settings, const std::string& file,
                       const Clock& system_clock)
    : settings_(settings), file_(file), system_clock_(system_clock), group_(settings) {}

const Clock& NodeEngine::clock() const noexcept {
  if (held_clock_) return *held_clock_;
  return system_clock_;
}

// --- opening --------------------------------------------------------------------------------

Options NodeEngine::options() const {
  const std::size_t memory_bytes = net::memory_plan_of(settings_).arena_bytes;
  const auto log_bytes = static_cast<std::size_t>(settings_.integer(Setting::decision_log_size));
  return {.clock = &clock(),
          .memory_bytes = memory_bytes,
          .value_bytes_max = limits::value_bytes_max,
          .decision_log_bytes = std::min(log_bytes, memory_bytes / 16),
          .counts_by_namespace = true,
          .shard_count = static_cast<unsigned>(settings_.integer(Setting::shards)),
          .background = std::nullopt};  // the Ticker's
}

void NodeEngine::prepare() {
  if (settings_.boolean(Setting::test_clock)) {
    test_clock_ = std::make_unique<net::TestClock>(system_clock_);
  }
  held_clock_.emplace(test_clock_.get());
  const Clock& under = test_clock_ == nullptr ? system_clock_ : *test_clock_;
  storage_ = std::make_unique<NodeStorage>(settings_, file_, under);
}

Status NodeEngine::open_alone() {
  prepare();
  return open_own(options());
}

Status NodeEngine::open(net::Log& log) {
  prepare();
  Options of_engine = options();
  if (settings_.boolean(Setting::storage_enabled)) {
    SEMEL_CHECK(storage_->open(of_engine));
    level_ = of_engine.durability;
    // Callers of `synced` are answered after the sync; the thread that serves them continues.
    if (level_ > Durability::logged) of_engine.durability = Durability::logged;
  }
  if (!group_.is_wanted()) return open_own(std::move(of_engine));
  SEMEL_CHECK(group_.open(of_engine, [&log](const net::NodeGroup::Event& event) {
    log.add(event.is_warning ? net::LogLevel::warning : net::LogLevel::notice, event.name,
            {{"term", event.term}, {"text", event.text}});
  }));
  engine_ = &group_.engine();
  return Done{};
}

Status NodeEngine::open_own(Options options) {
  if (!group_.is_wanted()) options.memory_room_bytes = memory_room(options.memory_bytes);
  auto opened = Engine::open(options);
  if (!opened && opened.error().code == ErrorCode::out_of_address_space) {
    options.memory_room_bytes = 0;  // CONFIG SET can only lower maxmemory then
    opened = Engine::open(options);
  }
  if (!opened) return with_whole_text(opened.error());
  memory_bytes_max_ = std::max(options.memory_bytes, options.memory_room_bytes);
  own_engine_ = *std::move(opened);
  engine_ = own_engine_.get();
  return Done{};
}

/// A limit may be too small for the tables of the shards: an engine opened with it reports that.
Status NodeEngine::check_memory() const {
  if (own_engine_ == nullptr) return Done{};  // a group's engine refuses every change
  const Options wanted = options();
  const net::MemoryPlan plan = net::memory_plan_of(settings_);
  if (plan.limit_bytes > memory_bytes_max_) {
    return Error{ErrorCode::bad_option,
                 fmt::format("the node reserved addresses for {} bytes when it started, which is "
                             "the memory of the machine or what maxmemory was, if that is more; "
                             "for more, set it in the file and start the node anew",
                             memory_bytes_max_)};
  }
  if (plan.counts || wanted.memory_bytes >= own_engine_->stats().bytes_limit) return Done{};
  const auto trial = Engine::open(wanted);
  if (trial || trial.error().code != ErrorCode::bad_option) return Done{};
  return Error{ErrorCode::bad_option,
               "no node would start with it: " + trial.error().detail + "; shards is fixed"};
}

// --- recovery and namespaces ----------------------------------------------------------------

Status NodeEngine::recover(NodeWatch& watch) {
  if (!storage().is_open()) return Done{};
  watch.recovers(settings_.text(Setting::dir));
  SEMEL_TRY(report, storage_->recover(*engine_, [&watch](const RecoveryProgress& progress) {
    watch.recovering(progress);
  }));
  watch.recovered(report);
  SEMEL_CHECK(check_databases());
  return import_namespaces();
}

/// As redis-server: refuses a start with keys that no client could select.
Status NodeEngine::check_databases() const {
  const std::int64_t count = settings_.integer(Setting::databases);
  for (auto db = static_cast<std::size_t>(count); db < limits::db_count; ++db) {
    const std::uint64_t keys = engine_->size(static_cast<std::uint8_t>(db));
    if (keys == 0) continue;
    return usage_error(
        fmt::format("databases is {}, but there are {} keys in database {}: set "
                    "databases to {} or more",
                    count, keys, db, db + 1));
  }
  return Done{};
}

/// Release 0.1 kept namespaces in a file of their own. It is imported, synced and renamed, so that
/// a namespace that is dropped later does not return with the next start.
Status NodeEngine::import_namespaces() {
  const std::string path = settings_.text(Setting::dir) + "/namespaces";
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return Done{};
  const std::optional<std::string> text = base::read_file(path);
  if (!text) return file_error(path + " cannot be read");
  if (const Status imported = net::import_namespaces(*engine_, *text); !imported) {
    return file_error(path + ", " + imported.error().detail);
  }
  if (const Status synced = engine_->confirm(Durability::synced); !synced) {
    return file_error(path + ": " + synced.error().message());
  }
  std::filesystem::rename(path, path + ".imported", code);
  if (code) return file_error(path + " cannot be renamed: " + code.message());
  return Done{};
}

Status NodeEngine::check_declared(const std::vector<net::DeclaredNamespace>& declared) const {
  if (!group_.is_wanted() || declared.empty()) return Done{};
  return usage_error(declared.front().location +
                     ": in a group namespaces are declared with SEMEL.NAMESPACE");
}

Status NodeEngine::declare(const std::vector<net::DeclaredNamespace>& declared, NodeWatch& watch) {
  for (const net::DeclaredNamespace& space : declared) {
    const Result<Claims> claims = engine().claims(space.name, space.policy);
    if (claims) continue;
    const Error* error = &claims.error();
    Result<std::string> changed{std::string{}};
    if (error->code == ErrorCode::namespace_differs) {
      changed = engine().change_namespace(space.name, space.policy);
      if (changed) {
        watch.log().add(net::LogLevel::notice, "namespace changed",
                        {{"name", space.name}, {"by", space.location}, {"changed", *changed}});
        continue;
      }
      error = &changed.error();
    }
    return usage_error(space.location + ": namespace '" + space.name + "': " + error->detail);
  }
  return Done{};
}

}  // namespace semel::tool

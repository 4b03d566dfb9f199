#include "net/scripts/script_admission.hpp"

#include "base/assert.hpp"
#include "net/commands/access.hpp"
#include "net/session/memory_guard.hpp"
#include "net/session/node_role.hpp"

namespace semel::net {

void ScriptAdmission::begin(const Services& services, const ClientState& client,
                            Rules rules) noexcept {
  services_ = &services;
  client_ = &client;
  rules_ = rules;
  has_written_ = false;
}

void ScriptAdmission::refuse(const CommandRow* row, std::string_view text,
                             std::string& reply) const {
  const std::size_t before = reply.size();
  RespWriter{reply, Resp::two}.error(text);
  StatsLane* const lane = client_->lane;
  if (lane == nullptr) return;
  lane->rejected(row == nullptr ? StatsLane::no_command : index_of(*row),
                 std::string_view{reply}.substr(before));
}

/// Commands that would be replicated are writes too.
bool ScriptAdmission::is_write_refused(const CommandRow& row) const noexcept {
  return rules_.read_only && (row.is(flag_write) || row.is(flag_may_replicate) ||
                              row.has(fact_publishes) || row.has(fact_caches));
}

bool ScriptAdmission::admit(Call& call, std::string& reply) {
  SEMEL_ASSERT(services_ == &call.services && client_ == &call.client);
  const CommandRow* row = find_command(call.args[0]);
  if (row != nullptr && is_container(*row) && call.args.size() > 1) {
    row = find_subcommand(*row, call.args[1]);
  }
  const auto refused = [&](std::string_view text) {
    refuse(row, text, reply);
    return false;
  };
  if (row == nullptr) return refused("ERR Unknown Redis command called from script");
  if (!row->takes(call.args.size())) {
    return refused("ERR Wrong number of args calling Redis command from script");
  }
  if (!scripts_.allows(*row)) {
    return refused("ERR This Redis command is not allowed from script");
  }
  call.row = row;
  if (const Status allowed = may_run_in_script(call); !allowed) {
    return refused(allowed.error().detail);
  }
  if (is_write_refused(*row)) {
    return refused("ERR Write commands are not allowed from read-only scripts.");
  }
  if (services_->role.follows()) [[unlikely]] {
    const std::string_view reason = refusal_of_write(call);
    if (!reason.empty()) return refused(reason);
    if (!row->is(flag_stale) && lacks_master(call)) {
      return refused("ERR Can not execute the command on a stale replica");
    }
  }
  // Once a script has written it may end what it has begun, as in redis-server.
  if (client_->out_of_memory && row->is(flag_denyoom) && !has_written_ && !rules_.allows_oom) {
    return refused(out_of_memory_text);
  }
  has_written_ |= row->is(flag_write) && !rules_.is_trial;
  return true;
}

}  // namespace semel::net

// CLIENT TRACKING, and the subcommands about it.
#include <algorithm>
#include <optional>
#include <set>

#include "net/commands/handlers.hpp"
#include "net/resp/text.hpp"
#include "net/session/clients.hpp"
#include "net/session/tracking.hpp"

namespace semel::net {
namespace {

struct TrackingRequest {
  TrackingOptions options{};
  std::vector<std::string_view> prefixes{};
};

/// False: an error has been written.
bool read_redirect(Call& call, std::string_view word, TrackingOptions& options) {
  const auto fail = [&](std::string_view text) {
    call.fail(text);
    return false;
  };
  if (options.redirect != 0) return fail("ERR A client can only redirect to a single other client");
  const auto id = integer_of(word);
  if (!id) {
    call.fail_number();
    return false;
  }
  options.redirect = static_cast<std::uint64_t>(*id);
  if (*id > 0 && call.services.clients.find(options.redirect) != nullptr) return true;
  return fail("ERR The client ID you want redirect to does not exist");
}

/// None: an error has been written.
std::optional<TrackingRequest> read_tracking(Call& call) {
  TrackingRequest request;
  for (std::size_t i = 3; i < call.args.size(); ++i) {
    const std::string_view word = call.args[i];
    const bool has_value = i + 1 < call.args.size();
    if (is_word(word, "redirect") && has_value) {
      if (!read_redirect(call, call.args[++i], request.options)) return std::nullopt;
    } else if (is_word(word, "prefix") && has_value) {
      request.prefixes.push_back(call.args[++i]);
    } else if (is_word(word, "bcast")) {
      request.options.broadcasts = true;
    } else if (is_word(word, "optin")) {
      request.options.opts_in = true;
    } else if (is_word(word, "optout")) {
      request.options.opts_out = true;
    } else if (is_word(word, "noloop")) {
      request.options.no_loop = true;
    } else {
      call.fail_syntax();
      return std::nullopt;
    }
  }
  return request;
}

/// The error of options that exclude each other, or those before; empty: none.
std::string_view tracking_conflict(const TrackingRequest& request, const Tracker* present) {
  const TrackingOptions& options = request.options;
  if (!options.broadcasts && !request.prefixes.empty()) {
    return "ERR PREFIX option requires BCAST mode to be enabled";
  }
  if (present != nullptr && present->options.broadcasts != options.broadcasts) {
    return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  if (options.broadcasts && (options.opts_in || options.opts_out)) {
    return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  }
  if (options.opts_in && options.opts_out) {
    return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  }
  if (present != nullptr && ((options.opts_in && present->options.opts_out) ||
                             (options.opts_out && present->options.opts_in))) {
    return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  return {};
}

bool prefixes_overlap(std::string_view one, std::string_view other) noexcept {
  return one.starts_with(other) || other.starts_with(one);
}

std::string overlap_error(std::string_view prefix, std::string_view with, std::string_view other) {
  std::string text = "ERR Prefix '";
  text.append(prefix).append("' overlaps with ").append(with).append(" '").append(other);
  return text += "'. Prefixes for a single client must not overlap.";
}

/// The error of prefixes that overlap; empty: none.
std::string prefix_overlap(const std::vector<std::string_view>& prefixes, const Tracker* present) {
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const std::string_view prefix = prefixes[i];
    if (present != nullptr) {
      for (const std::string& other : present->prefixes) {
        if (prefixes_overlap(prefix, other))
          return overlap_error(prefix, "an existing prefix", other);
      }
    }
    for (std::size_t j = i + 1; j < prefixes.size(); ++j) {
      if (prefixes_overlap(prefix, prefixes[j])) {
        return overlap_error(prefix, "another provided prefix", prefixes[j]);
      }
    }
  }
  return {};
}

/// The error of prefixes beyond the limits; empty: none.
std::string prefix_excess(const std::vector<std::string_view>& prefixes, const Tracker* present) {
  std::size_t count = prefixes.size() + (present == nullptr ? 0 : present->prefixes.size());
  std::size_t bytes = present == nullptr ? 0 : present->prefix_bytes;
  for (const std::string_view prefix : prefixes) bytes += prefix.size();
  if (count > Tracking::prefixes_max) {
    return "ERR a client would have " + std::to_string(count) + " prefixes, the limit is " +
           std::to_string(Tracking::prefixes_max);
  }
  if (bytes > Tracking::prefix_bytes_max) {
    return "ERR the prefixes of a client would have " + std::to_string(bytes) +
           " bytes, the limit is " + std::to_string(Tracking::prefix_bytes_max);
  }
  return {};
}

void enable_tracking(Call& call, const TrackingRequest& request) {
  std::shared_ptr<Tracker>& tracker = call.client.tracker;
  if (const std::string_view error = tracking_conflict(request, tracker.get()); !error.empty()) {
    return call.fail(error);
  }
  if (const std::string error = prefix_excess(request.prefixes, tracker.get()); !error.empty()) {
    return call.fail(error);
  }
  if (const std::string error = prefix_overlap(request.prefixes, tracker.get()); !error.empty()) {
    return call.fail(error);
  }
  // A transaction holds a section over everything already.
  std::optional<Section> section;
  if (tracker == nullptr && !call.context().is_part()) {
    auto all = call.engine.section({});
    if (!all) return call.fail(all.error());
    section.emplace(std::move(*all));
  }
  call.services.tracking.enable(tracker, call.client.handle, request.options, request.prefixes);
  call.client.push_directly();
  call.reply.ok();
}

}  // namespace

namespace handlers {

void client_tracking(Call& call) {
  // What the log of a group runs is not of the connection that asked.
  if (call.context().applies_log()) {
    return call.fail("ERR CLIENT TRACKING is not allowed in a transaction of a group");
  }
  const std::optional<TrackingRequest> request = read_tracking(call);
  if (!request) return;
  if (is_word(call.args[2], "on")) return enable_tracking(call, *request);
  if (!is_word(call.args[2], "off")) return call.fail_syntax();
  call.services.tracking.disable(call.client.tracker);
  call.reply.ok();
}

void client_caching(Call& call) {
  Tracker* const tracker = call.client.tracker.get();
  if (tracker == nullptr) {
    return call.fail(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  if (is_word(call.args[2], "yes")) {
    if (!tracker->options.opts_in) {
      return call.fail(
          "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    }
  } else if (is_word(call.args[2], "no")) {
    if (!tracker->options.opts_out) {
      return call.fail(
          "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    }
  } else {
    return call.fail_syntax();
  }
  tracker->caching = true;
  call.reply.ok();
}

void client_getredir(Call& call) {
  const Tracker* const tracker = call.client.tracker.get();
  call.reply.integer(tracker == nullptr ? -1
                                        : static_cast<std::int64_t>(tracker->options.redirect));
}

void client_trackinginfo(Call& call) {
  const Tracker* const tracker = call.client.tracker.get();
  std::vector<std::string_view> flags{tracker == nullptr ? "off" : "on"};
  const auto add = [&](bool is_set, std::string_view flag) {
    if (is_set) flags.push_back(flag);
  };
  if (tracker != nullptr) {
    const TrackingOptions& options = tracker->options;
    add(options.broadcasts, "bcast");
    add(options.opts_in, "optin");
    add(options.opts_in && tracker->caching, "caching-yes");
    add(options.opts_out, "optout");
    add(options.opts_out && tracker->caching, "caching-no");
    add(options.no_loop, "noloop");
    // mo: relaxed: shown to people.
    add(tracker->handle->shown.redirect_broken.load(std::memory_order_relaxed), "broken_redirect");
  }
  constexpr std::size_t fields = 3;
  call.reply.map(fields);
  call.reply.bulk("flags");
  call.reply.set(flags.size());
  for (const std::string_view flag : flags) call.reply.bulk(flag);
  call.reply.bulk("redirect");
  client_getredir(call);
  call.reply.bulk("prefixes");
  call.reply.array(tracker == nullptr ? 0 : tracker->prefixes.size());
  if (tracker == nullptr) return;
  for (const std::string& prefix : tracker->prefixes) call.reply.bulk(prefix);
}

}  // namespace handlers
}  // namespace semel::net

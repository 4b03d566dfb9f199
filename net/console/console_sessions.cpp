#include "net/console/console_sessions.hpp"

#include <algorithm>
#include <utility>

#include "base/hex.hpp"
#include "base/random.hpp"

namespace semel::net {

Timestamp ConsoleSession::ends() const noexcept {
  return std::min(used + console_limits::session_idle_max,
                  began + console_limits::session_life_max);
}

std::string random_secret() {
  std::array<std::uint8_t, 32> bytes{};
  base::fill_random(bytes);
  return base::hex_of(bytes);
}

std::optional<ConsoleSessions::Opened> ConsoleSessions::open(ConsoleSession as, Timestamp now) {
  Opened opened;
  opened.ended = end_if([&](const ConsoleSession& each) { return each.ends() <= now; });
  std::vector<const ConsoleSession*> of_user;
  for (const auto& session : sessions_) {
    if (session->user == as.user) of_user.push_back(session.get());
  }
  if (of_user.size() >= console_limits::sessions_per_user_max) {
    const ConsoleSession* const idlest =
        *std::min_element(of_user.begin(), of_user.end(),
                          [](const auto* a, const auto* b) { return a->used < b->used; });
    for (ConsoleSession& each : end_if([&](const auto& session) { return &session == idlest; })) {
      opened.ended.push_back(std::move(each));
    }
  }
  if (sessions_.size() >= console_limits::sessions_max) return std::nullopt;
  opened.secret = random_secret();
  as.digest = hash_of_password(opened.secret);
  as.csrf_token = random_secret();
  as.id = next_id_++;
  as.began = now;
  as.used = now;
  sessions_.push_back(std::make_unique<ConsoleSession>(std::move(as)));
  opened.session = sessions_.back().get();
  return opened;
}

ConsoleSession* ConsoleSessions::use(std::string_view secret, Timestamp now) {
  ConsoleSession* const found = find(secret, now);
  if (found != nullptr) found->used = now;
  return found;
}

ConsoleSession* ConsoleSessions::find(std::string_view secret, Timestamp now) const {
  if (secret.empty()) return nullptr;
  const PasswordHash digest = hash_of_password(secret);
  for (const auto& session : sessions_) {
    if (session->digest != digest) continue;
    return session->ends() <= now ? nullptr : session.get();
  }
  return nullptr;
}

ConsoleSession* ConsoleSessions::find(std::uint64_t id) const noexcept {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& session) { return session->id == id; });
  return found == sessions_.end() ? nullptr : found->get();
}

}  // namespace semel::net

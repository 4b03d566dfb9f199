// Guarded requests: buffer, claim, forward, record, reply. See session.hpp.
#include <algorithm>
#include <charconv>
#include <utility>

#include "gateway/proxy/session.hpp"
#include "gateway/rules/work_key.hpp"

namespace semel::gateway {
namespace {

/// Whether the request has a claim that must be ended.
bool is_owned(const Work& work) noexcept {
  return work.is_claimed && work.route->guard != Guard::debounce;
}

/// Fields for the first client alone: a duplicate would get an old session, or, if clients share
/// their keys, another client's session.
bool is_of_one_client(const Field& field) noexcept {
  return equal_names(field.name, "Set-Cookie") || equal_names(field.name, "Date");
}

/// Drops the length; a record has it only for a reply to HEAD.
std::vector<Field> fields_of(const RecordedReply& reply) {
  std::vector<Field> fields;
  for (const auto& [name, value] : reply.fields) {
    if (!equal_names(name, "Content-Length")) fields.push_back({name, value});
  }
  return fields;
}

Framing framing_of(const RecordedReply& reply, bool is_head) {
  constexpr unsigned no_content = 204;
  constexpr unsigned not_modified = 304;
  if (reply.status == no_content || reply.status == not_modified) return {};
  Framing framing{Framing::Kind::length, reply.body.size()};
  if (!is_head || !reply.body.empty()) return framing;
  // The upstream has announced the length of the body, or nothing.
  for (const auto& [name, value] : reply.fields) {
    if (!equal_names(name, "Content-Length")) continue;
    const char* const end = value.data() + value.size();
    const auto [read_to, error] = std::from_chars(value.data(), end, framing.length);
    if (error == std::errc{} && read_to == end) return framing;
  }
  return {};
}

}  // namespace

asio::awaitable<std::optional<Refusal>> Session::read_body(Incoming& in, CountedText& body) {
  const std::size_t limit = in.route->body_bytes;
  const Refusal too_large{Outcome::body_too_large,
                          "this route takes bodies of up to " + std::to_string(limit) + " bytes"};
  const auto length = in.parser.content_length();
  if (length && *length > limit) co_return too_large;
  if (in.expects_continue && !in.parser.is_done() && client_.unread().empty()) {
    const bool is_sent = co_await client_.send("HTTP/1.1 100 Continue\r\n\r\n");
    if (!is_sent) co_return Refusal{Outcome::bad_request, "the client has gone"};
  }
  std::string room(body_step_bytes, '\0');
  const base::Stopwatch since;
  const std::size_t size_max = length ? static_cast<std::size_t>(*length) : limit + body_step_bytes;
  while (!in.parser.is_done()) {
    if (!body.make_room(body_step_bytes, size_max)) co_return busy(context_.memory);
    const Millis left = context_.settings.transfer_timeout - since.passed();
    const Millis within = std::clamp(left, Millis{0}, context_.settings.body_timeout);
    const BodyStep step = co_await client_.read_body(in.parser, room, within);
    if (step.error == beast::error::timeout) {
      co_return Refusal{Outcome::request_timeout, "the body did not arrive in time"};
    }
    if (step.error) {
      co_return Refusal{Outcome::bad_request, "the body: " + step.error.message()};
    }
    if (body.view().size() + step.bytes > limit) co_return too_large;
    body.append(std::string_view{room}.substr(0, step.bytes));
  }
  client_.shrink();  // it waits for the upstream now
  co_return std::nullopt;
}

/// In a reply that was recorded earlier. The second name is that of releases before 0.2, which
/// clients may look for; 0.3 does not send it.
constexpr std::string_view replayed_fields =
    "Idempotency-Replayed: true\r\nIdempotent-Replayed: true\r\n";

asio::awaitable<bool> Session::serve_guarded(Incoming& in) {
  ClaimStore& store = *in.store;
  if (const auto refusal = store.rules().check_headers(*in.route, in.request)) {
    co_return co_await refuse(in, *refusal);
  }
  CountedText body{context_.memory};
  const std::optional<Refusal> bad_body = co_await read_body(in, body);
  if (bad_body) co_return co_await refuse(in, *bad_body);
  in.request.body = body.view();
  Prepared prepared = store.prepare(*in.route, in.request);
  if (prepared.refusal) co_return co_await refuse(in, *prepared.refusal);
  Work work = std::move(prepared.work);
  if (in.route->signature.is_required && (!work.is_claimed || store.has_remote_nonces())) {
    const std::optional<Refusal> used = co_await store.take_nonce(*in.route, in.request);
    if (used) co_return co_await refuse(in, *used);
  }
  Admission admission{.outcome = Outcome::passed};
  if (work.is_claimed) {
    if (context_.log.is_on()) in.key_digest = shown_digest(work.key);
    admission = co_await store.claim(work);
  }
  if (admission.refusal) co_return co_await refuse(in, *admission.refusal);
  in.outcome = admission.outcome;
  if (admission.outcome == Outcome::replayed) {
    body.clear();
    co_return co_await send_recorded(in, admission.reply, replayed_fields);
  }
  co_return co_await forward(in, work, body);
}

asio::awaitable<bool> Session::send_recorded(Incoming& in, const RecordedReply& reply,
                                             std::string_view extra) {
  in.status = reply.status;
  const bool stays = may_stay(in);
  const std::vector<Field> fields = fields_of(reply);
  const Framing framing = framing_of(reply, in.is_head);
  std::string head = client_head({.status = reply.status,
                                  .fields = fields,
                                  .framing = framing,
                                  .is_1_0 = in.is_1_0,
                                  .keep_alive = stays,
                                  .extra = extra});
  const bool has_body = framing.kind != Framing::Kind::none && !in.is_head;
  const std::string_view body = has_body ? reply.body : std::string_view{};
  const bool is_sent = co_await client_.send(head, body);
  const bool goes_on = is_sent && stays;
  co_return goes_on;
}

asio::awaitable<bool> Session::forward(Incoming& in, Work& work, CountedText& body) {
  std::optional<Keeping> keeping;
  if (is_owned(work)) {
    keeping.emplace(in.store, work);
    const LeaseState lease = in.store->keep(work);
    bool is_held = lease == LeaseState::held;
    if (lease == LeaseState::unsure) is_held = co_await in.store->renew(work);
    if (!is_held) {
      const Refusal late{Outcome::in_flight, "the store was slow, and the lease is over",
                         Millis{1'000}};
      co_return co_await refuse(in, late);
    }
  }
  const Framing framing{in.request.body.empty() && !in.parser.content_length()
                            ? Framing::Kind::none
                            : Framing::Kind::length,
                        in.request.body.size()};
  const std::string token = work.epoch == 0 ? std::string{} : std::to_string(work.epoch);
  const OutgoingRequest request{.head = head_for_upstream(in, framing, token, false),
                                .body = in.request.body};
  UpstreamReply reply =
      co_await exchange(*context_.pool, client_.wait(), request, in.route->timeout);
  in.request.body = {};
  body.clear();  // it is not sent again
  if (reply.how == UpstreamReply::How::replied) co_await read_reply_head(in, reply);
  if (reply.how != UpstreamReply::How::replied) co_return co_await fail(in, work, reply);
  if (!is_owned(work)) co_return co_await relay(in, reply, std::nullopt, true, "");

  RecordedReply recorded{.status = reply.parser->get().result_int()};
  for (const Field& field : end_to_end_fields(reply.fields)) {
    if (!is_of_one_client(field)) recorded.fields.emplace_back(field.name, field.value);
  }
  co_return co_await record(in, work, reply, recorded);
}

asio::awaitable<bool> Session::record(Incoming& in, const Work& work, UpstreamReply& reply,
                                      RecordedReply& recorded) {
  CountedText text{context_.memory, Need::urgent};
  const std::size_t limit = in.route->record_bytes;
  const auto length = reply.parser->content_length();
  // For a reply to HEAD this is all that is known of the body.
  const std::string length_text = std::to_string(length.value_or(0));
  if (length && in.is_head) recorded.fields.emplace_back("Content-Length", length_text);
  const std::string first = encode(recorded);
  const bool fits = length && *length + first.size() <= limit;
  const std::size_t size_max = fits ? first.size() + static_cast<std::size_t>(*length)
                                    : std::max(limit, first.size()) + body_step_bytes;
  recorded.is_cut = !text.make_room(first.size(), size_max);
  if (!recorded.is_cut) text.append(first);
  UpstreamConnection& upstream = *reply.lease.connection;
  std::string room(body_step_bytes, '\0');
  while (!reply.parser->is_done() && !recorded.is_cut && text.view().size() <= limit) {
    recorded.is_cut = !text.make_room(body_step_bytes, size_max);
    if (recorded.is_cut) break;
    upstream.stream.expires_after(context_.settings.body_timeout);
    const BodyStep step = co_await read_step(upstream.stream, upstream.buffer, *reply.parser, room);
    if (step.error) {
      const bool is_late = step.error == beast::error::timeout;
      reply.how = is_late ? UpstreamReply::How::timed_out : UpstreamReply::How::broken;
      reply.refusal = {is_late ? Outcome::upstream_timeout : Outcome::upstream_broken,
                       "within the body of its reply: " + step.error.message()};
      co_return co_await fail(in, work, reply);
    }
    text.append(std::string_view{room}.substr(0, step.bytes));
  }
  recorded.record = text.view();
  recorded.body = text.view().substr(std::min(first.size(), text.view().size()));
  co_return co_await end_claim(in, work, reply, recorded, text);
}

asio::awaitable<bool> Session::fail(Incoming& in, const Work& work, UpstreamReply& reply) {
  reply.lease = {};  // closes the connection
  const bool is_unsent = reply.how == UpstreamReply::How::not_sent;
  const Route& route = *in.route;
  const Meaning meaning =
      reply.how == UpstreamReply::How::timed_out ? route.on_timeout : route.on_broken;
  Refusal refusal = std::move(reply.refusal);
  // If this does not reach the disk, the claim stays held there, and ends by on-lease-end.
  bool is_kept = true;
  if (work.is_claimed && (is_unsent || (is_owned(work) && meaning == Meaning::release))) {
    is_kept = co_await in.store->release(work);
    refusal.detail += is_kept ? "; the key is free again" : "; the key is free after its lease";
  } else if (is_owned(work)) {
    is_kept = co_await in.store->doubt(work, refusal.detail);
    refusal.detail += "; the request may have been carried out, and will not be sent again";
  }
  if (!is_kept) context_.counters.replies_unrecorded.add();
  co_return co_await refuse(in, refusal);
}

asio::awaitable<bool> Session::end_claim(Incoming& in, const Work& work, UpstreamReply& reply,
                                         RecordedReply& recorded, CountedText& record) {
  ClaimStore& store = *in.store;
  Completion completion;
  bool is_kept = true;
  const std::string why = "status " + std::to_string(recorded.status);
  switch (meaning_of_status(*in.route, recorded.status)) {
    case Meaning::keep:
      completion = co_await store.complete(work, recorded);
      break;
    case Meaning::release:
      is_kept = co_await store.release(work);
      break;
    case Meaning::in_doubt:
      is_kept = co_await store.doubt(work, why);
      break;
  }
  if (completion.recorded == Recorded::superseded) context_.counters.leases_superseded.add();
  if (completion.newer) {
    reply.lease = {};
    record.clear();
    in.outcome = Outcome::replayed;
    co_return co_await send_recorded(in, *completion.newer, replayed_fields);
  }
  std::string_view extra;
  if (!is_kept || completion.recorded != Recorded::yes) {
    // The client gets the reply anyway: it is the upstream's, and there is no better one.
    context_.counters.replies_unrecorded.add();
    extra = "Semel-Recorded: no\r\n";
  }
  in.status = recorded.status;
  if (!reply.parser->is_done()) {
    const Start start{record, recorded.body};
    co_return co_await relay(in, reply, start, true, extra);
  }
  reply.lease.connection->account.reply_ended(reply.parser->keep_alive());
  for (const Field& field : reply.fields) {
    if (is_of_one_client(field)) recorded.fields.emplace_back(field.name, field.value);
  }
  reply.lease = {};
  co_return co_await send_recorded(in, recorded, extra);
}

}  // namespace semel::gateway

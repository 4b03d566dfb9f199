#include "replication/core/raft_shim.h"

#include <raft.h>
#include <stdlib.h>
#include <string.h>

struct raft_shim {
  struct raft raft;
  struct raft_update update;
};

int raft_shim_version(void) {
  return RAFT_VERSION_NUMBER;
}
const char* raft_shim_error_text(int error) {
  return raft_strerror(error);
}

struct raft_shim* raft_shim_new(uint64_t id, const char* address, unsigned seed,
                                unsigned election_ms, unsigned heartbeat_ms,
                                unsigned entries_in_flight) {
  struct raft_shim* const shim = calloc(1, sizeof *shim);
  if (shim == NULL) return NULL;
  if (raft_init(&shim->raft, NULL, NULL, id, address) != 0) {
    free(shim);
    return NULL;
  }
  /* Its messages are formatted in one static buffer, for every step: two nodes of a process would
   * write it at once. They are not used. */
  shim->raft.tracer = NULL;
  raft_seed(&shim->raft, seed);
  raft_set_election_timeout(&shim->raft, election_ms);
  raft_set_heartbeat_timeout(&shim->raft, heartbeat_ms);
  raft_set_pre_vote(&shim->raft, true);
  /* A snapshot goes over a connection of its own, which may take long. */
  raft_set_install_snapshot_timeout(&shim->raft, 10 * election_ms);
  raft_set_max_catch_up_round_duration(&shim->raft, 600 * 1000);
  raft_set_max_catch_up_rounds(&shim->raft, 100);
  raft_set_max_inflight_entries(&shim->raft, entries_in_flight);
  return shim;
}

void raft_shim_delete(struct raft_shim* shim) {
  if (shim == NULL) return;
  raft_close(&shim->raft, NULL);
  free(shim);
}

/* Copies members; the library frees them. */
static int to_configuration(const struct raft_shim_member* members, size_t count,
                            struct raft_configuration* to) {
  raft_configuration_init(to);
  for (size_t i = 0; i < count; ++i) {
    const int error =
        raft_configuration_add(to, members[i].id, members[i].address,
                               members[i].role == raft_shim_voter ? RAFT_VOTER : RAFT_STANDBY);
    if (error != 0) {
      raft_configuration_close(to);
      return error;
    }
  }
  return 0;
}

static int to_metadata(const struct raft_shim_snapshot* from, struct raft_snapshot_metadata* to) {
  to->index = from->index;
  to->term = from->term;
  to->configuration_index = from->configuration_index;
  return to_configuration(from->members, from->count, &to->configuration);
}

/* An array of the library's entries over the caller's data; null: there is no memory. Their batch
 * is an allocation of its own, because the library frees it when it does not keep the entries. */
static struct raft_entry* to_entries(const struct raft_shim_entry* from, size_t count) {
  struct raft_entry* const to = calloc(count, sizeof *to);
  void* const batch = to == NULL ? NULL : raft_malloc(1);
  if (batch == NULL) {
    free(to);
    return NULL;
  }
  for (size_t i = 0; i < count; ++i) {
    to[i].term = from[i].term;
    to[i].type = (enum raft_entry_type)from[i].type;
    to[i].buf.base = (void*)(uintptr_t)from[i].data;
    to[i].buf.len = from[i].bytes;
    to[i].batch = batch;
  }
  return to;
}

static struct raft_event event_at(uint64_t now, enum raft_event_type type) {
  struct raft_event event;
  memset(&event, 0, sizeof event);
  event.time = now;
  event.type = type;
  return event;
}

/* `entries`: of the call, of which the update may have a part. */
static int step(struct raft_shim* shim, struct raft_event* event, const struct raft_entry* entries,
                size_t count, struct raft_shim_update* to) {
  struct raft_update* const from = &shim->update;
  memset(from, 0, sizeof *from);
  memset(to, 0, sizeof *to);
  const int error = raft_step(&shim->raft, event, from);
  if (error != 0) return error;
  to->votes = (from->flags & (RAFT_UPDATE_CURRENT_TERM)) != 0 ||
              (from->flags & (RAFT_UPDATE_VOTED_FOR)) != 0;
  to->commits = (from->flags & (RAFT_UPDATE_COMMIT_INDEX)) != 0;
  to->state = (from->flags & (RAFT_UPDATE_STATE)) != 0;
  to->installs = (from->flags & (RAFT_UPDATE_SNAPSHOT)) != 0;
  to->persists = (from->flags & (RAFT_UPDATE_ENTRIES)) != 0;
  if (to->persists) {
    to->first = from->entries.index;
    to->count = from->entries.n;
    to->own = count != 0 && from->entries.batch >= entries && from->entries.batch < entries + count;
    if (to->own) to->offset = (size_t)(from->entries.batch - entries);
  }
  if ((from->flags & (RAFT_UPDATE_MESSAGES)) != 0) to->messages = from->messages.n;
  return 0;
}

int raft_shim_start(struct raft_shim* shim, uint64_t now, uint64_t term, uint64_t vote,
                    const struct raft_shim_snapshot* snapshot, uint64_t first,
                    const struct raft_shim_entry* entries, size_t count,
                    struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_START);
  struct raft_snapshot_metadata metadata;
  struct raft_entry* const copies = count == 0 ? NULL : to_entries(entries, count);
  if (count != 0 && copies == NULL) return RAFT_NOMEM;
  event.start.term = term;
  event.start.voted_for = vote;
  event.start.start_index = first;
  event.start.entries = copies;
  event.start.n_entries = (unsigned)count;
  if (snapshot != NULL) {
    const int error = to_metadata(snapshot, &metadata);
    if (error != 0) {
      if (copies != NULL) raft_free(copies[0].batch);
      free(copies);
      return error;
    }
    event.start.metadata = &metadata;
  }
  const int error = step(shim, &event, NULL, 0, update);
  /* After an error the library has freed the batch. */
  if (error == 0 && copies != NULL) raft_free(copies[0].batch);
  free(copies);
  return error;
}

int raft_shim_tick(struct raft_shim* shim, uint64_t now, struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_TIMEOUT);
  return step(shim, &event, NULL, 0, update);
}

static int receive_append(struct raft_shim* shim, struct raft_event* event,
                          struct raft_message* message, const struct raft_shim_message* from,
                          struct raft_shim_update* update) {
  struct raft_entry* const entries =
      from->count == 0 ? NULL : to_entries(from->entries, from->count);
  if (from->count != 0 && entries == NULL) return RAFT_NOMEM;
  void* const batch = entries == NULL ? NULL : entries[0].batch;
  message->append_entries.version = 0;
  message->append_entries.term = from->term;
  message->append_entries.prev_log_index = from->index;
  message->append_entries.prev_log_term = from->index_term;
  message->append_entries.leader_commit = from->second;
  message->append_entries.entries = entries;
  message->append_entries.n_entries = (unsigned)from->count;
  const int error = step(shim, event, entries, from->count, update);
  /* Entries that are to be persisted are the caller's; of others the library has freed the batch.
   */
  if (error == 0 && update->persists) raft_free(batch);
  free(entries);
  return error;
}

static int receive_snapshot(struct raft_shim* shim, struct raft_event* event,
                            struct raft_message* message, const struct raft_shim_message* from,
                            struct raft_shim_update* update) {
  struct raft_install_snapshot* const to = &message->install_snapshot;
  const int error = to_configuration(from->snapshot.members, from->snapshot.count, &to->conf);
  if (error != 0) return error;
  to->term = from->term;
  to->last_index = from->snapshot.index;
  to->last_term = from->snapshot.term;
  to->conf_index = from->snapshot.configuration_index;
  to->data.base = raft_malloc(1);
  to->data.len = 1;
  if (to->data.base == NULL) {
    raft_configuration_close(&to->conf);
    return RAFT_NOMEM;
  }
  const int done = step(shim, event, NULL, 0, update);
  if (done == 0 && update->installs) {
    raft_configuration_close(&shim->update.snapshot.metadata.configuration);
    raft_free(shim->update.snapshot.chunk.base);
  }
  return done;
}

int raft_shim_receive(struct raft_shim* shim, uint64_t now, const struct raft_shim_message* from,
                      struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_RECEIVE);
  struct raft_message message;
  memset(&message, 0, sizeof message);
  message.type = (enum raft_message_type)from->type;
  message.server_id = from->peer;
  message.server_address = from->address;
  event.receive.message = &message;
  switch (from->type) {
    case raft_shim_type_append:
      return receive_append(shim, &event, &message, from, update);
    case raft_shim_type_snapshot:
      return receive_snapshot(shim, &event, &message, from, update);
    case raft_shim_type_append_reply:
      message.append_entries_result.term = from->term;
      message.append_entries_result.rejected = from->index;
      message.append_entries_result.last_log_index = from->second;
      break;
    case raft_shim_type_vote:
      message.request_vote.term = from->term;
      message.request_vote.candidate_id = from->peer;
      message.request_vote.last_log_index = from->index;
      message.request_vote.last_log_term = from->index_term;
      message.request_vote.disrupt_leader = from->yes;
      message.request_vote.pre_vote = from->pre_vote;
      break;
    case raft_shim_type_vote_reply:
      message.request_vote_result.version = 2;
      message.request_vote_result.term = from->term;
      message.request_vote_result.vote_granted = from->yes;
      message.request_vote_result.pre_vote = from->pre_vote;
      break;
    case raft_shim_type_timeout_now:
      message.timeout_now.term = from->term;
      message.timeout_now.last_log_index = from->index;
      message.timeout_now.last_log_term = from->index_term;
      break;
    default:
      return RAFT_INVALID;
  }
  return step(shim, &event, NULL, 0, update);
}

int raft_shim_submit(struct raft_shim* shim, uint64_t now, const struct raft_shim_entry* entry,
                     struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_SUBMIT);
  struct raft_entry* const copy = to_entries(entry, 1);
  if (copy == NULL) return RAFT_NOMEM;
  void* const batch = copy->batch;
  event.submit.entries = copy;
  event.submit.n = 1;
  const int error = step(shim, &event, copy, 1, update);
  raft_free(batch);
  free(copy);
  return error;
}

int raft_shim_persisted(struct raft_shim* shim, uint64_t now, uint64_t index,
                        struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_PERSISTED_ENTRIES);
  event.persisted_entries.index = index;
  return step(shim, &event, NULL, 0, update);
}

int raft_shim_installed(struct raft_shim* shim, uint64_t now,
                        const struct raft_shim_snapshot* snapshot,
                        struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_PERSISTED_SNAPSHOT);
  const int error = to_metadata(snapshot, &event.persisted_snapshot.metadata);
  if (error != 0) return error;
  event.persisted_snapshot.last = true;
  return step(shim, &event, NULL, 0, update);
}

int raft_shim_taken(struct raft_shim* shim, uint64_t now, const struct raft_shim_snapshot* snapshot,
                    unsigned trailing, struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_SNAPSHOT);
  const int error = to_metadata(snapshot, &event.snapshot.metadata);
  if (error != 0) return error;
  event.snapshot.trailing = trailing;
  return step(shim, &event, NULL, 0, update);
}

int raft_shim_configured(struct raft_shim* shim, uint64_t now, uint64_t index, const void* data,
                         size_t bytes, struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_CONFIGURATION);
  const struct raft_buffer buffer = {(void*)(uintptr_t)data, bytes};
  const int error = raft_configuration_decode(&buffer, &event.configuration.conf);
  if (error != 0) return error;
  event.configuration.index = index;
  return step(shim, &event, NULL, 0, update);
}

int raft_shim_catch_up(struct raft_shim* shim, uint64_t now, uint64_t id,
                       struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_CATCH_UP);
  event.catch_up.server_id = id;
  return step(shim, &event, NULL, 0, update);
}

int raft_shim_transfer(struct raft_shim* shim, uint64_t now, uint64_t id,
                       struct raft_shim_update* update) {
  struct raft_event event = event_at(now, RAFT_TRANSFER);
  event.transfer.server_id = id;
  return step(shim, &event, NULL, 0, update);
}

void raft_shim_outgoing(const struct raft_shim* shim, size_t number, struct raft_shim_message* to) {
  const struct raft_message* const from = &shim->update.messages.batch[number];
  memset(to, 0, sizeof *to);
  to->type = (int)from->type;
  to->peer = from->server_id;
  to->address = from->server_address;
  switch (from->type) {
    case RAFT_APPEND_ENTRIES:
      to->term = from->append_entries.term;
      to->index = from->append_entries.prev_log_index;
      to->index_term = from->append_entries.prev_log_term;
      to->second = from->append_entries.leader_commit;
      to->count = from->append_entries.n_entries;
      break;
    case RAFT_APPEND_ENTRIES_RESULT:
      to->term = from->append_entries_result.term;
      to->index = from->append_entries_result.rejected;
      to->second = from->append_entries_result.last_log_index;
      break;
    case RAFT_REQUEST_VOTE:
      to->term = from->request_vote.term;
      to->index = from->request_vote.last_log_index;
      to->index_term = from->request_vote.last_log_term;
      to->yes = from->request_vote.disrupt_leader;
      to->pre_vote = from->request_vote.pre_vote;
      break;
    case RAFT_REQUEST_VOTE_RESULT:
      to->term = from->request_vote_result.term;
      to->yes = from->request_vote_result.vote_granted;
      to->pre_vote = from->request_vote_result.pre_vote;
      break;
    case RAFT_INSTALL_SNAPSHOT:
      to->term = from->install_snapshot.term;
      to->index = from->install_snapshot.last_index;
      to->index_term = from->install_snapshot.last_term;
      break;
    case RAFT_TIMEOUT_NOW:
      to->term = from->timeout_now.term;
      to->index = from->timeout_now.last_log_index;
      to->index_term = from->timeout_now.last_log_term;
      break;
  }
}

void raft_shim_persisting(const struct raft_shim* shim, size_t number, struct raft_shim_entry* to) {
  const struct raft_entry* const from = &shim->update.entries.batch[number];
  to->term = from->term;
  to->type = (int)from->type;
  to->data = from->buf.base;
  to->bytes = from->buf.len;
}

void raft_shim_release(struct raft_shim* shim) {
  raft_free(shim->update.entries.batch[0].batch);
}

/* The library's getters take a pointer that is not const. */
static struct raft* of(const struct raft_shim* shim) {
  return (struct raft*)(uintptr_t)&shim->raft;
}

int raft_shim_state(const struct raft_shim* shim) {
  return (int)raft_state(of(shim));
}
uint64_t raft_shim_term(const struct raft_shim* shim) {
  return raft_current_term(&shim->raft);
}
uint64_t raft_shim_voted_for(const struct raft_shim* shim) {
  return raft_voted_for(&shim->raft);
}
uint64_t raft_shim_commit(const struct raft_shim* shim) {
  return raft_commit_index(&shim->raft);
}
uint64_t raft_shim_timeout(const struct raft_shim* shim) {
  return raft_timeout(&shim->raft);
}
uint64_t raft_shim_stored(const struct raft_shim* shim) {
  return shim->raft.last_stored;
}

uint64_t raft_shim_leader_id(const struct raft_shim* shim) {
  raft_id id = 0;
  const char* address = NULL;
  raft_leader(of(shim), &id, &address);
  return id;
}

uint64_t raft_shim_transferee(const struct raft_shim* shim) {
  return shim->raft.state == RAFT_LEADER ? raft_transferee(&shim->raft) : 0;
}

uint64_t raft_shim_match(const struct raft_shim* shim, uint64_t id) {
  raft_index index = 0;
  if (shim->raft.state != RAFT_LEADER) return 0;
  return raft_match_index(&shim->raft, id, &index) == 0 ? index : 0;
}

int raft_shim_catch_up_state(const struct raft_shim* shim, uint64_t id) {
  int status = RAFT_CATCH_UP_NONE;
  if (shim->raft.state != RAFT_LEADER) return raft_shim_no_catch_up;
  return raft_catch_up(&shim->raft, id, &status) == 0 ? status : raft_shim_no_catch_up;
}

uint64_t raft_shim_committed_configuration(const struct raft_shim* shim) {
  return shim->raft.configuration_committed_index;
}
uint64_t raft_shim_uncommitted_configuration(const struct raft_shim* shim) {
  return shim->raft.configuration_uncommitted_index;
}

size_t raft_shim_member_count(const struct raft_shim* shim) {
  return shim->raft.configuration.n;
}

static void to_member(const struct raft_server* from, struct raft_shim_member* to) {
  to->id = from->id;
  to->address = from->address;
  to->role = from->role == RAFT_VOTER ? raft_shim_voter : raft_shim_standby;
}

void raft_shim_member_at(const struct raft_shim* shim, size_t number,
                         struct raft_shim_member* member) {
  to_member(&shim->raft.configuration.servers[number], member);
}

int raft_shim_encode(const struct raft_shim_member* members, size_t count, void** data,
                     size_t* bytes) {
  struct raft_configuration configuration;
  int error = to_configuration(members, count, &configuration);
  if (error != 0) return error;
  struct raft_buffer buffer;
  error = raft_configuration_encode(&configuration, &buffer);
  raft_configuration_close(&configuration);
  if (error != 0) return error;
  *data = buffer.base;
  *bytes = buffer.len;
  return 0;
}

void raft_shim_free_data(void* data) {
  raft_free(data);
}

int raft_shim_decode(const void* data, size_t bytes, void* context,
                     void (*member)(void* context, const struct raft_shim_member* member)) {
  struct raft_configuration configuration;
  const struct raft_buffer buffer = {(void*)(uintptr_t)data, bytes};
  const int error = raft_configuration_decode(&buffer, &configuration);
  if (error != 0) return error;
  for (unsigned i = 0; i < configuration.n; ++i) {
    struct raft_shim_member each;
    to_member(&configuration.servers[i], &each);
    member(context, &each);
  }
  raft_configuration_close(&configuration);
  return 0;
}

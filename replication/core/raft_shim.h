/* The only access to libraft: its header is C that C++ cannot read. Entries, messages and members
 * have structures of our own here. Of its calls only the one without input and output is used,
 * raft_step(). */
#ifndef SEMEL_RAFT_SHIM_H
#define SEMEL_RAFT_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of the header: 10,000 major, 100 minor, release. The library does not export its own number. */
enum { raft_shim_version_min = 2201, raft_shim_version_end = 2300 };

enum { raft_shim_command = 1, raft_shim_barrier = 2, raft_shim_configuration = 3 };
enum { raft_shim_follower = 1, raft_shim_candidate = 2, raft_shim_leader = 3 };
enum { raft_shim_standby = 0, raft_shim_voter = 1 };
enum {
  raft_shim_type_append = 1,
  raft_shim_type_append_reply,
  raft_shim_type_vote,
  raft_shim_type_vote_reply,
  raft_shim_type_snapshot,
  raft_shim_type_timeout_now
};
enum {
  raft_shim_no_catch_up,
  raft_shim_catch_up_runs,
  raft_shim_catch_up_aborted,
  raft_shim_catch_up_finished
};

struct raft_shim_member {
  uint64_t id;
  const char* address;
  int role;
};

struct raft_shim_snapshot {
  uint64_t index;
  uint64_t term;
  uint64_t configuration_index;
  const struct raft_shim_member* members;
  size_t count;
};

struct raft_shim_entry {
  uint64_t term;
  int type;
  const void* data; /* of a configuration: as raft_shim_encode() made it */
  size_t bytes;
};

/* What a message of this type does not have is 0. */
struct raft_shim_message {
  int type;
  uint64_t peer; /* its sender, or where it goes */
  const char* address;
  uint64_t term;
  uint64_t index; /* last entry; of an append: the entry before its first; of a reply: rejected */
  uint64_t index_term;
  uint64_t second; /* of an append: the commit index; of its reply: the last index */
  bool pre_vote;
  bool yes;                              /* of a vote: disrupts the leader; of its reply: granted */
  const struct raft_shim_entry* entries; /* of an append that is received */
  size_t count;                          /* of an append */
  struct raft_shim_snapshot snapshot;    /* of one that is received */
};

/* What a step asks for. Valid until the next call. */
struct raft_shim_update {
  bool votes;     /* term and vote have changed, and must be on the disk before all else */
  bool commits;   /* the commit index has grown */
  bool state;     /* of leader, candidate, follower */
  bool persists;  /* entries are to be persisted */
  uint64_t first; /* their first index */
  size_t offset;  /* own: they are those of the call, from this one on */
  size_t count;
  bool own;
  bool installs;   /* the snapshot of the message is to be installed */
  size_t messages; /* to be sent: raft_shim_outgoing() */
};

struct raft_shim;

int raft_shim_version(void);
const char* raft_shim_error_text(int error);

/* Null: there is no memory. `address` is copied. */
struct raft_shim* raft_shim_new(uint64_t id, const char* address, unsigned seed,
                                unsigned election_ms, unsigned heartbeat_ms,
                                unsigned entries_in_flight);
void raft_shim_delete(struct raft_shim* shim);

/* Each returns 0 or an error of the library. Times are milliseconds. */
int raft_shim_start(struct raft_shim* shim, uint64_t now, uint64_t term, uint64_t vote,
                    const struct raft_shim_snapshot* snapshot, uint64_t first,
                    const struct raft_shim_entry* entries, size_t count,
                    struct raft_shim_update* update);
int raft_shim_tick(struct raft_shim* shim, uint64_t now, struct raft_shim_update* update);
int raft_shim_receive(struct raft_shim* shim, uint64_t now, const struct raft_shim_message* message,
                      struct raft_shim_update* update);
int raft_shim_submit(struct raft_shim* shim, uint64_t now, const struct raft_shim_entry* entry,
                     struct raft_shim_update* update);
int raft_shim_persisted(struct raft_shim* shim, uint64_t now, uint64_t index,
                        struct raft_shim_update* update);
int raft_shim_installed(struct raft_shim* shim, uint64_t now,
                        const struct raft_shim_snapshot* snapshot, struct raft_shim_update* update);
int raft_shim_taken(struct raft_shim* shim, uint64_t now, const struct raft_shim_snapshot* snapshot,
                    unsigned trailing, struct raft_shim_update* update);
int raft_shim_configured(struct raft_shim* shim, uint64_t now, uint64_t index, const void* data,
                         size_t bytes, struct raft_shim_update* update);
int raft_shim_catch_up(struct raft_shim* shim, uint64_t now, uint64_t id,
                       struct raft_shim_update* update);
int raft_shim_transfer(struct raft_shim* shim, uint64_t now, uint64_t id,
                       struct raft_shim_update* update);

/* A message of the last step, by its number. */
void raft_shim_outgoing(const struct raft_shim* shim, size_t number,
                        struct raft_shim_message* message);
/* Data of an entry that a step persists and that is not of the call: the barrier of a leader. */
void raft_shim_persisting(const struct raft_shim* shim, size_t number,
                          struct raft_shim_entry* entry);
/* Afterwards, once: frees it. */
void raft_shim_release(struct raft_shim* shim);

int raft_shim_state(const struct raft_shim* shim);
uint64_t raft_shim_term(const struct raft_shim* shim);
uint64_t raft_shim_voted_for(const struct raft_shim* shim);
uint64_t raft_shim_commit(const struct raft_shim* shim);
uint64_t raft_shim_timeout(const struct raft_shim* shim);
uint64_t raft_shim_stored(const struct raft_shim* shim);    /* the last index that is persisted */
uint64_t raft_shim_leader_id(const struct raft_shim* shim); /* 0: not known */
uint64_t raft_shim_transferee(const struct raft_shim* shim);
/* Of a leader; 0: nothing, or no such member. */
uint64_t raft_shim_match(const struct raft_shim* shim, uint64_t id);
int raft_shim_catch_up_state(const struct raft_shim* shim, uint64_t id);
/* The index of the newest configuration that the library knows to be committed. */
uint64_t raft_shim_committed_configuration(const struct raft_shim* shim);
/* The index of a configuration that is not committed; 0: there is none. */
uint64_t raft_shim_uncommitted_configuration(const struct raft_shim* shim);
size_t raft_shim_member_count(const struct raft_shim* shim);
void raft_shim_member_at(const struct raft_shim* shim, size_t number,
                         struct raft_shim_member* member);

/* A configuration as an entry's data; *data is to be given to raft_shim_free_data(). 0, or an
 * error: a member twice. */
int raft_shim_encode(const struct raft_shim_member* members, size_t count, void** data,
                     size_t* bytes);
void raft_shim_free_data(void* data);
/* Calls `member` for each of an encoded configuration. 0, or an error: it is none. */
int raft_shim_decode(const void* data, size_t bytes, void* context,
                     void (*member)(void* context, const struct raft_shim_member* member));

#ifdef __cplusplus
}
#endif

#endif

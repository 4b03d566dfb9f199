// What an entry of the replicated log asks of the engine. Each is one call of the engine's face,
// decided when the entry is applied, on every replica alike.
//
// Bytes point into the entry. Times are the replicated log's (log_clock.hpp).
//
// Where the rules have a vocabulary, commands speak it: StoreOp, HashVerb, OwnerVerb. The other
// calls are one method of the face each, and the `What` of a command is their only list. It is a
// number in the log: a new value comes last.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/logged/library_table.hpp"
#include "engine/rules/verbs.hpp"
#include "semel/claims.hpp"
#include "semel/hashes.hpp"
#include "semel/op.hpp"
#include "semel/policies.hpp"
#include "semel/store.hpp"

namespace semel::replication {

struct StoreCommand {
  StoreOp op{};  ///< a write; its `arithmetic` is set by apply
  std::optional<Arithmetic> arithmetic{};
};
/// MSET, MSETNX, MSETEX.
struct SetManyCommand {
  std::uint8_t db = 0;
  Condition condition = Condition::always;  ///< or if_absent, if_present
  Expiry expiry{};
  std::vector<KeyValue> pairs{};
};
struct DeleteManyCommand {
  std::uint8_t db = 0;
  std::vector<Bytes> keys{};
};
/// A record under another key, or in another database.
struct TransferCommand {
  enum class What : std::uint8_t { rename, rename_if_absent, copy, copy_and_replace, move };
  What what = What::rename;
  std::uint8_t db = 0;
  std::uint8_t to_db = 0;  ///< of a copy and a move
  Bytes from{};
  Bytes to{};  ///< not of a move
};
struct HashCommand {
  engine::HashVerb verb = engine::HashVerb::set;  ///< a write
  std::uint8_t db = 0;
  Bytes key{};
  std::vector<FieldValue> pairs{};  ///< of all but del; of incr_by and incr_by_float one, valueless
  std::vector<Bytes> fields{};      ///< of del
  std::int64_t amount = 0;
  long double by_float = 0;
};
struct ClaimCommand {
  enum class What : std::uint8_t { each, all_or_none };
  What what = What::each;
  Bytes name{};
  std::vector<ClaimRequest> requests{};
};
struct OwnerCommand {
  engine::OwnerVerb verb = engine::OwnerVerb::complete;
  bool has_memos = false;  ///< a complete of builds in which memos had to be ended
  Bytes name{};
  OwnerCall call{};
};
/// A step of a claim's work is remembered, while the claim is held (engine/claims/memos.hpp).
struct MemoCommand {
  Bytes name{};
  Bytes key{};
  Epoch epoch = 0;
  Bytes step{};
  Bytes bytes{};
};
struct OperatorCommand {
  enum class What : std::uint8_t { issue, forget, resolve_as_done, resolve_as_released };
  What what = What::forget;
  Bytes name{};
  Bytes key{};
  Bytes result{};
  std::optional<Millis> ttl{};  ///< of issue
};
struct NamespaceCommand {
  /// A dropped namespace must be unused: to end many claims would take too long in one entry.
  enum class What : std::uint8_t { declare, change, drop };
  What what = What::declare;
  Bytes name{};
  Policy policy{};
};
struct DatabaseCommand {
  enum class What : std::uint8_t { flush, flush_all, swap };
  What what = What::flush;
  std::uint8_t one = 0;
  std::uint8_t other = 0;
};
/// The end of a connection, or of what else claims were bound to.
struct SessionCommand {
  /// close_former: those that other lives of this node have opened; it begins with it.
  enum class What : std::uint8_t { open, close, close_former };
  What what = What::open;
  SessionId session = 0;   ///< of close
  std::uint64_t node = 0;  ///< of the others: the node that opens it
  std::uint64_t life = 0;  ///< and the number of its life
};
struct Command;
/// MULTI, and what a script did: in one step. Not within another one.
struct SectionCommand {
  std::vector<Command> commands;  // not `{}`: a command is not complete yet
};
/// Of the entries without work: the time goes on.
struct TimeCommand {};
/// The group uses this level of features from here on (replication/state/feature_level.hpp). Not
/// within a section.
struct FeatureLevelCommand {
  std::uint64_t level = 0;
};

/// Which libraries of functions there are (library_table.hpp). The proposing node has found out
/// what their code registers. Not within a section.
struct LibraryCommand {
  struct Function {
    Bytes name{};
    std::optional<Bytes> description{};
    std::uint32_t flags = 0;
  };
  struct Library {
    Bytes name{};
    Bytes code{};
    std::uint64_t body_begin = 0;
    std::vector<Function> functions{};
  };
  LibraryChange::What what = LibraryChange::What::load;
  Bytes name{};                      ///< of remove
  std::vector<Library> libraries{};  ///< of the others; one of a load
};

/// What a client of a node has asked in the words of its protocol: one after the other, or as a
/// transaction. A RequestRunner knows what it means.
struct RequestCommand {
  struct Watched {
    std::uint8_t db = 0;
    Bytes key{};
    Version version = 0;  ///< that it had; 0: it was absent
  };
  std::uint8_t db = 0;
  std::uint8_t dialect = 2;  ///< of its replies: RESP2 or RESP3
  bool is_transaction = false;
  SessionId session = 0;           ///< of the client's connection, for BIND; 0: none
  std::vector<Watched> watched{};  ///< of a transaction, which does nothing if one has changed
  std::vector<std::vector<Bytes>> requests{};
};

struct Command {
  std::variant<TimeCommand, StoreCommand, SetManyCommand, DeleteManyCommand, TransferCommand,
               HashCommand, ClaimCommand, OwnerCommand, OperatorCommand, NamespaceCommand,
               DatabaseCommand, SessionCommand, RequestCommand, FeatureLevelCommand, SectionCommand,
               LibraryCommand, MemoCommand>
      what{};  ///< its place is its number in the replicated log: a new one comes last
};

}  // namespace semel::replication

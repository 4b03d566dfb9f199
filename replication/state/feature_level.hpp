// What the nodes of a group have agreed to use. A release carries out every level up to its newest
// one, the lower ones as the releases before it did: an entry means the same to all of them.
//
//   level  since   what it adds
//       1  0.2.0   everything but the rows below
//       2  0.2.0   libraries of functions: LibraryCommand, and snapshots of format 2
//       3  0.2.0   memos of steps, in the records of claims: MemoCommand; other decisions of the
//                  same commands (docs/decisions/0060): a claim is no value; closed sessions, and
//                  two payloads of one key in claim_all, are refused; a release keeps the attempts
//                  before it; changed terms apply to held claims
//       4  0.2.0   between nodes: the leader's time in its appends, terms of times in votes
//                  (docs/decisions/0071), identities of logs among the members (0072)
//       5  0.2.0   lists, sets, sorted sets, streams and whatever else a command brings that no
//                  earlier release has in its table (docs/decisions/0080); namespaces with a
//                  sliding window (0106)
//
// What changes an entry's bytes, or what applying it does, gets a level of its own: the new way is
// taken from FeatureLevelCommand on, which the group decides when all of its nodes know it.
//
// Builds before release 0.2.0 had memos at level 2, as hashes beside the claims. A replica that
// meets such a command, below level 3, stops with an error: it would have another state.
#pragma once

#include <cstdint>

namespace semel::replication {

using FeatureLevel = std::uint64_t;

inline constexpr FeatureLevel feature_level_first = 1;
/// The first with libraries of functions.
inline constexpr FeatureLevel feature_level_libraries = 2;
/// The first with memos of steps.
inline constexpr FeatureLevel feature_level_memos = 3;
/// The first with the decisions of docs/decisions/0060.
inline constexpr FeatureLevel feature_level_claims = 3;
/// The first whose nodes say of which leader their time is.
inline constexpr FeatureLevel feature_level_group_time = 4;
/// The first with identities of logs among the members.
inline constexpr FeatureLevel feature_level_identities = 4;
/// The first with lists, sets, sorted sets and streams.
inline constexpr FeatureLevel feature_level_objects = 5;
/// The first with sliding windows of claims.
inline constexpr FeatureLevel feature_level_sliding = 5;
/// That this release knows.
inline constexpr FeatureLevel feature_level_newest = 5;

}  // namespace semel::replication

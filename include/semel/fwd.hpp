// The names of the engine's faces, for headers that only mention them.
#pragma once

namespace semel {

class CachedClock;
class Claims;
class Clock;
class Engine;
class EngineHost;
class Hashes;
class Replication;
class Store;
class Watchdog;
struct ClaimOutcome;
struct ClaimRequest;
struct Error;
struct NamedPolicy;
struct OnceCall;
struct OnceReport;
struct Options;
struct OwnerCall;
struct OwnerOutcome;
struct Policy;
struct ReplicationOptions;
struct Stats;
template <class T>
class Result;
template <class T>
struct Codec;
template <class T>
struct OnceOutcome;

}  // namespace semel

// Dialogues about lists.
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {

/// Few keys and elements, so that lists come and go; places and counts at their edges.
Profile lists_profile() {
  return {.name = "lists",
          .forms = R"(
LPUSH K V; RPUSH K V; LPUSH K V V; RPUSH K V V V; RPUSH K V V V V V; LPUSHX K V; RPUSHX K V V;
LPOP K; RPOP K; LPOP K C; RPOP K C; LPOP K C V; LLEN K; LRANGE K I I; LRANGE K 0 -1; LRANGE K 0 -1;
LINDEX K I; LSET K I V; LINSERT K W V V; LINSERT K BEFORE V V; LREM K I V; LREM K 0 V;
LTRIM K I I; LTRIM K 0 J; LPOS K V; LPOS K V RANK I; LPOS K V COUNT C; LPOS K V MAXLEN C;
LPOS K V RANK I COUNT C MAXLEN C; LPOS K V COUNT C RANK I; LPOS K V O O; LPOS K V RANK;
LMOVE K K E E; LMOVE K K LEFT RIGHT; RPOPLPUSH K K; LMPOP 1 K E; LMPOP 2 K K E COUNT C;
LMPOP N K K K E; LMPOP 2 K K E COUNT C COUNT C; LMPOP 2 K K E O;
SET K V; GET K; HSET K f V; DEL K; EXISTS K; TYPE K; OBJECT ENCODING K; RENAME K K; COPY K K;
COPY K K REPLACE; EXPIRE K T; PEXPIRE K -1; PERSIST K; TTL K; APPEND K V; STRLEN K; LLEN K;
MULTI; EXEC; EXEC; DISCARD)",
          .kinds = {{'K', {"l1", "l1", "l1", "l2", "l2", "l3", "l4"}},
                    {'V',
                     {"a", "b", "c", "a", "b", "", "10", "v\r\n", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
                    {'W', {"BEFORE", "AFTER", "before", "After", "BESIDE"}},
                    {'E', {"LEFT", "RIGHT", "left", "Right", "LEFT", "RIGHT", "UP"}},
                    {'I',
                     {"0", "1", "-1", "2", "-2", "3", "-3", "5", "-5", "100", "-100", "x",
                      "9223372036854775807", "-9223372036854775807", "-9223372036854775808",
                      "9223372036854775808"}},
                    {'J', {"3", "4", "5", "-2", "-1"}},
                    {'C', {"0", "1", "2", "3", "100", "-1", "x", "9223372036854775807"}},
                    {'N', {"1", "2", "3", "4", "5", "0", "-1", "x", "4294967297"}},
                    {'O', {"RANK", "COUNT", "MAXLEN", "count", "1", "2", "O"}},
                    {'T', {"<ttl>", "<ttl>", "<ttl>", "-1"}}},
          .steps = 25'000,
          .clients = 2,
          .dialects = {"2", "3"},
          .lower_one_in = 6,
          .cut_one_in = 40,
          .script_one_in = 20};
}

/// Without LTRIM: one that removes nothing wakes WATCH there alone. The first only listens, in
/// RESP2; the second listens and speaks, in RESP3; the third speaks.
Profile list_events_profile() {
  return {
      .name = "list events",
      .forms = R"(
LPUSH K V; RPUSH K V; RPUSH K V V V; LPUSHX K V; RPUSHX K V V; LPOP K; RPOP K; LPOP K C; RPOP K C;
LLEN K; LRANGE K I I; LINDEX K I; LSET K I V; LINSERT K BEFORE V V; LREM K I V; LREM K 0 V;
LPOS K V; LMOVE K K E E; RPOPLPUSH K K; LMPOP 2 K K E COUNT C; LMPOP 1 K E; WATCH K; UNWATCH;
SET K V; DEL K; DEL K K; RENAME K K; COPY K K; COPY K K REPLACE; PEXPIRE K -1; MULTI; EXEC)",
      .kinds = {{'K', {"a", "a", "b", "c"}},
                {'V', {"x", "y", "z"}},
                {'E', {"LEFT", "RIGHT"}},
                {'I', {"0", "1", "-1", "2", "-2", "9", "-9"}},
                {'C', {"0", "1", "2", "9"}}},
      .clients = 3,
      .first_speaker = 1,
      .opening = {"0 PSUBSCRIBE __key*", "1 HELLO 3", "1 PSUBSCRIBE __keyspace@0__:[ab]"},
      .settings = {"CONFIG SET notify-keyspace-events KEA",
                   "CONFIG SET notify-keyspace-events KEAnm",
                   "CONFIG SET notify-keyspace-events El", "CONFIG SET notify-keyspace-events Klg",
                   "CONFIG SET notify-keyspace-events ''",
                   "CONFIG SET notify-keyspace-events KAmn"},
      .has_bursts = true};
}

}  // namespace semel::tests

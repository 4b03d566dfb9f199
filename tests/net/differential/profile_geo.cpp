// Places on the map, some of them at the edges of it, and searches of every form.
#include "tests/net/differential/random_requests.hpp"

namespace semel::tests {
namespace {

constexpr std::string_view geo_forms = R"(
GEOADD G X Y M; GEOADD G X Y M; GEOADD G X Y M X Y M; GEOADD G O X Y M; GEOADD G O O X Y M;
GEOADD G X Y; GEOADD G CH X Y M X Y M; GEOADD G B Y M; GEOADD G X B M; ZADD G F M; ZREM G M;
DEL G; SET s v; EXPIRE G T; GEODIST G M M; GEODIST G M M U; GEODIST G M M U U; GEOHASH G M M;
GEOHASH G; GEOPOS G M M; GEOPOS G; GEOSEARCH G FROMLONLAT X Y BYRADIUS R U ASC;
ZRANGE G 0 -1 WITHSCORES; GEOSEARCH G FROMMEMBER M BYRADIUS R U DESC WITHDIST WITHCOORD WITHHASH;
GEOSEARCH G FROMLONLAT X Y BYBOX R R U ASC WITHDIST; GEOSEARCH G FROMMEMBER M BYBOX R R U;
GEOSEARCH G FROMLONLAT X Y BYRADIUS R U WITHDIST WITHHASH; GEOSEARCH G FROMMEMBER M BYRADIUS R U;
GEOSEARCH G FROMLONLAT X Y BYBOX R R U COUNT C ANY; GEOSEARCH G FROMLONLAT X Y BYBOX B R U ASC;
GEOSEARCH G BYRADIUS R U FROMLONLAT X Y WITHCOORD; GEOSEARCH G FROMLONLAT B Y BYRADIUS R U ASC;
GEOSEARCH G FROMLONLAT X Y BYRADIUS B U ASC; GEOSEARCH G FROMLONLAT X Y FROMMEMBER M BYRADIUS R U;
GEOSEARCH G FROMMEMBER M FROMLONLAT X Y BYRADIUS R U; GEOSEARCH G FROMMEMBER M BYRADIUS R U P P;
GEOSEARCH G FROMLONLAT X Y BYRADIUS R U BYBOX R R U; GEOSEARCH G BYBOX R R U P P P P;
GEOSEARCH G FROMMEMBER M ASC DESC ANY P; GEOSEARCH G FROMLONLAT X Y BYRADIUS R U COUNT C P;
GEOSEARCHSTORE G G FROMLONLAT X Y BYRADIUS R U;
GEOSEARCHSTORE G G FROMMEMBER M BYBOX R R U STOREDIST;
GEOSEARCHSTORE G G FROMLONLAT X Y BYRADIUS R U P; GEOSEARCHSTORE d G FROMMEMBER M BYRADIUS R U;
GEORADIUS G X Y R U ASC; GEORADIUS G X Y R U WITHDIST WITHCOORD WITHHASH DESC;
GEORADIUS G X Y R U P P; GEORADIUS G X Y R U STORE d; GEORADIUS G X Y R U STOREDIST d;
GEORADIUS G X Y R U COUNT C ANY P; GEORADIUS G X Y R U STORE G STOREDIST d; GEORADIUS G B Y R U;
GEORADIUS G X Y B U; GEORADIUS G X Y R B; GEORADIUS_RO G X Y R U ASC WITHDIST;
GEORADIUS_RO G X Y R U STORE d; GEORADIUSBYMEMBER G M R U;
GEORADIUSBYMEMBER G M R U DESC WITHDIST; GEORADIUSBYMEMBER G M R U STOREDIST d P;
GEORADIUSBYMEMBER G M B U; GEORADIUSBYMEMBER_RO G M R U WITHCOORD;
GEORADIUSBYMEMBER_RO G M R U STORE d; TYPE d; ZRANGE d 0 -1 WITHSCORES; MULTI; EXEC; EXEC)";

}  // namespace

const Profile& geo_profile() {
  static const Profile geo{
      .name = "geo",
      .forms = geo_forms,
      .kinds = {{'G', {"g1", "g1", "g1", "g2", "g2", "none", "s"}},
                {'M', {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "m\r\n", ""}},
                {'X',
                 {"13.361389", "15.087269", "15", "2.349014", "-0.127758", "-122.4194", "139.69",
                  "0", "180", "-180", "179.999", "-179.999", "90.5", "1e-5"}},
                {'Y',
                 {"38.115556", "37.502669", "37", "48.864716", "51.507351", "37.7749", "35.68", "0",
                  "85.05112878", "-85.05112878", "85", "-84.9", "66.5", "-33.8"}},
                {'B', {"x", "", "nan", "inf", "-1", "181", "86", " 1", "1e400", "-180.1"}},
                {'F', {"0", "1", "-1", "1e15", "4503599627370495", "4503599627370496", "1e300"}},
                {'R', {"0", "1", "200", "1500", "20000", "100000", "166274.15", "1e9", "0.5"}},
                {'U', {"m", "km", "km", "KM", "ft", "mi", "km", "miles"}},
                {'C', {"1", "2", "5", "100", "0", "-1", "x", "9223372036854775807"}},
                {'O', {"NX", "XX", "CH", "GT"}},
                {'P',
                 {"ASC", "DESC", "WITHDIST", "WITHCOORD", "WITHHASH", "ANY", "STOREDIST", "x",
                  "asc"}},
                {'T', {"<ttl>"}}},
      .steps = 15'000,
      .dialects = {"2", "3"},
      .lower_one_in = 8,
      .cut_one_in = 40,
      .script_one_in = 15};
  return geo;
}

}  // namespace semel::tests

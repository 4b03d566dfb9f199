// A payment that is booked in the same write that says it is done: whatever happens to the process,
// no order is paid twice, and none is said to be paid whose booking is lost.
#include <semel/rocksdb.hpp>
#include <semel/semel.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

namespace {

/// Books `cents` for `order`, once, however often it is asked for.
semel::Result<std::string> pay(semel::Storage& storage, semel::Claims& orders,
                               const std::string& order, int cents) {
  const semel::ClaimOutcome claim = orders.claim({.key = order});
  if (claim.answer == semel::ClaimAnswer::replay) return "again: " + claim.result;
  if (claim.answer != semel::ClaimAnswer::granted) return std::string{"somebody is at it"};

  // The effects: rows of our own, in a family of our own.
  rocksdb::WriteBatch effects;
  const auto put = effects.Put(semel::family(storage, "payments"), order, std::to_string(cents));
  if (!put.ok()) return semel::Error{semel::ErrorCode::storage_failed, put.ToString()};

  SEMEL_TRY(done,
            semel::complete_joined(
                storage, orders, {.key = order, .epoch = claim.epoch, .payload = "paid"}, effects));
  // Not written: another owner has taken over, or has finished; our effects are not there then.
  return std::string{done.written ? "paid" : "not ours any more"};
}

/// One life of the process. Returns the answer for the order, and the bookings.
std::string live(const std::string& directory) {
  const semel::SystemClock clock;
  auto storage = semel::open_storage({.directory = directory}, clock,
                                     {{"payments", rocksdb::ColumnFamilyOptions{}}})
                     .value();
  auto engine = semel::Engine::open({.clock = &clock,
                                     .journal = storage.get(),
                                     .durability = semel::Durability::synced,
                                     .first_version = storage->first_version()})
                    .value();
  static_cast<void>(storage->recover(*engine).value());
  auto orders = engine->claims("orders", semel::Policy{}).value();
  std::string line = pay(*storage, orders, "order-4711", 1'999).value();
  std::string booked;
  const auto found =
      semel::database(*storage).Get({}, semel::family(*storage, "payments"), "order-4711", &booked);
  line += found.ok() ? ", booked " + booked : ", not booked";
  std::printf("%s\n", line.c_str());
  return line;
}

}  // namespace

int main() {
  char name[] = "/tmp/semel_example_XXXXXX";
  if (mkdtemp(name) == nullptr) return 1;
  const std::string first = live(name);
  const std::string second = live(name);
  std::filesystem::remove_all(name);
  return first == "paid, booked 1999" && second == "again: paid, booked 1999" ? 0 : 1;
}

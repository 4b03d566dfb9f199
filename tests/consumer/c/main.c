/* A program in C on the shared library: an order is paid, the engine ends, and the next one on the
 * same storage replays what was paid. */
#include <semel.h>
#include <stdio.h>
#include <string.h>

static const char key[] = "order-4711";

/* What one life of the process is answered for the order: 'w' it was worked on, 'r' replayed. */
static int live(const char* directory) {
  semel_engine* engine;
  semel_claims* orders;
  semel_options options;
  semel_policy policy;
  semel_request request;
  semel_claim_outcome claim;
  int said = 'x';

  SEMEL_INIT(options);
  options.storage_directory = directory;
  options.durability = SEMEL_DURABILITY_SYNCED;
  if (semel_engine_open(&options, &engine) != SEMEL_OK) {
    printf("open: %s\n", semel_error_detail());
    return 'x';
  }
  SEMEL_INIT(policy);
  SEMEL_INIT(request);
  request.key = key;
  request.key_length = strlen(key);
  SEMEL_INIT(claim);
  if (semel_claims_open(engine, "orders", &policy, &orders) == SEMEL_OK &&
      semel_claim(orders, &request, &claim) == SEMEL_OK) {
    if (claim.answer == SEMEL_REPLAY && claim.result.length == 4 &&
        memcmp(claim.result.data, "paid", 4) == 0) {
      said = 'r';
    } else if (claim.answer == SEMEL_GRANTED) {
      semel_owner_call call;
      semel_owner_outcome done;
      SEMEL_INIT(call);
      call.key = key;
      call.key_length = strlen(key);
      call.epoch = claim.epoch;
      call.payload = "paid";
      call.payload_length = 4;
      SEMEL_INIT(done);
      if (semel_complete(orders, &call, &done) == SEMEL_OK && done.answer == SEMEL_OWNER_OK) {
        said = 'w';
      }
      semel_buffer_free(&done.result);
    }
  }
  semel_buffer_free(&claim.result);
  semel_buffer_free(&claim.owner);
  return semel_engine_close(engine) == SEMEL_OK ? said : 'x';
}

int main(int argc, char** argv) {
  int first;
  int second;
  if (argc != 2) {
    puts("usage: main DIR");
    return 2;
  }
  first = live(argv[1]);
  second = live(argv[1]);
  printf("semel %s from C: %s, then %s\n", semel_version(),
         first == 'w' ? "worked" : "did not work", second == 'r' ? "replayed" : "did not replay");
  return first == 'w' && second == 'r' ? 0 : 1;
}

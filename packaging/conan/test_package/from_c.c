/* A claim by the shared library: the second is not granted. */
#include <semel.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  semel_options options;
  semel_policy policy;
  semel_request request;
  semel_claim_outcome first;
  semel_claim_outcome second;
  semel_engine* engine;
  semel_claims* orders;

  SEMEL_INIT(options);
  SEMEL_INIT(policy);
  SEMEL_INIT(request);
  SEMEL_INIT(first);
  SEMEL_INIT(second);
  request.key = "order-4711";
  request.key_length = strlen("order-4711");
  if (semel_engine_open(&options, &engine) != SEMEL_OK ||
      semel_claims_open(engine, "orders", &policy, &orders) != SEMEL_OK ||
      semel_claim(orders, &request, &first) != SEMEL_OK ||
      semel_claim(orders, &request, &second) != SEMEL_OK) {
    printf("semel: %s\n", semel_error_detail());
    return 1;
  }
  printf("semel from C: %s\n", second.answer == SEMEL_IN_FLIGHT ? "works" : "FAILED");
  return first.answer == SEMEL_GRANTED && second.answer == SEMEL_IN_FLIGHT ? 0 : 1;
}

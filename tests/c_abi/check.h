/* What the tests of semel.h share: checks that say file and line, and calls in short. */
#ifndef SEMEL_TESTS_C_ABI_CHECK_H
#define SEMEL_TESTS_C_ABI_CHECK_H

#include <stdio.h>
#include <string.h>

#include "semel.h"

extern int checks;
extern int failures;

#define CHECK(condition)                                              \
  do {                                                                \
    ++checks;                                                         \
    if (!(condition)) {                                               \
      ++failures;                                                     \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      fprintf(stderr, "  last error: %s\n", semel_error_detail());    \
    }                                                                 \
  } while (0)
#define CHECK_OK(call) CHECK((call) == SEMEL_OK)

#define TEXT(literal) (literal), (sizeof(literal) - 1)
#define HOLDS(buffer, literal)                                        \
  ((buffer).data != NULL && (buffer).length == sizeof(literal) - 1 && \
   memcmp((buffer).data, (literal), sizeof(literal)) == 0)

/* An engine with a manual clock. */
semel_engine* open_engine(const char* directory);
semel_claims* open_claims(semel_engine* engine, const char* name, const char* policy);
semel_request request_for(const char* key);
semel_owner_call owner_call_for(const char* key, semel_uint64 epoch, const char* payload);

void test_lengths(void);
void test_patterns(void);
void test_locks(void);
void test_permits(void);
void test_rwlock(void);
void test_debounces(void);
void test_rates(void);
void test_waits(const char* directory);
void test_steps(void);
void test_restart(const char* directory);

#endif

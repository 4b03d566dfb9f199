package io.semel.spring;

import io.semel.OnException;
import io.semel.Work;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.ClassUtils;

/** Inside a transaction work is done when that is committed, and not before. */
final class Transactions {
  private static final boolean PRESENT = ClassUtils.isPresent(
      "org.springframework.transaction.support.TransactionSynchronizationManager",
      Transactions.class.getClassLoader());

  private Transactions() {}

  /** Ends `work` now, or with the transaction that this thread is in. */
  static void complete(Work work, byte[] result) {
    if (PRESENT && Spring.isActive()) {
      Spring.completeLater(work, result);
    } else {
      work.complete(result);
    }
  }

  /** Apart, so that this class loads without spring-tx. */
  private static final class Spring {
    static boolean isActive() {
      return TransactionSynchronizationManager.isActualTransactionActive()
          && TransactionSynchronizationManager.isSynchronizationActive();
    }

    static void completeLater(Work work, byte[] result) {
      TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
        @Override
        public void afterCommit() {
          work.complete(result);
        }

        @Override
        public void afterCompletion(int status) {
          if (status == STATUS_ROLLED_BACK) {
            work.fail("the transaction was rolled back", OnException.RELEASE);
          } else if (status == STATUS_UNKNOWN) {
            work.fail("the transaction's outcome is unknown", OnException.IN_DOUBT);
          } else {
            work.complete(result);
          }
        }
      });
    }
  }
}

package io.semel.spring;

import io.semel.Envelope;
import io.semel.OnException;
import io.semel.Semel;
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

  /**
   * Ends `work`, which returned `value`, now or with the transaction that this thread is in. See
   * Semel.finish(); what it throws after the commit is thrown to the one that commits.
   */
  static void finish(Semel semel, Work work, Envelope envelope, Object value) {
    if (PRESENT && Spring.isActive()) {
      Spring.finishLater(semel, work, envelope, value);
      semel.told(work, envelope, value);
    } else {
      semel.finish(work, envelope, value);
    }
  }

  /** Apart, so that this class loads without spring-tx. */
  private static final class Spring {
    static boolean isActive() {
      return TransactionSynchronizationManager.isActualTransactionActive()
          && TransactionSynchronizationManager.isSynchronizationActive();
    }

    static void finishLater(Semel semel, Work work, Envelope envelope, Object value) {
      TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
        @Override
        public void afterCommit() {
          semel.finishLate(work, envelope, value);
        }

        @Override
        public void afterCompletion(int status) {
          if (status == STATUS_ROLLED_BACK) {
            work.fail("the transaction was rolled back", OnException.RELEASE);
          } else if (status == STATUS_UNKNOWN) {
            work.fail("the transaction's outcome is unknown", OnException.IN_DOUBT);
          } else {
            work.complete(envelope.encode());
          }
        }
      });
    }
  }
}

package io.semel.tests;

import io.semel.Call;
import io.semel.InDoubt;
import io.semel.Rejected;
import io.semel.Verdict;
import io.semel.Work;

/** Stories whose owner is another JVM, which is halted or stands still while there is no leader. */
final class GroupOwnerStories {
  private GroupOwnerStories() {}

  /** The owner's JVM is halted while there is no leader: an order, a payment and a message. */
  static final class Halted extends GroupStory {
    private Child child;

    Halted(String driver, int round) {
      super("the owner is halted", driver, round);
    }

    @Override
    void before() throws Exception {
      child = new Child(GroupOwner.class, driver, "halted", key);
      for (int i = 0; i < GroupOwner.WORKS; ++i) Report.same(child.line(), "working");
    }

    @Override
    void killed() throws Exception {
      child.go();
      Report.same(child.ended(), 9);
    }

    /** A claim that the group had lost would be a first attempt, and no takeover. */
    @Override
    void back() throws Exception {
      Call order = GroupOwner.order(key).wait(GroupDrivers.PATIENCE);
      Report.same(semel.once(order, String.class, () -> {
        Report.same(Work.current().takeover(), true);
        Report.same(Work.current().attempt(), 2L);
        return "of the parent";
      }), "of the parent");
      Report.until(() -> {
        Verdict verdict = GroupOwner.mails(semel).consume(key, () -> {
          Report.same(Work.current().attempt(), 2L);
          return null;
        });
        if (verdict.kind() == Verdict.Kind.ACK) return true;
        Report.same(verdict.kind(), Verdict.Kind.RETRY_LATER);
        return false;
      });
      Report.same(GroupOwner.mails(semel).consume(key, () -> "x").kind(),
          Verdict.Kind.ACK_DUPLICATE);
      Report.until(() -> {
        try {
          semel.once(GroupOwner.payment(key), String.class, () -> "a second payment");
          throw new AssertionError("paid twice");
        } catch (Rejected held) {
          return false;
        } catch (InDoubt unknown) {
          return true;
        }
      });
      semel.command("SEMEL.RESOLVE", "payments", key, "DONE", "\"in the ledger\"");
      Report.same(semel.once(GroupOwner.payment(key), String.class, () -> "no"), "in the ledger");
    }

    @Override
    public void close() throws Exception {
      if (child != null) child.close();
      super.close();
    }
  }

  /** An owner that stood still meanwhile is told by the next leader that it has lost. */
  static final class Slow extends GroupStory {
    private Child child;

    Slow(String driver, int round) {
      super("a slow owner", driver, round);
    }

    @Override
    void before() throws Exception {
      child = new Child(GroupOwner.class, driver, "slow", key);
      Report.same(child.line(), "working");
      Node.signal(child.process(), "STOP");
    }

    @Override
    void killed() throws Exception {
      Report.same(semel.once(GroupOwner.order(key).wait(GroupDrivers.PATIENCE), String.class,
          () -> "of the parent"), "of the parent");
    }

    @Override
    void back() throws Exception {
      Node.signal(child.process(), "CONT");
      child.go();
      Report.same(child.line(), "lost");
      Report.same(semel.once(GroupOwner.order(key), String.class, () -> "no"), "of the parent");
    }

    @Override
    public void close() throws Exception {
      if (child != null) child.close();
      super.close();
    }
  }
}

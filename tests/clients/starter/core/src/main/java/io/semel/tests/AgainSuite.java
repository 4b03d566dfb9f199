package io.semel.tests;

/** Identity, results, permits, callers that go and options of drivers: docs/identity.md, docs/doors.md. */
public final class AgainSuite {
  private AgainSuite() {}

  public static void main(String[] arguments) {
    java.util.logging.Logger.getLogger("io.semel").setLevel(java.util.logging.Level.OFF);
    IdentitySuite.run();
    ResultSuite.run();
    FieldSuite.run();
    LateSuite.run();
    PermitSuite.run();
    AccessSuite.run();
    RecordSuite.run();
    LeaseSuite.run();
    OptionSuite.run();
    Report.end();
  }
}

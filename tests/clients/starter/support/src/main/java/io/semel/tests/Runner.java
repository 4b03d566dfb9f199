package io.semel.tests;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;

/** What the program that runs a suite does for it; see tests/clients/group_target.py. */
public final class Runner {
  private static final BufferedReader INPUT = new BufferedReader(new InputStreamReader(System.in));

  private Runner() {}

  /** What it has done, or found. */
  public static synchronized String need(String words) throws IOException {
    System.out.println("need " + words);
    System.out.flush();
    String said = INPUT.readLine();
    if (said == null || !said.startsWith("done")) throw new AssertionError(words + ": " + said);
    return said.substring(4).trim();
  }

  public static void figure(String name, long number) {
    System.out.println("figure " + name.replace(", ", "-").replace(' ', '-') + " " + number);
  }
}

package io.semel.tests;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The library against three nodes whose leader is killed (SIGKILL) and started again, with
 * `cluster` clients or with `plain` ones; under the former it is only stopped every second time. All stories
 * over all drivers are in the middle of their work then; a storm of claims over each driver goes on
 * beside them. Each act has 60 s, and each wait in it a bound of its own.
 */
final class GroupSuite {
  private static final int KILLS = Integer.parseInt(System.getenv("SEMEL_TEST_KILLS"));
  private static final long ACT_SECONDS = 60;
  private final Map<GroupStory, Throwable> wrong = new ConcurrentHashMap<>();

  private interface Act {
    void play(GroupStory story) throws Exception;
  }

  private GroupSuite() {}

  private Thread play(GroupStory story, Act act, CountDownLatch played) {
    Thread thread = new Thread(() -> {
      try {
        act.play(story);
      } catch (Throwable error) {
        wrong.put(story, error);
      }
      played.countDown();
    });
    thread.setDaemon(true);
    thread.start();
    return thread;
  }

  /** Begins an act of all stories that are still right. */
  private Runnable begin(List<GroupStory> stories, Act act) {
    List<GroupStory> left = new ArrayList<>(stories);
    left.removeAll(wrong.keySet());
    CountDownLatch played = new CountDownLatch(left.size());
    Map<GroupStory, Thread> threads = new ConcurrentHashMap<>();
    for (GroupStory each : left) threads.put(each, play(each, act, played));
    return () -> {
      try {
        if (played.await(ACT_SECONDS, TimeUnit.SECONDS)) return;
      } catch (InterruptedException error) {
        throw new IllegalStateException(error);
      }
      threads.forEach((story, thread) -> {
        if (!thread.isAlive()) return;
        AssertionError late = new AssertionError("not ended after " + ACT_SECONDS + " s");
        late.setStackTrace(thread.getStackTrace());
        wrong.put(story, late);
      });
    };
  }

  private void round(String[] drivers, int round, List<Storm> storms) throws Exception {
    List<GroupStory> stories = new ArrayList<>();
    for (String driver : drivers) stories.addAll(GroupStories.all(driver, round));
    begin(stories, GroupStory::before).run();
    for (Storm each : storms) each.longestMs();
    // Every second time it only stands still, and believes that it leads when it goes on. Clients
    // of one node keep to one that hangs, and notice nothing.
    boolean stops = round % 2 == 0 && drivers == GroupDrivers.CLUSTER;
    Runner.need(stops ? "stop-leader" : "kill-leader");
    Runnable killed = begin(stories, GroupStory::killed);
    for (Storm each : storms) {
      Report.check("goes on without a node, " + each.driver() + ", kill " + round, each::goesOn);
    }
    killed.run();
    for (Storm each : storms) Runner.figure("kill, " + each.driver(), each.longestMs());
    Runner.need("restart");
    begin(stories, GroupStory::back).run();
    for (GroupStory each : stories) {
      Report.check(each.name() + ", kill " + round, () -> {
        Throwable error = wrong.get(each);
        if (error instanceof Error) throw (Error) error;
        if (error != null) throw (Exception) error;
      });
      each.close();
    }
  }

  private void run(String[] drivers) throws Exception {
    List<Storm> storms = new ArrayList<>();
    for (String driver : drivers) storms.add(new Storm(driver));
    for (Storm each : storms) each.start();
    for (Storm each : storms) Report.check("answers, " + each.driver(), each::goesOn);
    for (int round = 1; round <= KILLS; ++round) round(drivers, round, storms);
    for (Storm each : storms) {
      Report.check("each effect once, each result again, " + each.driver(), each::verify);
      each.close();
    }
  }

  public static void main(String[] words) throws Exception {
    java.util.logging.Logger.getLogger("io.semel").setLevel(java.util.logging.Level.OFF);
    new GroupSuite().run(words[0].equals("plain") ? GroupDrivers.PLAIN : GroupDrivers.CLUSTER);
    Report.end();
  }
}

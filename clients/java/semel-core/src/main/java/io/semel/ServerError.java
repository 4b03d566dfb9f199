package io.semel;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;

/** An error reply. */
public class ServerError extends SemelException {
  private static final long serialVersionUID = 1L;
  private static final Set<String> TRANSIENT = new HashSet<>(Arrays.asList("BUSY", "TRYAGAIN",
      "LOADING", "MASTERDOWN", "CLUSTERDOWN", "READONLY", "MOVED", "ASK", "MISCONF", "OOM"));

  public ServerError(String message) {
    super(message);
  }

  /**
   * Whether the same call may succeed later: a script runs, the node starts, changes its leader or has
   * no room. The one list of this library.
   */
  public boolean isTransient() {
    return TRANSIENT.contains(word());
  }

  /**
   * Whether a completion may be taken without its result: there is no memory for it, or it is
   * refused for good.
   */
  boolean isOfResult() {
    return word().equals("OOM") || !isTransient();
  }

  private String word() {
    return String.valueOf(getMessage()).split(" ", 2)[0];
  }
}

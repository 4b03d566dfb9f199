package io.semel;

/** An error reply. */
public class ServerError extends SemelException {
  private static final long serialVersionUID = 1L;

  public ServerError(String message) {
    super(message);
  }

  /** Whether the same call may succeed later: the node starts, changes its leader or has no room. */
  public boolean isTransient() {
    String text = getMessage();
    for (String word : new String[] {"TRYAGAIN", "LOADING", "BUSY", "MISCONF", "OOM", "CLUSTERDOWN",
        "READONLY", "MASTERDOWN", "MOVED"}) {
      if (text.startsWith(word + " ")) return true;
    }
    return false;
  }
}

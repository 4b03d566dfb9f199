package io.semel;

/**
 * The work is done, but the node could not be told, so its claim ends with its lease: a repeat may
 * run it again after that.
 */
public class Unrecorded extends SemelException {
  private static final long serialVersionUID = 1L;
  private final transient Object value;

  public Unrecorded(String message, Object value) {
    super(message);
    this.value = value;
  }

  /** What the work returned. */
  public Object value() {
    return value;
  }
}

package io.semel;

/**
 * The work is done, but its result cannot be given to a repeat as it is: it is too large, the codec
 * cannot write it, or reads another value. Repeats get Rejected(RESULT_GONE).
 */
public class ResultNotKept extends SemelException {
  private static final long serialVersionUID = 1L;
  private final transient Object value;

  public ResultNotKept(String message, Object value) {
    super(message);
    this.value = value;
  }

  /** What the work returned. */
  public Object value() {
    return value;
  }
}

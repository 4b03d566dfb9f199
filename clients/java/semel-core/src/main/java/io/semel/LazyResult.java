package io.semel;

/**
 * The function ended, but the work has not: it returned a future, a stream, a publisher or the like.
 * The claim ends as after any other exception.
 */
public class LazyResult extends SemelException {
  private static final long serialVersionUID = 1L;

  public LazyResult(String message) {
    super(message);
  }
}

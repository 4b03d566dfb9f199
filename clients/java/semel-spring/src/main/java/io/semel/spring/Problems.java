package io.semel.spring;

import io.semel.InDoubt;
import io.semel.InvalidKey;
import io.semel.KeptFailure;
import io.semel.LeaseLost;
import io.semel.Mismatch;
import io.semel.Rejected;
import io.semel.ResultNotKept;
import io.semel.SemelException;
import io.semel.Unreachable;
import io.semel.UnknownToken;
import io.semel.Unrecorded;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Answers of RFC 9457: 409 for work that is being done, 422 for another payload under the key. */
@RestControllerAdvice
public class Problems {
  /** What is answered for `error`; an own advice with a higher precedence replaces it. */
  @ExceptionHandler(SemelException.class)
  public ResponseEntity<Map<String, Object>> problem(SemelException error) {
    int status = status(error);
    Map<String, Object> body = new LinkedHashMap<>();
    body.put("type", "about:blank");
    body.put("title", title(error));
    body.put("status", status);
    // What the node or a driver said is for the log, not for strangers.
    if (status < 500) body.put("detail", error.getMessage());
    ResponseEntity.BodyBuilder builder = ResponseEntity.status(status);
    builder.header("Content-Type", "application/problem+json");
    if (error instanceof Rejected) {
      body.put("reason", ((Rejected) error).reason().name());
      long ms = ((Rejected) error).retryAfterMs();
      if (ms > 0) builder.header("Retry-After", Long.toString((ms + 999) / 1000));
    }
    if (error instanceof Unreachable) builder.header("Retry-After", "1");
    return builder.body(body);
  }

  private static int status(SemelException error) {
    if (error instanceof Rejected) {
      switch (((Rejected) error).reason()) {
        case BUSY:
          return 503;
        case TOO_OLD:
        case TOO_NEW:
          return 412;
        default:
          return 409;
      }
    }
    if (error instanceof Mismatch) return 422;
    if (error instanceof InvalidKey) return 400;
    if (error instanceof Unreachable) return 503;
    boolean conflict = error instanceof InDoubt || error instanceof KeptFailure
        || error instanceof LeaseLost || error instanceof UnknownToken;
    return conflict ? 409 : 500;
  }

  private static String title(SemelException error) {
    if (error instanceof Rejected) return "Not started";
    if (error instanceof Mismatch) return "The key was used for another request";
    if (error instanceof InvalidKey) return "No usable key";
    if (error instanceof Unreachable) return "Repeats cannot be recognised at the moment";
    if (error instanceof InDoubt) return "The outcome is unknown";
    if (error instanceof KeptFailure) return "It failed for good";
    if (error instanceof LeaseLost) return "Another owner took over";
    if (error instanceof ResultNotKept) return "It is done, but its result was not kept";
    if (error instanceof Unrecorded) return "It is done, but that is not recorded";
    if (error instanceof UnknownToken) return "The token was not issued, or has ended";
    return "The node refused the request";
  }
}

package io.semel.spring;

import io.semel.Call;
import io.semel.Envelope;
import io.semel.Semel;
import io.semel.Work;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a method answered, with its status and headers, to be stored and to be given again. */
final class Replies {
  static final String REPLAYED = "Idempotency-Replayed";
  /** Its name before 0.2, for clients that look for it; 0.3 does not send it. */
  static final String REPLAYED_BEFORE = "Idempotent-Replayed";
  static final String RECORDED = "Semel-Recorded";
  private final Semel semel;

  Replies(Semel semel) {
    this.semel = semel;
  }

  /** A session of the first caller is not given to the next. */
  static boolean isPrivate(String header) {
    return header.equalsIgnoreCase("Set-Cookie") || header.equalsIgnoreCase("Date");
  }

  /** Header names before the method ran; what it adds is stored. */
  static Set<String> before(Guard guard, WebCall web) {
    return web == null || !guard.isController || guard.isAsync ? Collections.<String>emptySet()
        : web.headerNames();
  }

  /** A server error is no result: it is as if the method had thrown. */
  static boolean isFailure(Guard guard, Object value) {
    return guard.isEntity && value != null && Entities.status(value) >= 500;
  }

  Envelope stored(Guard guard, Work work, Object value, WebCall web, Set<String> before) {
    boolean entity = guard.isEntity && value != null;
    Object body = entity ? Entities.body(value) : value;
    // The caller of a controller is sent JSON; what is in an entity or a future, nobody casts.
    Envelope envelope = guard.isController
        ? semel.document(work, body, guard.bodyType, guard.isEntity || guard.isAsync)
        : semel.envelope(work, body, guard.bodyType);
    if (guard.isEntity && value == null) return envelope;
    if (entity) {
      envelope.status(Entities.status(value));
      Entities.copyHeaders(value, envelope);
    }
    if (web != null && guard.isController && !guard.isAsync) {
      int status = web.status();
      if (!entity && status != 0 && status != 200) envelope.status(status);
      for (String name : web.headerNames()) {
        if (before.contains(name) || isPrivate(name)) continue;
        for (Object each : web.headers(name)) envelope.header(name, String.valueOf(each));
      }
    }
    return envelope;
  }

  Object replayed(Guard guard, Call call, Envelope envelope, WebCall web) {
    Object body = semel.value(call, envelope, guard.bodyType);
    // Without a status it was no entity, but null.
    if (guard.isEntity) return envelope.status() == 0 ? null : Entities.made(envelope, body);
    if (web != null && guard.isController) {
      if (envelope.status() != 0) web.status(envelope.status());
      for (Map.Entry<String, List<String>> each : envelope.headers().entrySet()) {
        for (String value : each.getValue()) web.addHeader(each.getKey(), value);
      }
      web.addHeader(REPLAYED, "true");
      web.addHeader(REPLAYED_BEFORE, "true");
    }
    return body;
  }
}

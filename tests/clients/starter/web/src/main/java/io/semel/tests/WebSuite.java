package io.semel.tests;

import io.semel.Semel;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ConfigurableApplicationContext;

/** Requests to an application of this Boot. */
public final class WebSuite {
  private static Node node;
  private static Http http;
  private static ConfigurableApplicationContext context;

  private WebSuite() {}

  private static String order(String id, String amount) {
    return "{\"id\":\"" + id + "\",\"amount\":" + amount + ",\"notes\":{\"b\":\"2\",\"a\":\"1\"}}";
  }

  private static void replay() throws Exception {
    HttpResponse<String> first = http.post("/orders", order("o-1", "1.10"));
    Report.same(first.statusCode(), 201);
    // The same payload with its names in another order.
    HttpResponse<String> second = http.post("/orders",
        "{\"notes\":{\"a\":\"1\",\"b\":\"2\"}, \"amount\":1.1, \"id\":\"o-1\"}");
    Report.same(second.statusCode(), 201);
    Report.same(second.body(), first.body());
    Report.same(Http.header(second, "Location"), "/orders/o-1");
    Report.same(Http.header(second, "X-Run"), Http.header(first, "X-Run"));
    Report.same(Http.header(second, "Set-Cookie"), "");
    Report.same(Http.header(first, "Idempotency-Replayed"), "");
    Report.same(Http.header(second, "Idempotency-Replayed"), "true");
    Report.same(Http.header(second, "Idempotent-Replayed"), "true"); // until 0.3
    HttpResponse<String> other = http.post("/orders", order("o-1", "2"));
    Report.same(other.statusCode(), 422);
    Report.same(Http.header(other, "Content-Type"), "application/problem+json");
    // A method with the same prefix shares the keys, and not the results.
    Report.same(http.post("/orders/cancel", order("o-1", "1.10")).statusCode(), 422);
  }

  private static void concurrent() throws Exception {
    WebApp.begun = new CountDownLatch(1);
    WebApp.end = new CountDownLatch(1);
    CompletableFuture<HttpResponse<String>> slow = http.send("/slow", order("s-1", "5"));
    WebApp.begun.await(20, TimeUnit.SECONDS);
    CompletableFuture<HttpResponse<String>> waits = http.send("/slow", order("s-1", "5"));
    WebApp.begun = new CountDownLatch(1);
    CompletableFuture<HttpResponse<String>> busy = http.send("/busy", order("b-1", "5"));
    WebApp.begun.await(20, TimeUnit.SECONDS);
    HttpResponse<String> rejected = http.post("/busy", order("b-1", "5"));
    Report.same(rejected.statusCode(), 409);
    Report.has(rejected.body(), "\"detail\":\"too fast\"");
    Report.has(rejected.body(), "\"reason\":\"IN_FLIGHT\"");
    Report.same(Http.header(rejected, "Retry-After"), "1");
    WebApp.end.countDown();
    Report.same(slow.get().body(), waits.get().body());
    Report.same(waits.get().statusCode() + busy.get().statusCode(), 400);
  }

  private static void parameters() throws Exception {
    String first = http.post("/transfer", order("t-1", "1")).body();
    Report.same(http.post("/transfer", order("t-1", "1.0")).body(), first);
    WebApp.user = "bob";
    Report.same(http.post("/transfer", order("t-1", "1")).body().equals(first), false);
    WebApp.user = "";
    HttpResponse<String> nobody = http.post("/transfer", order("t-1", "1"));
    Report.same(nobody.statusCode(), 400);
    Report.has(nobody.body(), "semel.param.anonymous");
    WebApp.user = "alice";
  }

  private static void tokens() throws Exception {
    Report.same(http.post("/pay", order("p", "1")).statusCode(), 400);
    Report.same(http.post("/pay", order("p", "1"), "token", "f".repeat(32)).statusCode(), 409);
    String token = http.post("/token", "").body().replaceAll(".*:\"|\"}", "");
    Report.same(token.length(), 32);
    Report.same(http.post("/pay", order("p", "-1"), "token", token).statusCode(), 500);
    HttpResponse<String> paid = http.post("/pay", order("p", "1"), "token", token);
    Report.same(paid.statusCode(), 200);
    Report.same(http.post("/pay?token=" + token, order("p", "1")).body(), paid.body());
    Report.same(http.post("/pay", order("p", "3"), "token", token).statusCode(), 422);
  }

  private static void shapes() throws Exception {
    HttpResponse<String> first = http.post("/header", "", "Idempotency-Key", "h-1");
    HttpResponse<String> second = http.post("/header", "", "idempotency-key", "h-1");
    Report.same(second.statusCode() + second.body(), first.statusCode() + first.body());
    Report.same(first.statusCode(), 202);
    Report.same(Http.header(second, "X-Of-Servlet"), "yes");
    String unguarded = http.post("/header", "").body();
    Report.same(http.post("/header", "").body().equals(unguarded), false);
    int runs = WebApp.RUNS.get();
    for (int i = 0; i < 2; ++i) {
      HttpResponse<String> nothing = http.post("/nothing?id=n-1", "");
      Report.same(nothing.statusCode() + nothing.body(), "200");
    }
    Report.same(WebApp.RUNS.get(), runs + 1);
    HttpResponse<String> later = http.post("/later?id=l-1", "");
    Report.same(later.statusCode(), 202);
    HttpResponse<String> again = http.post("/later?id=l-1", "");
    Report.same(again.statusCode() + again.body(), "202" + later.body());
    Report.same(Http.header(again, "Idempotency-Replayed"), "true");
  }

  private static void failures() throws Exception {
    Report.same(http.post("/fails?id=f-1", "").statusCode(), 500);
    int runs = WebApp.RUNS.get();
    Report.same(http.post("/fails?id=f-1", "").statusCode(), 409);
    Report.same(WebApp.RUNS.get(), runs);
    String unavailable = "/unavailable?id=u-1";
    if (WebApp.RUNS.get() % 2 == 1) http.post("/nothing?id=odd", "");
    Report.same(http.post(unavailable, "").statusCode(), 503);
    HttpResponse<String> ran = http.post(unavailable, "");
    Report.same(ran.statusCode(), 200);
    Report.same(http.post(unavailable, "").body(), ran.body());
    String lock = http.post("/lock?id=k-1", "").body();
    Report.same(http.post("/lock?id=k-1", "").body().equals(lock), false);
    Report.same(http.post("/reject?id=r-1", "").statusCode(), 200);
    HttpResponse<String> rejected = http.post("/reject?id=r-1", "");
    Report.same(rejected.statusCode(), 409);
    Report.has(rejected.body(), "done already");
  }

  private static void keys() throws Exception {
    for (String path : new String[] {"/nothing", "/nothing?id=", "/nothing?id=%20%20",
        "/nothing?id=" + "x".repeat(1025)}) {
      Report.same(http.post(path, "").statusCode(), 400);
    }
    Report.same(http.post("/orders", "{}").statusCode(), 400);
  }

  private static void metrics() throws Exception {
    Object registry = context.getBean(Class.forName("io.micrometer.core.instrument.MeterRegistry"));
    String all = ((io.micrometer.core.instrument.MeterRegistry) registry).find("semel.calls")
        .timers().toString() + ((io.micrometer.core.instrument.MeterRegistry) registry)
        .find("semel.calls").tag("outcome", "replayed").timers().size();
    Report.same(all.endsWith("0"), false);
  }

  private static void down() throws Exception {
    node.kill();
    HttpResponse<String> refused = http.post("/orders", order("d-1", "1"));
    Report.same(refused.statusCode(), 503);
    Report.same(Http.header(refused, "Retry-After"), "1");
    Report.same(refused.body().contains("127.0.0.1"), false);
    node.start();
    Report.until(() -> http.post("/orders", order("d-1", "1")).statusCode() == 201);
  }

  /** An application that dies while it answers; the caller asks another one. */
  private static void halted() throws Exception {
    try (Child child = new Child(WebApp.class, Integer.toString(node.port()))) {
      String line = child.line();
      while (!line.startsWith("port ")) line = child.line();  // frameworks print before it
      Http first = new Http(line.substring(5));
      CompletableFuture<HttpResponse<String>> cut = first.send("/dies",
          "{\"id\":\"x-1\",\"amount\":null}");
      Report.same(child.ended(), 9);
      Report.until(cut::isDone);
      Report.same(cut.isCompletedExceptionally(), true);
      String same = "{\"id\":\"x-1\",\"amount\":null}";
      HttpResponse<String> held = http.post("/dies", same);
      Report.same(held.statusCode(), 409);
      Report.has(held.body(), "shop ");
      Report.same(http.post("/dies", order("x-1", "1")).statusCode(), 422);
      node.advance(60_001);
      context.getBean(Semel.class).command("SEMEL.FORGET", "shop.dies", "x-1");
      Report.same(http.post("/dies", order("x-1", "1")).statusCode(), 200);
    }
  }

  public static void main(String[] arguments) throws Exception {
    node = new Node();
    context = WebApp.start(node.port());
    http = new Http(context.getEnvironment().getProperty("local.server.port"));
    String boot = ", Boot " + SpringBootVersion.getVersion().replaceAll("\\.\\d+$", "");
    Report.check("replay" + boot, WebSuite::replay);
    Report.check("concurrent requests" + boot, WebSuite::concurrent);
    Report.check("PARAM" + boot, WebSuite::parameters);
    Report.check("TOKEN" + boot, WebSuite::tokens);
    Report.check("shapes of results" + boot, WebSuite::shapes);
    Report.check("failures" + boot, WebSuite::failures);
    Report.check("keys" + boot, WebSuite::keys);
    Report.check("metrics" + boot, WebSuite::metrics);
    Report.check("the node is down" + boot, WebSuite::down);
    Report.check("the application is halted" + boot, WebSuite::halted);
    context.close();
    BeanSuite.run(node, boot);
    Report.end();
  }
}

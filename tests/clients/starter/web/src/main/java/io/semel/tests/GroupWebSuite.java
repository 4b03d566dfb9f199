package io.semel.tests;

import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.SpringBootVersion;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * An application of this Boot with `spring.data.redis.cluster.nodes`, whose leader is killed in the
 * middle of a request.
 */
public final class GroupWebSuite {
  private static final String BODY = "{\"id\":\"g-1\",\"amount\":5}";
  private static final String NODES =
      "127.0.0.1:" + System.getenv("SEMEL_TEST_NODES").replace(" ", ",127.0.0.1:");

  private GroupWebSuite() {}

  /** Boot 2.7 has the first names of these, the others the second ones. */
  private static ConfigurableApplicationContext start(String client) {
    return new SpringApplication(WebApp.class).run("--server.port=0",
        "--spring.application.name=" + client, "--logging.level.root=OFF",
        "--spring.main.banner-mode=off", "--spring.rabbitmq.listener.simple.auto-startup=false",
        "--spring.kafka.listener.auto-startup=false",
        "--spring.datasource.url=jdbc:h2:mem:" + System.nanoTime(),
        "--spring.redis.client-type=" + client, "--spring.data.redis.client-type=" + client,
        "--spring.redis.cluster.nodes=" + NODES, "--spring.data.redis.cluster.nodes=" + NODES,
        "--spring.redis.timeout=500ms", "--spring.data.redis.timeout=500ms",
        "--semel.patience=15s", "--semel.record-patience=15s");
  }

  private static void killed(String client) throws Exception {
    try (ConfigurableApplicationContext context = start(client)) {
      Http http = new Http(context.getEnvironment().getProperty("local.server.port"));
      Report.same(http.post("/orders", BODY).statusCode(), 201);
      WebApp.begun = new CountDownLatch(1);
      WebApp.end = new CountDownLatch(1);
      CompletableFuture<HttpResponse<String>> slow = http.send("/slow", BODY);
      Report.same(WebApp.begun.await(20, TimeUnit.SECONDS), true);
      Runner.need("kill-leader");
      WebApp.end.countDown();
      HttpResponse<String> first = slow.get(40, TimeUnit.SECONDS);
      Report.same(first.statusCode() + Http.header(first, "Idempotency-Replayed"), "200");
      for (int i = 0; i < 2; ++i) {
        HttpResponse<String> repeat = http.post("/slow", BODY);
        Report.same(repeat.body() + Http.header(repeat, "Idempotency-Replayed"),
            first.body() + "true");
        Report.same(Http.header(http.post("/orders", BODY), "Idempotency-Replayed"), "true");
        if (i == 0) Runner.need("restart");
      }
    }
  }

  public static void main(String[] words) {
    java.util.logging.Logger.getLogger("io.semel").setLevel(java.util.logging.Level.OFF);
    for (String client : new String[] {"lettuce", "jedis"}) {
      Report.check("a cluster of Spring's " + client + ", Boot " + SpringBootVersion.getVersion(),
          () -> killed(client));
    }
    Report.end();
  }
}
